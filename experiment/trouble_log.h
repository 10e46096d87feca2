// SPDX-License-Identifier: Apache-2.0
// When trouble began: the marked records of a run (losses, retries, waits, faults), for the explanation of a scenario that is
// run for it. A result alone counts them and does not know their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/json.h"
#include "sim/trace/trace.h"

namespace experiment {

/// The categories that have marked records of traffic; others need not be recorded.
inline constexpr std::uint32_t kTroubleCategories = 1U << static_cast<unsigned>(sim::trace::Category::iommu) |
                                                    1U << static_cast<unsigned>(sim::trace::Category::fabric) |
                                                    1U << static_cast<unsigned>(sim::trace::Category::hca);

class TroubleLog final : public sim::trace::Sink {
 public:
  /// Of each trace point the first so many are kept.
  static constexpr std::size_t kKept = 100;
  /// `troubles` receives the records, as docs/explain.md describes them, and must outlive the run.
  explicit TroubleLog(sim::Json& troubles) : troubles_(troubles) { troubles_ = sim::Json::array(); }

  void on(const sim::trace::Track& t) override;
  void on(const sim::trace::Span& s) override { note(*s.point, s.track, s.start, s.args); }
  void on(const sim::trace::Instant& i) override { note(*i.point, i.track, i.t, i.args); }
  void on(const sim::trace::Level&) override {}
  void on(const sim::trace::State&) override {}
  void on(const sim::trace::PacketRecord&) override {}
  void on(const sim::trace::BytesRecord&) override {}
  void on(const sim::Journey&) override {}
  void close(sim::Picos) override {}

 private:
  void note(const sim::trace::Point& p, std::uint32_t track, sim::Picos t, const std::array<std::uint64_t, 4>& args);

  sim::Json& troubles_;
  std::vector<std::string> paths_;                                      ///< of the tracks, by number
  std::vector<std::pair<const sim::trace::Point*, std::size_t>> seen_;  ///< how often, in the order of the first
};

}  // namespace experiment
