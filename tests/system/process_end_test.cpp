// SPDX-License-Identifier: Apache-2.0
// A process ends without cleaning up: by exit after each of its steps, or killed at many times. Nothing of it is left on its
// host, its adapter never meets memory that was unmapped, and its peer comes to an end too (S-OBJ-9, A-7).
#include "kernel/core/resource_tracking.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;

constexpr int kWrites = 24;
constexpr std::uint32_t kSize = 8192;

/// What a process may have: each function is one step.
struct Rich {
  explicit Rich(End& end) : e(end) {}
  End& e;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* armed = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp *on_srq = nullptr, *ud = nullptr;

  std::vector<std::function<void()>> steps() {
    return {
        [this] { channel = ibv_create_comp_channel(e.context); },
        [this] { armed = ibv_create_cq(e.context, 31, nullptr, channel, 0); },
        [this] { ibv_req_notify_cq(armed, 0); },
        [this] {
          ibv_srq_init_attr a{};
          a.attr = {16, 1, 0};
          srq = ibv_create_srq(e.pd, &a);
        },
        [this] {
          ibv_sge to = e.sge(0, 64);
          ibv_recv_wr wr{1, nullptr, &to, 1}, *bad = nullptr;
          ibv_post_srq_recv(srq, &wr, &bad);
        },
        [this] { on_srq = create(IBV_QPT_RC, srq); },
        [this] { ud = create(IBV_QPT_UD, nullptr); },
        [this] {
          ibv_gid group{};
          group.raw[0] = 0xff;
          group.raw[1] = 0x0e;
          group.raw[15] = 7;
          EXPECT_EQ(ibv_attach_mcast(ud, &group, 0), 0);
        },
        [this] { EXPECT_NE(e.peer_ah(), nullptr); },
        [this] { EXPECT_NE(ibv_alloc_mw(e.pd, IBV_MW_TYPE_2), nullptr); },
        [this] {
          for (int i = 0; i < 8; ++i) e.receive(100 + static_cast<std::uint64_t>(i), 0, 64);
        },
        [this] {
          for (int i = 0; i < kWrites / 2; ++i) e.read(static_cast<std::uint64_t>(i), 0, kSize, e.peer.va, e.peer.rkey);
        },
        [this] { e.thread().sleep(5_us); },
        [this] { e.wait(3, 10_ms); },
        [this] { ibv_resize_cq(e.cq, 127); },
        [this] { e.thread().sleep(40_us); },
    };
  }
  ibv_qp* create(ibv_qp_type type, ibv_srq* shared) {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = armed;
    a.srq = shared;
    a.qp_type = type;
    a.cap = {4, shared != nullptr ? 0U : 4U, 1, 1, 0};
    ibv_qp* qp = ibv_create_qp(e.pd, &a);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
};
constexpr int kSteps = 16;

/// The victim on host 1, its peer on host 0.
struct Fatality {
  ScenarioConfig scenario;
  sim::Context context;
  std::unique_ptr<Cluster> cluster;
  Process* victim = nullptr;
  std::uint64_t mapped = 0;  ///< pages on the victim's host before it came
  std::vector<ibv_wc_status> peer;
  bool peer_ended = false, watcher_ended = false;

  /// `stop`: the victim exits after that many steps. `kill_after`: it is killed so long after its connection.
  void run(int stop, std::optional<sim::Picos> kill_after) {
    cluster = std::make_unique<Cluster>(context, scenario, sim::EngineMode::run_ahead);
    cluster->on_ready([&](sim::Picos t) {
      mapped = cluster->host(1).kernel().dma().pages_mapped();
      Process& p = cluster->host(0).create_process();
      cluster->host(0).create_thread(p, 0, "peer", [&] { live_on(p); }).start(t);
      victim = &cluster->host(1).create_process();
      cluster->host(1)
          .create_thread(*victim, 0, "victim", [this, stop, kill_after] { die(stop, kill_after); })
          .start(t);
    });
    cluster->start();
    cluster->engine().run();
  }

