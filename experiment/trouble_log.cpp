// SPDX-License-Identifier: Apache-2.0
#include "experiment/trouble_log.h"

#include <algorithm>

namespace experiment {

void TroubleLog::on(const sim::trace::Track& t) {
  if (paths_.size() <= t.id) paths_.resize(t.id + 1);
  paths_[t.id] = t.path;
}

void TroubleLog::note(const sim::trace::Point& p, std::uint32_t track, sim::Picos t,
                      const std::array<std::uint64_t, 4>& args) {
  if (!p.marked(args)) return;
  auto seen = std::ranges::find(seen_, &p, &std::pair<const sim::trace::Point*, std::size_t>::first);
  if (seen == seen_.end()) seen = seen_.insert(seen, {&p, 0});
  if (++seen->second > kKept) return;
  sim::Json j = sim::Json::object();
  j["time_ns"] = static_cast<double>(t.n) / 1000.0;
  j["point"] = p.name;
  j["track"] = paths_[track];
  for (std::size_t i = 0; i < args.size() && p.args[i] != nullptr; ++i) j[p.args[i]] = args[i];
  troubles_.push_back(std::move(j));
}

}  // namespace experiment
