// SPDX-License-Identifier: Apache-2.0
// Creating, destroying and querying queue pairs. RC, UC, UD and XRC; other services are refused at creation. State changes
// are in modify_qp.cpp.
#include <algorithm>
#include <cstring>

#include "hca/command/command_unit.h"
#include "hca/trace_points.h"

namespace hca {
namespace {

// Most bytes that scatter-to-CQE takes, by the code in the context; codes that do not exist count as none.
std::uint8_t bytes_in_cqe(std::uint32_t code, std::uint32_t data32, std::uint32_t data64) {
  return code == data32 ? 32 : code == data64 ? 64 : 0;
}

}  // namespace

CommandUnit::Status CommandUnit::create_qp(Command& c) {
  const std::byte* qpc = c.in.data() + prm::kQpcOffset;
  const std::uint32_t service = prm::get(qpc, prm::kQpcSt);
  if (service > prm::kStXrc) return prm::kCmdBadParam;
  const std::uint32_t pd = prm::get(qpc, prm::kQpcPd), cqn_send = prm::get(qpc, prm::kQpcCqnSnd),
                      cqn_recv = prm::get(qpc, prm::kQpcCqnRcv);
  const bool xrc = service == prm::kStXrc, target = xrc && prm::get(qpc, prm::kQpcNoSq) != 0;
  const std::uint32_t xrcd = target ? prm::get(qpc, prm::kQpcXrcd) : 0;
  if (target && device_.xrcds.find(xrcd) == nullptr) return prm::kCmdBadRes;
  if (!target && (device_.pds.find(pd) == nullptr || device_.cqs.find(cqn_send) == nullptr)) return prm::kCmdBadRes;
  if (!xrc && device_.cqs.find(cqn_recv) == nullptr) return prm::kCmdBadRes;
  const bool on_srq = prm::get(qpc, prm::kQpcRqType) == prm::kRqSrq;
  const Srq* srq = on_srq ? device_.srqs.find(prm::get(qpc, prm::kQpcSrqn)) : nullptr;
  if (on_srq && (srq == nullptr || srq->xrc)) return prm::kCmdBadRes;
  std::uint32_t qpn = 0;
  Qp* qp = device_.qps.create(qpn);
  if (qp == nullptr) return prm::kCmdNoRes;
  qp->qpn = qpn;
  qp->pd = pd;
  qp->service = static_cast<std::uint8_t>(service);
  qp->cqn_send = cqn_send;
  qp->cqn_recv = qp->rx_cqn = cqn_recv;
  qp->user_index = qp->rx_user_index = prm::get(qpc, prm::kQpcUserIndex);
  qp->srqn = on_srq ? srq->srqn : 0;
  qp->signature = prm::get(qpc, prm::kQpcWqSignature) != 0;
  qp->receive_in_cqe = bytes_in_cqe(prm::get(qpc, prm::kQpcCsRes), prm::kCsResData32, prm::kCsResData64);
  qp->result_in_cqe = bytes_in_cqe(prm::get(qpc, prm::kQpcCsReq), prm::kCsReqData32, prm::kCsReqData64);
  qp->xrcd = xrcd;
  qp->dbr = {prm::get64(qpc, prm::kQpcDbrAddr)};
  qp->uar_page = prm::get(qpc, prm::kQpcUarPage);
  qp->no_sq = prm::get(qpc, prm::kQpcNoSq) != 0;
  qp->sq_wqebbs = qp->no_sq ? 0 : 1U << prm::get(qpc, prm::kQpcLogSqSize);
  if (prm::get(qpc, prm::kQpcRqType) == prm::kRqRegular) {
    qp->rq_wqes = 1U << prm::get(qpc, prm::kQpcLogRqSize);
    qp->rq_stride = 16U << prm::get(qpc, prm::kQpcLogRqStride);
  }
  qp->sq_offset = qp->rq_wqes * qp->rq_stride;
  qp->buffer.log_page = prm::get(qpc, prm::kQpcLogPageSize) + memory::kPageShift;
  qp->buffer.offset = prm::get(qpc, prm::kQpcPageOffset) * 64;
  std::memcpy(qp->image.data(), qpc, qp->image.size());
  const std::uint64_t bytes = std::uint64_t{qp->sq_offset} + qp->sq_wqebbs * prm::kWqebb + qp->buffer.offset;
  const std::uint64_t page = 1ULL << qp->buffer.log_page;
  const bool sane = qp->sq_wqebbs <= 1U << device_.config.caps.log_max_qp_sz &&
                    qp->rq_wqes <= 1U << device_.config.caps.log_max_qp_sz &&
                    qp->rq_stride <= device_.config.caps.max_wqe_sz_rq;
  Status status = prm::kCmdOk;
  if (!sane || !read_pages(c, prm::kCreateQpPas, (bytes + page - 1) >> qp->buffer.log_page, qp->buffer))
    status = prm::kCmdBadParam;
  else if (!device_.icm.reserve(IcmTable::qpc, qpn)) status = prm::kCmdNoRes;
  if (status != prm::kCmdOk) {
    device_.qps.destroy(qpn);
    return status;
  }
  qp->generation = ++next_generation_;
  qp->tags = &device_.context.wqe_tags.sq.of(device_.host, qpn);
  qp->state_track.open(device_.context, points::qp, device_.host, device_.path + ".qp" + std::to_string(qpn) + ".state",
                       {"RESET", "INIT", "RTR", "RTS", "SQE", "SQD", "ERR"}, device_.context.now());
  qpc_.install(qpn);
  const std::string lane = device_.path + ".qp" + std::to_string(qpn);
  if (!qp->no_sq) {
    qp->sq_depth.open(device_.context, points::sq_depth, device_.host, lane + ".sq", device_.context.now());
    qp->rd_atomic.open(device_.context, points::rd_atomic, device_.host, lane + ".rd_atomic", device_.context.now());
  }
  prm::set(c.out.data(), prm::kOutObject, qpn);
  return prm::kCmdOk;
}

sim::Task<CommandUnit::Status> CommandUnit::destroy_qp(Command& c) {
  const std::uint32_t qpn = object(c);
  Qp* qp = device_.qps.find(qpn);
  if (qp == nullptr) co_return prm::kCmdBadRes;
  if (device_.multicast.attached(qpn)) co_return prm::kCmdResBusy;
  co_await stop(*qp);
  qpc_.invalidate(qpn);
  device_.context.wqe_tags.sq.forget(device_.host, qpn);
  device_.qps.destroy(qpn);
  co_return prm::kCmdOk;
}

// Puts the QP into RESET and waits until nothing works on it any more.
sim::Task<void> CommandUnit::stop(Qp& qp) {
  const QpState from = qp.state;
  qp.state = QpState::reset;
  qp_control_.state_changed(qp, from);
  while (!qp_control_.idle(qp)) co_await device_.context.delay(sim::Picos{100'000});
  qp.generation = ++next_generation_;
}

CommandUnit::Status CommandUnit::query_qp(Command& c) {
  const Qp* qp = device_.qps.find(object(c));
  if (qp == nullptr) return prm::kCmdBadRes;
  if (c.out.size() < prm::kQpcOffset + prm::kQpcSize) return prm::kCmdBadOutLen;
  std::byte* qpc = c.out.data() + prm::kQpcOffset;
  encode_qpc(*qp, qpc);
  return prm::kCmdOk;
}

void CommandUnit::encode_qpc(const Qp& qp, std::byte* out) {
  std::memcpy(out, qp.image.data(), qp.image.size());
  const bool draining = qp.state == QpState::sqd && !qp.sent.empty();
  prm::set(out, prm::kQpcState, draining ? prm::kQpSqDraining : static_cast<std::uint32_t>(qp.state));
  prm::set(out, prm::kQpcNextSendPsn, qp.next_psn.value());
  prm::set(out, prm::kQpcLastAckedPsn, (qp.unacked_psn - 1U).value());
  prm::set(out, prm::kQpcNextRcvPsn, qp.expected_psn.value());
  prm::set(out, prm::kQpcRmsn, qp.msn);
  prm::set(out, prm::kQpcHwSqCounter, qp.sq_ci);
  prm::set(out, prm::kQpcSwSqCounter, qp.sq_pi);
  prm::set(out, prm::kQpcHwRqCounter, qp.rq_ci);
  prm::set(out, prm::kQpcSwRqCounter, qp.rq_pi);
}

}  // namespace hca
