// SPDX-License-Identifier: Apache-2.0
#include "hca/report.h"

#include <algorithm>

#include "hca/device.h"

namespace hca {

const QpReport* Report::qp(std::uint32_t qpn) const {
  const auto it = std::ranges::find(qps, qpn, &QpReport::qpn);
  return it == qps.end() ? nullptr : &*it;
}

const CqReport* Report::cq(std::uint32_t cqn) const {
  const auto it = std::ranges::find(cqs, cqn, &CqReport::cqn);
  return it == cqs.end() ? nullptr : &*it;
}

Report report_of(Device& device) {
  Report r;
  device.qps.for_each([&](const Qp& qp) {
    QpReport& q = r.qps.emplace_back();
    q.qpn = qp.qpn;
    q.error = qp.state == QpState::err;
    q.starts_wqes = qp.state == QpState::rts;
    q.unstarted = static_cast<std::uint16_t>(qp.sq_pi - qp.sq_ci);
    q.unanswered = qp.sent.size();
    q.rnr_waiting = qp.rnr_waiting;
    q.rnr_retry = qp.rnr_retry;
    q.ack_timer = qp.ack_deadline != sim::kNever;
    q.ack_timeout = qp.ack_timeout;
  });
  device.cqs.for_each([&](const Cq& cq) {
    r.cqs.push_back({cq.cqn, cq.arm != ArmState::fired, cq.arm == ArmState::armed_solicited, cq.overflow});
  });
  return r;
}

}  // namespace hca
