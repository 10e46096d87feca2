/* SPDX-License-Identifier: Apache-2.0 */
/* Out-of-band exchange between the programs of one scenario: what a real verbs program does over a TCP socket.
 * Plain C, because unmodified C programs include it. */
#ifndef RDMASIM_VERBS_FRONTEND_EXCHANGE_H
#define RDMASIM_VERBS_FRONTEND_EXCHANGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives `len` bytes at `mine` to the peer that calls with the same tag, and receives its bytes in `theirs`. Blocks until
 * the peer has called too; takes no simulated time beyond that wait. Returns 0, or a positive errno value (EINVAL: the
 * two lengths differ). Defined by the system library. */
int rdmasim_exchange(const char* tag, const void* mine, void* theirs, size_t len);

#ifdef __cplusplus
}
#endif
#endif
