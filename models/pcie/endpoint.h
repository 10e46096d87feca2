// SPDX-License-Identifier: Apache-2.0
// The PCIe side of a device: BAR decode, completion steering, MSI-X table. The device function behind it meets the host
// only through this file.
#pragma once

#include <cstdint>
#include <span>

#include "pcie/tlp.h"
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

}  // namespace pcie
