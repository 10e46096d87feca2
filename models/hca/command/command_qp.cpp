// SPDX-License-Identifier: Apache-2.0
// Commands about queue pairs. The driver has checked attribute masks; firmware checks what only the device knows: states,
// ranges, referenced objects (S-QP-3, S-QP-22…30). RC, UC, UD and XRC; other services are refused at creation.
#include <algorithm>
#include <cstring>

#include "hca/command/command_unit.h"

namespace hca {
namespace {

// States from which an opcode may be executed, and the state it leads to.
struct Transition {
  QpState to;
  std::uint32_t from_mask;
};
constexpr std::uint32_t bit(QpState s) { return 1U << static_cast<unsigned>(s); }
constexpr std::uint32_t kAnyState = 0xFF;
Transition transition_of(std::uint16_t opcode) {
  switch (opcode) {
    case prm::kRst2Init:
      return {QpState::init, bit(QpState::reset)};
    case prm::kInit2Init:
      return {QpState::init, bit(QpState::init)};
    case prm::kInit2Rtr:
      return {QpState::rtr, bit(QpState::init)};
    case prm::kRtr2Rts:
      return {QpState::rts, bit(QpState::rtr)};
    case prm::kRts2Rts:
      return {QpState::rts, bit(QpState::rts)};
    case prm::kRts2Sqd:
      return {QpState::sqd, bit(QpState::rts)};
    case prm::kSqd2Sqd:
      return {QpState::sqd, bit(QpState::sqd)};
    case prm::kSqd2Rts:
      return {QpState::rts, bit(QpState::sqd)};
    case prm::kSqerr2Rts:
      return {QpState::rts, bit(QpState::sqer)};
    case prm::kQp2Err:
      return {QpState::err, kAnyState & ~bit(QpState::reset)};
    default:
      return {QpState::reset, kAnyState};
  }
}

// Most bytes that scatter-to-CQE takes, by the code in the context; codes that do not exist count as none.
std::uint8_t bytes_in_cqe(std::uint32_t code, std::uint32_t data32, std::uint32_t data64) {
  return code == data32 ? 32 : code == data64 ? 64 : 0;
}

wire::Mac mac_of(const std::byte* path) {
  const std::uint32_t high = prm::get(path, prm::kAdsRmacHigh), low = prm::get(path, prm::kAdsRmacLow);
  return {static_cast<std::uint8_t>(high >> 8), static_cast<std::uint8_t>(high),
          static_cast<std::uint8_t>(low >> 24), static_cast<std::uint8_t>(low >> 16),
          static_cast<std::uint8_t>(low >> 8),  static_cast<std::uint8_t>(low)};
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
  qpc_.install(qpn);
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

sim::Task<CommandUnit::Status> CommandUnit::modify_qp(Command& c, std::uint16_t opcode) {
  Qp* qp = device_.qps.find(object(c));
  if (qp == nullptr) co_return prm::kCmdBadRes;
  const Transition t = transition_of(opcode);
  if ((t.from_mask & bit(qp->state)) == 0) co_return prm::kCmdBadQpState;
  if (opcode == prm::kQp2Rst) {
    co_await stop(*qp);
    co_return prm::kCmdOk;
  }
  // Attributes may change, and work may start again, when everything that was begun has ended (S-QP-50).
  if ((opcode == prm::kSqd2Sqd || opcode == prm::kSqd2Rts) && !qp->sent.empty()) co_return prm::kCmdBadQpState;
  if (opcode != prm::kQp2Err) {
    const std::uint32_t optional = prm::get(c.in.data(), prm::kQpOptMask);
    if (!apply_qpc(*qp, c.in.data() + prm::kQpcOffset, opcode, optional)) co_return prm::kCmdBadParam;
  }
  const QpState from = qp->state;
  if (opcode == prm::kRts2Sqd) qp->notify_drained = prm::get(c.in.data(), prm::kInOpMod) == prm::kSqdNotify;
  qp->state = t.to;
  qpc_.dirty(qp->qpn);
  qp_control_.state_changed(*qp, from);
  co_return prm::kCmdOk;
}

// Takes the attributes that the transition requires and those that `optional` names. False leaves the QP as it was.
bool CommandUnit::apply_qpc(Qp& qp, const std::byte* qpc, std::uint16_t opcode, std::uint32_t optional) {
  const bool init = opcode == prm::kRst2Init, rtr = opcode == prm::kInit2Rtr, rts = opcode == prm::kRtr2Rts;
  const bool ud = qp.service == prm::kStUd, reliable = !qp.unreliable();
  const auto changes = [&](std::uint32_t bits) { return (optional & bits) != 0; };
  const bool new_path = (rtr && !ud) || (opcode == prm::kSqd2Sqd && changes(prm::kOptPrimaryPath));
  const std::byte* path = qpc + prm::kQpcPath;
  std::byte* image = qp.image.data();
  const auto copy = [&](prm::Field f) { prm::set(image, f, prm::get(qpc, f)); };
  const auto copy_path = [&](prm::Field f) { prm::set(image + prm::kQpcPath, f, prm::get(path, f)); };
  const std::uint32_t mtu = prm::get(qpc, prm::kQpcMtu);
  const std::uint32_t sra = prm::get(qpc, prm::kQpcLogSraMax), rra = prm::get(qpc, prm::kQpcLogRraMax);
  if (rtr && !ud && (mtu < 1 || mtu > device_.max_mtu_code)) return false;
  if (rtr && rra > device_.config.caps.log_max_ra_res) return false;
  if ((rts || changes(prm::kOptSraMax)) && sra > device_.config.caps.log_max_ra_req) return false;
  if (new_path && !check_path(qp, path)) return false;
  if ((init || (optional & prm::kOptPkeyIndex) != 0) && prm::get(path, prm::kAdsPkeyIndex) >= 128) return false;
  if (init || (optional & prm::kOptPkeyIndex) != 0) {
    copy_path(prm::kAdsPkeyIndex);
  }
  if (init || changes(prm::kOptPrimaryPort)) copy_path(prm::kAdsPort);
  if (init || (optional & (prm::kOptRre | prm::kOptRwe | prm::kOptRae)) != 0) {
    qp.rre = prm::get(qpc, prm::kQpcRre) != 0;
    qp.rwe = prm::get(qpc, prm::kQpcRwe) != 0;
    qp.rae = prm::get(qpc, prm::kQpcRae) != 0;
    copy(prm::kQpcRre);
    copy(prm::kQpcRwe);
    copy(prm::kQpcRae);
  }
  if (ud && (init || changes(prm::kOptQkey))) {
    qp.qkey = prm::get(qpc, prm::kQpcQkey);
    copy(prm::kQpcQkey);
  }
  if (new_path) {
    const std::uint32_t timeout = prm::get(image + prm::kQpcPath, prm::kAdsAckTimeout);
    std::memcpy(image + prm::kQpcPath, path, 44);
    if (!rtr) prm::set(image + prm::kQpcPath, prm::kAdsAckTimeout, timeout);
    set_path(qp, path);
  }
  if (rtr && ud) {
    qp.mtu_code = static_cast<std::uint8_t>(std::min<std::uint32_t>(mtu, device_.max_mtu_code));
    qp.mtu = 128U << qp.mtu_code;
    copy(prm::kQpcMtu);
  } else if (rtr) {
    qp.mtu_code = static_cast<std::uint8_t>(mtu);
    qp.mtu = 128U << mtu;
    qp.remote_qpn = prm::get(qpc, prm::kQpcRemoteQpn);
    qp.expected_psn = Psn(prm::get(qpc, prm::kQpcNextRcvPsn));
    qp.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << rra);
    copy(prm::kQpcMtu);
    copy(prm::kQpcRemoteQpn);
    copy(prm::kQpcNextRcvPsn);
    copy(prm::kQpcLogRraMax);
  }
  if (changes(prm::kOptRraMax) && opcode == prm::kSqd2Sqd) {
    qp.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << rra);
    copy(prm::kQpcLogRraMax);
  }
  if ((rtr && reliable) || changes(prm::kOptRnrTimeout)) {
    qp.min_rnr_timer = static_cast<std::uint8_t>(prm::get(qpc, prm::kQpcMinRnrNak));
    copy(prm::kQpcMinRnrNak);
  }
  if (rts) {
    qp.next_psn = qp.send_psn = qp.sent_psn = qp.unacked_psn = Psn(prm::get(qpc, prm::kQpcNextSendPsn));
    qp.ack_req_interval = 1U << prm::get(qpc, prm::kQpcLogAckReqFreq);
    copy(prm::kQpcLogAckReqFreq);
    copy(prm::kQpcNextSendPsn);
  }
  if (rts || changes(prm::kOptAckTimeout)) {
    qp.ack_timeout = static_cast<std::uint8_t>(prm::get(path, prm::kAdsAckTimeout));
    copy_path(prm::kAdsAckTimeout);
  }
  if (rts || changes(prm::kOptRetryCount)) {
    qp.retry_count = qp.retries_left = static_cast<std::uint8_t>(prm::get(qpc, prm::kQpcRetryCount));
    copy(prm::kQpcRetryCount);
  }
  if (rts || changes(prm::kOptRnrRetry)) {
    qp.rnr_retry = qp.rnr_left = static_cast<std::uint8_t>(prm::get(qpc, prm::kQpcRnrRetry));
    copy(prm::kQpcRnrRetry);
  }
  if (rts || changes(prm::kOptSraMax)) {
    qp.max_rd_atomic = prm::get(qpc, prm::kQpcNoReads) != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1U << sra);
    copy(prm::kQpcLogSraMax);
    copy(prm::kQpcNoReads);
  }
  return true;
}

