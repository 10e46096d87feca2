// SPDX-License-Identifier: Apache-2.0
// PCG-XSH-RR 64/32; stream selection by a 64-bit FNV-1a hash of the name.
#include "sim/rng.h"

namespace sim {

Rng::Rng(std::uint64_t seed, std::string_view name) : state_(0), inc_(0) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  inc_ = (h << 1) | 1;
  next();
  state_ += seed;
  next();
}

std::uint32_t Rng::next() {
  const std::uint64_t old = state_;
  state_ = old * 6364136223846793005ULL + inc_;
  const auto xorshifted = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
  const auto rot = static_cast<unsigned>(old >> 59);
  return (xorshifted >> rot) | (xorshifted << ((32 - rot) & 31));
}

std::uint32_t Rng::below(std::uint32_t bound) {
  const std::uint32_t threshold = (0U - bound) % bound;
  for (;;) {
    const std::uint32_t r = next();
    if (r >= threshold) return r % bound;
  }
}

}  // namespace sim
