// SPDX-License-Identifier: Apache-2.0
// Trace points of the fabric.
#pragma once

#include "sim/trace/trace.h"

namespace fabric::points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Mark;
using sim::trace::Point;

/// From the hand-over to a link, over the first bit on the wire, to the last bit at the far end.
inline constexpr Point wire{"fabric.wire", Category::fabric, Kind::span, {"qpn", "psn", "opcode", "bytes"}};
/// The frame's bytes: at the first bit on the wire and at the last bit at the far end.
inline constexpr Point frame{"fabric.frame", Category::fabric, Kind::packet, {}};
/// Bytes waiting for the wire.
inline constexpr Point queue{"fabric.queue", Category::fabric, Kind::level, {"bytes"}};
/// Bytes of frames that the link has carried so far, Ethernet header to ICRC: its slope is the load.
inline constexpr Point wire_bytes{"fabric.wire_bytes", Category::fabric, Kind::level, {"bytes"}};
/// The link goes down or comes up.
inline constexpr Point link{"fabric.link", Category::fabric, Kind::instant, {"up"}};
/// An impairment at work; `time` is the extra delay in picoseconds.
inline constexpr Point drop{"fabric.drop", Category::fabric, Kind::instant, {"qpn", "psn", "opcode"}, Mark::warning};
inline constexpr Point corrupt{
    "fabric.corrupt", Category::fabric, Kind::instant, {"qpn", "psn", "opcode", "bit"}, Mark::warning};
inline constexpr Point duplicate{
    "fabric.duplicate", Category::fabric, Kind::instant, {"qpn", "psn", "opcode"}, Mark::warning};
inline constexpr Point delay{
    "fabric.delay", Category::fabric, Kind::instant, {"qpn", "psn", "opcode", "time"}, Mark::warning};
inline constexpr Point reorder{
    "fabric.reorder", Category::fabric, Kind::instant, {"qpn", "psn", "opcode", "time"}, Mark::warning};

}  // namespace fabric::points
