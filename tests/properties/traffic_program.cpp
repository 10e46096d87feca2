// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/traffic_program.h"

#include <algorithm>
#include <cstring>

namespace sys::test {
namespace {

constexpr std::byte kGuard{0xEE};

std::string name_of(int host, std::size_t qp, std::size_t message) {
  return "host" + std::to_string(host) + " QP " + std::to_string(qp) + " message " + std::to_string(message);
}

}  // namespace

void TrafficProgram::fail(const std::string& what) {
  if (failure_.empty()) failure_ = "host" + std::to_string(host_) + ": " + what;
}

void TrafficProgram::run() {
  open();
  if (failure_.empty()) connect();
  while (failure_.empty() && !finished()) {
    bool worked = false;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      worked |= post_receives(i);
      worked |= post_sends(i);
    }
    worked |= poll();
    idle_ = worked ? 0 : idle_ + 1;
    if (!worked) wait();
  }
  if (failure_.empty()) process_.exchange->swap("finished", nullptr, nullptr, 0);
  for (std::size_t i = 0; i < queues_.size() && failure_.empty(); ++i) {
    Queue& q = queues_[i];
    for (; q.applied < in(i).messages.size(); ++q.applied)
      apply(q.mine, shape_, in(i).messages[q.applied], 1 - host_, i, q.applied);
    expect(std::memcmp(q.mine.data(), q.window, q.mine.size()) == 0,
           "window of QP " + std::to_string(i) + " at the end");
  }
  close();
  ended_ = true;
}

void TrafficProgram::open() {
  int n = 0;
  ibv_device** devices = ibv_get_device_list(&n);
  context_ = n > 0 ? ibv_open_device(devices[0]) : nullptr;
  ibv_free_device_list(devices);
  if (!expect(context_ != nullptr, "ibv_open_device")) return;
  pd_ = ibv_alloc_pd(context_);
  const std::size_t slots = shape_.qps * (shape_.send_depth + shape_.recv_depth) * shape_.slot_bytes;
  const std::size_t window = shape_.window_bytes();
  slots_ = static_cast<std::byte*>(process_.space.alloc(slots, 64));
  windows_ = static_cast<std::byte*>(process_.space.alloc(shape_.qps * window, 64));
  local_ = ibv_reg_mr(pd_, slots_, slots, IBV_ACCESS_LOCAL_WRITE);
  const std::uint64_t iova = 0x40'0000'0000ULL + reinterpret_cast<std::uint64_t>(windows_) % 4096;
  remote_ = ibv_reg_mr_iova(
      pd_, windows_, shape_.qps * window, iova,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  if (shape_.events) channel_ = ibv_create_comp_channel(context_);
  const std::uint32_t per_qp = shape_.send_depth + shape_.recv_depth;
  const auto add_cq = [&](std::uint32_t cqe) {
    cqs_.push_back(ibv_create_cq(context_, static_cast<int>(cqe), nullptr, channel_, static_cast<int>(rng_.below(4))));
    unacked_.push_back(0);
    return cqs_.back();
  };
  if (!expect(pd_ != nullptr && local_ != nullptr && remote_ != nullptr, "objects")) return;
  queues_.resize(shape_.qps);
  ibv_cq* shared = shape_.one_cq ? add_cq(per_qp * shape_.qps) : nullptr;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    Queue& q = queues_[i];
    q.send_cq = shared != nullptr ? shared : add_cq(shape_.send_depth);
    q.recv_cq = shared != nullptr ? shared : add_cq(shape_.recv_depth);
    if (!expect(q.send_cq != nullptr && q.recv_cq != nullptr, "ibv_create_cq")) return;
    q.qp = create_qp(q.send_cq, q.recv_cq);
    if (!expect(q.qp != nullptr, "ibv_create_qp")) return;
    q.send_slots = slots_ + i * per_qp * shape_.slot_bytes;
    q.recv_slots = q.send_slots + shape_.send_depth * shape_.slot_bytes;
    q.window = windows_ + i * window;
    q.mine.resize(window);
    q.peer_window.resize(window);
    for (std::size_t b = 0; b < window; ++b) {
      q.window[b] = q.mine[b] = Plan::content(1 - host_, i, Plan::kInitial, b);
      q.peer_window[b] = Plan::content(host_, i, Plan::kInitial, b);
    }
    for (std::byte* image : {q.window, q.mine.data(), q.peer_window.data()})
      std::fill_n(image + shape_.counter_offset(), 8, std::byte{0});
  }
}

