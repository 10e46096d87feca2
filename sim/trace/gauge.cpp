// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/gauge.h"

#include "sim/context.h"

namespace sim::trace {

void Gauge::open(Context& context, const Point& point, std::int32_t host, std::string path, Picos t) {
  if (!context.tracer.on(point.category)) return;
  tracer_ = &context.tracer;
  point_ = &point;
  track_ = tracer_->declare_track(host, std::move(path), TrackKind::counter);
  record(t, 0);
}

void Gauge::record(Picos t, std::int64_t value) {
  value_ = value;
  last_ = max(last_, t);
  if (tracer_->on(point_->category)) tracer_->emit(Level{point_, track_, last_, value_});
}

}  // namespace sim::trace
