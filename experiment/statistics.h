// SPDX-License-Identifier: Apache-2.0
// Latency statistics of finished messages. Up to `capacity` messages per workload everything is exact; beyond that,
// percentiles and the median message come from a uniform sample of that size, while count, minimum, mean and maximum
// stay exact.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/journey.h"
#include "sim/rng.h"

namespace experiment {

/// Percentiles are by nearest rank: the smallest value that at least that share of the messages does not exceed. Each is
/// therefore the latency of a message that exists.
struct LatencyStats {
  std::uint64_t count = 0;
  sim::Picos min{0}, p50{0}, p99{0}, p999{0}, max{0};
  double mean_ps = 0;
};
/// Statistics of `values`, which are reordered. Nothing when there is none.
std::optional<LatencyStats> statistics_of(std::span<sim::Picos> values);

/// Shares, in thousandths, at which the distribution of latencies is told.
inline constexpr std::array<std::uint32_t, 23> kQuantiles{0,   10,  20,  50,  100, 200, 250, 300, 400, 500, 600, 700,
                                                          750, 800, 900, 950, 970, 980, 990, 995, 998, 999, 1000};
/// Latencies at kQuantiles, by nearest rank: the first is the least, the last the greatest.
using Quantiles = std::array<sim::Picos, kQuantiles.size()>;

/// Where the time of the messages went.
struct Breakdown {
  sim::MsgId median_id = 0;                       ///< the message with the median latency, the earliest if several
  sim::Picos median_total{0};                     ///< equals LatencyStats::p50
  std::array<sim::Picos, sim::kStages> median{};  ///< its stages; they sum to median_total exactly
  std::array<double, sim::kStages> mean_ps{};     ///< over all messages; they sum to the mean latency
};

/// Collects journeys by their flow, which is the index of a workload. Allocates in blocks of 4096 messages, the first of
/// them at construction.
class LatencyRecorder : public sim::JourneySink {
 public:
  static constexpr std::size_t kDefaultCapacity = 1'000'000;
  LatencyRecorder(std::size_t workloads, std::uint64_t seed, std::size_t capacity = kDefaultCapacity);

  void finished(const sim::Journey& j) override;
  /// Calls `complete` when that many messages, of all workloads together, have finished.
  void notify_at(std::uint64_t messages, std::function<void()> complete) {
    notify_at_ = messages;
    complete_ = std::move(complete);
  }

  std::uint64_t count(std::size_t workload) const { return flows_.at(workload).count; }
  std::uint64_t total() const { return total_; }
  /// Payload of the messages of that workload, first entry of a post call and last delivery among them.
  std::uint64_t bytes(std::size_t workload) const { return flows_.at(workload).bytes; }
  sim::Picos first_post(std::size_t workload) const {
    return count(workload) > 0 ? flows_[workload].first : sim::Picos{0};
  }
  sim::Picos last_done(std::size_t workload) const { return flows_.at(workload).last; }
  /// False when more messages finished than are kept.
  bool exact(std::size_t workload) const { return flows_.at(workload).count <= capacity_; }
  /// Nothing when no message of the workload finished.
  std::optional<LatencyStats> latency(std::size_t workload) const;
  std::optional<Breakdown> breakdown(std::size_t workload) const;
  /// The message with the greatest latency, the earliest that ended if several; always exact.
  std::optional<sim::Journey> slowest(std::size_t workload) const;
  std::optional<Quantiles> quantiles(std::size_t workload) const;

 private:
  struct Sample {
    sim::Picos total;
    sim::MsgId id;
    std::uint32_t wide;  // index + 1 into Flow::wide_stages when a stage does not fit 32 bits, else 0
    std::array<std::uint32_t, sim::kStages> stage;
  };
  static constexpr std::size_t kBlock = 4096;
  struct Flow {
    std::uint64_t count = 0, bytes = 0;
    sim::Picos first = sim::kNever, last{0}, min = sim::kNever, max{0};
    std::array<sim::Picos, sim::kStages> sum{};
    sim::Journey slowest;
    std::vector<std::unique_ptr<Sample[]>> blocks;
    std::size_t kept = 0;
    std::vector<std::array<sim::Picos, sim::kStages>> wide_stages;
    Sample& at(std::size_t i) const { return blocks[i / kBlock][i % kBlock]; }
  };
  static void store(Flow& f, std::size_t slot, const sim::Journey& j);
  /// Indices of the samples in the order of (latency, id) at the given ranks.
  static std::vector<std::uint32_t> at_ranks(const Flow& f, std::span<const std::size_t> ranks);

  std::vector<Flow> flows_;
  std::size_t capacity_;
  std::uint64_t total_ = 0, notify_at_ = 0;
  std::function<void()> complete_;
  sim::Rng rng_;
};

}  // namespace experiment
