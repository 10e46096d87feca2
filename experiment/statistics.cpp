// SPDX-License-Identifier: Apache-2.0
// Percentiles by nearest rank; sampling beyond the capacity by Vitter's algorithm R with a named random stream, so that
// the same run keeps the same messages.
#include "experiment/statistics.h"

#include <algorithm>
#include <limits>

#include "sim/check.h"

namespace experiment {
namespace {

/// Index (from 0) of the per-mille quantile by nearest rank.
std::size_t rank(std::size_t n, std::size_t per_mille) {
  return std::max<std::size_t>(1, (n * per_mille + 999) / 1000) - 1;
}

}  // namespace

std::optional<LatencyStats> statistics_of(std::span<sim::Picos> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  LatencyStats s;
  s.count = values.size();
  s.min = values.front();
  s.max = values.back();
  s.p50 = values[rank(values.size(), 500)];
  s.p99 = values[rank(values.size(), 990)];
  s.p999 = values[rank(values.size(), 999)];
  std::int64_t sum = 0;
  for (const sim::Picos v : values) sum += v.n;
  s.mean_ps = static_cast<double>(sum) / static_cast<double>(values.size());
  return s;
}

LatencyRecorder::LatencyRecorder(std::size_t workloads, std::uint64_t seed, std::size_t capacity)
    : flows_(workloads), capacity_(capacity), rng_(seed, "experiment.latency_sample") {
  for (Flow& f : flows_) {
    f.blocks.reserve(capacity / kBlock + 1);
    f.blocks.push_back(std::make_unique<Sample[]>(kBlock));
  }
}

void LatencyRecorder::store(Flow& f, std::size_t slot, const sim::Journey& j) {
  Sample& s = f.at(slot);
  s.total = j.total();
  s.id = j.id;
  s.wide = 0;
  const bool fits = j.total().n <= std::numeric_limits<std::uint32_t>::max();
  if (!fits) {
    f.wide_stages.push_back(j.stage);
    s.wide = static_cast<std::uint32_t>(f.wide_stages.size());
    return;
  }
  for (std::size_t i = 0; i < sim::kStages; ++i) s.stage[i] = static_cast<std::uint32_t>(j.stage[i].n);
}

void LatencyRecorder::finished(const sim::Journey& j) {
  SIM_CHECK(j.flow < flows_.size(), "journey of an unknown workload");
  Flow& f = flows_[j.flow];
  ++f.count;
  ++total_;
  f.bytes += j.bytes;
  f.first = sim::min(f.first, j.start);
  f.last = sim::max(f.last, j.last);
  f.min = sim::min(f.min, j.total());
  if (f.count == 1 || j.total() > f.max) f.slowest = j;
  f.max = sim::max(f.max, j.total());
  for (std::size_t i = 0; i < sim::kStages; ++i) f.sum[i] += j.stage[i];
  if (f.kept < capacity_) {
    if (f.kept == f.blocks.size() * kBlock) f.blocks.push_back(std::make_unique<Sample[]>(kBlock));
    store(f, f.kept++, j);
  } else if (f.count <= std::numeric_limits<std::uint32_t>::max()) {
    if (const std::uint32_t slot = rng_.below(static_cast<std::uint32_t>(f.count)); slot < capacity_) store(f, slot, j);
  }
  if (total_ == notify_at_) complete_();
}

std::vector<std::uint32_t> LatencyRecorder::at_ranks(const Flow& f, std::span<const std::size_t> ranks) {
  std::vector<std::uint32_t> order(f.kept), out;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    const Sample &x = f.at(a), &y = f.at(b);
    return x.total != y.total ? x.total < y.total : x.id < y.id;
  };
  auto from = order.begin();
  for (const std::size_t r : ranks) {  // ascending: each search starts behind the one before
    const auto nth = order.begin() + static_cast<std::ptrdiff_t>(r);
    if (nth >= from) {
      std::nth_element(from, nth, order.end(), less);
      from = nth + 1;
    }
    out.push_back(*nth);
  }
  return out;
}

std::optional<LatencyStats> LatencyRecorder::latency(std::size_t workload) const {
  const Flow& f = flows_.at(workload);
  if (f.count == 0) return std::nullopt;
  const std::array<std::size_t, 3> ranks{rank(f.kept, 500), rank(f.kept, 990), rank(f.kept, 999)};
  const auto found = at_ranks(f, ranks);
  LatencyStats s;
  s.count = f.count;
  s.min = f.min;
  s.max = f.max;
  s.p50 = f.at(found[0]).total;
  s.p99 = f.at(found[1]).total;
  s.p999 = f.at(found[2]).total;
  std::int64_t sum = 0;
  for (const sim::Picos p : f.sum) sum += p.n;
  s.mean_ps = static_cast<double>(sum) / static_cast<double>(f.count);
  return s;
}

std::optional<sim::Journey> LatencyRecorder::slowest(std::size_t workload) const {
  const Flow& f = flows_.at(workload);
  return f.count == 0 ? std::nullopt : std::optional(f.slowest);
}

std::optional<Quantiles> LatencyRecorder::quantiles(std::size_t workload) const {
  const Flow& f = flows_.at(workload);
  if (f.count == 0) return std::nullopt;
  std::array<std::size_t, kQuantiles.size()> ranks{};
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = rank(f.kept, kQuantiles[i]);
  const auto found = at_ranks(f, ranks);
  Quantiles q;
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = f.at(found[i]).total;
  q.front() = f.min;
  q.back() = f.max;
  return q;
}

std::optional<Breakdown> LatencyRecorder::breakdown(std::size_t workload) const {
  const Flow& f = flows_.at(workload);
  if (f.count == 0) return std::nullopt;
  Breakdown b;
  const std::array<std::size_t, 1> middle{rank(f.kept, 500)};
  // The earliest of all messages that took as long as the median one.
  const sim::Picos median = f.at(at_ranks(f, middle)[0]).total;
  const Sample* chosen = nullptr;
  for (std::size_t i = 0; i < f.kept; ++i)
    if (const Sample& s = f.at(i); s.total == median && (chosen == nullptr || s.id < chosen->id)) chosen = &s;
  b.median_id = chosen->id;
  b.median_total = median;
  sim::Picos sum{0};
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    b.median[i] = chosen->wide != 0 ? f.wide_stages[chosen->wide - 1][i] : sim::Picos{chosen->stage[i]};
    b.mean_ps[i] = static_cast<double>(f.sum[i].n) / static_cast<double>(f.count);
    sum += b.median[i];
  }
  SIM_CHECK(sum == median, "the stages of a message do not sum to its latency");
  return b;
}

}  // namespace experiment
