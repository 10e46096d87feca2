// SPDX-License-Identifier: Apache-2.0
// Two hosts, one program on each, a pair of queue pairs (RC unless the options say otherwise) between them, and every frame
// on the cable as bytes. For tests that speak the verbs API themselves.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/context.h"
#include "system/cluster.h"

namespace sys::test {

/// A frame as it left a port.
struct SentFrame {
  sim::Picos t{0};
  std::uint8_t opcode = 0, pad = 0, syndrome = 0;       ///< syndrome: ACK frames only
  std::uint32_t qpn = 0, psn = 0, length = 0, msn = 0;  ///< msn: ACK frames only
  bool ack_req = false, solicited = false;
  std::uint64_t reth_va = 0;  ///< WRITE FIRST and ONLY, READ request
  std::uint32_t reth_length = 0;
};

/// Decodes what the ports send (Ethernet, IPv4, UDP, BTH), whether or not it arrives.
class FrameLog final : public sim::trace::Sink {
 public:
  explicit FrameLog(std::vector<SentFrame>& out) : out_(out) {}
  using Sink::on;
  void on(const sim::trace::PacketRecord& r) override {
    if (!r.transmit || r.bytes.size() < 58) return;
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(r.bytes[i]); };
    const auto word = [&](std::size_t i) { return byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3); };
    SentFrame f;
    f.t = r.t;
    f.opcode = static_cast<std::uint8_t>(byte(42));
    f.solicited = (byte(43) & 0x80) != 0;
    f.pad = static_cast<std::uint8_t>(byte(43) >> 4 & 3);
    f.qpn = word(46) & 0xFFFFFF;
    f.ack_req = (byte(50) & 0x80) != 0;
    f.psn = word(50) & 0xFFFFFF;
    f.length = static_cast<std::uint32_t>(r.bytes.size());
    if (f.opcode == 0x11) {
      f.syndrome = static_cast<std::uint8_t>(byte(54));
      f.msn = word(54) & 0xFFFFFF;
    }
    if (f.opcode == 0x06 || f.opcode == 0x0a || f.opcode == 0x0c) {
      f.reth_va = std::uint64_t{word(54)} << 32 | word(58);
      f.reth_length = word(66);
    }
    out_.push_back(f);
  }
  void close(sim::Picos) override {}

 private:
  std::vector<SentFrame>& out_;
};

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t qkey = 0x11111111;  ///< UD
  std::uint8_t sgid_index = 3;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t timeout = 14, retry = 7, rnr_retry = 7, min_rnr_timer = 12, rd_atomic = 16;
  std::uint8_t dest_rd_atomic = 0;  ///< as responder; 0 = rd_atomic
  std::uint32_t psn = 0x100;
  int qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  int mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  std::uint32_t send_wr = 16, recv_wr = 16, sge = 2, inline_bytes = 0;
  int cqe = 63;
  std::size_t bytes = 64 << 10;
  std::uint64_t iova = 0;  ///< of the region; 0 = its address
  bool connect = true;     ///< false: the QP stays in RESET
};

/// One side: the objects of a small verbs program.
class End {
 public:
  struct Address {
    std::uint32_t qpn, psn, rkey;
    std::uint64_t va;
    ibv_gid gid;
  };

  End(Process& process, const EndOptions& options) : process_(process), o(options) { open(); }

  void meet(const char* tag) { ASSERT_EQ(process_.exchange->swap(tag, nullptr, nullptr, 0), 0); }
  cpu::Thread& thread() { return cpu::current(); }
  std::uint64_t va(std::size_t offset = 0) const {
    return (o.iova != 0 ? o.iova : reinterpret_cast<std::uint64_t>(buffer)) + offset;
  }

