// SPDX-License-Identifier: Apache-2.0
// Random traffic over a random link between random machines: each message exactly once, in order, with its bytes; each
// completion right; nothing left behind. One seed is one run (RDMASIM_SEED, RDMASIM_MESSAGES repeat one).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "tests/properties/run_traffic.h"

namespace sys::test {
namespace {

void check(std::uint64_t seed, std::size_t messages) {
  const std::string failure = run_traffic(seed, messages);
  EXPECT_EQ(failure, "") << "reproduce: RDMASIM_SEED=" << seed << " RDMASIM_MESSAGES=" << messages
                         << " test_properties --gtest_filter=OneSeed.OfTraffic";
}

class Traffic : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Traffic, EachMessageOnceInOrderAndIntact) { check(GetParam(), 500); }
INSTANTIATE_TEST_SUITE_P(Seeds, Traffic, testing::Range<std::uint64_t>(1, 61), testing::PrintToStringParamName());

class LongTraffic : public testing::TestWithParam<std::uint64_t> {};
TEST_P(LongTraffic, EachMessageOnceInOrderAndIntact) { check(GetParam(), 5'000); }
INSTANTIATE_TEST_SUITE_P(Nightly, LongTraffic, testing::Range<std::uint64_t>(1001, 1201),
                         testing::PrintToStringParamName());

TEST(OneSeed, OfTraffic) {
  const char* seed = std::getenv("RDMASIM_SEED");
  if (seed == nullptr) GTEST_SKIP() << "RDMASIM_SEED names the seed";
  const char* messages = std::getenv("RDMASIM_MESSAGES");
  check(std::strtoull(seed, nullptr, 10), messages != nullptr ? std::strtoull(messages, nullptr, 10) : 250);
}

}  // namespace
}  // namespace sys::test
