// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/verbs_model.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace sys::test {
namespace {

constexpr int kPkey = IBV_QP_PKEY_INDEX, kPort = IBV_QP_PORT, kAcc = IBV_QP_ACCESS_FLAGS, kQkey = IBV_QP_QKEY,
              kAv = IBV_QP_AV, kMtu = IBV_QP_PATH_MTU, kDqpn = IBV_QP_DEST_QPN, kRqPsn = IBV_QP_RQ_PSN,
              kSqPsn = IBV_QP_SQ_PSN, kMdra = IBV_QP_MAX_DEST_RD_ATOMIC, kMqra = IBV_QP_MAX_QP_RD_ATOMIC,
              kRnrt = IBV_QP_MIN_RNR_TIMER, kTmo = IBV_QP_TIMEOUT, kRtc = IBV_QP_RETRY_CNT, kRnrc = IBV_QP_RNR_RETRY,
              kAlt = IBV_QP_ALT_PATH, kMig = IBV_QP_PATH_MIG_STATE, kCur = IBV_QP_CUR_STATE,
              kEn = IBV_QP_EN_SQD_ASYNC_NOTIFY;

struct Row {
  ibv_qp_state from, to;
  ModelMasks rc, uc, ud;
};
// The table of S-QP-12.
constexpr Row kRows[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, {kPkey | kPort | kAcc, 0}, {kPkey | kPort | kAcc, 0}, {kPkey | kPort | kQkey, 0}},
    {IBV_QPS_INIT, IBV_QPS_INIT, {0, kPkey | kPort | kAcc}, {0, kPkey | kPort | kAcc}, {0, kPkey | kPort | kQkey}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {kAv | kMtu | kDqpn | kRqPsn | kMdra | kRnrt, kAlt | kAcc | kPkey},
     {kAv | kMtu | kDqpn | kRqPsn, kAlt | kAcc | kPkey},
     {0, kPkey | kQkey}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {kTmo | kRtc | kRnrc | kSqPsn | kMqra, kCur | kAlt | kAcc | kRnrt | kMig},
     {kSqPsn, kCur | kAlt | kAcc | kMig},
     {kSqPsn, kCur | kQkey}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {0, kCur | kAcc | kAlt | kMig | kRnrt},
     {0, kCur | kAcc | kAlt | kMig},
     {0, kCur | kQkey}},
    {IBV_QPS_RTS, IBV_QPS_SQD, {0, kEn}, {0, kEn}, {0, kEn}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {0, kCur | kAlt | kAcc | kRnrt | kMig},
     {0, kCur | kAlt | kAcc | kMig},
     {0, kCur | kQkey}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {0, kPort | kAv | kTmo | kRtc | kRnrc | kMqra | kMdra | kAlt | kAcc | kPkey | kRnrt | kMig},
     {0, kAv | kAlt | kAcc | kPkey | kMig},
     {0, kPkey | kQkey}},
    {IBV_QPS_SQE, IBV_QPS_RTS, {0, 0}, {0, kCur | kAcc}, {0, kCur | kQkey}},
};

std::uint32_t align(std::uint32_t v, std::uint32_t to) { return (v + to - 1) / to * to; }

// S-QP-30: stored as log2, rounded up.
std::uint8_t rounded(std::uint8_t depth) { return static_cast<std::uint8_t>(std::bit_ceil(unsigned{depth})); }

}  // namespace

std::optional<ModelMasks> model_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET) return ModelMasks{0, 0};
  if (to == IBV_QPS_ERR) return from == IBV_QPS_RESET ? std::nullopt : std::optional(ModelMasks{0, 0});  // S-QP-4
  for (const Row& r : kRows)
    if (r.from == from && r.to == to) return type == IBV_QPT_RC ? r.rc : type == IBV_QPT_UC ? r.uc : r.ud;
  return std::nullopt;
}

// S-MR-2, S-MR-3.
int VerbsModel::reg_mr(std::uint64_t address, std::uint64_t length, std::uint64_t iova, unsigned access,
                       bool mapped) const {
  constexpr unsigned kOptional = 0x3FF00000, kKnown = 0xFF;
  if (((address ^ iova) & 0xFFF) != 0) return EINVAL;
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return EINVAL;
  if ((access & ~(kKnown | kOptional)) != 0) return EINVAL;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return EOPNOTSUPP;
  if (length == 0 || address + length < address) return EINVAL;
  return mapped ? 0 : EFAULT;
}

// S-OBJ-30, S-OBJ-31.
int VerbsModel::create_cq(std::int64_t cqe, std::uint32_t vector, ModelCq& cq) const {
  if (cqe <= 0 || cqe > limits_.cqe || vector >= limits_.comp_vectors) return EINVAL;
  cq.cqe = std::bit_ceil(static_cast<std::uint32_t>(cqe) + 1) - 1;
  if (cq.channel != nullptr) ++cq.channel->cqs;
  return 0;
}

