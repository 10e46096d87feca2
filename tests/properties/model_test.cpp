// SPDX-License-Identifier: Apache-2.0
// Random verbs calls against a reference model (RDMASIM_SEED, RDMASIM_STEPS repeat one run).
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "system/cluster.h"
#include "tests/properties/model_program.h"
#include "tests/properties/text_trace.h"

namespace sys::test {
namespace {

std::string run_model(std::uint64_t seed, std::size_t steps) {
  sim::Context context(seed);
  trace_to_file(context);
  Cluster cluster(context, ScenarioConfig{}, sim::EngineMode::run_ahead);
  std::string failure;
  std::unique_ptr<ModelProgram> program;
  hca::Hca::Census before{};
  cluster.on_ready([&](sim::Picos t) {
    before = cluster.host(0).hca().census();
    Process& process = cluster.host(0).create_process();
    program = std::make_unique<ModelProgram>(process, seed, steps, failure);
    cluster.host(0).create_thread(process, 0, "calls", [&] { program->run(); }).start(t);
  });
  cluster.start();
  const sim::Outcome outcome = cluster.engine().run();
  if (!failure.empty()) return failure;
  if (!program || !program->ended()) return "the program did not end";
  if (outcome != sim::Outcome::quiescent) return "events go on";
  const hca::Hca::Census after = cluster.host(0).hca().census();
  if (after.qps != before.qps || after.cqs != before.cqs || after.mkeys != before.mkeys || after.pds != before.pds ||
      after.eqs != before.eqs)
    return "objects stay on the device";
  return {};
}

void check(std::uint64_t seed, std::size_t steps) {
  EXPECT_EQ(run_model(seed, steps), "") << "reproduce: RDMASIM_SEED=" << seed << " RDMASIM_STEPS=" << steps
                                        << " test_properties --gtest_filter=OneSeed.OfCalls";
}

class Calls : public testing::TestWithParam<std::uint64_t> {};
TEST_P(Calls, AgreeWithTheModel) { check(GetParam(), 500); }
INSTANTIATE_TEST_SUITE_P(Seeds, Calls, testing::Range<std::uint64_t>(1, 41), testing::PrintToStringParamName());

class ManyCalls : public testing::TestWithParam<std::uint64_t> {};
TEST_P(ManyCalls, AgreeWithTheModel) { check(GetParam(), 10'000); }
INSTANTIATE_TEST_SUITE_P(Nightly, ManyCalls, testing::Range<std::uint64_t>(1001, 1051),
                         testing::PrintToStringParamName());

TEST(OneSeed, OfCalls) {
  const char* seed = std::getenv("RDMASIM_SEED");
  if (seed == nullptr) GTEST_SKIP() << "RDMASIM_SEED names the seed";
  const char* steps = std::getenv("RDMASIM_STEPS");
  check(std::strtoull(seed, nullptr, 10), steps != nullptr ? std::strtoull(steps, nullptr, 10) : 500);
}

}  // namespace
}  // namespace sys::test