ibv_qp* TrafficProgram::create_qp(ibv_cq* send, ibv_cq* recv) {
  const ibv_qp_cap cap{shape_.send_depth, shape_.recv_depth, shape_.sges, shape_.sges, shape_.inline_bytes};
  if (!shape_.builders) {
    ibv_qp_init_attr init{};
    init.send_cq = send;
    init.recv_cq = recv;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = shape_.signal_all;
    init.cap = cap;
    return ibv_create_qp(pd_, &init);
  }
  ibv_qp_init_attr_ex init{};
  init.send_cq = send;
  init.recv_cq = recv;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = shape_.signal_all;
  init.cap = cap;
  init.pd = pd_;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
  return ibv_create_qp_ex(context_, &init);
}

void TrafficProgram::connect() {
  std::vector<Address> mine(shape_.qps);
  peer_.resize(shape_.qps);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    Queue& q = queues_[i];
    mine[i] = {q.qp->qp_num,
               remote_->rkey,
               0x40'0000'0000ULL + reinterpret_cast<std::uint64_t>(windows_) % 4096 +
                   static_cast<std::uint64_t>(q.window - windows_),
               {}};
    expect(ibv_query_gid(context_, 1, 3, &mine[i].gid) == 0, "ibv_query_gid");
  }
  process_.exchange->swap("addresses", mine.data(), peer_.data(), mine.size() * sizeof(Address));
  for (std::size_t i = 0; i < mine.size(); ++i) modify(queues_[i], peer_[i]);
  process_.exchange->swap("connected", nullptr, nullptr, 0);
}

