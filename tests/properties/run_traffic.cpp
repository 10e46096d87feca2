// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/run_traffic.h"

#include <memory>

#include "system/cluster.h"
#include "tests/properties/text_trace.h"
#include "tests/properties/traffic_program.h"

namespace sys::test {
namespace {

constexpr sim::Picos kLimit{100'000'000'000'000};  // 100 s: a run that still retries then will never end

std::string census_text(const hca::Hca::Census& c) {
  return std::to_string(c.qps) + " QPs, " + std::to_string(c.cqs) + " CQs, " + std::to_string(c.eqs) + " EQs, " +
         std::to_string(c.mkeys) + " memory keys, " + std::to_string(c.pds) + " PDs";
}

// What is still there although all programs have closed their devices.
std::string leftovers(sim::Context& context, Cluster& cluster, const std::string (&before)[2]) {
  for (const std::size_t i : {0, 1}) {
    const std::string after = census_text(cluster.host(i).hca().census());
    if (after != before[i]) return "host" + std::to_string(i) + " ends with " + after + " instead of " + before[i];
  }
  std::string left;
  context.pools.for_each([&](const sim::PoolBase& pool) {
    if (pool.live() != 0) left += std::string(pool.what()) + " x" + std::to_string(pool.live()) + " ";
  });
  return left.empty() ? left : "still in use: " + left;
}

}  // namespace

std::string run_traffic(std::uint64_t seed, std::size_t messages) {
  Plan plan(seed, messages);
  sim::Context context(seed);
  trace_to_file(context);
  Cluster cluster(context, plan.scenario, sim::EngineMode::run_ahead);
  std::string failure, before[2];
  std::unique_ptr<TrafficProgram> programs[2];
  cluster.on_ready([&](sim::Picos t) {
    for (const int i : {0, 1}) {
      Host& host = cluster.host(static_cast<std::size_t>(i));
      before[i] = census_text(host.hca().census());
      Process& process = host.create_process();
      programs[i] = std::make_unique<TrafficProgram>(plan, i, process, failure);
      host.create_thread(process, 0, "traffic" + std::to_string(i), [p = programs[i].get()] { p->run(); }).start(t);
    }
  });
  cluster.start();
  const sim::Outcome outcome = cluster.engine().run(kLimit);
  if (failure.empty() && !(programs[0] && programs[1] && programs[0]->ended() && programs[1]->ended())) {
    failure = outcome == sim::Outcome::time_limit ? "no end in sight:" : "everything waits:";
    for (const std::string& line : cluster.waiting()) failure += " " + line + ";";
    for (const auto& p : programs)
      if (p) failure += p->progress();
  }
  if (failure.empty() && outcome != sim::Outcome::quiescent) failure = "events go on although both programs have ended";
  if (failure.empty()) failure = leftovers(context, cluster, before);
  return failure;
}

}  // namespace sys::test
