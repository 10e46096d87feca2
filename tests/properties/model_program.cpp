// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/model_program.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/core/gid_table.h"

namespace sys::test {
namespace {

constexpr std::size_t kMemory = 64 << 10;
constexpr std::uint64_t kUnmapped = 0x5000'0000'0000ULL;
constexpr std::size_t kMost = 5;  ///< objects of a kind, so that they are used often

}  // namespace

void ModelProgram::note(const std::string& what) {
  history_.push_back(std::to_string(step_) + " " + what);
  if (history_.size() > 15) history_.pop_front();
}

void ModelProgram::expect(const std::string& what, std::int64_t got, std::int64_t wanted) {
  if (got == wanted || !failure_.empty()) return;
  failure_ = what + ": " + std::to_string(got) + " where the model says " + std::to_string(wanted) + "; calls:";
  for (const std::string& h : history_) failure_ += "\n  " + h;
}

void ModelProgram::run() {
  open();
  for (step_ = 0; step_ < steps_ && failure_.empty(); ++step_) {
    model_.next_call();
    step();
    cpu::current().sleep(sim::Picos{2'500'000'000});  // whatever the call has started is over then
    for (Qp& q : qps_) query_qp(q);
  }
  close();
  ended_ = true;
}

void ModelProgram::open() {
  int n = 0;
  ibv_device** devices = ibv_get_device_list(&n);
  context_ = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  ibv_device_attr device{};
  ibv_port_attr port{};
  expect("query_device", ibv_query_device(context_, &device), 0);
  expect("query_port", ibv_query_port(context_, 1, &port), 0);
  VerbsModel::Limits limits{};
  limits.cqe = static_cast<std::uint32_t>(device.max_cqe);
  limits.comp_vectors = static_cast<std::uint32_t>(context_->num_comp_vectors);
  limits.qp_wr = limits.send_wqebbs = static_cast<std::uint32_t>(device.max_qp_wr);
  limits.send_desc = 1024;
  limits.recv_desc = 512;
  limits.ports = device.phys_port_cnt;
  limits.pkeys = port.pkey_tbl_len;
  limits.rd_atomic = static_cast<std::uint32_t>(device.max_qp_rd_atom);
  limits.max_mtu = port.max_mtu;
  comp_vectors_ = limits.comp_vectors;
  model_ = VerbsModel(limits);
  memory_ = static_cast<std::byte*>(process_.space.alloc(kMemory, 4096));
  const auto gid = *kernel::gid_of_ipv4(Host::ipv4(1));
  std::memcpy(peer_.raw, gid.data(), gid.size());
}

void ModelProgram::step() {
  using Call = void (ModelProgram::*)();
  constexpr struct {
    unsigned weight;
    Call call;
  } kCalls[] = {{2, &ModelProgram::alloc_pd},   {2, &ModelProgram::dealloc_pd},     {3, &ModelProgram::reg_mr},
                {2, &ModelProgram::dereg_mr},   {1, &ModelProgram::create_channel}, {1, &ModelProgram::destroy_channel},
                {3, &ModelProgram::create_cq},  {2, &ModelProgram::destroy_cq},     {4, &ModelProgram::create_qp},
                {2, &ModelProgram::destroy_qp}, {25, &ModelProgram::modify_qp},     {12, &ModelProgram::post_send},
                {10, &ModelProgram::post_recv}, {8, &ModelProgram::poll},           {6, &ModelProgram::arm},
                {6, &ModelProgram::read_event}};
  unsigned all = 0;
  for (const auto& c : kCalls) all += c.weight;
  unsigned draw = rng_.below(all);
  for (const auto& c : kCalls) {
    if (draw < c.weight) {
      (this->*c.call)();
      return;
    }
    draw -= c.weight;
  }
}

void ModelProgram::alloc_pd() {
  if (pds_.size() >= kMost) return;
  note("alloc_pd");
  ibv_pd* pd = ibv_alloc_pd(context_);
  expect("alloc_pd", pd != nullptr, true);
  if (pd != nullptr) pds_.push_back({pd, {}});
}

void ModelProgram::dealloc_pd() {
  Pd* pd = any(pds_);
  if (pd == nullptr) return;
  note("dealloc_pd");
  const int wanted = model_.dealloc_pd(pd->model);
  expect("dealloc_pd", ibv_dealloc_pd(pd->real), wanted);
  if (wanted == 0) remove(pds_, pd);
}

void ModelProgram::reg_mr() {
  Pd* pd = any(pds_);
  if (pd == nullptr || mrs_.size() >= kMost) return;
  unsigned access = rng_.chance(0.6) ? rng_.below(16) | IBV_ACCESS_LOCAL_WRITE : rng_.below(512);
  if (rng_.chance(0.1)) access |= 1U << rng_.below(31);
  access &= ~unsigned{IBV_ACCESS_ZERO_BASED};  // addresses of the region would begin at 0
  const bool mapped = !rng_.chance(0.1);
  const std::uint64_t at = mapped ? reinterpret_cast<std::uint64_t>(memory_) + rng_.below(kMemory / 2) : kUnmapped;
  std::uint64_t length = rng_.chance(0.1) ? 0 : 1 + rng_.below(kMemory / 2);
  if (rng_.chance(0.05)) length = ~0ULL - rng_.below(4096);
  const std::uint64_t iova = rng_.chance(0.5) ? at : (rng_.chance(0.2) ? rng_.next() : at % 4096 + 0x7000'0000ULL);
  note("reg_mr access " + std::to_string(access) + " length " + std::to_string(length));
  const int wanted = model_.reg_mr(at, length, iova, access, mapped);
  errno = 0;
  ibv_mr* mr = ibv_reg_mr_iova2(pd->real, reinterpret_cast<void*>(at), length, iova, access);
  expect("reg_mr", mr != nullptr ? 0 : errno, wanted);
  if (mr == nullptr) return;
  ++pd->model.uses;
  mrs_.push_back({mr, &pd->model, iova});
}

void ModelProgram::dereg_mr() {
  Mr* mr = any(mrs_);
  // A request that waits in SQD would find its key gone; the model does not keep keys.
  const bool waiting = std::any_of(qps_.begin(), qps_.end(),
                                   [](const Qp& q) { return q.model.state == IBV_QPS_SQD && !q.model.sends.empty(); });
  if (mr == nullptr || waiting) return;
  note("dereg_mr");
  expect("dereg_mr", ibv_dereg_mr(mr->real), 0);
  --mr->pd->uses;
  remove(mrs_, mr);
}

void ModelProgram::create_channel() {
  if (channels_.size() >= 2) return;
  note("create_comp_channel");
  ibv_comp_channel* c = ibv_create_comp_channel(context_);
  expect("create_comp_channel", c != nullptr, true);
  if (c == nullptr) return;
  process_.os.set_nonblock(c->fd, true);
  channels_.push_back({c, {}});
}

void ModelProgram::destroy_channel() {
  Channel* c = any(channels_);
  if (c == nullptr) return;
  note("destroy_comp_channel");
  const int wanted = model_.destroy_channel(c->model);
  expect("destroy_comp_channel", ibv_destroy_comp_channel(c->real), wanted);
  if (wanted == 0) remove(channels_, c);
}

void ModelProgram::create_cq() {
  if (cqs_.size() >= kMost) return;
  Channel* channel = rng_.chance(0.7) ? any(channels_) : nullptr;
  Cq cq{};
  cq.model.channel = channel != nullptr ? &channel->model : nullptr;
  std::int64_t cqe = 1 + rng_.below(100);
  if (rng_.chance(0.15)) cqe = std::int64_t{rng_.below(3)} - 2;
  if (rng_.chance(0.1)) cqe = (1 << 22) - 1 + std::int64_t{rng_.below(3)};
  if (cqe == (1 << 22) - 1) cqe = 1 << 22;  // the largest is legal and needs a lot of memory
  const std::uint32_t vector = rng_.below(comp_vectors_ + (rng_.chance(0.1) ? 3 : 0));
  note("create_cq " + std::to_string(cqe) + " vector " + std::to_string(vector));
  const int wanted = model_.create_cq(cqe, vector, cq.model);
  errno = 0;
  cq.real = ibv_create_cq(context_, static_cast<int>(cqe), nullptr, channel != nullptr ? channel->real : nullptr,
                          static_cast<int>(vector));
  expect("create_cq", cq.real != nullptr ? 0 : errno, wanted);
  if (cq.real == nullptr) return;
  expect("cqe", cq.real->cqe, cq.model.cqe);
  cqs_.push_back(cq);
}

void ModelProgram::destroy_cq() {
  Cq* cq = any(cqs_);
  if (cq == nullptr) return;
  note("destroy_cq");
  acknowledge(*cq);
  const int wanted = model_.destroy_cq(cq->model);
  expect("destroy_cq", ibv_destroy_cq(cq->real), wanted);
  if (wanted == 0) remove(cqs_, cq);
}

void ModelProgram::create_qp() {
  Pd* pd = any(pds_);
  Cq *send = any(cqs_), *recv = any(cqs_);
  if (pd == nullptr || send == nullptr || qps_.size() >= kMost) return;
  Qp qp{};
  ModelQp& m = qp.model;
  if (rng_.chance(0.4)) m.type = IBV_QPT_UC;
  if (rng_.chance(0.1)) m.type = rng_.chance(0.5) ? IBV_QPT_RAW_PACKET : static_cast<ibv_qp_type>(6);
  m.pd = &pd->model;
  m.send_cq = &send->model;
  m.recv_cq = &recv->model;
  m.asked = {rng_.below(20), rng_.below(20), 1 + rng_.below(4), rng_.below(5), rng_.chance(0.5) ? 0 : rng_.below(300)};
  if (rng_.chance(0.2)) {
    std::uint32_t* const caps[] = {&m.asked.max_send_wr, &m.asked.max_recv_wr, &m.asked.max_send_sge,
                                   &m.asked.max_recv_sge, &m.asked.max_inline_data};
    *caps[rng_.below(5)] = rng_.chance(0.5) ? 1U << rng_.below(32) : rng_.next();
    // A legal queue of this size needs megabytes.
    if (m.asked.max_send_wr > 1000 && m.asked.max_send_wr < 40000) m.asked.max_send_wr = 40000;
    if (m.asked.max_recv_wr > 1000 && m.asked.max_recv_wr < 40000) m.asked.max_recv_wr = 40000;
    // What an absent queue may have is nowhere laid down.
    if (m.asked.max_send_wr == 0) m.asked.max_send_sge = m.asked.max_inline_data = 1;
    if (m.asked.max_recv_wr == 0) m.asked.max_recv_sge = 1;
  }
  note("create_qp type " + std::to_string(m.type) + " caps " + std::to_string(m.asked.max_send_wr) + " " +
       std::to_string(m.asked.max_recv_wr) + " " + std::to_string(m.asked.max_send_sge) + " " +
       std::to_string(m.asked.max_recv_sge) + " " + std::to_string(m.asked.max_inline_data));
  const int wanted = model_.create_qp(m);
  ibv_qp_init_attr init{};
  init.send_cq = send->real;
  init.recv_cq = recv->real;
  init.qp_type = m.type;
  init.cap = m.asked;
  errno = 0;
  qp.real = ibv_create_qp(pd->real, &init);
  expect("create_qp", qp.real != nullptr ? 0 : errno, wanted);
  if (qp.real == nullptr) return;
  expect("granted max_send_wr", init.cap.max_send_wr, m.granted.max_send_wr);
  expect("granted max_recv_wr", init.cap.max_recv_wr, m.granted.max_recv_wr);
  expect("granted max_send_sge", init.cap.max_send_sge, m.granted.max_send_sge);
  expect("granted max_recv_sge", init.cap.max_recv_sge, m.granted.max_recv_sge);
  expect("granted max_inline_data", init.cap.max_inline_data, m.granted.max_inline_data);
  expect("state of a new QP", qp.real->state, IBV_QPS_RESET);
  qps_.push_back(qp);
}

void ModelProgram::destroy_qp() {
  Qp* qp = any(qps_);
  if (qp == nullptr) return;
  note("destroy_qp");
  model_.destroy_qp(qp->model);
  expect("destroy_qp", ibv_destroy_qp(qp->real), 0);
  remove(qps_, qp);
}

ibv_qp_attr ModelProgram::good_attributes() const {
  ibv_qp_attr a{};
  a.port_num = a.ah_attr.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = 0xBEEF;  // nobody
  a.rq_psn = 0x1000123;    // the upper bits are ignored
  a.sq_psn = 0x456;
  a.max_dest_rd_atomic = 3;
  a.max_rd_atomic = 5;
  a.min_rnr_timer = 12;
  a.timeout = 0;  // for ever: nothing fails by itself
  a.retry_cnt = a.rnr_retry = 7;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = peer_;
  a.ah_attr.grh.sgid_index = 3;
  a.ah_attr.grh.hop_limit = 64;
  return a;
}

void ModelProgram::spoil(ibv_qp_attr& a) {
  switch (rng_.below(12)) {
    case 0:
      a.port_num = rng_.chance(0.5) ? 0 : 2;
      break;
    case 1:
      a.pkey_index = 1;
      break;
    case 2:
      a.path_mtu = rng_.chance(0.5) ? ibv_mtu{} : static_cast<ibv_mtu>(6);
      break;
    case 3:
      a.max_dest_rd_atomic = 17;
      break;
    case 4:
      a.max_rd_atomic = 17;
      break;
    case 5:
      a.min_rnr_timer = 32;
      break;
    case 6:
      a.timeout = 32;
      break;
    case 7:
      a.retry_cnt = 8;
      break;
    case 8:
      a.rnr_retry = 8;
      break;
    case 9:
      a.ah_attr.is_global = 0;
      break;
    case 10:
      a.ah_attr.grh.sgid_index = 4;
      break;
    default:
      a.ah_attr.port_num = 2;
      break;
  }
}

void ModelProgram::modify_qp() {
  Qp* qp = any(qps_);
  if (qp == nullptr) return;
  const ibv_qp_state from = qp->model.state;
  ibv_qp_attr a = good_attributes();
  ibv_qp_state to = static_cast<ibv_qp_state>(rng_.below(7));
  if (rng_.chance(0.6)) to = from == IBV_QPS_ERR ? IBV_QPS_RESET : static_cast<ibv_qp_state>(std::min(from + 1, 3));
  a.qp_state = to;
  a.cur_qp_state = from;
  const auto masks = model_transition(qp->model.type, from, to);
  int mask = IBV_QP_STATE | (masks ? masks->required : 0);
  if (masks && rng_.chance(0.3)) mask |= masks->optional & static_cast<int>(rng_.next()) & ~IBV_QP_ALT_PATH;
  if (rng_.chance(0.25)) mask ^= 1 << rng_.below(21);
  if (rng_.chance(0.05)) a.cur_qp_state = static_cast<ibv_qp_state>(rng_.below(9));
  if (rng_.chance(0.03)) a.qp_state = static_cast<ibv_qp_state>(7 + rng_.below(3));
  if (rng_.chance(0.2)) spoil(a);
  note("modify_qp " + std::to_string(qp->real->qp_num) + ": " + std::to_string(from) + " to " +
       std::to_string(a.qp_state) + " mask " + std::to_string(mask));
  const int wanted = model_.modify_qp(qp->model, a, mask);
  expect("modify_qp", ibv_modify_qp(qp->real, &a, mask), wanted);
  // The library keeps what it was told (S-QP-47).
  if (wanted == 0 && (mask & IBV_QP_STATE) != 0) expect("qp->state", qp->real->state, a.qp_state);
}

void ModelProgram::query_qp(Qp& qp) {
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  expect("query_qp", ibv_query_qp(qp.real, &a, 0, &init), 0);
  const ModelQp& m = qp.model;
  expect("queried state", a.qp_state, m.state);
  if (m.state == IBV_QPS_RESET) return;
  const ModelAttributes& k = m.attributes;
  expect("queried port", a.port_num, k.port);
  if (m.state == IBV_QPS_INIT || k.path_mtu == 0) return;  // not connected, or gone to ERR before
  expect("queried path_mtu", a.path_mtu, k.path_mtu);
  expect("queried dest_qp_num", a.dest_qp_num, k.dest_qp_num);
  expect("queried rq_psn", a.rq_psn, k.rq_psn);
  expect("sq_draining", a.sq_draining, m.state == IBV_QPS_SQD && m.draining);
  if (m.type != IBV_QPT_RC) return;
  expect("queried min_rnr_timer", a.min_rnr_timer, k.min_rnr_timer);
  const bool serves = k.max_dest_rd_atomic > 0;
  expect("queried READ access", (a.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0,
         serves && (k.access & IBV_ACCESS_REMOTE_READ) != 0);
  if (k.max_rd_atomic == 0) return;
  expect("queried timeout", a.timeout, k.timeout);
  expect("queried retry_cnt", a.retry_cnt, k.retry_cnt);
  expect("queried rnr_retry", a.rnr_retry, k.rnr_retry);
  expect("queried max_rd_atomic", a.max_rd_atomic, k.max_rd_atomic);
}

// Completions that the CQ still has room for when all that is posted ends there.
int ModelProgram::room_in(const ModelCq& cq) const {
  std::size_t used = cq.queued;
  for (const Qp& q : qps_) {
    if (q.model.send_cq == &cq) used += q.model.sends.size();
    if (q.model.recv_cq == &cq) used += q.model.receives.size();
  }
  return static_cast<int>(cq.cqe) - static_cast<int>(used);
}

void ModelProgram::post_send() {
  Qp* qp = any(qps_);
  if (qp == nullptr) return;
  const Mr* mr = any(mrs_);
  std::vector<ModelSend> sends(1 + rng_.below(4));
  if (room_in(*qp->model.send_cq) < static_cast<int>(sends.size())) return;
  std::vector<ibv_send_wr> chain(sends.size());
  std::vector<std::vector<ibv_sge>> lists(sends.size());
  for (std::size_t i = 0; i < sends.size(); ++i) {
    ModelSend& s = sends[i];
    constexpr int kOpcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                IBV_WR_RDMA_READ};
    s.opcode = rng_.chance(0.03) ? 40 : kOpcodes[rng_.below(5)];
    s.sges = static_cast<int>(rng_.below(rng_.chance(0.1) ? 7 : 3));
    s.in_line = rng_.chance(0.3);
    s.bad_key = mr == nullptr || rng_.chance(0.1);
    // A request that is refused when its WQE has been begun leaves the doorbell of those before it without their QPN.
    if (i > 0 && s.in_line) s.sges = std::min(s.sges, static_cast<int>(qp->model.granted.max_inline_data / 200));
    for (int k = 0; k < s.sges; ++k) {
      const std::uint32_t n = rng_.below(s.in_line ? 200 : 3000);
      const auto at = reinterpret_cast<std::uint64_t>(memory_);
      lists[i].push_back({at, n, s.bad_key ? 0xFFFFFF00U : 0U});
      s.bytes += n;
    }
    if (!s.bad_key && !s.in_line) {  // within the region; one of another PD is a wrong key too
      s.bytes = 0;
      for (ibv_sge& e : lists[i]) {
        e.addr = mr->iova;
        e.length = std::min<std::uint32_t>(e.length, static_cast<std::uint32_t>(mr->real->length));
        e.lkey = mr->real->lkey;
        s.bytes += e.length;
      }
      s.bad_key = mr->pd != qp->model.pd;
    }
    ibv_send_wr& wr = chain[i];
    wr.wr_id = qp->next_send + i;
    wr.opcode = static_cast<ibv_wr_opcode>(s.opcode);
    wr.sg_list = lists[i].data();
    wr.num_sge = s.sges;
    s.signaled = rng_.chance(0.5);
    wr.send_flags = (s.in_line ? unsigned{IBV_SEND_INLINE} : 0U) | (s.signaled ? unsigned{IBV_SEND_SIGNALED} : 0U) |
                    (rng_.chance(0.1) ? unsigned{IBV_SEND_FENCE} : 0U);
    wr.wr.rdma.remote_addr = 0x1000;
    wr.wr.rdma.rkey = 0x77;
    if (i > 0) chain[i - 1].next = &wr;
  }
  std::string text = "post_send on " + std::to_string(qp->real->qp_num) + ":";
  for (const ModelSend& s : sends)
    text += " opcode " + std::to_string(s.opcode) + " in " + std::to_string(s.sges) + " SGEs of " +
            std::to_string(s.bytes) +
            (s.in_line   ? " inline"
             : s.bad_key ? " bad key"
                         : "") +
            ",";
  note(text);
  const auto [posted, wanted] = model_.post_send(qp->model, sends, qp->next_send);
  qp->next_send += posted;
  ibv_send_wr* bad = nullptr;
  expect("post_send", ibv_post_send(qp->real, chain.data(), &bad), wanted);
  if (wanted != 0) expect("bad_wr of post_send", bad - chain.data(), static_cast<std::int64_t>(posted));
}

void ModelProgram::post_recv() {
  Qp* qp = any(qps_);
  if (qp == nullptr) return;
  std::vector<int> sges(1 + rng_.below(4));
  if (room_in(*qp->model.recv_cq) < static_cast<int>(sges.size())) return;
  std::vector<ibv_recv_wr> chain(sges.size());
  std::vector<ibv_sge> list(8, ibv_sge{reinterpret_cast<std::uint64_t>(memory_), 100, 0x1000});
  for (std::size_t i = 0; i < sges.size(); ++i) {
    sges[i] = static_cast<int>(rng_.below(rng_.chance(0.2) ? 9 : 2));
    chain[i].wr_id = (qp->next_recv + i) | kReceive;
    chain[i].sg_list = list.data();
    chain[i].num_sge = sges[i];
    if (i > 0) chain[i - 1].next = &chain[i];
  }
  note("post_recv on " + std::to_string(qp->real->qp_num) + " of " + std::to_string(sges.size()));
  const auto [posted, wanted] = model_.post_recv(qp->model, sges, qp->next_recv | kReceive);
  qp->next_recv += posted;
  ibv_recv_wr* bad = nullptr;
  expect("post_recv", ibv_post_recv(qp->real, chain.data(), &bad), wanted);
  if (wanted != 0) expect("bad_wr of post_recv", bad - chain.data(), static_cast<std::int64_t>(posted));
}

void ModelProgram::poll() {
  Cq* cq = any(cqs_);
  if (cq == nullptr) return;
  std::vector<ibv_wc> wcs(1 + rng_.below(6));
  note("poll_cq " + std::to_string(wcs.size()));
  const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(wcs.size()), cq->model.queued);
  const int n = ibv_poll_cq(cq->real, static_cast<int>(wcs.size()), wcs.data());
  expect("poll_cq", n, wanted);
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wcs[static_cast<std::size_t>(i)];
    const auto qp = std::find_if(qps_.begin(), qps_.end(), [&](const Qp& q) { return q.real->qp_num == wc.qp_num; });
    expect("completion of a known QP", qp != qps_.end(), true);
    if (qp == qps_.end()) return;
    const bool receive = (wc.wr_id & kReceive) != 0;
    expect("completion " + std::to_string(wc.wr_id) + " with status " + std::to_string(wc.status) +
               " is the next of its queue",
           model_.polled(qp->model, receive, wc.wr_id, wc.status), true);
  }
}

void ModelProgram::arm() {
  Cq* cq = any(cqs_);
  if (cq == nullptr) return;
  note("req_notify_cq");
  model_.arm(cq->model);
  expect("req_notify_cq", ibv_req_notify_cq(cq->real, 0), 0);
}

void ModelProgram::read_event() {
  Channel* channel = any(channels_);
  if (channel == nullptr) return;
  note("get_cq_event");
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  errno = 0;
  const int r = ibv_get_cq_event(channel->real, &cq, &context);
  expect("get_cq_event", r, channel->model.events.empty() ? -1 : 0);
  if (r != 0) {
    expect("errno of get_cq_event", errno, EAGAIN);
    return;
  }
  const auto it = std::find_if(cqs_.begin(), cqs_.end(), [&](const Cq& c) { return c.real == cq; });
  expect("CQ of the event", it != cqs_.end() && model_.read_event(channel->model, it->model), true);
  if (it != cqs_.end() && rng_.chance(0.5)) acknowledge(*it);
}

void ModelProgram::acknowledge(Cq& cq) {
  if (cq.model.unacked > 0) ibv_ack_cq_events(cq.real, cq.model.unacked);
  cq.model.unacked = 0;
}

// Ends in order or by exit; nothing of the process stays behind either way.
void ModelProgram::close() {
  if (failure_.empty()) {
    process_.os.set_nonblock(context_->async_fd, true);
    ibv_async_event event{};
    expect("asynchronous event", ibv_get_async_event(context_, &event), -1);
  }
  if (!failure_.empty() || rng_.chance(0.5)) {
    process_.os.exit();
    expect("pinned pages after exit", static_cast<std::int64_t>(process_.space.pinned_pages()), 0);
    return;
  }
  while (!qps_.empty()) destroy_qp();
  while (!mrs_.empty()) dereg_mr();
  while (!cqs_.empty()) destroy_cq();
  while (!channels_.empty()) destroy_channel();
  while (!pds_.empty()) dealloc_pd();
  expect("close_device", ibv_close_device(context_), 0);
  expect("pinned pages", static_cast<std::int64_t>(process_.space.pinned_pages()), 0);
}

}  // namespace sys::test
