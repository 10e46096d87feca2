// SPDX-License-Identifier: Apache-2.0
#include "sim/jitter.h"

#include <string>

namespace sim {

Picos Jitter::next(JitterPlace p, std::int64_t lane) {
  const std::uint64_t key = static_cast<std::uint64_t>(lane) << 8 | static_cast<std::uint64_t>(p);
  auto at = streams_.find(key);
  if (at == streams_.end()) at = streams_.emplace(key, Rng(seed_, "jitter." + std::to_string(key))).first;
  return {
      static_cast<std::int64_t>(at->second.uniform() * static_cast<double>(most_[static_cast<std::size_t>(p)].n + 1))};
}

}  // namespace sim
