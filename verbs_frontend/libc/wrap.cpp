// SPDX-License-Identifier: Apache-2.0
#include "verbs_frontend/libc/wrap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "cpu/process_memory.h"
#include "cpu/thread.h"
#include "verbs_frontend/libc/event_wait.h"
#include "verbs_frontend/libc/time.h"

extern "C" {
// The linker's --wrap makes these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __wrap_malloc(std::size_t n) { return rdmasim_malloc(n); }
void* __wrap_calloc(std::size_t count, std::size_t n) { return rdmasim_calloc(count, n); }
void* __wrap_realloc(void* p, std::size_t n) { return rdmasim_realloc(p, n); }
void __wrap_free(void* p) { rdmasim_free(p); }
int __wrap_posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  return rdmasim_posix_memalign(out, alignment, n);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t n) { return rdmasim_aligned_alloc(alignment, n); }
void* __wrap_memalign(std::size_t alignment, std::size_t n) { return rdmasim_memalign(alignment, n); }
int __wrap_poll(pollfd* fds, unsigned long n, int milliseconds) { return rdmasim_poll(fds, n, milliseconds); }
int __wrap_epoll_create1(int flags) { return rdmasim_epoll_create1(flags); }
int __wrap_epoll_ctl(int epfd, int op, int fd, epoll_event* e) { return rdmasim_epoll_ctl(epfd, op, fd, e); }
int __wrap_epoll_wait(int epfd, epoll_event* events, int most, int milliseconds) {
  return rdmasim_epoll_wait(epfd, events, most, milliseconds);
}
int __wrap_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const int flags = command == F_GETFL ? 0 : va_arg(arguments, int);
  va_end(arguments);
  return rdmasim_fcntl(fd, command, flags);
}
int __wrap_close(int fd) { return rdmasim_close(fd); }
int __wrap_clock_gettime(int clock, timespec* t) { return rdmasim_clock_gettime(clock, t); }
int __wrap_gettimeofday(timeval* t, void* zone) { return rdmasim_gettimeofday(t, zone); }
int __wrap_nanosleep(const timespec* t, timespec* rest) { return rdmasim_nanosleep(t, rest); }
int __wrap_usleep(unsigned microseconds) { return rdmasim_usleep(microseconds); }
unsigned __wrap_sleep(unsigned seconds) { return rdmasim_sleep(seconds); }
int __wrap_sched_yield() { return rdmasim_sched_yield(); }
// Not by --wrap: the C++ library makes threads too, and libgcc has a __wrap_pthread_create of its own. It must not throw.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (cpu::current_or_null() != nullptr) {
    std::fputs("rdmasim: a program calls pthread_create(), and a simulated process has one thread\n", stderr);
    return ENOSYS;
  }
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}
[[noreturn]] void __wrap_exit(int code) { throw verbs::Exit{code}; }
// NOLINTEND(bugprone-reserved-identifier)
}

namespace verbs {

std::span<const char* const> wrapped_calls() {
  static constexpr auto kNames = std::to_array<const char*>(
      {"malloc",       "calloc",    "realloc",    "free",  "posix_memalign", "aligned_alloc", "memalign",
       "poll",         "epoll_ctl", "epoll_wait", "fcntl", "epoll_create1",  "close",         "clock_gettime",
       "gettimeofday", "nanosleep", "usleep",     "sleep", "sched_yield",    "exit"});
  return kNames;
}

std::span<const char* const> refused_calls() {
  static constexpr auto kNames =
      std::to_array<const char*>({"fork", "socket", "select", "ppoll", "epoll_pwait", "epoll_create", "pause", "signal",
                                  "sigaction", "alarm", "setitimer", "clock_nanosleep", "_exit", "mmap"});
  return kNames;
}

}  // namespace verbs
