// SPDX-License-Identifier: Apache-2.0
// Packet sequence numbers: 24 bits, compared modulo 2^24 (S-RC-1).
#pragma once

#include <cstdint>

namespace hca {

/// A PSN. Arithmetic wraps at 2^24. There is no operator<: whether a PSN is ahead depends on the one it is seen from, and
/// means something only within a window of 2^23.
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xFFFFFF;
  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}
  constexpr std::uint32_t value() const { return value_; }

  constexpr bool operator==(const Psn&) const = default;
  friend constexpr Psn operator+(Psn a, std::uint32_t n) { return Psn(a.value_ + n); }
  friend constexpr Psn operator-(Psn a, std::uint32_t n) { return Psn(a.value_ - n); }
  constexpr Psn& operator+=(std::uint32_t n) { return *this = *this + n; }
  constexpr Psn& operator++() { return *this += 1; }
  /// Signed distance a - b, -2^23 … 2^23-1: positive when a is ahead of b.
  friend constexpr std::int32_t operator-(Psn a, Psn b) {
    return static_cast<std::int32_t>((a.value_ - b.value_) << 8) >> 8;
  }
  constexpr bool ahead_of(Psn other) const { return *this - other > 0; }
  constexpr bool behind(Psn other) const { return *this - other < 0; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace hca
