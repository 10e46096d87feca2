// SPDX-License-Identifier: Apache-2.0
// Out-of-band meeting point of the programs of a scenario: what real programs do over a TCP connection before RDMA works.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/thread.h"

namespace sys {

class Exchange {
 public:
  /// Two callers with one tag swap `n` bytes; the first waits for the second. 0, or EINVAL when their sizes differ.
  int swap(std::string_view tag, const void* mine, void* theirs, std::size_t n);

 private:
  struct Waiting {
    cpu::Thread* thread;
    std::vector<std::byte> mine;
    void* theirs;
    int result;
    bool met;
  };
  std::map<std::string, Waiting*, std::less<>> waiting_;
};

}  // namespace sys
