// SPDX-License-Identifier: Apache-2.0
// Trace points of the kernel.
#pragma once

#include "sim/trace/trace.h"

namespace kernel::trace_points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Mark;
using sim::trace::Point;

inline constexpr Point irq{"kernel.irq", Category::kernel, Kind::span, {"vector", "eqn"}};
inline constexpr Point eqe{"kernel.eqe", Category::kernel, Kind::span, {"eqn", "type", "number", "ci"}};
inline constexpr Point tasklet{"kernel.tasklet", Category::kernel, Kind::span, {"eqn", "cqs"}};
inline constexpr Point comp_handler{"kernel.comp_handler", Category::kernel, Kind::span, {"cqn"}};
inline constexpr Point channel_event{"kernel.channel_event", Category::kernel, Kind::instant, {"fd_readers", "queued"}};
inline constexpr Point async_event{"kernel.async_event", Category::kernel, Kind::instant, {"type", "number"}};
inline constexpr Point wake{"kernel.wake", Category::kernel, Kind::span, {"thread"}};
inline constexpr Point command{
    "kernel.command", Category::kernel, Kind::span, {"opcode", "slot", "status"}, Mark::warning, 2};
inline constexpr Point syscall{"kernel.uverbs_command", Category::kernel, Kind::span,
                               {"command", "result"},   Mark::warning,    1};
inline constexpr Point registration{"kernel.registration", Category::kernel, Kind::instant, {"step"}};

}  // namespace kernel::trace_points