int VerbsModel::destroy_cq(ModelCq& cq) {
  if (cq.uses > 0) return EBUSY;
  if (cq.channel != nullptr) {
    --cq.channel->cqs;
    std::erase_if(cq.channel->events, [&](const auto& e) { return e.cq == &cq; });  // unread events go too (S-CE-30)
  }
  return 0;
}

// S-OBJ-40 … S-OBJ-43.
int VerbsModel::create_qp(ModelQp& qp) const {
  const ibv_qp_cap& a = qp.asked;
  if (qp.type == IBV_QPT_RAW_PACKET) return EOPNOTSUPP;
  if (qp.type != IBV_QPT_RC && qp.type != IBV_QPT_UC && qp.type != IBV_QPT_UD) return EINVAL;
  qp.granted = a;
  const std::uint32_t overhead = qp.type == IBV_QPT_UD ? 64 : 192;
  if (a.max_send_wr > 0) {
    if (a.max_send_wr > 0x7fffffffU / limits_.send_desc) return EINVAL;
    if (a.max_send_sge > (limits_.send_desc - overhead) / 16 || a.max_inline_data > limits_.send_desc) return EINVAL;
    std::uint32_t wqe = overhead + 16 * a.max_send_sge;
    if (a.max_inline_data > 0) wqe = std::max(wqe, overhead + align(4 + a.max_inline_data, 16));
    if (wqe > limits_.send_desc) return EINVAL;
    wqe = align(wqe, 64);
    const std::uint32_t bytes = std::bit_ceil(a.max_send_wr * wqe);
    if (bytes / 64 > limits_.send_wqebbs || a.max_send_wr > limits_.qp_wr) return EINVAL;
    qp.granted.max_inline_data = wqe - overhead - 4;
    qp.granted.max_send_wr = bytes / wqe;
  }
  qp.granted.max_recv_wr = qp.granted.max_recv_sge = 0;
  if (a.max_recv_wr > 0) {
    if (a.max_recv_wr > limits_.qp_wr || a.max_recv_sge > limits_.recv_desc / 16) return EINVAL;
    const std::uint32_t stride = std::bit_ceil(16 * std::max(1U, a.max_recv_sge));
    const std::uint32_t bytes = std::max(64U, std::bit_ceil(a.max_recv_wr) * stride);
    qp.granted.max_recv_wr = bytes / stride;
    qp.granted.max_recv_sge = stride / 16;
  }
  ++qp.pd->uses;
  ++qp.send_cq->uses;
  ++qp.recv_cq->uses;
  return 0;
}

void VerbsModel::destroy_qp(ModelQp& qp) {
  forget(qp);
  --qp.pd->uses;
  --qp.send_cq->uses;
  --qp.recv_cq->uses;
}

int VerbsModel::check_mask(const ModelQp& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state& to) const {
  const auto state = [](ibv_qp_state s) { return static_cast<unsigned>(s) <= IBV_QPS_ERR; };
  to = qp.state;
  ibv_qp_state from = qp.state;
  if ((mask & IBV_QP_CUR_STATE) != 0) {
    if (!state(attr.cur_qp_state)) return EINVAL;
    from = to = attr.cur_qp_state;
  }
  if ((mask & IBV_QP_STATE) != 0) {
    if (!state(attr.qp_state)) return EINVAL;
    to = attr.qp_state;
  }
  const auto masks = model_transition(qp.type, from, to);
  if (!masks || (mask & masks->required) != masks->required) return EINVAL;
  if ((mask & ~(masks->required | masks->optional | IBV_QP_STATE)) != 0) return EINVAL;
  if (from != qp.state) return EINVAL;                                                                // S-QP-11
  if (from == IBV_QPS_SQD && (to == IBV_QPS_SQD || to == IBV_QPS_RTS) && qp.draining) return EINVAL;  // S-QP-50
  return 0;
}

