// SPDX-License-Identifier: Apache-2.0
// A uverbs command in the extended format: headers, body and driver data in units of eight bytes, answers likewise.
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

class ExCommand {
 public:
  explicit ExCommand(std::uint32_t number) : number_(number) {}

  /// Appends a zeroed part of the body, or of the driver data once driver() has been called.
  template <class T>
  T& add() {
    SIM_CHECK(in_ + sizeof(T) <= request_.size(), "uverbs request too long");
    T* part = new (request_.data() + in_) T{};
    in_ += (sizeof(T) + 7) / 8 * 8;
    return *part;
  }
  /// Appends a zeroed part of the response, likewise.
  template <class T>
  T& expect() {
    SIM_CHECK(out_ + sizeof(T) <= response_.size(), "uverbs response too long");
    T* part = new (response_.data() + out_) T{};
    out_ += (sizeof(T) + 7) / 8 * 8;
    return *part;
  }
  /// What follows belongs to the driver.
  void driver() {
    core_in_ = in_;
    core_out_ = out_;
  }

  /// Sends it. 0 or a positive errno value, which is also left in errno.
  int issue(kernel::Syscalls& k, int fd) {
    if (core_in_ == 0) driver();
    auto& hdr = *new (request_.data()) ib_uverbs_cmd_hdr{};
    auto& ex = *new (request_.data() + sizeof hdr) ib_uverbs_ex_cmd_hdr{};
    hdr.command = number_ | IB_USER_VERBS_CMD_FLAG_EXTENDED;
    hdr.in_words = static_cast<std::uint16_t>((core_in_ - kHeaders) / 8);
    hdr.out_words = static_cast<std::uint16_t>(core_out_ / 8);
    ex.response = out_ != 0 ? reinterpret_cast<std::uint64_t>(response_.data()) : 0;
    ex.provider_in_words = static_cast<std::uint16_t>((in_ - core_in_) / 8);
    ex.provider_out_words = static_cast<std::uint16_t>((out_ - core_out_) / 8);
    const long n = k.write(fd, request_.data(), in_);
    if (n == static_cast<long>(in_)) return 0;
    errno = n < 0 ? static_cast<int>(-n) : EIO;
    return errno;
  }

 private:
  static constexpr std::size_t kHeaders = sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_ex_cmd_hdr);
  alignas(8) std::array<std::byte, 512> request_{};
  alignas(8) std::array<std::byte, 512> response_{};
  std::uint32_t number_;
  std::size_t in_ = kHeaders, out_ = 0, core_in_ = 0, core_out_ = 0;
};

}  // namespace verbs
