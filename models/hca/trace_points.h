// SPDX-License-Identifier: Apache-2.0
// Trace points of the HCA.
#pragma once

#include "sim/trace/trace.h"

namespace hca::points {

using sim::trace::Category;
using sim::trace::Form;
using sim::trace::Kind;
using sim::trace::Mark;
using sim::trace::Point;

/// First byte arrived, doorbell complete, decoded.
inline constexpr Point doorbell{"hca.doorbell", Category::hca, Kind::span, {"qpn", "producer", "blueflame"}};
inline constexpr Point cq_doorbell{"hca.cq_doorbell", Category::hca, Kind::instant, {"cqn", "ci", "sn", "solicited"}};
inline constexpr Point wqe_fetch{"hca.wqe_fetch", Category::hca, Kind::span, {"qpn", "wqe", "bytes"}};
inline constexpr Point rq_wqe_fetch{
    "hca.rq_wqe_fetch", Category::hca, Kind::span, {"qpn", "wqe", "count"}, Mark::none, -1, Form::rwqe};
inline constexpr Point srq_wqe_fetch{
    "hca.srq_wqe_fetch", Category::hca, Kind::span, {"srqn", "wqe", "count"}, Mark::none, -1, Form::rwqe};
inline constexpr Point srq_limit{"hca.srq_limit", Category::hca, Kind::instant, {"srqn", "wqes"}};
/// A send WQE from the head of its queue, over the end of its last stall by a fence or window, to its last packet.
inline constexpr Point wqe{"hca.wqe", Category::hca, Kind::span, {"qpn", "wqe", "opcode", "bytes"}, Mark::none,
                           -1,        Form::wqe};
inline constexpr Point umr{"hca.umr", Category::hca, Kind::span, {"qpn", "key", "done"}};
/// Key, range and rights, and for data the addresses; `fault` is a Fault, the error its completion.
inline constexpr Point translate{
    "hca.translate", Category::hca, Kind::span, {"key", "va", "bytes", "fault"}, Mark::warning, 3};
inline constexpr Point context_fill{"hca.context_fill", Category::hca, Kind::span, {"table", "index"}};
inline constexpr Point atomic{"hca.atomic", Category::hca, Kind::span, {"address", "compare_swap"}};
inline constexpr Point dma_read{"hca.dma_read", Category::hca, Kind::span, {"failed"}, Mark::error, 0};
inline constexpr Point tx{"hca.tx", Category::hca, Kind::span, {"qpn", "psn", "opcode", "bytes"}};
inline constexpr Point rx{"hca.rx", Category::hca, Kind::span, {"qpn", "psn", "opcode", "bytes"}};
inline constexpr Point rx_drop{"hca.rx_drop", Category::hca, Kind::instant, {"reason", "qpn", "psn"}, Mark::warning};
/// UC, UD: the packet and what is left of its message are given up.
inline constexpr Point message_drop{"hca.message_drop", Category::hca, Kind::instant, {"qpn", "psn"}, Mark::warning};
inline constexpr Point nak{"hca.nak", Category::hca, Kind::instant, {"qpn", "psn", "syndrome"}, Mark::warning};
inline constexpr Point rnr_nak{"hca.rnr_nak", Category::hca, Kind::instant, {"qpn", "psn", "timer"}, Mark::warning};
inline constexpr Point rnr_wait{"hca.rnr_wait", Category::hca, Kind::span, {"qpn", "psn", "timer"}, Mark::warning};
inline constexpr Point retransmit{
    "hca.retransmit", Category::hca, Kind::instant, {"qpn", "psn", "cause"}, Mark::warning};
/// The ACK timeout has expired with this oldest unacknowledged PSN.
inline constexpr Point ack_timeout{
    "hca.ack_timeout", Category::hca, Kind::instant, {"qpn", "psn", "expiries"}, Mark::warning};
inline constexpr Point cqe{"hca.cqe", Category::hca, Kind::span, {"cqn", "qpn", "opcode", "syndrome"}, Mark::error,
                           3,         Form::cqe};
/// CQEs of a CQ that the device has written and no poll has taken.
inline constexpr Point cq_unseen{"hca.cq_unseen", Category::hca, Kind::level, {"cqes"}};
inline constexpr Point eqe{"hca.eqe", Category::hca, Kind::span, {"eqn", "type", "object"}, Mark::none, -1, Form::eqe};
inline constexpr Point cq_overrun{
    "hca.cq_overrun", Category::hca, Kind::instant, {"cqn", "producer", "ci"}, Mark::error};
inline constexpr Point eq_overflow{
    "hca.eq_overflow", Category::hca, Kind::instant, {"eqn", "producer", "ci", "object"}, Mark::error};
inline constexpr Point command{"hca.command", Category::hca, Kind::span, {"opcode", "status", "slot"}};
/// The state of a queue pair over time, and its changes.
inline constexpr Point qp{"hca.qp", Category::hca, Kind::state, {}};
inline constexpr Point qp_state{"hca.qp_state", Category::hca, Kind::instant, {"qpn", "state"}};
/// Send WQEs of a QP that have started and not completed.
inline constexpr Point sq_depth{"hca.sq_depth", Category::hca, Kind::level, {"wqes"}};
/// READs and atomics of a QP without their whole answer; at most max_rd_atomic.
inline constexpr Point rd_atomic{"hca.rd_atomic", Category::hca, Kind::level, {"requests"}};
/// Entries of a CQ or EQ that software has not consumed as far as the device knows.
inline constexpr Point cq_occupancy{"hca.cq_occupancy", Category::hca, Kind::level, {"cqes"}};
inline constexpr Point eq_occupancy{"hca.eq_occupancy", Category::hca, Kind::level, {"eqes"}};
/// DMA read requests on PCIe, each with its tag.
inline constexpr Point dma_tags{"hca.dma_tags", Category::hca, Kind::level, {"tags"}};

}  // namespace hca::points
