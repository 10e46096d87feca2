// SPDX-License-Identifier: Apache-2.0
// Trace points of the kernel.
#pragma once

#include <string>
#include <string_view>

#include "sim/trace/trace.h"

namespace kernel {
/// The path of a lane of host `host`.
inline std::string host_lane(std::int32_t host, std::string_view name) {
  return "host" + std::to_string(host) + "." + std::string(name);
}
}  // namespace kernel

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
/// In-kernel verbs of a kernel consumer, on its thread's lane; arguments as of the verbs.* points.
inline constexpr Point post_send{"kernel.post_send",        Category::kernel, Kind::span,
                                 {"qpn", "count", "errno"}, Mark::warning,    2};
inline constexpr Point post_recv{"kernel.post_recv",        Category::kernel, Kind::span,
                                 {"qpn", "count", "errno"}, Mark::warning,    2};
inline constexpr Point poll_cq{
    "kernel.poll_cq", Category::kernel, Kind::span, {"cqn", "count", "ci", "failed"}, Mark::warning, 3};
inline constexpr Point req_notify_cq{"kernel.req_notify_cq", Category::kernel, Kind::span, {"cqn", "ci", "solicited"}};
/// WRs of a kernel consumer's queue pair between their post and the poll that gives their place back.
inline constexpr Point sq_occupancy{"kernel.sq_occupancy", Category::kernel, Kind::level, {"wrs"}};
inline constexpr Point rq_occupancy{"kernel.rq_occupancy", Category::kernel, Kind::level, {"wrs"}};
inline constexpr Point registration{"kernel.registration", Category::kernel, Kind::instant, {"step"}};

}  // namespace kernel::trace_points
