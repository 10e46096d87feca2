/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks and sleeps of the C library in simulated time, for C and C++. Every clock reads the time since the start of the
 * simulation. Results and errno are those of the manual pages. */
#ifndef RDMASIM_VERBS_FRONTEND_LIBC_TIME_H
#define RDMASIM_VERBS_FRONTEND_LIBC_TIME_H

#ifdef __cplusplus
extern "C" {
#endif

struct timespec;
struct timeval;

int rdmasim_clock_gettime(int clock, struct timespec* t);
int rdmasim_gettimeofday(struct timeval* t, void* zone);
int rdmasim_nanosleep(const struct timespec* t, struct timespec* rest);
int rdmasim_usleep(unsigned microseconds);
unsigned rdmasim_sleep(unsigned seconds);
/* Gives way to what else happens at this time; takes a nanosecond, so that a loop of it ends. */
int rdmasim_sched_yield(void);

#ifdef __cplusplus
}
#endif
#endif
