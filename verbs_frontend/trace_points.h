// SPDX-License-Identifier: Apache-2.0
// Trace points of the verbs front end. Calls are spans on the lane of the thread that makes them; `errno` is that of a call
// that failed. A data-path call that the queue has no room for costs time, so it is a warning, as any failed call is.
#pragma once

#include "sim/trace/trace.h"

namespace verbs::points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Mark;
using sim::trace::Point;

/// ibv_post_send, or ibv_wr_start to ibv_wr_complete: `count` WRs were accepted.
inline constexpr Point post_send{"verbs.post_send",         Category::verbs, Kind::span,
                                 {"qpn", "count", "errno"}, Mark::warning,   2};
inline constexpr Point post_recv{"verbs.post_recv",         Category::verbs, Kind::span,
                                 {"qpn", "count", "errno"}, Mark::warning,   2};
inline constexpr Point post_srq_recv{"verbs.post_srq_recv",      Category::verbs, Kind::span,
                                     {"srqn", "count", "errno"}, Mark::warning,   2};
/// A poll that took CQEs, from its entry: `count` completions, `failed` of them with an error, consumer index `ci` after it.
/// Empty polls have no span; cpu.poll is a loop of them.
inline constexpr Point poll_cq{
    "verbs.poll_cq", Category::verbs, Kind::span, {"cqn", "count", "ci", "failed"}, Mark::warning, 3};
inline constexpr Point req_notify_cq{"verbs.req_notify_cq", Category::verbs, Kind::span, {"cqn", "ci", "solicited"}};
/// ibv_get_cq_event, its wait included.
inline constexpr Point get_cq_event{"verbs.get_cq_event", Category::verbs, Kind::span, {"fd", "errno"}};
inline constexpr Point ack_cq_events{"verbs.ack_cq_events", Category::verbs, Kind::instant, {"count"}};
inline constexpr Point get_async_event{"verbs.get_async_event", Category::verbs, Kind::span, {"type", "errno"}};
inline constexpr Point ack_async_event{"verbs.ack_async_event", Category::verbs, Kind::instant, {"type"}};

/// WRs of a queue pair or SRQ between their post and the poll that gives their place back.
inline constexpr Point sq_occupancy{"verbs.sq_occupancy", Category::verbs, Kind::level, {"wrs"}};
inline constexpr Point rq_occupancy{"verbs.rq_occupancy", Category::verbs, Kind::level, {"wrs"}};
inline constexpr Point srq_occupancy{"verbs.srq_occupancy", Category::verbs, Kind::level, {"wrs"}};

// Control calls.
inline constexpr Point open_device{"verbs.open_device", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point close_device{"verbs.close_device", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point query_device{"verbs.query_device", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point query_port{"verbs.query_port", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point alloc_pd{"verbs.alloc_pd", Category::verbs, Kind::span, {"pd", "errno"}, Mark::warning, 1};
inline constexpr Point dealloc_pd{"verbs.dealloc_pd", Category::verbs, Kind::span, {"pd", "errno"}, Mark::warning, 1};
inline constexpr Point reg_mr{"verbs.reg_mr", Category::verbs, Kind::span, {"lkey", "errno"}, Mark::warning, 1};
inline constexpr Point rereg_mr{"verbs.rereg_mr", Category::verbs, Kind::span, {"lkey", "errno"}, Mark::warning, 1};
inline constexpr Point dereg_mr{"verbs.dereg_mr", Category::verbs, Kind::span, {"lkey", "errno"}, Mark::warning, 1};
inline constexpr Point alloc_mw{"verbs.alloc_mw", Category::verbs, Kind::span, {"rkey", "errno"}, Mark::warning, 1};
inline constexpr Point dealloc_mw{"verbs.dealloc_mw", Category::verbs, Kind::span, {"rkey", "errno"}, Mark::warning, 1};
inline constexpr Point create_comp_channel{
    "verbs.create_comp_channel", Category::verbs, Kind::span, {"fd", "errno"}, Mark::warning, 1};
inline constexpr Point destroy_comp_channel{
    "verbs.destroy_comp_channel", Category::verbs, Kind::span, {"fd", "errno"}, Mark::warning, 1};
inline constexpr Point create_cq{"verbs.create_cq", Category::verbs, Kind::span, {"cqn", "errno"}, Mark::warning, 1};
inline constexpr Point modify_cq{"verbs.modify_cq", Category::verbs, Kind::span, {"cqn", "errno"}, Mark::warning, 1};
inline constexpr Point resize_cq{"verbs.resize_cq", Category::verbs, Kind::span, {"cqn", "errno"}, Mark::warning, 1};
inline constexpr Point destroy_cq{"verbs.destroy_cq", Category::verbs, Kind::span, {"cqn", "errno"}, Mark::warning, 1};
inline constexpr Point create_qp{"verbs.create_qp", Category::verbs, Kind::span, {"qpn", "errno"}, Mark::warning, 1};
inline constexpr Point open_qp{"verbs.open_qp", Category::verbs, Kind::span, {"qpn", "errno"}, Mark::warning, 1};
/// `state` asked for; 255 if the call does not change it.
inline constexpr Point modify_qp{"verbs.modify_qp",         Category::verbs, Kind::span,
                                 {"qpn", "errno", "state"}, Mark::warning,   1};
inline constexpr Point query_qp{"verbs.query_qp", Category::verbs, Kind::span, {"qpn", "errno"}, Mark::warning, 1};
inline constexpr Point destroy_qp{"verbs.destroy_qp", Category::verbs, Kind::span, {"qpn", "errno"}, Mark::warning, 1};
inline constexpr Point create_srq{"verbs.create_srq", Category::verbs, Kind::span, {"srqn", "errno"}, Mark::warning, 1};
inline constexpr Point modify_srq{"verbs.modify_srq", Category::verbs, Kind::span, {"srqn", "errno"}, Mark::warning, 1};
inline constexpr Point query_srq{"verbs.query_srq", Category::verbs, Kind::span, {"srqn", "errno"}, Mark::warning, 1};
inline constexpr Point destroy_srq{"verbs.destroy_srq", Category::verbs, Kind::span,
                                   {"srqn", "errno"},   Mark::warning,   1};
inline constexpr Point create_ah{"verbs.create_ah", Category::verbs, Kind::span, {"ah", "errno"}, Mark::warning, 1};
inline constexpr Point destroy_ah{"verbs.destroy_ah", Category::verbs, Kind::span, {"ah", "errno"}, Mark::warning, 1};
inline constexpr Point attach_mcast{"verbs.attach_mcast", Category::verbs, Kind::span,
                                    {"qpn", "errno"},     Mark::warning,   1};
inline constexpr Point detach_mcast{"verbs.detach_mcast", Category::verbs, Kind::span,
                                    {"qpn", "errno"},     Mark::warning,   1};
inline constexpr Point open_xrcd{"verbs.open_xrcd", Category::verbs, Kind::span, {"xrcd", "errno"}, Mark::warning, 1};
inline constexpr Point close_xrcd{"verbs.close_xrcd", Category::verbs, Kind::span, {"xrcd", "errno"}, Mark::warning, 1};
inline constexpr Point alloc_td{"verbs.alloc_td", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point dealloc_td{"verbs.dealloc_td", Category::verbs, Kind::span, {"errno"}, Mark::warning, 0};
inline constexpr Point alloc_parent_domain{
    "verbs.alloc_parent_domain", Category::verbs, Kind::span, {"pd", "errno"}, Mark::warning, 1};

}  // namespace verbs::points
