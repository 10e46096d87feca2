// SPDX-License-Identifier: Apache-2.0
// The driver's parts of a user command: what the provider library appended to the request, and where it reads the answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace kernel {

/// Callbacks of a driver get a null Udata when a kernel consumer calls.
struct Udata {
  std::span<const std::byte> in;
  std::span<std::byte> out;

  /// The request as a T; bytes that the library did not send are zero.
  template <class T>
  T request() const {
    T t{};
    if (!in.empty()) std::memcpy(&t, in.data(), std::min(in.size(), sizeof t));
    return t;
  }
  /// As much of the answer as the library has room for.
  template <class T>
  void respond(const T& t) const {
    if (!out.empty()) std::memcpy(out.data(), &t, std::min(out.size(), sizeof t));
  }
};

}  // namespace kernel