  ibv_sge sge(std::size_t offset, std::uint32_t n) const { return {va(offset), n, mr->lkey}; }
  int send(std::uint64_t id, std::vector<ibv_sge> list, unsigned flags = IBV_SEND_SIGNALED) {
    return post(id, IBV_WR_SEND, std::move(list), 0, 0, flags);
  }
  int send(std::uint64_t id, std::size_t offset, std::uint32_t n, unsigned flags = IBV_SEND_SIGNALED) {
    return send(id, {sge(offset, n)}, flags);
  }
  int write(std::uint64_t id, std::size_t offset, std::uint32_t n, std::uint64_t remote, std::uint32_t rkey,
            unsigned flags = IBV_SEND_SIGNALED) {
    return post(id, IBV_WR_RDMA_WRITE, {sge(offset, n)}, remote, rkey, flags);
  }
  int read(std::uint64_t id, std::size_t offset, std::uint32_t n, std::uint64_t remote, std::uint32_t rkey) {
    return post(id, IBV_WR_RDMA_READ, {sge(offset, n)}, remote, rkey, IBV_SEND_SIGNALED);
  }
  int post(std::uint64_t id, ibv_wr_opcode opcode, std::vector<ibv_sge> list, std::uint64_t remote, std::uint32_t rkey,
           unsigned flags) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    return ibv_post_send(qp, &wr, &bad);
  }
  int receive(std::uint64_t id, std::vector<ibv_sge> list) {
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    return ibv_post_recv(qp, &wr, &bad);
  }
  int receive(std::uint64_t id, std::size_t offset, std::uint32_t n) { return receive(id, {sge(offset, n)}); }

  /// Polls until `n` completions are there or `limit` has passed.
  std::vector<ibv_wc> wait(std::size_t n, sim::Picos limit = sim::Picos{200'000'000'000}) {
    std::vector<ibv_wc> got;
    const sim::Picos end = thread().now() + limit;
    while (got.size() < n && thread().now() < end) {
      ibv_wc wc{};
      const int r = ibv_poll_cq(cq, 1, &wc);
      EXPECT_GE(r, 0);
      if (r == 1) got.push_back(wc);
      else thread().sleep(sim::Picos{200'000});
    }
    EXPECT_EQ(got.size(), n);
    return got;
  }
  /// Statuses of the next `n` completions.
  std::vector<ibv_wc_status> statuses(std::size_t n) {
    std::vector<ibv_wc_status> s;
    for (const ibv_wc& wc : wait(n)) s.push_back(wc.status);
    return s;
  }
  /// Another QP of the same kind.
  ibv_qp* make_qp(ibv_cq* send_cq, ibv_cq* recv_cq) {
    ibv_qp_init_attr init{};
    init.send_cq = send_cq;
    init.recv_cq = recv_cq;
    init.qp_type = o.type;
    init.cap = {o.send_wr, o.recv_wr, o.sge, 2, o.inline_bytes};
    return ibv_create_qp(pd, &init);
  }
  ibv_qp_state state() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }
  /// Types of the asynchronous events that have come so far.
  std::vector<ibv_event_type> events() {
    std::vector<ibv_event_type> types;
    process_.os.set_nonblock(context->async_fd, true);
    for (ibv_async_event e{}; ibv_get_async_event(context, &e) == 0; ibv_ack_async_event(&e))
      types.push_back(e.event_type);
    return types;
  }
  void fill(std::uint8_t salt) {
    for (std::size_t i = 0; i < o.bytes; ++i) buffer[i] = pattern(i, salt);
  }
  static std::byte pattern(std::size_t i, std::uint8_t salt) { return static_cast<std::byte>(i * 7 + i / 256 + salt); }
  /// Whether [offset, offset + n) holds what `salt` filled from `from` on.
  bool holds(std::size_t offset, std::size_t n, std::uint8_t salt, std::size_t from) {
    for (std::size_t i = 0; i < n; ++i)
      if (buffer[offset + i] != pattern(from + i, salt)) return false;
    return true;
  }

  /// Exchanges addresses and, if asked, goes to RTS.
  void connect() {
    mine = address();
    ASSERT_EQ(process_.exchange->swap("address", &mine, &peer, sizeof mine), 0);
    if (o.connect) go_to_rts();
  }
  Address address() {
    Address a{qp->qp_num, o.psn, mr->rkey, va(), {}};
    EXPECT_EQ(ibv_query_gid(context, 1, 3, &a.gid), 0);
    return a;
  }
  /// RESET to RTS towards `peer`.
  void go_to_rts() {
    ASSERT_EQ(try_rtr(), 0);
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = o.timeout;
    a.retry_cnt = o.retry;
    a.rnr_retry = o.rnr_retry;
    a.sq_psn = o.psn;
    a.max_rd_atomic = o.rd_atomic;
    constexpr int kReliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | by_type(kReliable, 0, 0)), 0);
  }
  void go_to_rtr() { ASSERT_EQ(try_rtr(), 0); }
  /// Into INIT, unless the QP is there already, and RTR; the error of the latter.
  int try_rtr() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = static_cast<unsigned>(o.qp_access);
    a.qkey = o.qkey;
    EXPECT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                by_type(IBV_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY)),
              0);
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = o.mtu;
    a.dest_qp_num = peer.qpn;
    a.rq_psn = peer.psn;
    a.max_dest_rd_atomic = o.dest_rd_atomic != 0 ? o.dest_rd_atomic : o.rd_atomic;
    a.min_rnr_timer = o.min_rnr_timer;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.dgid = peer.gid;
    a.ah_attr.grh.sgid_index = o.sgid_index;
    a.ah_attr.grh.hop_limit = 64;
    a.ah_attr.port_num = 1;
    constexpr int kConnected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    return ibv_modify_qp(
        qp, &a, IBV_QP_STATE | by_type(kConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kConnected, 0));
  }
  /// From RESET to RTS again, with new PSNs (S-QP-53).
  void reconnect(std::uint32_t my_psn, std::uint32_t peer_psn) {
    o.psn = my_psn;
    peer.psn = peer_psn;
    go_to_rts();
  }
  int by_type(int rc, int uc, int ud) const { return o.type == IBV_QPT_RC ? rc : o.type == IBV_QPT_UC ? uc : ud; }

  /// An address handle of the peer.
  ibv_ah* peer_ah() {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.port_num = 1;
    a.grh = {peer.gid, 0, 3, 64, 0};
    return ibv_create_ah(pd, &a);
  }
  int send_to(std::uint64_t id, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey, std::vector<ibv_sge> list,
              unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.send_flags = flags;
    wr.wr.ud = {ah, qpn, qkey};
    return ibv_post_send(qp, &wr, &bad);
  }

  Process& process_;
  EndOptions o;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  std::byte* buffer = nullptr;
  Address mine{}, peer{};

 private:
  void open() {
    int n = 0;
    ibv_device** list = ibv_get_device_list(&n);
    ASSERT_EQ(n, 1);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(context, nullptr);
    pd = ibv_alloc_pd(context);
    ASSERT_NE(pd, nullptr);
    buffer = static_cast<std::byte*>(process_.space.alloc(o.bytes, 4096));
    ASSERT_NE(buffer, nullptr);
    mr = o.iova != 0 ? ibv_reg_mr_iova(pd, buffer, o.bytes, o.iova, o.mr_access)
                     : ibv_reg_mr(pd, buffer, o.bytes, o.mr_access);
    ASSERT_NE(mr, nullptr);
    cq = ibv_create_cq(context, o.cqe, nullptr, nullptr, 0);
    ASSERT_NE(cq, nullptr);
    qp = make_qp(cq, cq);
    ASSERT_NE(qp, nullptr);
  }
};

