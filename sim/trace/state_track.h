// SPDX-License-Identifier: Apache-2.0
// The state of one object over time, on a lane of its own. The lane exists only if it is recorded, and the next object of the
// same name goes on with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace sim::trace {

class StateTrack {
 public:
  /// Declares the lane `path` with the names of its states and records that it is in state 0. Does nothing, as all else then,
  /// if the point's category is off.
  void open(Context& context, const Point& point, std::int32_t host, std::string path, std::vector<std::string> states,
            Picos t);
  void set(Picos t, std::uint32_t state) {
    if (source_) source_->state(*point_, t, state);
  }

 private:
  std::optional<Source> source_;
  const Point* point_ = nullptr;
};

}  // namespace sim::trace
