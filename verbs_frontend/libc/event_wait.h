/* SPDX-License-Identifier: Apache-2.0 */
/* The calls by which a simulated process waits for its completion channels and asynchronous events, for C and C++. A program
 * compiled with -Dpoll=rdmasim_poll and so on has them under their usual names. Descriptors are those of the simulated process,
 * time limits are simulated time; results and errno are those of the manual pages. */
#ifndef RDMASIM_VERBS_FRONTEND_LIBC_EVENT_WAIT_H
#define RDMASIM_VERBS_FRONTEND_LIBC_EVENT_WAIT_H

#ifdef __cplusplus
extern "C" {
#endif

struct pollfd;
struct epoll_event;

int rdmasim_poll(struct pollfd* fds, unsigned long n, int milliseconds);
int rdmasim_epoll_create1(int flags);
int rdmasim_epoll_ctl(int epfd, int op, int fd, struct epoll_event* event);
int rdmasim_epoll_wait(int epfd, struct epoll_event* events, int most, int milliseconds);
/* F_GETFL and F_SETFL of O_NONBLOCK; EINVAL for anything else (F_SETOWN and O_ASYNC too: there are no signals). */
int rdmasim_fcntl(int fd, int command, ...);
int rdmasim_close(int fd);

#ifdef __cplusplus
}
#endif

#endif
