// SPDX-License-Identifier: Apache-2.0
// Trace points of the kernel.
#pragma once

#include "sim/trace/trace.h"

namespace kernel::trace_points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Point;

inline constexpr Point irq{"irq", Category::kernel, Kind::span, {"vector", "eqn"}};
inline constexpr Point eqe{"eqe", Category::kernel, Kind::span, {"eqn", "type", "number", "ci"}};
inline constexpr Point tasklet{"tasklet", Category::kernel, Kind::span, {"eqn", "cqs"}};
inline constexpr Point comp_handler{"comp_handler", Category::kernel, Kind::span, {"cqn"}};
inline constexpr Point channel_event{"channel_event", Category::kernel, Kind::instant, {"fd_readers", "queued"}};
inline constexpr Point async_event{"async_event", Category::kernel, Kind::instant, {"type", "number"}};
inline constexpr Point wake{"wake", Category::kernel, Kind::span, {"thread"}};
inline constexpr Point command{"command", Category::kernel, Kind::span, {"opcode", "slot", "status"}};
inline constexpr Point syscall{"uverbs_command", Category::kernel, Kind::span, {"command", "result"}};
inline constexpr Point registration{"registration", Category::kernel, Kind::instant, {"step"}};

}  // namespace kernel::trace_points