void TrafficProgram::modify(Queue& q, const Address& peer) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  expect(ibv_modify_qp(q.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "to INIT");
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = shape_.mtu;
  a.dest_qp_num = peer.qpn;
  a.rq_psn = shape_.start_psn;
  a.max_dest_rd_atomic = shape_.rd_atomic;
  a.min_rnr_timer = shape_.min_rnr_timer;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = peer.gid;
  a.ah_attr.grh.sgid_index = 3;
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.port_num = 1;
  expect(ibv_modify_qp(q.qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = shape_.timeout;
  a.retry_cnt = a.rnr_retry = 7;
  a.sq_psn = shape_.start_psn;
  a.max_rd_atomic = shape_.rd_atomic;
  expect(ibv_modify_qp(q.qp, &a,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

std::string TrafficProgram::progress() const {
  std::string text;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const Stream& s = plan_.streams[host_][i];
    text += " host" + std::to_string(host_) + " QP " + std::to_string(i) + ": " + std::to_string(s.posted) + " of " +
            std::to_string(s.messages.size()) + " posted, " + std::to_string(queues_[i].reclaimed) + " complete, " +
            std::to_string(queues_[i].received) + " of " + std::to_string(in(i).receiving.size()) + " received, " +
            std::to_string(queues_[i].posted_receives) + " receives posted;";
  }
  return text;
}

bool TrafficProgram::finished() const {
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (queues_[i].reclaimed < plan_.streams[host_][i].messages.size() || queues_[i].received < in(i).receiving.size())
      return false;
  return true;
}

std::vector<ibv_sge> TrafficProgram::list(std::byte* slot, const std::vector<Piece>& pieces) const {
  std::vector<ibv_sge> sges;
  for (const Piece& p : pieces) {
    slot += p.skip;
    sges.push_back({reinterpret_cast<std::uint64_t>(slot), p.length, local_->lkey});
    slot += p.length;
  }
  return sges;
}

void TrafficProgram::build(std::size_t i, std::size_t message, ibv_send_wr& wr, std::vector<ibv_sge>& sges) {
  const Message& m = out(i).messages[message];
  std::byte* slot = slot_of(queues_[i].send_slots, message, shape_.send_depth);
  sges = list(slot, m.gather);
  std::size_t offset = 0;
  std::byte* at = slot;
  for (const Piece& p : m.gather) {
    std::fill_n(at, p.skip, kGuard);
    at += p.skip;
    for (std::uint32_t b = 0; b < p.length; ++b, ++offset)
      *at++ = m.returns_data() ? kGuard : Plan::content(host_, i, message, offset);
  }
  std::fill_n(at, 8, kGuard);
  wr.wr_id = message;
  wr.opcode = m.opcode;
  wr.send_flags = m.flags;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.imm_data = m.immediate;
  wr.wr.rdma.remote_addr = peer_[i].window + m.slot * shape_.slot_bytes;
  wr.wr.rdma.rkey = peer_[i].rkey;
  if (m.is_atomic()) wr.wr.atomic = {peer_[i].window + shape_.counter_offset(), m.compare_add, m.swap, peer_[i].rkey};
}

void TrafficProgram::apply(std::vector<std::byte>& window, const Shape& shape, const Message& m, int host,
                           std::size_t qp, std::size_t message) {
  if (m.is_atomic()) std::memcpy(window.data() + shape.counter_offset(), &m.after, 8);
  if (!m.is_write()) return;
  std::byte* to = window.data() + m.slot * shape.slot_bytes;
  for (std::uint32_t b = 0; b < m.length; ++b) to[b] = Plan::content(host, qp, message, b);
}

void TrafficProgram::note_posted(std::size_t i, std::size_t message) {
  Queue& q = queues_[i];
  const Message& m = out(i).messages[message];
  if ((m.flags & IBV_SEND_FENCE) != 0)
    for (Read& r : q.reads) r.fenced = true;
  if (m.is_write())
    for (Read& r : q.reads)
      r.overtaken |= !r.fenced && out(i).messages[r.message].is_read() && out(i).messages[r.message].slot == m.slot;
  apply(q.peer_window, shape_, m, host_, i, message);
  if (m.is_read()) {
    const std::byte* from = q.peer_window.data() + m.slot * shape_.slot_bytes;
    q.reads.push_back({message, {from, from + m.length}});
  } else if (m.is_atomic()) {
    const auto* original = reinterpret_cast<const std::byte*>(&m.original);
    q.reads.push_back({message, {original, original + 8}});
  }
}

bool TrafficProgram::post_sends(std::size_t i) {
  Queue& q = queues_[i];
  Stream& s = out(i);
  const std::size_t room =
      std::min<std::size_t>(shape_.send_depth - (s.posted - q.reclaimed), s.messages.size() - s.posted);
  if (room == 0) return false;
  const std::size_t n = 1 + rng_.below(static_cast<std::uint32_t>(std::min<std::size_t>(room, 6)));
  std::vector<ibv_send_wr> chain(n);
  std::vector<std::vector<ibv_sge>> sges(n);
  for (std::size_t k = 0; k < n; ++k) {
    build(i, s.posted + k, chain[k], sges[k]);
    if (k > 0) chain[k - 1].next = &chain[k];
    note_posted(i, s.posted + k);
  }
  const std::size_t first = s.posted;
  s.posted += n;
  if (shape_.builders) {
    post_by_builders(q, chain);
  } else {
    ibv_send_wr* bad = nullptr;
    const int r = ibv_post_send(q.qp, chain.data(), &bad);
    expect(r == 0, "ibv_post_send: " + std::to_string(r));
  }
  for (std::size_t k = 0; k < n; ++k)  // inline data may be overwritten at once (S-PS-12)
    if ((s.messages[first + k].flags & IBV_SEND_INLINE) != 0)
      std::memset(slot_of(q.send_slots, first + k, shape_.send_depth), 0x55, 512);
  return true;
}

void TrafficProgram::post_by_builders(Queue& q, const std::vector<ibv_send_wr>& chain) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(q.qp);
  ibv_wr_start(qp);
  for (const ibv_send_wr& wr : chain) {
    qp->wr_id = wr.wr_id;
    qp->wr_flags = wr.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    switch (wr.opcode) {
      case IBV_WR_SEND:
        ibv_wr_send(qp);
        break;
      case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr.imm_data);
        break;
      case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
        break;
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add);
        break;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add,
                              wr.wr.atomic.swap);
        break;
      case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data);
        break;
      default:
        ibv_wr_rdma_read(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
        break;
    }
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      std::vector<ibv_data_buf> bufs;
      for (int k = 0; k < wr.num_sge; ++k)
        bufs.push_back({reinterpret_cast<void*>(wr.sg_list[k].addr), wr.sg_list[k].length});
      ibv_wr_set_inline_data_list(qp, bufs.size(), bufs.data());
    } else {
      ibv_wr_set_sge_list(qp, static_cast<std::size_t>(wr.num_sge), wr.sg_list);
    }
  }
  const int r = ibv_wr_complete(qp);
  expect(r == 0, "ibv_wr_complete: " + std::to_string(r));
}

