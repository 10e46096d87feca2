// SPDX-License-Identifier: Apache-2.0
// The level of one object, such as the occupancy of a queue, on a lane of its own. Objects come and go: the lane exists only
// if it is recorded, and the next object of the same name goes on with it.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace sim::trace {

class Gauge {
 public:
  /// Declares the lane `path` and records 0; does nothing, as all else then, if the point's category is off.
  void open(Context& context, const Point& point, std::int32_t host, std::string path, Picos t);
  /// A program may run ahead of another that changes the same level later: what is recorded never goes back in time.
  void set(Picos t, std::int64_t value) {
    if (point_ != nullptr && value != value_) [[unlikely]]
      record(t, value);
  }
  void add(Picos t, std::int64_t difference) { set(t, value_ + difference); }

 private:
  void record(Picos t, std::int64_t value);
  Tracer* tracer_ = nullptr;
  const Point* point_ = nullptr;
  std::uint32_t track_ = 0;
  std::int64_t value_ = 0;
  Picos last_{0};
};

}  // namespace sim::trace