 private:
  static EndOptions options() {
    EndOptions o;
    o.timeout = 8;
    o.retry = 2;
    o.send_wr = 64;
    return o;
  }
  // Goes to work when the victim does, or a while later without it.
  void live_on(Process& p) {
    End e(p, options());
    e.connect();
    e.meet("connected");
    for (int i = 0; i < 8; ++i) e.receive(200 + static_cast<std::uint64_t>(i), 0, 64);
    cpu::current().sleep(200_us);
    for (int i = 0; i < kWrites; ++i) e.write(static_cast<std::uint64_t>(i), 0, kSize, e.peer.va, e.peer.rkey);
    const sim::Picos end = cpu::current().now() + 1_s;
    while (peer.size() < kWrites && cpu::current().now() < end) {
      ibv_wc wc{};
      if (ibv_poll_cq(e.cq, 1, &wc) == 1) peer.push_back(wc.status);
      else cpu::current().sleep(1_us);
    }
    peer_ended = true;
  }
  void die(int stop, std::optional<sim::Picos> kill_after) {
    End e(*victim, options());
    e.connect();
    e.meet("connected");
    Host& host = cluster->host(1);
    const sim::Picos now = cpu::current().now();
    host.create_thread(*victim, 1, "victim.async",
                       [this, &e] {
                         ibv_async_event event{};
                         while (ibv_get_async_event(e.context, &event) == 0) ibv_ack_async_event(&event);
                         watcher_ended = true;
                       })
        .start(now);
    if (kill_after) {
      Process& other = host.create_process();
      host.create_thread(other, 1, "killer",
                         [this, d = *kill_after] {
                           cpu::current().sleep(d);
                           victim->os.kill();
                         })
          .start(now);
    }
    Rich rich(e);
    auto steps = rich.steps();
    for (int i = 0; i < stop; ++i) steps[static_cast<std::size_t>(i)]();
    if (kill_after) cpu::current().park("its end");
    victim->os.exit_group();
  }
};

void expect_nothing_left(Fatality& f) {
  Host& host = f.cluster->host(1);
  const kernel::Resources left = kernel::list_resources(host.kernel());
  EXPECT_TRUE(left.pd.empty() && left.cq.empty() && left.qp.empty() && left.mr.empty() && left.srq.empty() &&
              left.ctx.empty());
  for (const auto type : {kernel::ObjectType::mw, kernel::ObjectType::ah})
    EXPECT_TRUE(host.kernel().device().objects(type).empty());
  const hca::Hca::Census c = host.hca().census();
  EXPECT_EQ(c.qps + c.cqs + c.mkeys + c.pds + c.srqs + c.xrcds, 0U);
  EXPECT_EQ(f.victim->space.pinned_pages(), 0U);
  EXPECT_EQ(f.victim->os.open_files(), 0);
  // Mailboxes of the command interface stay.
  EXPECT_LE(host.kernel().dma().pages_mapped(), f.mapped + 8);
  EXPECT_EQ(f.context.stats.counter("host1.iommu.faults").value, 0U);
  EXPECT_TRUE(f.peer_ended);
  EXPECT_EQ(f.peer.size(), std::size_t{kWrites}) << "a request of the peer has no end";
}

class ExitAfter : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EachStep, ExitAfter, testing::Range(0, kSteps + 1));

TEST_P(ExitAfter, LeavesNothing_S_OBJ_9_A_7) {
  Fatality f;
  f.run(GetParam(), std::nullopt);
  EXPECT_FALSE(f.watcher_ended) << "exit(2) ends the other threads where they are";
  expect_nothing_left(f);
}

class KilledAt : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ManyTimes, KilledAt, testing::Range(0, 40));

TEST_P(KilledAt, LeavesNothing_S_OBJ_9) {
  Fatality f;
  f.run(kSteps, sim::Picos{9'700'000} * GetParam());
  EXPECT_FALSE(f.watcher_ended) << "a killed thread executes no further statement";
  expect_nothing_left(f);
}

}  // namespace
}  // namespace sys::test