bool TrafficProgram::post_receives(std::size_t i) {
  Queue& q = queues_[i];
  const std::vector<std::size_t>& wanted = in(i).receiving;
  const std::size_t room =
      std::min(shape_.recv_depth - (q.posted_receives - q.received), wanted.size() - q.posted_receives);
  if (room == 0 || process_.context->now() < q.pause_until) return false;
  if (rng_.chance(shape_.receiver_pause)) {
    q.pause_until = process_.context->now() + sim::Picos{1'000'000LL * (1 + rng_.below(2000))};
    return false;
  }
  const std::size_t n = 1 + rng_.below(static_cast<std::uint32_t>(room));
  std::vector<ibv_recv_wr> chain(n);
  std::vector<std::vector<ibv_sge>> sges(n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t number = q.posted_receives + k;
    const std::vector<Piece>& pieces = in(i).messages[wanted[number]].scatter;
    std::byte* slot = slot_of(q.recv_slots, number, shape_.recv_depth);
    sges[k] = list(slot, pieces);
    std::size_t all = 8;
    for (const Piece& p : pieces) all += p.skip + p.length;
    std::fill_n(slot, all, kGuard);
    chain[k].wr_id = number;
    chain[k].sg_list = sges[k].data();
    chain[k].num_sge = static_cast<int>(sges[k].size());
    if (k > 0) chain[k - 1].next = &chain[k];
  }
  q.posted_receives += n;
  ibv_recv_wr* bad = nullptr;
  const int r = ibv_post_recv(q.qp, chain.data(), &bad);
  expect(r == 0, "ibv_post_recv: " + std::to_string(r));
  return true;
}

bool TrafficProgram::poll() {
  bool any = false;
  for (ibv_cq* cq : cqs_) {
    ibv_wc wc[8];
    const int n = ibv_poll_cq(cq, static_cast<int>(1 + rng_.below(8)), wc);
    expect(n >= 0, "ibv_poll_cq: " + std::to_string(n));
    for (int k = 0; k < n && failure_.empty(); ++k) {
      any = true;
      std::size_t i = 0;
      while (i < queues_.size() && queues_[i].qp->qp_num != wc[k].qp_num) ++i;
      if (!expect(i < queues_.size(), "completion of an unknown QP")) return true;
      if (!expect(wc[k].status == IBV_WC_SUCCESS, std::string("QP ") + std::to_string(i) + ": " +
                                                      ibv_wc_status_str(wc[k].status) + ", wr_id " +
                                                      std::to_string(wc[k].wr_id)))
        return true;
      const bool receive = (wc[k].opcode & IBV_WC_RECV) != 0;
      if (!expect(cq == (receive ? queues_[i].recv_cq : queues_[i].send_cq), "completion in the wrong CQ")) return true;
      if (receive) on_receive(i, wc[k]);
      else on_send(i, wc[k]);
    }
  }
  return any;
}

