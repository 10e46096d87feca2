// SPDX-License-Identifier: Apache-2.0
// State changes of queue pairs. The driver has checked attribute masks; firmware checks what only the device knows: states,
// ranges, addresses (S-QP-3, S-QP-22…30), and takes the attributes that the change requires or names.
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

wire::Mac mac_of(const std::byte* path) {
  const std::uint32_t high = prm::get(path, prm::kAdsRmacHigh), low = prm::get(path, prm::kAdsRmacLow);
  return {static_cast<std::uint8_t>(high >> 8), static_cast<std::uint8_t>(high),
          static_cast<std::uint8_t>(low >> 24), static_cast<std::uint8_t>(low >> 16),
          static_cast<std::uint8_t>(low >> 8),  static_cast<std::uint8_t>(low)};
}

/// The context that a command brings to a QP: what of it counts, and taking it over field by field.
struct QpcChange {
  Qp& qp;
  const std::byte* qpc;
  std::uint16_t opcode;
  std::uint32_t optional;  ///< opt_param_mask
  const std::byte* path = qpc + prm::kQpcPath;
  bool init = opcode == prm::kRst2Init, rtr = opcode == prm::kInit2Rtr, rts = opcode == prm::kRtr2Rts;
  bool ud = qp.service == prm::kStUd;

  bool names(std::uint32_t bits) const { return (optional & bits) != 0; }
  bool new_path() const { return (rtr && !ud) || (opcode == prm::kSqd2Sqd && names(prm::kOptPrimaryPath)); }
  bool new_pkey() const { return init || names(prm::kOptPkeyIndex); }
  bool new_rd_atomic() const { return rts || names(prm::kOptSraMax); }
  std::uint32_t get(prm::Field f) const { return prm::get(qpc, f); }
  std::uint32_t get_path(prm::Field f) const { return prm::get(path, f); }
  std::uint8_t byte(prm::Field f) const { return static_cast<std::uint8_t>(get(f)); }
  std::byte* image() const { return qp.image.data(); }
  std::byte* image_path() const { return image() + prm::kQpcPath; }
  void copy(prm::Field f) const { prm::set(image(), f, get(f)); }
  void copy_path(prm::Field f) const { prm::set(image_path(), f, get_path(f)); }
};

// Ranges of the attributes that will be taken.
bool in_range(const QpcChange& c, const Device& device) {
  const std::uint32_t mtu = c.get(prm::kQpcMtu);
  if (c.rtr && !c.ud && (mtu < 1 || mtu > device.max_mtu_code)) return false;
  if (c.rtr && c.get(prm::kQpcLogRraMax) > device.config.caps.log_max_ra_res) return false;
  if (c.new_rd_atomic() && c.get(prm::kQpcLogSraMax) > device.config.caps.log_max_ra_req) return false;
  return !c.new_pkey() || c.get_path(prm::kAdsPkeyIndex) < 128;
}

// What both sides have: P_Key, port, Q_Key, rights.
void take_common(const QpcChange& c) {
  Qp& qp = c.qp;
  if (c.new_pkey()) c.copy_path(prm::kAdsPkeyIndex);
  if (c.init || c.names(prm::kOptPrimaryPort)) c.copy_path(prm::kAdsPort);
  if (c.init || c.names(prm::kOptRre | prm::kOptRwe | prm::kOptRae)) {
    qp.rre = c.get(prm::kQpcRre) != 0;
    qp.rwe = c.get(prm::kQpcRwe) != 0;
    qp.rae = c.get(prm::kQpcRae) != 0;
    c.copy(prm::kQpcRre);
    c.copy(prm::kQpcRwe);
    c.copy(prm::kQpcRae);
  }
  if (c.ud && (c.init || c.names(prm::kOptQkey))) {
    qp.qkey = c.get(prm::kQpcQkey);
    c.copy(prm::kQpcQkey);
  }
}

// MTU, peer, and what a responder needs.
void take_responder(const QpcChange& c, std::uint8_t max_mtu_code) {
  Qp& qp = c.qp;
  if (c.rtr) {
    qp.mtu_code = c.ud ? std::min(c.byte(prm::kQpcMtu), max_mtu_code) : c.byte(prm::kQpcMtu);
    qp.mtu = 128U << qp.mtu_code;
    c.copy(prm::kQpcMtu);
  }
  if (c.rtr && !c.ud) {
    qp.remote_qpn = c.get(prm::kQpcRemoteQpn);
    qp.expected_psn = Psn(c.get(prm::kQpcNextRcvPsn));
    c.copy(prm::kQpcRemoteQpn);
    c.copy(prm::kQpcNextRcvPsn);
  }
  if ((c.rtr && !c.ud) || (c.opcode == prm::kSqd2Sqd && c.names(prm::kOptRraMax))) {
    qp.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << c.get(prm::kQpcLogRraMax));
    c.copy(prm::kQpcLogRraMax);
  }
  if ((c.rtr && !qp.unreliable()) || c.names(prm::kOptRnrTimeout)) {
    qp.min_rnr_timer = c.byte(prm::kQpcMinRnrNak);
    c.copy(prm::kQpcMinRnrNak);
  }
}

// PSN, timer and retries of the requester.
void take_requester(const QpcChange& c) {
  Qp& qp = c.qp;
  if (c.rts) {
    qp.next_psn = qp.send_psn = qp.sent_psn = qp.unacked_psn = Psn(c.get(prm::kQpcNextSendPsn));
    qp.ack_req_interval = 1U << c.get(prm::kQpcLogAckReqFreq);
    c.copy(prm::kQpcLogAckReqFreq);
    c.copy(prm::kQpcNextSendPsn);
  }
  if (c.rts || c.names(prm::kOptAckTimeout)) {
    qp.ack_timeout = static_cast<std::uint8_t>(c.get_path(prm::kAdsAckTimeout));
    c.copy_path(prm::kAdsAckTimeout);
  }
  if (c.rts || c.names(prm::kOptRetryCount)) {
    qp.retry_count = qp.retries_left = c.byte(prm::kQpcRetryCount);
    c.copy(prm::kQpcRetryCount);
  }
  if (c.rts || c.names(prm::kOptRnrRetry)) {
    qp.rnr_retry = qp.rnr_left = c.byte(prm::kQpcRnrRetry);
    c.copy(prm::kQpcRnrRetry);
  }
  if (c.new_rd_atomic()) {
    const bool none = c.get(prm::kQpcNoReads) != 0;
    qp.max_rd_atomic = none ? std::uint8_t{0} : static_cast<std::uint8_t>(1U << c.get(prm::kQpcLogSraMax));
    c.copy(prm::kQpcLogSraMax);
    c.copy(prm::kQpcNoReads);
  }
}

}  // namespace

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
  const QpcChange change{qp, qpc, opcode, optional};
  if (!in_range(change, device_) || (change.new_path() && !check_path(qp, change.path))) return false;
  take_common(change);
  if (change.new_path()) {  // the timeout is an attribute of its own, though it lies in the path
    const std::uint32_t timeout = prm::get(change.image_path(), prm::kAdsAckTimeout);
    std::memcpy(change.image_path(), change.path, 44);
    if (!change.rtr) prm::set(change.image_path(), prm::kAdsAckTimeout, timeout);
    set_path(qp, change.path);
  }
  take_responder(change, device_.max_mtu_code);
  take_requester(change);
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

}  // namespace hca
