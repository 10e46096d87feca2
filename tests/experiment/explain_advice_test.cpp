// SPDX-License-Identifier: Apache-2.0
// Advice is applied: the scenario runs, explain gives a diagnosis with an advice, the scenario runs again with exactly that
// changed, and the fault has to be gone, or what the limit held down has to move.
#include <gtest/gtest.h>

#include <algorithm>

#include "experiment/explain.h"
#include "tests/experiment/child_result.h"

namespace {

namespace fs = std::filesystem;
using experiment::Explanation;

/// What has to become of the run.
enum class Effect { fault_gone, rate_up, latency_down, sooner };

struct Case {
  const char *name, *file;
  std::vector<std::string> sets;
  const char* id;      ///< diagnosis whose advice is applied
  std::size_t advice;  ///< which of its advices
  Effect effect;
  double factor;  ///< least gain; of no meaning for fault_gone
};

/// The fault of a scenario is gone once the advice is taken.
Case gone(const char* name, const char* file, const char* fault, std::size_t advice = 0) {
  return {name, file, {}, fault, advice, Effect::fault_gone, 0};
}

const fs::path& root() {
  static const fs::path r = fs::path(RDMASIM_SOURCE_DIR) / "scenarios";
  return r;
}

const experiment::Diagnosis* find(const Explanation& e, const std::string& id) {
  for (const auto* all : {&e.faults, &e.limits})
    for (const auto& d : *all)
      if (d.id == id) return &d;
  return nullptr;
}

double worst_rate(const sim::Json& r) { return r.at("/workloads/0/message_rate_mpps")->number(); }
double mean_latency(const sim::Json& r) { return r.at("/workloads/0/latency_ns/mean")->number(); }
/// Of the slowest message of the step programs.
double slowest(const sim::Json& r) {
  double worst = 0;
  for (const auto& p : r.find("programs")->members())
    if (const sim::Json* max = p.value.at("/latency_ns/max"); max != nullptr) worst = std::max(worst, max->number());
  return worst;
}

class Advice : public testing::TestWithParam<Case> {};

TEST_P(Advice, HelpsWhenItIsTaken) {
  const Case& c = GetParam();
  const sim::Json before = experiment::result_of(root() / c.file, c.sets);
  const Explanation e = experiment::explain(before);
  const auto* d = find(e, c.id);
  ASSERT_NE(d, nullptr) << experiment::to_text(e);
  ASSERT_GT(d->advice.size(), c.advice) << experiment::to_text(e);
  std::vector<std::string> sets = c.sets;
  for (const auto& change : d->advice[c.advice].changes) sets.push_back(change.set());

  const sim::Json after = experiment::result_of(root() / c.file, sets);
  const Explanation then = experiment::explain(after);
  const std::string both = experiment::to_text(e) + "\nafter " + sets.back() + "\n" + experiment::to_text(then);
  switch (c.effect) {
    case Effect::fault_gone: {
      const auto count = [&](const Explanation& x) {
        return std::ranges::count(x.faults, c.id, &experiment::Diagnosis::id);
      };
      EXPECT_LT(count(then), count(e)) << both;
      break;
    }
    case Effect::rate_up:
      EXPECT_GE(worst_rate(after), c.factor * worst_rate(before)) << both;
      break;
    case Effect::latency_down:
      EXPECT_LE(c.factor * mean_latency(after), mean_latency(before)) << both;
      break;
    case Effect::sooner:
      EXPECT_LE(c.factor * slowest(after), slowest(before)) << both;
      break;
  }
}

const std::vector<std::string> kSmall{"workloads.0.size=8 B", "workloads.0.iters=3000"};
std::vector<std::string> small(std::vector<std::string> more) {
  more.insert(more.begin(), kSmall.begin(), kSmall.end());
  return more;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Advice,
    testing::Values(
        gone("unsignaled", "cases/all_unsignaled_and_a_poll_for_ever.json", "unsignaled_send_queue"),
        gone("rnr_for_ever", "cases/rnr_retry_7_waits_for_ever.json", "rnr_for_ever"),
        gone("lost_wake_up", "cases/lost_wakeup_without_a_second_poll.json", "lost_wake_up"),
        gone("crossed_arm", "cases/completion_crosses_the_arm.json", "lost_wake_up"),
        gone("read_back", "cases/completion_crosses_the_arm.json", "lost_wake_up", 1),
        gone("unacknowledged", "cases/unacked_event_blocks_destroy_cq.json", "unacknowledged_events"),
        gone("overrun", "cases/cq_16_overruns.json", "cq_overrun"),
        gone("shared_overrun", "cases/cq_overrun_fails_only_who_needs_it.json", "cq_overrun"),
        gone("wrong_rkey", "cases/bad_rkey_fails_one_and_flushes_all.json", "rem_access_err"),
        gone("forbidden_by_qp", "cases/remote_access_errors.json", "rem_inv_req_err"),
        gone("odd_atomic", "cases/atomics_and_what_they_need.json", "rem_inv_req_err"),
        gone("atomic_right", "cases/atomics_and_what_they_need.json", "rem_access_err"),
        gone("missing_receive", "cases/immediate_takes_a_receive.json", "rnr_retry_exc_err"),
        gone("grh", "cases/ud_receive_needs_40_bytes_more.json", "loc_len_err"),
        gone("loss", "cases/the_same_packet_lost_twice.json", "packet_loss"),
        gone("link_down", "cases/link_flaps_for_a_millisecond.json", "link_down"),
        Case{"rnr_timer", "cases/rnr_timer_code_0_stalls_655_ms.json", {}, "rnr_wait", 0, Effect::sooner, 100},
        Case{"late_receive", "cases/rnr_timer_gates_the_ack_timer.json", {}, "rnr_wait", 0, Effect::sooner, 1.3},
        Case{"adaptive", "cases/lost_packet_waits_for_the_ack_timeout.json", {}, "ack_timeout", 0, Effect::sooner, 100},
        Case{"timeout", "cases/lost_packet_waits_for_the_ack_timeout.json", {}, "ack_timeout", 1, Effect::sooner, 10},
        Case{"adaptive_first",
             "cases/adaptive_retransmission_beats_the_timer.json",
             {},
             "ack_timeout",
             0,
             Effect::sooner,
             2},
        Case{"rx_depth",
             "rc_send_bw.json",
             {"workloads.0.rx_depth=1", "workloads.0.iters=100"},
             "rnr_wait",
             0,
             Effect::fault_gone,
             0}),
    [](const auto& i) { return std::string(i.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Limits, Advice,
    testing::Values(
        Case{"wire", "rc_write_bw.json", {}, "wire", 0, Effect::rate_up, 1.05},
        Case{"wire_mtu", "rc_write_bw.json", {"workloads.0.mtu=1024"}, "wire", 0, Effect::rate_up, 1.03},
        Case{"pcie_lanes", "rc_write_bw.json", {"host.pcie.link.width=4"}, "pcie_up", 0, Effect::rate_up, 1.9},
        Case{"pcie_payload", "rc_write_bw.json", {"host.pcie.link.width=4"}, "pcie_up", 2, Effect::rate_up, 1.03},
        Case{"responder", "rc_write_bw.json", {"workloads.0.mtu=256"}, "hca_responder", 0, Effect::rate_up, 1.5},
        Case{"read_depth", "cases/read_with_1_outstanding.json", {}, "max_rd_atomic", 0, Effect::rate_up, 3},
        Case{"tx_depth",
             "rc_write_bw.json",
             {"workloads.0.tx_depth=2", "workloads.0.size=4 KiB"},
             "tx_depth",
             0,
             Effect::rate_up,
             2},
        Case{"post_list", "rc_write_bw.json", kSmall, "cpu_client", 0, Effect::rate_up, 1.3},
        Case{"cq_mod", "rc_write_bw.json", kSmall, "cpu_client", 1, Effect::rate_up, 1.2},
        Case{"doorbells", "rc_write_bw.json", small({"host.core.mmio_store_cost=20 ns"}), "doorbell_bound", 0,
             Effect::rate_up, 2},
        Case{"engines", "rc_write_bw.json", small({"workloads.0.post_list=16", "workloads.0.cq_mod=16"}),
             "hca_requester", 0, Effect::rate_up, 2},
        Case{"iotlb",
             "rc_write_bw.json",
             {"host.iommu.iotlb_entries=4", "host.iommu.walks_in_flight=1", "host.iommu.walk_access_latency=1 us",
              "host.iommu.walk_cache_entries=0", "workloads.0.size=1 MiB", "workloads.0.iters=20"},
             "iommu_walks",
             1,
             Effect::rate_up,
             5},
        Case{"passthrough",
             "rc_write_bw.json",
             {"host.iommu.iotlb_entries=4", "host.iommu.walks_in_flight=1", "host.iommu.walk_access_latency=1 us",
              "host.iommu.walk_cache_entries=0", "workloads.0.size=1 MiB", "workloads.0.iters=20"},
             "iommu_walks",
             0,
             Effect::rate_up,
             5},
        Case{"events", "rc_send_lat_event.json", {}, "interrupt_latency", 0, Effect::latency_down, 3},
        Case{"one_side_events",
             "events/client_polls_server_sleeps.json",
             {},
             "interrupt_latency",
             0,
             Effect::latency_down,
             2},
        Case{"moderation", "events/dim_on.json", {}, "cq_moderation", 0, Effect::latency_down, 3},
        Case{"idle_states",
             "rc_send_lat_event.json",
             {"host.core.cstate_exit_latency=10 us", "host.core.cstate_entry=1 us"},
             "cstate_exits",
             0,
             Effect::latency_down,
             1.3},
        Case{
            "inline_data", "rc_send_pingpong.json", {"workloads.0.size=64 B"}, "latency", 0, Effect::latency_down, 1.2},
        Case{"rate_limit", "events/client_polls_server_polls.json", {}, "rate_limit", 0, Effect::rate_up, 10},
        Case{"kernel_core",
             "rc_send_bw.json",
             {"workloads.0.size=2 B", "workloads.0.consumer=kernel"},
             "kernel_cpu",
             0,
             Effect::rate_up,
             1.1},
        Case{"rnr_rate",
             "rc_send_bw.json",
             {"workloads.0.rx_depth=1", "workloads.0.iters=100"},
             "rnr_timer",
             0,
             Effect::rate_up,
             10},
        Case{"go_back_n",
             "rc_send_bw.json",
             {"fabric.link.impairment.drop=0.02", "workloads.0.iters=200"},
             "retransmission",
             0,
             Effect::rate_up,
             1.2}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
