// SPDX-License-Identifier: Apache-2.0
// The PCIe side of a device: BAR decode, completion steering, MSI-X table. The device function behind it meets the host
// only through this file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <systemc>

#include "memory/address.h"
#include "pcie/msix.h"
#include "pcie/pcie_config.h"
#include "pcie/tlp.h"
#include "sim/context.h"
#include "sim/trace/trace.h"

namespace pcie {

/// The device function behind an endpoint. Offsets are relative to BAR0.
struct DeviceFunction : virtual sc_core::sc_interface {
  virtual void bar_write(std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                         sim::Picos t_sent) = 0;
  /// Value of a register read of `size` <= 8 bytes, in memory byte order.
  virtual std::uint64_t bar_read(std::uint64_t offset, unsigned size) = 0;
  /// A completion (CplD or Cpl with an error status) for a tag of this function.
  virtual void completion(TlpPtr tlp) = 0;
};

/// What the endpoint offers to its function.
struct EndpointPort : virtual sc_core::sc_interface {
  /// Sends a request upstream. TLPs of one flow-control class keep their order; a TLP that lacks credits waits.
  virtual void send(TlpPtr tlp) = 0;
  virtual TlpPtr make_tlp() = 0;
  /// Sends the MSI-X message of `vector`, or sets its pending bit while masked.
  virtual void raise_msix(std::uint16_t vector, sim::trace::Cause cause) = 0;
  virtual std::uint32_t max_payload_size() const = 0;       ///< MPS in bytes
  virtual std::uint32_t max_read_request_size() const = 0;  ///< MRRS in bytes
  virtual std::uint16_t requester_id() const = 0;
};

/// Where things are in BAR0 of a function; part of its programming interface.
struct BarLayout {
  memory::Phys bar0{};  ///< bus address, aligned to `size`
  sim::Bytes size{32ULL << 20};
  std::uint64_t msix_table = 0x2000;  ///< offset of the MSI-X table
  std::uint64_t msix_pba = 0x3000;    ///< offset of the pending bit array
  std::uint16_t msix_vectors = 64;
};

/// One function in a slot. Bind `up` to the upstream link, the downstream link's `out` to this, `function` to the device.
class Endpoint final : public sc_core::sc_module, public EndpointPort, public TlpSink, public ConfigSpace {
 public:
  sc_core::sc_port<TlpSink> up;
  sc_core::sc_port<DeviceFunction> function;

  /// `path` is that of the host's PCIe, e.g. "host0.pcie".
  Endpoint(sc_core::sc_module_name name, sim::Context& context, const PcieConfig& config, const BarLayout& layout,
           std::int32_t host, const std::string& path);

  void send(TlpPtr tlp) override;
  TlpPtr make_tlp() override { return tlps_.make(); }
  void raise_msix(std::uint16_t vector, sim::trace::Cause cause) override;
  std::uint32_t max_payload_size() const override { return config_.max_payload_size; }
  std::uint32_t max_read_request_size() const override { return config_.max_read_request_size; }
  std::uint16_t requester_id() const override { return config_.bdf; }

  /// From the link.
  void receive(TlpPtr tlp) override;

  /// Takes effect at once: the caller charges the access.
  std::uint16_t msix_control() const override { return msix_.control(); }
  void set_msix_control(std::uint16_t value) override;

  /// The device is pulled out of its slot: what it sends is lost, stores to it vanish and loads from it are answered as by
  /// an empty slot. Its own requests end as unsupported, so that its units come to rest.
  void remove() { removed_ = true; }
  bool removed() const { return removed_; }

  const MsixTable& msix() const { return msix_; }
  const BarLayout& layout() const { return layout_; }

 private:
  struct Answer {
    sim::Picos at{0};
    TlpPtr tlp;
  };
  void send_unmasked(sim::trace::Cause cause);
  void register_write(std::uint64_t offset, TlpPtr tlp);
  void register_read(std::uint64_t offset, TlpPtr tlp);
  std::uint64_t register_value(std::uint64_t offset, unsigned size);
  void answer(TlpPtr tlp);
  void send_answer();
  void lose(TlpPtr tlp);
  void return_refused();
  bool in_table(std::uint64_t offset) const { return offset - layout_.msix_table < msix_.size(); }
  bool in_pba(std::uint64_t offset) const { return offset - layout_.msix_pba < msix_.pba_size(); }

  sim::Context& context_;
  const PcieConfig config_;
  const BarLayout layout_;
  sim::Pool<Tlp>& tlps_;
  MsixTable msix_;
  sim::Ring<Answer> answers_;
  sim::Ring<TlpPtr> refused_;  ///< reads of a removed device
  sim::trace::Source trace_;
  sim::Counter& unexpected_;
  sim::Counter& unsupported_;
  sim::Counter& msix_sent_;
  sim::Counter& msix_held_;
  sim::Counter& lost_;
  bool removed_ = false;
};

}  // namespace pcie
