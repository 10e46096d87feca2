// SPDX-License-Identifier: Apache-2.0
// Counters and busy times that blocks own and results report, by dotted path ("host0.hca.rx.icrc_errors").
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/units.h"

namespace sim {

/// A monotone count. Address is stable for the life of the Stats.
struct Counter {
  std::uint64_t value = 0;
  void add(std::uint64_t n = 1) { value += n; }
};

/// Accumulated time during which a unit-capacity resource served something. With `capacity` > 1 the utilisation is
/// busy / (capacity * elapsed).
struct BusyTime {
  Picos busy{0};
  std::uint32_t capacity = 1;
  void add(Picos d) { busy += d; }
};

class Stats {
 public:
  /// The counter of that path, created at zero on first use. Two callers with one path share it.
  Counter& counter(const std::string& path) { return counters_[path]; }
  BusyTime& busy(const std::string& path, std::uint32_t capacity = 1) {
    BusyTime& b = busy_[path];
    b.capacity = capacity;
    return b;
  }
  const std::map<std::string, Counter>& counters() const { return counters_; }
  const std::map<std::string, BusyTime>& busy_times() const { return busy_; }

 private:
  std::map<std::string, Counter> counters_;  // sorted, and nodes never move
  std::map<std::string, BusyTime> busy_;
};

}  // namespace sim
