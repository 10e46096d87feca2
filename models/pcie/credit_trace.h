// SPDX-License-Identifier: Apache-2.0
// The credits of one flow-control class as they are recorded. A link knows before their time when TLPs will start and when
// credits will come back; the levels are recorded in order of time once that has come.
#pragma once

#include <cstdint>
#include <string>

#include "pcie/trace_points.h"
#include "sim/context.h"

namespace pcie {

class CreditTrace {
 public:
  /// `headers` and `data` as the receiver advertised them; 0 = infinite, of which nothing is recorded. Lanes are
  /// "<path>.<class>h" and "<path>.<class>d".
  CreditTrace(sim::Context& context, std::int32_t host, const std::string& path, std::uint32_t headers,
              std::uint32_t data)
      : headers_{{context, host, path + "h", sim::trace::TrackKind::counter}, headers, headers != 0},
        data_{{context, host, path + "d", sim::trace::TrackKind::counter}, data, data != 0} {}

  bool on() const { return headers_.source.on(trace_points::kCredits); }
  /// What is advertised, when the simulation begins.
  void begin() {
    emit(headers_, {}, 0);
    emit(data_, {}, 0);
  }
  /// A TLP with that many data credits starts at `at`, never before an earlier one.
  void take(sim::Picos at, std::uint32_t data) { takes_.push_back({at, data}); }
  /// Its credits come back at `at`, never before those of an earlier one.
  void give(sim::Picos at, std::uint32_t data) {
    returns_.push_back({returns_.empty() ? at : max(at, returns_.back().at), data});
  }
  /// Records what has happened by `now`. What comes back at the time of a start is there for it.
  void settle(sim::Picos now) {
    for (;;) {
      const bool give = !returns_.empty() && (takes_.empty() || returns_.front().at <= takes_.front().at);
      sim::Ring<Change>& next = give ? returns_ : takes_;
      if (next.empty() || next.front().at > now) return;
      const Change c = next.pop_front();
      emit(headers_, c.at, give ? 1 : -1);
      if (c.data != 0) emit(data_, c.at, give ? std::int64_t{c.data} : -std::int64_t{c.data});
    }
  }

 private:
  struct Change {
    sim::Picos at{0};
    std::uint32_t data = 0;
  };
  struct Level {
    sim::trace::Source source;
    std::int64_t available;
    bool finite;
  };
  static void emit(Level& level, sim::Picos t, std::int64_t change) {
    level.available += change;
    if (level.finite) level.source.level(trace_points::kCredits, t, level.available);
  }

  Level headers_, data_;
  sim::Ring<Change> takes_, returns_;
};

}  // namespace pcie