/// The machines of a test and its two programs.
struct Pair {
  using Program = std::function<void(End&)>;

  explicit Pair(const ScenarioConfig& config = {}) : scenario(config) {}

  /// Runs both programs to their end, then everything that is still under way.
  /// `prepare` runs at the server before the connection is made.
  sim::Outcome run(Program client, Program server, Program prepare = nullptr) {
    cluster = std::make_unique<Cluster>(context, scenario, sim::EngineMode::run_ahead);
    context.tracer.add_sink(std::make_unique<FrameLog>(frames));
    for (auto& sink : sinks) context.tracer.add_sink(std::move(sink));
    context.tracer.open({}, sinks.empty() ? 1U << static_cast<unsigned>(sim::trace::Category::fabric) : ~0U);
    cluster->on_ready([&](sim::Picos t) {
      for (const std::size_t i : {0, 1}) {
        Process& p = cluster->host(i).create_process();
        cpu::Thread& thread = cluster->host(i).create_thread(p, 0, i == 0 ? "client" : "server", [&, i, process = &p] {
          End e(*process, options[i]);
          if (testing::Test::HasFatalFailure()) return;
          if (i == 1 && prepare) prepare(e);
          e.connect();
          if (testing::Test::HasFatalFailure()) return;
          e.meet("connected");
          (i == 0 ? client : server)(e);
          ended[i] = true;
        });
        thread.start(t);
      }
    });
    cluster->start();
    const sim::Outcome outcome = cluster->engine().run();
    EXPECT_TRUE(ended[0] && ended[1]) << "a program did not end";
    return outcome;
  }
  std::uint64_t counter(const std::string& path) { return context.stats.counter(path).value; }
  /// Frames towards QP `qpn` with one of `opcodes`.
  std::vector<SentFrame> sent(std::uint32_t qpn, std::vector<std::uint8_t> opcodes) const {
    std::vector<SentFrame> found;
    for (const SentFrame& f : frames)
      if (f.qpn == qpn && std::find(opcodes.begin(), opcodes.end(), f.opcode) != opcodes.end()) found.push_back(f);
    return found;
  }
  /// Loses the `iter`-th packet with this opcode (and PSN, if given) on the way to host `to`.
  void lose(std::uint8_t opcode, std::optional<std::uint32_t> psn = std::nullopt, std::uint32_t iter = 1) {
    fabric::ImpairmentEventConfig e;
    e.opcode = opcode;
    e.psn = psn;
    e.iter = iter;
    scenario.fabric.link.impairment.events.push_back(e);
  }

  ScenarioConfig scenario;
  EndOptions options[2];
  std::vector<std::unique_ptr<sim::trace::Sink>> sinks;  ///< of a test that looks at more than frames
  sim::Context context;
  std::vector<SentFrame> frames;
  std::unique_ptr<Cluster> cluster;
  bool ended[2] = {false, false};
};

}  // namespace sys::test
