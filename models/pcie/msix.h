// SPDX-License-Identifier: Apache-2.0
// The MSI-X table of a function: 16-byte little-endian entries {address low, address high, data, vector control}, mask and
// pending bits (PCI Local Bus Specification 3.0, 6.8.2). Enable and function mask of configuration space are taken as
// enabled and clear.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pcie {

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
  /// Register write at byte `offset` of the table; what lies beyond its end is ignored.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// The lowest vector that is pending but not masked any more; its pending bit is cleared.
  std::optional<std::uint16_t> take_unmasked_pending();
  /// Register read of `size` <= 8 bytes.
  std::uint64_t read(std::uint64_t offset, unsigned size) const;
  /// The same in the pending bit array.
  std::uint64_t read_pending(std::uint64_t offset, unsigned size) const;
  bool masked(std::uint16_t vector) const { return (entries_[vector].word[3] & 1) != 0; }
  bool pending(std::uint16_t vector) const { return entries_[vector].pending; }

 private:
  struct Entry {
    std::uint32_t word[4] = {0, 0, 0, 1};
    bool pending = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace pcie