void TrafficProgram::on_send(std::size_t i, const ibv_wc& wc) {
  Queue& q = queues_[i];
  const Stream& s = out(i);
  std::size_t next = q.reclaimed;
  while (next < s.posted && !shape_.signal_all && (s.messages[next].flags & IBV_SEND_SIGNALED) == 0) ++next;
  const std::string which = name_of(host_, i, next);
  if (!expect(next < s.posted && wc.wr_id == next,
              "completion of " + std::to_string(wc.wr_id) + " where " + which + " has to complete next"))
    return;
  const Message& m = s.messages[next];
  const ibv_wc_opcode opcode = m.is_read()                               ? IBV_WC_RDMA_READ
                               : m.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD
                               : m.is_atomic()                           ? IBV_WC_COMP_SWAP
                               : m.is_write()                            ? IBV_WC_RDMA_WRITE
                                                                         : IBV_WC_SEND;
  expect(wc.opcode == opcode, which + ": opcode " + std::to_string(wc.opcode));
  if (m.returns_data()) expect(wc.byte_len == m.length, which + ": byte_len " + std::to_string(wc.byte_len));
  q.reclaimed = next + 1;
  for (; !q.reads.empty() && q.reads.front().message <= next; q.reads.pop_front()) {
    const Read& r = q.reads.front();
    if (r.overtaken) continue;  // S-RC-71
    check_pieces("answer", i, r.message, slot_of(q.send_slots, r.message, shape_.send_depth),
                 s.messages[r.message].gather, r.expected.data(), s.messages[r.message].length);
  }
}

void TrafficProgram::on_receive(std::size_t i, const ibv_wc& wc) {
  Queue& q = queues_[i];
  const Stream& s = in(i);
  if (!expect(q.received < q.posted_receives, "more receives completed than posted on QP " + std::to_string(i))) return;
  const std::size_t message = s.receiving[q.received];
  const Message& m = s.messages[message];
  const std::string which = "receive of " + name_of(1 - host_, i, message);
  expect(wc.wr_id == q.received, which + ": wr_id " + std::to_string(wc.wr_id));
  expect(wc.byte_len == m.length,
         which + ": byte_len " + std::to_string(wc.byte_len) + " instead of " + std::to_string(m.length));
  expect(wc.opcode == (m.is_write() ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV), which + ": opcode");
  expect(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == m.has_immediate(), which + ": wc_flags");
  if (m.has_immediate()) expect(wc.imm_data == m.immediate, which + ": immediate");
  const std::byte* slot = slot_of(q.recv_slots, q.received, shape_.recv_depth);
  if (failure_.empty() && m.is_write()) {
    check_pieces("receive", i, message, slot, m.scatter, nullptr, 0);
  } else if (failure_.empty()) {
    std::vector<std::byte> expected(m.length);
    for (std::uint32_t b = 0; b < m.length; ++b) expected[b] = Plan::content(1 - host_, i, message, b);
    check_pieces("receive", i, message, slot, m.scatter, expected.data(), m.length);
  }
  ++q.received;
  check_write(i, message);
}

// The newest WRITE before a received message is in memory, unless a later one to its slot may have followed (S-RC-74).
void TrafficProgram::check_write(std::size_t i, std::size_t last) {
  Queue& q = queues_[i];
  const Stream& s = in(i);
  std::size_t newest = s.messages.size();
  for (; q.applied <= last; ++q.applied) {
    apply(q.mine, shape_, s.messages[q.applied], 1 - host_, i, q.applied);
    if (s.messages[q.applied].is_write()) newest = q.applied;
  }
  if (newest == s.messages.size()) return;
  const Message& w = s.messages[newest];
  for (std::size_t k = last + 1; k < s.posted; ++k)
    if (s.messages[k].is_write() && s.messages[k].slot == w.slot) return;
  const std::size_t at = w.slot * shape_.slot_bytes;
  expect(std::memcmp(q.mine.data() + at, q.window + at, w.length) == 0,
         name_of(1 - host_, i, newest) + ": WRITE is not in memory when a later message is");
}