// Source and destination must be addresses of the same IP version; RoCEv1 entries cannot be used.
bool CommandUnit::check_path(const Qp& qp, const std::byte* path) const {
  const RoceAddress* source = device_.roce_v2_address(prm::get(path, prm::kAdsSrcAddrIndex));
  wire::Gid destination;
  std::memcpy(destination.data(), path + prm::kAdsRgid, destination.size());
  return qp.service != prm::kStUd && source != nullptr && wire::is_ipv4(source->gid) == wire::is_ipv4(destination);
}

// Frame headers of a connected QP: the source comes from the table that SET_ROCE_ADDRESS fills. The firmware replaces a
// hop limit below 2 (S-ROCE-5).
void CommandUnit::set_path(Qp& qp, const std::byte* path) {
  wire::Path p;
  const RoceAddress& source = device_.roce_addresses[prm::get(path, prm::kAdsSrcAddrIndex)];
  p.source = source.gid;
  p.source_mac = source.mac;
  std::memcpy(p.destination.data(), path + prm::kAdsRgid, 16);
  p.destination_mac = mac_of(path);
  p.traffic_class = static_cast<std::uint8_t>(prm::get(path, prm::kAdsTclass));
  const std::uint32_t hops = prm::get(path, prm::kAdsHopLimit);
  p.hop_limit = hops < 2 ? std::uint8_t{64} : static_cast<std::uint8_t>(hops);
  p.flow_label = prm::get(path, prm::kAdsFlowLabel);
  p.udp_source_port = static_cast<std::uint16_t>(prm::get(path, prm::kAdsUdpSport));
  qp.remote_gid = p.destination;
  qp.force_loopback = prm::get(path, prm::kAdsForceLoopback) != 0;
  qp.frame = wire::FrameTemplate(p);
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
