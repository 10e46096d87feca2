/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may ask of the simulator beside verbs and the C library, for C and C++. Nobody needs it: a program that
 * only polls CQs or sleeps on channels is a plain verbs program. */
#ifndef RDMASIM_VERBS_FRONTEND_PROGRAM_H
#define RDMASIM_VERBS_FRONTEND_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "verbs_frontend/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps the core busy for so many nanoseconds: what the program computes costs no simulated time by itself. */
void rdmasim_compute(uint64_t nanoseconds);

/* Spins until a write of another agent, as of an adapter, touches the `len` bytes at `at`, all in one page of memory from
 * malloc(); `interval` is what one turn of the loop costs, in nanoseconds, at least 1. A loop of plain loads would spin for
 * ever, because simulated time stands still in it. */
void rdmasim_wait_for_write(const void* at, size_t len, uint64_t interval);

#ifdef __cplusplus
}
#endif
#endif