// `n` expected bytes are spread over the pieces; gaps and whatever lies behind are as they were.
void TrafficProgram::check_pieces(const char* what, std::size_t i, std::size_t message, const std::byte* slot,
                                  const std::vector<Piece>& pieces, const std::byte* expected, std::uint32_t n) {
  const std::string which = std::string(what) + " of QP " + std::to_string(i) + " message " + std::to_string(message);
  std::uint32_t done = 0;
  const auto untouched = [&](std::uint32_t bytes) {
    for (; bytes > 0; --bytes, ++slot)
      if (*slot != kGuard) return expect(false, which + ": bytes outside the message were written");
    return true;
  };
  for (const Piece& p : pieces) {
    if (!untouched(p.skip)) return;
    const std::uint32_t take = std::min(p.length, n - done);
    for (std::uint32_t b = 0; b < take; ++b)
      if (slot[b] != expected[done + b]) {
        fail(which + ": byte " + std::to_string(done + b) + " of " + std::to_string(n) + " is wrong");
        return;
      }
    slot += take;
    done += take;
    if (!untouched(p.length - take)) return;
  }
  expect(done == n, which + ": longer than its list");
  untouched(8);
}

void TrafficProgram::wait() {
  cpu::Thread& thread = cpu::current();
  bool paused = false;
  for (const Queue& q : queues_) paused |= process_.context->now() < q.pause_until;
  if (!shape_.events || paused) {
    thread.sleep(sim::Picos{100'000LL * (1 + rng_.below(20)) << std::min(idle_ / 4, 10U)});
    return;
  }
  for (ibv_cq* cq : cqs_) expect(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
  if (poll() || !failure_.empty()) return;  // S-CE-20: drained after the arm
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (!expect(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event")) return;
  const auto which = static_cast<std::size_t>(std::find(cqs_.begin(), cqs_.end(), cq) - cqs_.begin());
  if (!expect(which < cqs_.size(), "event of an unknown CQ")) return;
  if (++unacked_[which] > rng_.below(4)) {
    ibv_ack_cq_events(cq, unacked_[which]);
    unacked_[which] = 0;
  }
}

void TrafficProgram::close() {
  if (!failure_.empty()) {
    process_.os.exit();
    return;
  }
  process_.os.set_nonblock(context_->async_fd, true);
  ibv_async_event event{};
  if (ibv_get_async_event(context_, &event) == 0) fail(std::string("event ") + ibv_event_type_str(event.event_type));
  for (ibv_cq* cq : cqs_) {
    ibv_wc wc{};
    expect(ibv_poll_cq(cq, 1, &wc) == 0, "a completion too many");
  }
  expect(ibv_dealloc_pd(pd_) == EBUSY, "a PD in use was freed");
  expect(process_.space.pinned_pages() != 0, "queues and regions are not pinned");
  for (Queue& q : queues_) expect(ibv_destroy_qp(q.qp) == 0, "ibv_destroy_qp");
  for (std::size_t i = 0; i < cqs_.size(); ++i) {
    if (unacked_[i] > 0) ibv_ack_cq_events(cqs_[i], unacked_[i]);
    expect(ibv_destroy_cq(cqs_[i]) == 0, "ibv_destroy_cq");
  }
  if (channel_ != nullptr) expect(ibv_destroy_comp_channel(channel_) == 0, "ibv_destroy_comp_channel");
  expect(ibv_dereg_mr(local_) == 0 && ibv_dereg_mr(remote_) == 0, "ibv_dereg_mr");
  expect(ibv_dealloc_pd(pd_) == 0, "ibv_dealloc_pd");
  expect(ibv_close_device(context_) == 0, "ibv_close_device");
  expect(process_.space.pinned_pages() == 0, "pages stay pinned");
}

}  // namespace sys::test
