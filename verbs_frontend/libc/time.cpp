// SPDX-License-Identifier: Apache-2.0
#include "verbs_frontend/libc/time.h"

#include <sys/time.h>

#include <cerrno>
#include <ctime>

#include "cpu/thread.h"
#include "verbs_frontend/program.h"

namespace {

constexpr std::int64_t kNanosecond = 1'000, kSecond = 1'000'000'000'000;

sim::Picos nanoseconds(std::uint64_t n) { return sim::Picos{static_cast<std::int64_t>(n) * kNanosecond}; }

}  // namespace

int rdmasim_clock_gettime(int, timespec* t) {
  const std::int64_t now = cpu::current().now().n;
  t->tv_sec = now / kSecond;
  t->tv_nsec = now % kSecond / kNanosecond;
  return 0;
}

int rdmasim_gettimeofday(timeval* t, void*) {
  timespec now{};
  rdmasim_clock_gettime(0, &now);
  *t = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

int rdmasim_nanosleep(const timespec* t, timespec* rest) {
  if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999'999'999) {
    errno = EINVAL;
    return -1;
  }
  cpu::current().sleep(sim::Picos{t->tv_sec * kSecond + t->tv_nsec * kNanosecond});
  if (rest != nullptr) *rest = {0, 0};
  return 0;
}

int rdmasim_usleep(unsigned microseconds) {
  cpu::current().sleep(nanoseconds(std::uint64_t{microseconds} * 1000));
  return 0;
}

unsigned rdmasim_sleep(unsigned seconds) {
  cpu::current().sleep(nanoseconds(std::uint64_t{seconds} * 1'000'000'000));
  return 0;
}

int rdmasim_sched_yield() {
  cpu::current().compute(nanoseconds(1));
  cpu::current().sync();
  return 0;
}

void rdmasim_compute(std::uint64_t n) { cpu::current().compute(nanoseconds(n)); }

void rdmasim_wait_for_write(const void* at, std::size_t len, std::uint64_t interval) {
  cpu::current().wait_for_write(at, len, nanoseconds(interval == 0 ? 1 : interval));
}
