// SPDX-License-Identifier: Apache-2.0
// The timeout models against the figures that they come from.
#include "hca/transport/timeout.h"

#include <gtest/gtest.h>

#include <ostream>

namespace hca {
namespace {

struct Silence {
  double seconds = 0;  // from the first transmission to the error
  unsigned retransmissions = 0;
};
// A peer that never answers.
Silence silence(const TransportConfig& config, std::uint8_t timeout, std::uint8_t retry_count) {
  Silence s;
  std::uint8_t left = retry_count;
  for (std::uint32_t expiries = 0; expiries < 100; ++expiries) {
    const AckWait w = ack_wait(config, timeout, retry_count, expiries);
    s.seconds += static_cast<double>(w.duration.n) / 1e12;
    if (w.spends_retry && gives_up(config, left)) return s;
    if (w.spends_retry) --left;
    ++s.retransmissions;
  }
  ADD_FAILURE() << "never gives up";
  return s;
}

struct Figure {
  TimeoutModel model;
  unsigned timeout, retry_count;
  double seconds;
  unsigned retransmissions;
  double tolerance = 0.03;
};
void PrintTo(const Figure& f, std::ostream* out) {
  *out << sim::enum_name(f.model) << " timeout " << f.timeout << " retry_cnt " << f.retry_count;
}
class DetectionTime : public testing::TestWithParam<Figure> {};
TEST_P(DetectionTime, IsThatOfTheStudy_A_50) {
  const Figure& f = GetParam();
  TransportConfig config;
  config.timeout_model = f.model;
  const Silence s = silence(config, static_cast<std::uint8_t>(f.timeout), static_cast<std::uint8_t>(f.retry_count));
  EXPECT_NEAR(s.seconds, f.seconds, f.seconds * f.tolerance);
  EXPECT_EQ(s.retransmissions, f.retransmissions);
}
constexpr auto kIbta = TimeoutModel::ibta, kDefault = TimeoutModel::mlx5_default, kNoLimit = TimeoutModel::mlx5_nolimit;
INSTANTIATE_TEST_SUITE_P(Models, DetectionTime,
                         testing::Values(Figure{kIbta, 14, 7, 8 * 0.067108864, 7, 1e-9},
                                         Figure{kIbta, 18, 0, 1.073741824, 0, 1e-9},
                                         Figure{kIbta, 31, 1, 2 * 8796.093022208, 1, 1e-9},
                                         Figure{kDefault, 14, 7, 3.66, 12}, Figure{kDefault, 8, 7, 3.66, 12},
                                         Figure{kDefault, 16, 7, 3.66, 12}, Figure{kDefault, 18, 7, 14.7, 14},
                                         Figure{kDefault, 20, 7, 59.8, 16}, Figure{kDefault, 14, 1, 0.44, 6},
                                         Figure{kDefault, 14, 2, 0.977, 7}, Figure{kDefault, 14, 0, 2.05, 7},
                                         Figure{kNoLimit, 8, 7, 9.5e-3, 7}, Figure{kNoLimit, 10, 7, 38e-3, 7},
                                         Figure{kNoLimit, 12, 7, 147e-3, 7}, Figure{kNoLimit, 14, 7, 575e-3, 7},
                                         Figure{kNoLimit, 20, 7, 37.9, 7}));

TEST(Timeout, ToleranceOfTheSpecificationIsAFactor_S_RC_41) {
  TransportConfig config;
  config.ibta_factor = 4;
  EXPECT_EQ(ack_wait(config, 10, 7, 0).duration, nominal_timeout(10) * 4);
  EXPECT_EQ(nominal_timeout(14), sim::Picos{67'108'864'000});
}

TEST(Timeout, EarlyRetransmissionsDoubleAndSpendNoRetry_S_RC_61) {
  TransportConfig config;
  config.adaptive_retrans = true;
  std::int64_t ms = 2;
  for (const std::uint32_t i : {0U, 1U, 2U, 3U}) {
    const AckWait w = ack_wait(config, 14, 7, i);
    EXPECT_EQ(w.duration.n, ms * 1'000'000'000);
    EXPECT_FALSE(w.spends_retry);
    ms *= 2;
  }
  EXPECT_EQ(ack_wait(config, 14, 7, 4).duration.n, 32'000'000'000) << "up to T";
  EXPECT_EQ(ack_wait(config, 14, 7, 6).duration, nominal_timeout(14));
  EXPECT_TRUE(ack_wait(config, 14, 7, 6).spends_retry);
  EXPECT_EQ(ack_wait(config, 5, 7, 0).duration, nominal_timeout(5)) << "a short T leaves no room for them";
}

}  // namespace
}  // namespace hca
