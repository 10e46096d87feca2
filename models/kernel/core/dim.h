// SPDX-License-Identifier: Apache-2.0
// Dynamic interrupt moderation of a CQ (rdma_dim): from the rate of completions and the completions per event, one step at a
// time to deeper or shallower moderation. The figures and the decision follow Linux, include/linux/dim.h, lib/dim/dim.c and
// lib/dim/rdma_dim.c.
#pragma once

#include <array>
#include <cstdint>

#include "sim/units.h"

namespace kernel {

/// How long and for how many CQEs a CQ may hold back an event.
struct DimProfile {
  std::uint16_t usec = 0, comps = 0;
};
inline constexpr std::array<DimProfile, 9> kDimProfiles{
    {{1, 1}, {1, 4}, {2, 4}, {2, 8}, {4, 8}, {16, 8}, {16, 16}, {32, 16}, {32, 32}}};
/// Events of a measurement.
inline constexpr std::uint64_t kDimEvents = 64;

class Dim {
 public:
  enum class State : std::uint8_t { start_measure, measure_in_progress, apply_new_profile };
  /// Where the next step leads. Unlike net_dim, rdma_dim never parks: at either end it turns round.
  enum class Tune : std::uint8_t { going_right, going_left };
  /// Rates of a measurement: completions per millisecond, completions per 100 events.
  struct Stats {
    std::int64_t cpms = 0, cpe_ratio = 0;
  };

  /// An event that delivered `completions`, at time `now`. True: another profile is to be applied, and nothing is measured
  /// until applied().
  bool event(sim::Picos now, std::uint64_t completions);
  /// The CQ has the new profile.
  void applied() { state_ = State::start_measure; }
  const DimProfile& profile() const { return kDimProfiles.at(index_); }

  std::size_t index() const { return index_; }
  State state() const { return state_; }
  Tune tune() const { return tune_; }
  const Stats& last() const { return previous_; }
  /// The decision alone, from the rates of one measurement: true if the profile has changed.
  bool decide(const Stats& current);

 private:
  struct Sample {
    sim::Picos time{0};
    std::uint64_t events = 0, completions = 0;
  };
  enum class Compared : std::uint8_t { worse, same, better };
  static Compared compare(const Stats& current, const Stats& previous);
  bool step();
  void turn();

  State state_ = State::start_measure;
  Tune tune_ = Tune::going_right;
  std::size_t index_ = 0;
  Sample start_, now_;
  Stats previous_;
};

}  // namespace kernel