// S-QP-20 … S-QP-28.
int VerbsModel::check_values(const ModelQp& qp, const ibv_qp_attr& a, int mask, ibv_qp_state to) const {
  const auto given = [&](int bit) { return (mask & bit) != 0; };
  const auto port = [&](std::uint8_t p) { return p >= 1 && p <= limits_.ports; };
  if (given(kPort) && !port(a.port_num)) return EINVAL;
  if (given(kAv)) {
    if (!port(a.ah_attr.port_num) || a.ah_attr.is_global == 0 || a.ah_attr.grh.sgid_index > 3) return EINVAL;
    if (to == IBV_QPS_RTR && a.ah_attr.port_num != qp.attributes.port) return EINVAL;
  }
  if (given(kAlt)) return EINVAL;
  if (given(kPkey) && a.pkey_index >= limits_.pkeys) return EINVAL;
  if (given(kMtu) && (a.path_mtu < 1 || a.path_mtu > limits_.max_mtu)) return EINVAL;
  if (given(kMqra) && a.max_rd_atomic > limits_.rd_atomic) return EINVAL;
  if (given(kMdra) && a.max_dest_rd_atomic > limits_.rd_atomic) return EINVAL;
  if (given(kTmo) && a.timeout > 31) return EINVAL;
  if (given(kRtc) && a.retry_cnt > 7) return EINVAL;
  if (given(kRnrc) && a.rnr_retry > 7) return EINVAL;
  if (given(kRnrt) && a.min_rnr_timer > 31) return EINVAL;
  return 0;
}

int VerbsModel::modify_qp(ModelQp& qp, const ibv_qp_attr& attr, int mask) {
  ibv_qp_attr a = attr;
  ibv_qp_state to{};
  // Outside INIT to RTR the kernel takes the port of a new address vector for that of the QP (S-QP-20), which makes it an
  // attribute of the call.
  if ((mask & kAv) != 0 && ((mask & IBV_QP_STATE) == 0 || a.qp_state != IBV_QPS_RTR)) {
    if ((mask & kPort) != 0 && a.port_num != a.ah_attr.port_num) return EINVAL;
    mask |= kPort;
    a.port_num = a.ah_attr.port_num;
  }
  if (const int e = check_mask(qp, a, mask, to); e != 0) return e;
  if (const int e = check_values(qp, a, mask, to); e != 0) return e;
  ModelAttributes& m = qp.attributes;
  const auto given = [&](int bit) { return (mask & bit) != 0; };
  if (given(kPort)) m.port = a.port_num;
  if (given(kAcc)) m.access = a.qp_access_flags;
  if (given(kMtu)) m.path_mtu = a.path_mtu;
  if (given(kDqpn)) m.dest_qp_num = a.dest_qp_num;
  if (given(kRqPsn)) m.rq_psn = a.rq_psn & 0xFFFFFF;  // S-QP-27
  if (given(kSqPsn)) m.sq_psn = a.sq_psn & 0xFFFFFF;
  if (given(kMdra)) m.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (given(kMqra)) m.max_rd_atomic = rounded(a.max_rd_atomic);
  if (given(kRnrt)) m.min_rnr_timer = a.min_rnr_timer;
  if (given(kTmo)) m.timeout = a.timeout;
  if (given(kRtc)) m.retry_cnt = a.retry_cnt;
  if (given(kRnrc)) m.rnr_retry = a.rnr_retry;
  if (to == IBV_QPS_SQD && qp.state == IBV_QPS_RTS) qp.draining = !qp.sends.empty();
  qp.state = to;
  if (to == IBV_QPS_RESET) {
    forget(qp);
    m = {};
    qp.send_gate = qp.recv_gate = false;
  }
  if (to == IBV_QPS_INIT) qp.recv_gate = true;
  if (to == IBV_QPS_RTS) qp.send_gate = true;
  if (to == IBV_QPS_ERR) flush(qp);
  else execute(qp);
  return 0;
}

// S-PS-4 … S-PS-10.
std::pair<std::size_t, int> VerbsModel::post_send(ModelQp& qp, const std::vector<ModelSend>& chain,
                                                  std::uint64_t first_id) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ModelSend& s = chain[i];
    int error = 0;
    if (s.opcode > IBV_WR_DRIVER1) error = EINVAL;
    else if (qp.send_used >= qp.granted.max_send_wr) error = ENOMEM;
    else if (!qp.send_gate || s.sges > static_cast<int>(qp.asked.max_send_sge)) error = ENOMEM;
    else if (s.in_line && s.bytes > qp.granted.max_inline_data) error = ENOMEM;
    if (error != 0) {
      execute(qp);
      return {i, error};
    }
    ModelWr wr{first_id + i, {}, s.signaled};
    // Inline data are honoured for any opcode; the device refuses them for a READ, and a READ on UC (S-ERR-16, S-PS-3).
    // Nothing is checked of an empty list.
    if (qp.type == IBV_QPT_UC && s.opcode == IBV_WR_RDMA_READ) wr.fails = IBV_WC_LOC_QP_OP_ERR;
    else if (s.in_line && s.opcode == IBV_WR_RDMA_READ && s.bytes > 0) wr.fails = IBV_WC_LOC_QP_OP_ERR;
    else if (s.bad_key && !s.in_line && s.bytes > 0 && s.opcode != IBV_WR_RDMA_READ) wr.fails = IBV_WC_LOC_PROT_ERR;
    qp.sends.push_back(wr);
    ++qp.send_used;
  }
  execute(qp);
  return {chain.size(), 0};
}

