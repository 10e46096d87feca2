// SPDX-License-Identifier: Apache-2.0
// The first caller parks with its bytes; the second takes them, leaves its own and wakes it at the same instant. The
// exchange itself takes no simulated time.
#include "system/exchange.h"

#include <cerrno>
#include <cstring>

#include "system/host.h"
#include "verbs_frontend/exchange.h"

namespace sys {

int Exchange::swap(std::string_view tag, const void* mine, void* theirs, std::size_t n) {
  cpu::Thread& self = cpu::current();
  self.sync();
  const auto it = waiting_.find(tag);
  if (it == waiting_.end()) {
    Waiting w{&self, {}, theirs, 0, false};
    w.mine.resize(n);
    if (n > 0) std::memcpy(w.mine.data(), mine, n);
    waiting_.emplace(std::string(tag), &w);
    while (!w.met) self.park("out-of-band exchange");
    return w.result;
  }
  Waiting& other = *it->second;
  waiting_.erase(it);
  other.met = true;
  if (other.mine.size() != n) {
    other.result = EINVAL;
  } else if (n > 0) {
    std::memcpy(theirs, other.mine.data(), n);
    std::memcpy(other.theirs, mine, n);
  }
  other.thread->unpark(self.now());
  return other.mine.size() == n ? 0 : EINVAL;
}

}  // namespace sys

extern "C" int rdmasim_exchange(const char* tag, const void* mine, void* theirs, std::size_t len) {
  return static_cast<sys::Process&>(verbs::process()).exchange->swap(tag, mine, theirs, len);
}
