// SPDX-License-Identifier: Apache-2.0
// The host channel adapter: builds its units and binds them. No behaviour of its own beyond BAR decode.
#pragma once

#include <memory>
#include <systemc>

#include "fabric/packet.h"
#include "hca/hca_config.h"
#include "hca/report.h"
#include "pcie/endpoint.h"
#include "sim/context.h"

namespace hca {

/// What the device is given besides its configuration.
struct HcaIdentity {
  std::array<std::uint8_t, 6> mac{};
  std::uint8_t max_mtu_code = 5;  ///< enum ibv_mtu that fits the port's frame size
};

class Hca : public sc_core::sc_module, public pcie::DeviceFunction, public fabric::PacketSink {
 public:
  sc_core::sc_port<pcie::EndpointPort> pcie;
  sc_core::sc_port<fabric::PacketPort> port;

  Hca(sc_core::sc_module_name name, sim::Context& context, const HcaConfig& config, const HcaIdentity& identity,
      std::int32_t host, const std::string& path);
  ~Hca() override;

  void bar_write(std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                 sim::Picos t_sent) override;
  std::uint64_t bar_read(std::uint64_t offset, unsigned size) override;
  void completion(pcie::TlpPtr tlp) override;
  void receive(fabric::PacketPtr packet) override;
  void link_state(bool up) override;

  /// The adapter is pulled out: from now on it neither sends nor takes packets, and reports nothing.
  void remove();

  /// Objects alive on the device, for the report at the end of a run.
  struct Census {
    std::size_t qps, cqs, eqs, mkeys, pds, srqs, xrcds;
  };
  Census census() const;
  /// Copies the context of a QP as QUERY_QP returns it (prm::kQpcSize bytes), at once. False if there is none.
  bool read_qp(std::uint32_t qpn, std::span<std::byte> qpc) const;
  /// What the queues hold and wait for.
  Report report() const;

 private:
  void end_of_elaboration() override;
  struct Units;
  std::unique_ptr<Units> units_;
};

}  // namespace hca
