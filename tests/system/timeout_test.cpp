// SPDX-License-Identifier: Apache-2.0
// The timeout models at work: a peer that is silent, and one packet that is lost.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using hca::TimeoutModel;
using sim::Picos;

constexpr std::uint8_t kSendOnly = 4;

struct Case {
  const char* name;
  TimeoutModel model;
  std::uint8_t timeout, retry;
  Picos detection;
  std::size_t transmissions;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class SilentPeer : public testing::TestWithParam<Case> {};
TEST_P(SilentPeer, IsGivenUpWhenTheModelSays_A_50) {
  const Case& c = GetParam();
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.transport.timeout_model = c.model;
  p.options[0].timeout = c.timeout;
  p.options[0].retry = c.retry;
  p.options[1].connect = false;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        const Picos start = e.thread().now();
        ASSERT_EQ(e.send(1, 0, 64), 0);
        ibv_wc wc{};
        while (ibv_poll_cq(e.cq, 1, &wc) == 0 && e.thread().now() - start < c.detection * 2)
          e.thread().sleep(Picos{c.detection.n / 1000});
        EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
        EXPECT_EQ(wc.vendor_err, 0x81u);
        const Picos took = e.thread().now() - start;
        EXPECT_GE(took, Picos{c.detection.n * 97 / 100});
        EXPECT_LE(took, Picos{c.detection.n * 103 / 100});
      },
      [](End&) {});
  EXPECT_EQ(p.sent(server_qpn, {kSendOnly}).size(), c.transmissions);
}
INSTANTIATE_TEST_SUITE_P(
    Models, SilentPeer,
    testing::Values(Case{"factory_settings_timeout_14", TimeoutModel::mlx5_default, 14, 7, 3'660_ms, 13},
                    Case{"factory_settings_timeout_18", TimeoutModel::mlx5_default, 18, 7, 14'700_ms, 15},
                    Case{"factory_settings_one_retry", TimeoutModel::mlx5_default, 14, 1, 440_ms, 7},
                    Case{"factory_settings_no_retry", TimeoutModel::mlx5_default, 14, 0, 2'050_ms, 8},
                    Case{"no_limit_timeout_8", TimeoutModel::mlx5_nolimit, 8, 7, 9'500_us, 8},
                    Case{"no_limit_timeout_12", TimeoutModel::mlx5_nolimit, 12, 7, 147_ms, 8},
                    Case{"specification_timeout_12", TimeoutModel::ibta, 12, 2, 50'332_us, 3}),
    [](const auto& i) { return std::string(i.param.name); });

// Lost `times` times; the answer comes after the early retransmissions, not after T.
TEST(AdaptiveRetransmission, RepeatsLongBeforeTheTimeout_S_RC_61) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.transport.adaptive_retrans = true;
  p.options[0].timeout = 18;
  p.options[0].retry = 1;
  for (const std::uint32_t iter : {1U, 2U, 3U, 4U}) p.lose(kSendOnly, 0x100, iter);
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
      });
  const auto sends = p.sent(server_qpn, {kSendOnly});
  ASSERT_EQ(sends.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    const Picos gap = sends[i + 1].t - sends[i].t, want = 2_ms * (1LL << i);
    EXPECT_GE(gap, want);
    EXPECT_LT(gap, want + 10_us);
  }
}

}  // namespace
}  // namespace sys::test