// S-PR-1 … S-PR-3.
std::pair<std::size_t, int> VerbsModel::post_recv(ModelQp& qp, const std::vector<int>& sges, std::uint64_t first_id) {
  for (std::size_t i = 0; i < sges.size(); ++i) {
    int error = 0;
    if (qp.recv_used >= qp.granted.max_recv_wr) error = ENOMEM;
    else if (!qp.recv_gate || sges[i] > static_cast<int>(qp.granted.max_recv_sge)) error = EINVAL;
    if (error != 0) {
      execute(qp);
      return {i, error};
    }
    qp.receives.push_back({first_id + i, {}});
    ++qp.recv_used;
  }
  execute(qp);
  return {sges.size(), 0};
}

// What the device does with posted work. The peer is silent, so a request that is right never completes on RC, and nothing
// behind it is reported; on UC it is complete when it has left (S-UC-2).
void VerbsModel::execute(ModelQp& qp) {
  if (qp.state == IBV_QPS_ERR) flush(qp);
  if (qp.state == IBV_QPS_SQE) flush_sends(qp);
  while (qp.state == IBV_QPS_RTS && !qp.sends.empty()) {
    const ModelWr wr = qp.sends.front();
    if (!wr.fails && qp.type == IBV_QPT_RC) return;
    qp.sends.pop_front();
    if (wr.fails) {
      complete(qp, false, wr, *wr.fails);
      qp.state = qp.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE;  // S-QP-51
    } else if (wr.signaled) {
      complete(qp, false, wr, IBV_WC_SUCCESS);
    } else {
      ++qp.silent;
    }
  }
  if (qp.state == IBV_QPS_ERR) flush(qp);
  if (qp.state == IBV_QPS_SQE) flush_sends(qp);
}

void VerbsModel::flush_sends(ModelQp& qp) {
  for (; !qp.sends.empty(); qp.sends.pop_front()) complete(qp, false, qp.sends.front(), IBV_WC_WR_FLUSH_ERR);
}

void VerbsModel::flush(ModelQp& qp) {
  flush_sends(qp);
  for (; !qp.receives.empty(); qp.receives.pop_front()) complete(qp, true, qp.receives.front(), IBV_WC_WR_FLUSH_ERR);
}

void VerbsModel::complete(ModelQp& qp, bool receive, const ModelWr& wr, ibv_wc_status status) {
  ModelCq& cq = receive ? *qp.recv_cq : *qp.send_cq;
  if (receive) qp.recv_wcs.push_back({wr.wr_id, status, 1});
  else qp.send_wcs.push_back({wr.wr_id, status, 1 + std::exchange(qp.silent, 0)});
  ++cq.queued;
  if (cq.armed) notify(cq);
}

// One-shot (S-CE-2).
void VerbsModel::notify(ModelCq& cq) {
  cq.armed = false;
  cq.unread = true;
  cq.channel->events.push_back({&cq, epoch_});
}

// RESET and destroy: pending requests vanish, and so do completions (S-QP-46).
void VerbsModel::forget(ModelQp& qp) {
  qp.send_cq->queued -= static_cast<std::uint32_t>(qp.send_wcs.size());
  qp.recv_cq->queued -= static_cast<std::uint32_t>(qp.recv_wcs.size());
  qp.sends.clear();
  qp.receives.clear();
  qp.send_wcs.clear();
  qp.recv_wcs.clear();
  qp.send_used = qp.recv_used = qp.silent = 0;
}

void VerbsModel::arm(ModelCq& cq) {
  if (cq.channel == nullptr || cq.unread || cq.armed) return;
  if (cq.queued == 0) cq.armed = true;
  else notify(cq);  // a completion that was there already counts (S-CE-5)
}

bool VerbsModel::read_event(ModelChannel& c, ModelCq& cq) {
  const auto it = std::find_if(c.events.begin(), c.events.end(), [&](const auto& e) { return e.cq == &cq; });
  if (it == c.events.end() || it->epoch != c.events.front().epoch) return false;
  c.events.erase(it);
  cq.unread = false;
  ++cq.unacked;
  return true;
}

bool VerbsModel::polled(ModelQp& qp, bool receive, std::uint64_t wr_id, ibv_wc_status status) {
  std::deque<ModelWc>& wcs = receive ? qp.recv_wcs : qp.send_wcs;
  if (wcs.empty() || wcs.front().wr_id != wr_id || wcs.front().status != status) return false;
  (receive ? qp.recv_used : qp.send_used) -= wcs.front().frees;
  wcs.pop_front();
  --(receive ? qp.recv_cq : qp.send_cq)->queued;
  return true;
}

}  // namespace sys::test
