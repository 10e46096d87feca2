// SPDX-License-Identifier: Apache-2.0
// poll, epoll, fcntl and close of the C library, on the system calls of the simulated process. Not modelled: signals, other
// files than those of the verbs library, EPOLL_CLOEXEC (there is no exec).
#include "verbs_frontend/libc/event_wait.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <vector>

#include "verbs_frontend/process_state.h"

namespace {

kernel::Syscalls& calls() { return *verbs::process().syscalls; }

int result(int value) {
  if (value >= 0) return value;
  errno = -value;
  return -1;
}

sim::Picos limit(int milliseconds) {
  return milliseconds < 0 ? sim::Picos{-1} : sim::Picos{milliseconds * 1'000'000'000LL};
}

}  // namespace

int rdmasim_poll(pollfd* fds, unsigned long n, int milliseconds) {
  std::vector<kernel::PollFd> polled;
  for (unsigned long i = 0; i < n; ++i) polled.push_back({fds[i].fd, fds[i].events, 0});
  const int ready = calls().poll(polled, limit(milliseconds));
  for (unsigned long i = 0; i < n; ++i) fds[i].revents = polled[i].revents;
  return result(ready);
}

int rdmasim_epoll_create1(int flags) {
  return result((flags & ~EPOLL_CLOEXEC) != 0 ? -EINVAL : calls().epoll_create());
}

int rdmasim_epoll_ctl(int epfd, int op, int fd, epoll_event* event) {
  if (event == nullptr && op != EPOLL_CTL_DEL) return result(-EFAULT);
  const kernel::EpollEvent e =
      event != nullptr ? kernel::EpollEvent{event->events, event->data.u64} : kernel::EpollEvent{};
  return result(calls().epoll_ctl(epfd, op, fd, e));
}

int rdmasim_epoll_wait(int epfd, epoll_event* events, int most, int milliseconds) {
  if (most <= 0) return result(-EINVAL);
  std::vector<kernel::EpollEvent> found(static_cast<std::size_t>(most));
  const int n = calls().epoll_wait(epfd, found, limit(milliseconds));
  for (int i = 0; i < n; ++i) {
    events[i].events = found[static_cast<std::size_t>(i)].events;
    events[i].data.u64 = found[static_cast<std::size_t>(i)].data;
  }
  return result(n);
}

int rdmasim_fcntl(int fd, int command, ...) {
  if (command == F_GETFL) return result(calls().flags(fd));
  if (command != F_SETFL) return result(-EINVAL);
  va_list arguments;
  va_start(arguments, command);
  const int flags = va_arg(arguments, int);
  va_end(arguments);
  if ((flags & ~(O_NONBLOCK | O_ACCMODE)) != 0) return result(-EINVAL);
  return result(calls().set_nonblock(fd, (flags & O_NONBLOCK) != 0));
}

int rdmasim_close(int fd) { return result(calls().close(fd)); }
