// SPDX-License-Identifier: Apache-2.0
// Tracks declared before open() are kept and handed to the sinks when recording starts.
#include "sim/trace/trace.h"

#include "sim/context.h"

namespace sim::trace {

std::string_view name_of(Category c) {
  static constexpr std::array<std::string_view, kCategories> kNames{"sim",    "memory", "cpu",    "pcie",  "iommu",
                                                                    "fabric", "hca",    "kernel", "verbs", "system"};
  return kNames[static_cast<std::size_t>(c)];
}

std::string_view name_of(Form f) {
  static constexpr std::array<std::string_view, 6> kNames{"none", "wqe", "rwqe", "cqe", "eqe", "tlp"};
  return kNames[static_cast<std::size_t>(f)];
}

void Tracer::open(const RunInfo& info, std::uint32_t categories) {
  for (auto& s : sinks_) {
    s->open(info);
    for (const Track& t : tracks_) s->on(t);
  }
  mask_ = sinks_.empty() ? 0 : categories;
}

void Tracer::close(Picos end) {
  mask_ = 0;
  for (auto& s : sinks_) s->close(end);
  sinks_.clear();
}

std::uint32_t Tracer::declare_track(std::int32_t host, std::string path, TrackKind kind,
                                    std::vector<std::string> states) {
  const auto id = static_cast<std::uint32_t>(tracks_.size());
  if (const auto [it, fresh] = by_path_.try_emplace({path, kind}, id); !fresh) return it->second;
  tracks_.push_back({id, host, std::move(path), kind, std::move(states)});
  if (mask_ != 0) emit(tracks_.back());
  return id;
}

Source::Source(Context& context, std::int32_t host, std::string path, TrackKind kind, std::vector<std::string> states)
    : tracer_(&context.tracer), track_(context.tracer.declare_track(host, std::move(path), kind, std::move(states))) {}

}  // namespace sim::trace
