// SPDX-License-Identifier: Apache-2.0
// Root complex of one host: CPU stores to device windows become MWr TLPs; DMA reads and writes from the device go through
// the address translator to host memory; writes to the interrupt window become interrupts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "memory/address.h"
#include "memory/host_memory.h"
#include "pcie/tlp.h"
#include "sim/config.h"
#include "sim/context.h"

namespace pcie {

/// What the CPU side of the root complex offers to cores.
struct MmioPort : virtual sc_core::sc_interface {
  /// A store leaves the core now (engine time). Posted. 1..64 bytes inside one aligned 64-byte line.
  virtual void mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) = 0;
  /// A load of up to 8 bytes; fn(ctx, value) runs when the completion is back at the core.
  virtual void mmio_read(memory::Phys bus, unsigned size, void (*fn)(void* ctx, std::uint64_t value), void* ctx) = 0;
};

/// Result of translating a DMA address. `ready` is when the translation is known (>= now).
struct DmaTranslation {
  std::optional<memory::Phys> phys;  ///< empty = fault
  sim::Picos ready{0};
};
/// The IOMMU as the root complex sees it. The range lies inside one 4 KiB page.
struct AddressTranslator : virtual sc_core::sc_interface {
  virtual DmaTranslation translate(std::uint16_t requester, memory::Iova at, std::uint32_t length, bool write,
                                   sim::trace::Cause cause) = 0;
};

/// Receives message-signalled interrupts: a write of `data` to the interrupt window.
struct InterruptSink : virtual sc_core::sc_interface {
  virtual void interrupt(std::uint64_t address, std::uint32_t data, sim::trace::Cause cause) = 0;
};
inline constexpr std::uint64_t kInterruptWindow = 0xFEE00000;  ///< 1 MiB, never translated (x86)

}  // namespace pcie
