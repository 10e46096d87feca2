// SPDX-License-Identifier: Apache-2.0
// Assembly of the HCA's units, and decode of BAR 0: initialisation segment, MSI-X table (the endpoint's), UAR pages.
#include "hca/hca.h"

#include "hca/command/command_unit.h"
#include "hca/completion/completion_unit.h"
#include "hca/completion/event_unit.h"
#include "hca/context/context_cache.h"
#include "hca/device.h"
#include "hca/dma/dma_engine.h"
#include "hca/dma/translation.h"
#include "hca/send_scheduler.h"
#include "hca/transport/qp_engine.h"
#include "hca/transport/receive_queue.h"
#include "hca/transport/requester.h"
#include "hca/transport/responder.h"
#include "hca/transport/rx_port.h"
#include "hca/transport/shared_receive_queue.h"
#include "hca/transport/tx_port.h"
#include "hca/uar/uar.h"

namespace hca {

struct Hca::Units {
  Units(sim::Context& context, const HcaConfig& cfg, const HcaIdentity& identity, std::int32_t host,
        const std::string& path)
      : config(cfg),
        device(context, config, host, path),
        dma(context, config.dma, host, path + ".dma"),
        translation(context, config.context, dma, device.icm, device.mkeys, host, path + ".translation"),
        qpc(context, dma, device.icm, IcmTable::qpc, config.context.qpc_entries, 1, &encode_qpc, this, host,
            path + ".qpc"),
        events(context, config.completion, dma, device.eqs, host, path + ".events"),
        completions(context, config.completion, config.context, dma, device.icm, device.cqs, events, host,
                    path + ".completions"),
        uar(context, config.uar, completions, events, host, path + ".uar"),
        tx(context, config.send, dma, host, path + ".tx"),
        engine(device, events, path + ".qp"),
        requester(device, dma, translation, completions, tx, qpc, uar.blueflame(), engine, path + ".requester"),
        shared_receive_queue(device, dma, events, path + ".shared_receive_queue"),
        receive_queue(device, dma, shared_receive_queue, path + ".receive_queue"),
        responder(device, dma, translation, completions, events, tx, receive_queue, engine, path + ".responder"),
        rx(device, qpc, path + ".rx"),
        scheduler(device, dma, requester, uar.blueflame(), path + ".scheduler"),
        command(device, dma, translation, completions, events, uar, engine, qpc, shared_receive_queue),
        lost(context.stats.counter(path + ".rx.lost")) {
    device.mac = identity.mac;
    device.max_mtu_code = identity.max_mtu_code;
    engine.bind(requester, responder);
    uar.bind(scheduler);
    tx.bind(static_cast<TransmitSink&>(engine));
    tx.bind_loopback(device.mac, rx);
    rx.bind(engine);
    completions.bind(engine);
    if (config.internal_error_at.n != 0)
      context.scheduler.at<&EventUnit::internal_error>(config.internal_error_at, &events);
  }
  static void encode_qpc(void* self, std::uint32_t index, std::byte* out) {
    if (const Qp* qp = static_cast<Units*>(self)->device.qps.find(index)) CommandUnit::encode_qpc(*qp, out);
  }

  const HcaConfig config;
  Device device;
  DmaEngine dma;
  Translation translation;
  ContextCache qpc;
  EventUnit events;
  CompletionUnit completions;
  Uar uar;
  TxPort tx;
  QpEngine engine;
  Requester requester;
  SharedReceiveQueue shared_receive_queue;
  ReceiveQueue receive_queue;
  Responder responder;
  RxPort rx;
  SendScheduler scheduler;
  CommandUnit command;
  sim::Counter& lost;  ///< packets for an adapter that was pulled out
  bool removed = false;
};

Hca::Hca(sc_core::sc_module_name name, sim::Context& context, const HcaConfig& config, const HcaIdentity& identity,
         std::int32_t host, const std::string& path)
    : sc_module(name),
      pcie("pcie"),
      port("port"),
      units_(std::make_unique<Units>(context, config, identity, host, path)) {}

Hca::~Hca() = default;

void Hca::end_of_elaboration() {
  units_->dma.bind(*pcie.operator->());
  units_->tx.bind(*port.operator->());
}

void Hca::bar_write(std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                    sim::Picos t_sent) {
  if (offset < prm::kUarPageSize) {
    std::uint32_t value = 0;
    if (bytes.size() != 4) return;  // the initialisation segment has 32-bit registers only
    std::memcpy(&value, bytes.data(), 4);
    units_->command.init_segment_write(offset, prm::be32(value));
    return;
  }
  units_->uar.write(static_cast<std::uint32_t>(offset / prm::kUarPageSize), offset % prm::kUarPageSize, bytes, cause,
                    t_sent);
}

std::uint64_t Hca::bar_read(std::uint64_t offset, unsigned size) {
  if (offset >= prm::kUarPageSize || size != 4) return 0;
  return prm::be32(units_->command.init_segment_read(offset));
}

void Hca::completion(pcie::TlpPtr tlp) { units_->dma.completion(std::move(tlp)); }

void Hca::receive(fabric::PacketPtr packet) {
  if (units_->removed) return units_->lost.add();
  units_->rx.receive_from_wire(std::move(packet));
}

void Hca::remove() {
  units_->removed = true;
  units_->tx.remove();
}

void Hca::link_state(bool up) {
  units_->device.port_up = up;
  units_->events.port_change(up);
}

bool Hca::read_qp(std::uint32_t qpn, std::span<std::byte> qpc) const {
  const Qp* qp = units_->device.qps.find(qpn);
  if (qp == nullptr || qpc.size() < prm::kQpcSize) return false;
  CommandUnit::encode_qpc(*qp, qpc.data());
  return true;
}

Hca::Census Hca::census() const {
  const Device& d = units_->device;
  return {d.qps.live(), d.cqs.live(), d.eqs.live(), d.mkeys.live(), d.pds.live(), d.srqs.live(), d.xrcds.live()};
}

Report Hca::report() const { return units_->removed ? Report{} : report_of(units_->device); }

}  // namespace hca
