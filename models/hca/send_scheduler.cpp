// SPDX-License-Identifier: Apache-2.0
// The doorbell carries the index of the last posted WQE; the producer index only moves forward (16-bit serial arithmetic,
// S-BF-7). A doorbell that would not move it may carry a stale control segment, as the real driver writes after a refused
// WR, so then the doorbell record is read.
#include "hca/send_scheduler.h"

#include <algorithm>
#include <cstring>

namespace hca {

SendScheduler::SendScheduler(Device& device, DmaEngine& dma, Requester& requester, BlueflameBuffers& blueflame,
                             const std::string& path)
    : device_(device),
      dma_(dma),
      requester_(requester),
      blueflame_(blueflame),
      unknown_(device.context.stats.counter(path + ".unknown_qp")),
      stale_(device.context.stats.counter(path + ".stale_doorbells")),
      foreign_(device.context.stats.counter(path + ".foreign_doorbells")),
      bad_records_(device.context.stats.counter(path + ".bad_records")) {}

void SendScheduler::ring(const Doorbell& doorbell) { dispatch(doorbell); }

sim::Flow SendScheduler::dispatch(Doorbell doorbell) {
  const sim::Picos arrived = device_.context.now();
  co_await device_.context.delay(device_.config.uar.doorbell_decode);
  Qp* qp = device_.qps.find(doorbell.qpn);
  if (qp == nullptr || qp->no_sq || (!qp->sends() && !qp->flushes_sends())) {
    unknown_.add();
    blueflame_.drop(doorbell.qpn);
    co_return;
  }
  if (qp->uar_page != doorbell.uar_page) {  // a page of somebody else
    foreign_.add();
    blueflame_.drop(doorbell.qpn);
    co_return;
  }
  const std::uint16_t before = qp->sq_pi;
  const auto pi = static_cast<std::uint16_t>(doorbell.wqe_index + std::max(1U, wqe_basic_blocks(doorbell.ds)));
  const auto posted = static_cast<std::uint16_t>(pi - qp->sq_ci);
  if (static_cast<std::int16_t>(static_cast<std::uint16_t>(pi - before)) > 0 && posted <= qp->sq_wqebbs) {
    qp->sq_pi = pi;
  } else if (pi != before) {
    stale_.add();
    co_await read_record(doorbell.qpn, doorbell.cause);
    qp = device_.qps.find(doorbell.qpn);
    if (qp == nullptr) co_return;
  }
  if (doorbell.blueflame) {  // overtaken by a later doorbell: the ring has supplied its WQE
    const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(doorbell.wqe_index - qp->sq_ci));
    if (ahead < 0 || (ahead == 0 && qp->current_valid)) blueflame_.discard(doorbell.qpn, doorbell.wqe_index);
  }
  if (doorbell.cause.parent != 0 && qp->sq_pi != before) qp->doorbells.push_back({qp->sq_pi, doorbell.cause.parent});
  if (qp->tags != nullptr) {
    sim::Journeys& journeys = device_.context.journeys;
    for (std::uint16_t i = before; i != qp->sq_pi; ++i) {
      const sim::MsgId msg = qp->tags->find(i);
      journeys.mark(msg, sim::Stage::store_buffer_wc, doorbell.t_sent);
      journeys.mark(msg, sim::Stage::pcie_down, arrived);
    }
  }
  requester_.kick(*qp);
}

// The record moves the producer index forward, as far as the ring allows; anything else in it is nonsense.
sim::Task<void> SendScheduler::read_record(std::uint32_t qpn, sim::trace::Cause cause) {
  Qp* qp = device_.qps.find(qpn);
  const std::uint32_t life = qp->generation;
  sim::BufferRef record = device_.context.buffers.make(8);
  const DmaStatus status = co_await dma_.fetch(qp->dbr, 8, record, 0, cause);
  qp = device_.qps.find(qpn);
  if (status != DmaStatus::ok || qp == nullptr || life != qp->generation) co_return;
  std::uint32_t counter;
  std::memcpy(&counter, record.data() + prm::kSndDbr, 4);
  const auto pi = static_cast<std::uint16_t>(prm::be32(counter));
  const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(pi - qp->sq_pi));
  if (ahead < 0 || static_cast<std::uint16_t>(pi - qp->sq_ci) > qp->sq_wqebbs) bad_records_.add();
  else qp->sq_pi = pi;
}

}  // namespace hca
