// SPDX-License-Identifier: Apache-2.0
// The instruction traces of post send, post receive, arm and poll on cores of both architectures: which fences, how many,
// between which stores (S-BAR-2 to S-BAR-5).
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/mlx5.h"

namespace sys::test {
namespace {

/// Names each operation: "wqe" (a run of stores to memory), "record" (a doorbell record), "doorbell" (a run of
/// stores to the device), the instruction of a fence, "lock", "unlock".
struct Trace final : verbs::AccessTap {
  explicit Trace(cpu::Arch a) : arch(a) {}
  void on_store(const void* at, const void*, std::size_t) override {
    const auto* const b = static_cast<const std::byte*>(at);
    const bool record = std::ranges::any_of(records, [b](const std::byte* r) { return b >= r && b < r + 8; });
    run(record ? "record" : "wqe");
  }
  void on_load(const void*, std::size_t) override {}
  void on_mmio_store(memory::Va, std::uint64_t) override { run("doorbell"); }
  void on_barrier(cpu::Barrier b) override {
    if (const cpu::Instruction i = cpu::expand(arch, b); i != cpu::Instruction::none)
      seen.emplace_back(cpu::name_of(i));
  }
  void on_lock() override { seen.emplace_back("lock"); }
  void on_unlock() override { seen.emplace_back("unlock"); }
  void run(const char* what) {
    if (seen.empty() || seen.back() != what) seen.emplace_back(what);
  }
  std::vector<std::string> take() { return std::exchange(seen, {}); }
  const cpu::Arch arch;
  std::vector<const std::byte*> records;  ///< doorbell records
  std::vector<std::string> seen;
};

using Order = std::vector<std::string>;

struct Traces {
  Order send, receive, arm, empty, one, two;
};

Traces traces(cpu::Arch arch) {
  ScenarioConfig s;
  for (HostConfig& h : s.hosts) h.core.arch = arch;
  Pair pair(s);
  Trace trace(arch);
  Traces out;
  pair.run(
      [&](End& e) {
        trace.records = {reinterpret_cast<const std::byte*>(verbs::mlx5::qp_of(e.qp).dbr),
                         reinterpret_cast<const std::byte*>(verbs::mlx5::cq_of(e.cq).dbr)};
        e.process_.tap = &trace;
        ibv_wc wc[2];
        ibv_poll_cq(e.cq, 2, wc);
        out.empty = trace.take();
        ibv_req_notify_cq(e.cq, 0);
        out.arm = trace.take();
        EXPECT_EQ(e.receive(1, 64, 64), 0);
        out.receive = trace.take();
        EXPECT_EQ(e.send(1, 0, 8), 0);
        out.send = trace.take();
        e.thread().sleep(sim::Picos{50'000'000});
        trace.take();
        EXPECT_EQ(ibv_poll_cq(e.cq, 2, wc), 1);
        out.one = trace.take();
        EXPECT_EQ(e.send(2, 0, 8), 0);
        EXPECT_EQ(e.send(3, 0, 8), 0);
        e.thread().sleep(sim::Picos{50'000'000});
        trace.take();
        EXPECT_EQ(ibv_poll_cq(e.cq, 2, wc), 2);
        out.two = trace.take();
        e.process_.tap = nullptr;
      },
      [](End& e) {
        for (int i = 0; i < 3; ++i) EXPECT_EQ(e.receive(0, 0, 8), 0);
        e.wait(3);
      });
  return out;
}

TEST(FenceOrder, X86_A_30_S_BAR_2_S_BAR_3_S_BAR_4_S_BAR_5) {
  const Traces t = traces(cpu::Arch::x86_64);
  EXPECT_EQ(t.send, (Order{"lock", "wqe", "record", "sfence", "doorbell", "sfence", "unlock"}));
  EXPECT_EQ(t.receive, (Order{"lock", "wqe", "record", "unlock"})) << "no fence at all";
  EXPECT_EQ(t.arm, (Order{"record", "sfence", "doorbell", "sfence"}));
  EXPECT_EQ(t.empty, (Order{"lock", "record", "unlock"})) << "no fence";
  EXPECT_EQ(t.one, (Order{"lock", "lfence", "record", "unlock"}));
  EXPECT_EQ(t.two, (Order{"lock", "lfence", "lfence", "record", "unlock"})) << "one per CQE, none for the index";
}

TEST(FenceOrder, Arm64_A_30_S_BAR_2_S_BAR_3_S_BAR_4_S_BAR_5) {
  const Traces t = traces(cpu::Arch::arm64);
  EXPECT_EQ(t.send, (Order{"lock", "wqe", "dmb oshst", "record", "dsb st", "doorbell", "dsb st", "unlock"}));
  EXPECT_EQ(t.receive, (Order{"lock", "wqe", "dmb oshst", "record", "unlock"}));
  EXPECT_EQ(t.arm, (Order{"record", "dsb st", "doorbell", "dsb st"})) << "nothing before the record";
  EXPECT_EQ(t.empty, (Order{"lock", "record", "unlock"}));
  EXPECT_EQ(t.one, (Order{"lock", "dmb oshld", "record", "unlock"}));
  EXPECT_EQ(t.two, (Order{"lock", "dmb oshld", "dmb oshld", "record", "unlock"}));
}

}  // namespace
}  // namespace sys::test
