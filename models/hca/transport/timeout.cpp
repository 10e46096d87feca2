// SPDX-License-Identifier: Apache-2.0
// The schedule of mlx5_default is that of a published study of a ConnectX-6 (firmware 20.43): early retransmissions as long
// as their distance does not exceed T. Without any retry the same phase is followed by one wait of three intervals.
#include "hca/transport/timeout.h"

#include <algorithm>
#include <array>

namespace hca {
namespace {

constexpr std::array<std::int64_t, 11> kEarlyMilliseconds{12, 21, 38, 71, 138, 239, 440, 977, 1782, 3930, 8225};
constexpr std::int64_t kPicosPerMillisecond = 1'000'000'000;
constexpr std::uint8_t kShortestCode = 16;  // min_ack_timeout_limit

AckWait measured_wait(std::uint8_t timeout, std::uint8_t retry_count, std::uint32_t expiries) {
  const sim::Picos limit = nominal_timeout(std::max(timeout, kShortestCode));
  std::uint32_t phase = 0;  // waits of the early phase
  std::int64_t before = 0, step = 0;
  for (const std::int64_t at : kEarlyMilliseconds) {
    // The measured times are rounded to milliseconds, so a distance may seem to exceed T by one.
    if ((at - before - 1) * kPicosPerMillisecond > limit.n) break;
    if (phase++ == expiries) step = at - before;
    before = at;
  }
  if (expiries < phase) return {{step * kPicosPerMillisecond}, expiries + 1 == phase && retry_count > 0};
  return {limit * (retry_count > 0 ? 2 : 6), true};
}

}  // namespace

sim::Picos nominal_timeout(std::uint8_t timeout) { return {4'096'000LL << timeout}; }

AckWait ack_wait(const TransportConfig& config, std::uint8_t timeout, std::uint8_t retry_count,
                 std::uint32_t expiries) {
  if (config.timeout_model == TimeoutModel::mlx5_default) return measured_wait(timeout, retry_count, expiries);
  const sim::Picos nominal = nominal_timeout(timeout);
  if (config.adaptive_retrans) {
    for (sim::Picos early = config.adaptive_first; early < nominal; early = early * 2, --expiries)
      if (expiries == 0) return {early, false};
  }
  const double factor = config.timeout_model == TimeoutModel::ibta ? config.ibta_factor
                        : expiries == 0                            ? 1 + config.nolimit_slack
                                                                   : 1;
  return {{static_cast<std::int64_t>(static_cast<double>(nominal.n) * factor)}, true};
}

bool gives_up(const TransportConfig& config, std::uint8_t retries_left) {
  return retries_left < (config.timeout_model == TimeoutModel::mlx5_default ? 2 : 1);
}

}  // namespace hca
