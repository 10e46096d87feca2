// SPDX-License-Identifier: Apache-2.0
// Named random streams: a stream depends only on (seed, name), never on who asked first. The numbers are the same on
// every platform (PCG32, O'Neill 2014, with our own uniform mapping).
#pragma once

#include <cstdint>
#include <string_view>

namespace sim {

class Rng {
 public:
  /// The stream `name` (usually a module path, e.g. "host0.hca.retransmission") of a run with `seed`.
  Rng(std::uint64_t seed, std::string_view name);
  std::uint32_t next();
  /// Uniform in [0, bound), without bias. bound > 0.
  std::uint32_t below(std::uint32_t bound);
  /// Uniform in [0, 1).
  double uniform() { return next() * 0x1p-32; }
  bool chance(double p) { return uniform() < p; }

 private:
  std::uint64_t state_, inc_;
};

}  // namespace sim
