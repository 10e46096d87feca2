// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/state_track.h"

#include "sim/context.h"

namespace sim::trace {

void StateTrack::open(Context& context, const Point& point, std::int32_t host, std::string path,
                      std::vector<std::string> states, Picos t) {
  if (!context.tracer.on(point.category)) return;
  source_.emplace(context, host, std::move(path), TrackKind::state, std::move(states));
  point_ = &point;
  set(t, 0);
}

}  // namespace sim::trace
