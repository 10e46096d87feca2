// SPDX-License-Identifier: Apache-2.0
// The MSI-X table of a function: 16-byte little-endian entries {address low, address high, data, vector control}, mask and
// pending bits (PCI Local Bus Specification 3.0, 6.8.2), enable bit and function mask.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pcie {

/// Bits of the message control word of the MSI-X capability.
inline constexpr std::uint16_t kMsixEnable = 0x8000, kMsixFunctionMask = 0x4000;

/// Configuration space of a function, as far as it is modelled: the message control word of its MSI-X capability.
struct ConfigSpace {
  virtual ~ConfigSpace() = default;
  virtual std::uint16_t msix_control() const = 0;
  virtual void set_msix_control(std::uint16_t value) = 0;
};

struct MsixMessage {
  std::uint64_t address = 0;
  std::uint32_t data = 0;
};

class MsixTable {
 public:
  static constexpr std::uint64_t kEntrySize = 16;

  /// All vectors are masked at first.
  explicit MsixTable(std::uint16_t vectors) : entries_(vectors) {}

  std::uint16_t vectors() const { return static_cast<std::uint16_t>(entries_.size()); }
  std::uint64_t size() const { return entries_.size() * kEntrySize; }
  std::uint64_t pba_size() const { return (entries_.size() + 63) / 64 * 8; }

  /// The message to send for `vector`; nothing while it is masked, and its pending bit is set instead.
  std::optional<MsixMessage> raise(std::uint16_t vector);
  /// Message control: table size - 1 in the low bits, function mask, enable. Disabled at first: messages pend.
  std::uint16_t control() const { return static_cast<std::uint16_t>(control_ | (vectors() - 1)); }
  void set_control(std::uint16_t value) { control_ = value & (kMsixEnable | kMsixFunctionMask); }
  /// Register write at byte `offset` of the table; what lies beyond its end is ignored.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// The lowest vector that is pending but not masked any more; its pending bit is cleared.
  std::optional<std::uint16_t> take_unmasked_pending();
  /// Register read of `size` <= 8 bytes.
  std::uint64_t read(std::uint64_t offset, unsigned size) const;
  /// The same in the pending bit array.
  std::uint64_t read_pending(std::uint64_t offset, unsigned size) const;
  bool masked(std::uint16_t vector) const { return control_ != kMsixEnable || (entries_[vector].word[3] & 1) != 0; }
  bool pending(std::uint16_t vector) const { return entries_[vector].pending; }

 private:
  struct Entry {
    std::uint32_t word[4] = {0, 0, 0, 1};
    bool pending = false;
  };
  std::vector<Entry> entries_;
  std::uint16_t control_ = 0;
};

}  // namespace pcie
