// SPDX-License-Identifier: Apache-2.0
// Lets a part of a trace through: of some hosts, of some queue pairs or messages, of a window of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/trace/trace.h"

namespace sim::trace {

struct Filter {
  struct QueuePair {
    std::optional<std::int32_t> host;  ///< absent: of any host
    std::uint32_t qpn = 0;
  };
  struct Messages {
    MsgId first = 0, last = 0;
  };
  std::vector<std::int32_t> hosts;  ///< -1 is the fabric; empty: all
  std::vector<QueuePair> qps;       ///< empty: all
  std::vector<Messages> messages;   ///< empty: all
  Picos from{0}, to = kNever;
  bool empty() const { return hosts.empty() && qps.empty() && messages.empty() && from == Picos{0} && to == kNever; }
};

/// A message belongs to a queue pair when any of its records names it; its earlier records are held back until then, so that a
/// message is in the trace as a whole or not at all. Of levels and states the last value before the window is kept.
std::unique_ptr<Sink> make_filter(const Filter& filter, std::vector<std::unique_ptr<Sink>> sinks);

}  // namespace sim::trace
