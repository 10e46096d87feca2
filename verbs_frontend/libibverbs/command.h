// SPDX-License-Identifier: Apache-2.0
// A uverbs command as libibverbs writes it to /dev/infiniband/uverbsN: header, body, driver data in one write(); the
// kernel stores the answer (body, driver data) at the address that the body's first field names.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "kernel/syscalls.h"
#include "sim/check.h"

namespace verbs {

class Command {
 public:
  explicit Command(std::uint32_t number) { add<ib_uverbs_cmd_hdr>().command = number; }

  /// Appends a zeroed part of the request.
  template <class T>
  T& add() {
    SIM_CHECK(in_ + sizeof(T) <= request_.size(), "uverbs request too long");
    T* part = new (request_.data() + in_) T{};
    in_ += sizeof(T);
    return *part;
  }
  /// Appends a zeroed part of the response.
  template <class T>
  T& expect() {
    SIM_CHECK(out_ + sizeof(T) <= response_.size(), "uverbs response too long");
    T* part = new (response_.data() + out_) T{};
    out_ += sizeof(T);
    return *part;
  }
  std::uint64_t response_address() const { return reinterpret_cast<std::uint64_t>(response_.data()); }

  /// Sends it. 0 or a positive errno value, which is also left in errno as the library does.
  int issue(kernel::Syscalls& k, int fd) {
    auto& hdr = *reinterpret_cast<ib_uverbs_cmd_hdr*>(request_.data());
    hdr.in_words = static_cast<std::uint16_t>(in_ / 4);
    hdr.out_words = static_cast<std::uint16_t>(out_ / 4);
    const long n = k.write(fd, request_.data(), in_);
    if (n == static_cast<long>(in_)) return 0;
    errno = n < 0 ? static_cast<int>(-n) : EIO;
    return errno;
  }

 private:
  alignas(8) std::array<std::byte, 512> request_{};
  alignas(8) std::array<std::byte, 512> response_{};
  std::size_t in_ = 0, out_ = 0;
};

}  // namespace verbs
