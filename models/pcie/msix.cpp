// SPDX-License-Identifier: Apache-2.0
// MSI-X table and pending bits. Registers are kept as the bytes that the bus carries (little endian, as the host).
#include "pcie/msix.h"

#include <bit>
#include <cstring>

#include "sim/check.h"

namespace pcie {

static_assert(std::endian::native == std::endian::little, "table entries are copied as they are");

std::optional<MsixMessage> MsixTable::raise(std::uint16_t vector) {
  SIM_CHECK(vector < entries_.size(), "MSI-X vector out of range");
  Entry& e = entries_[vector];
  if (masked(vector)) {
    e.pending = true;
    return std::nullopt;
  }
  e.pending = false;
  return MsixMessage{static_cast<std::uint64_t>(e.word[1]) << 32 | (e.word[0] & ~3U), e.word[2]};
}

void MsixTable::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size() && offset + i < size(); ++i) {
    const std::uint64_t at = offset + i;
    std::memcpy(reinterpret_cast<std::byte*>(entries_[at / kEntrySize].word) + at % kEntrySize, &bytes[i], 1);
  }
}

std::optional<std::uint16_t> MsixTable::take_unmasked_pending() {
  for (std::uint16_t v = 0; v < entries_.size(); ++v) {
    if (!entries_[v].pending || masked(v)) continue;
    entries_[v].pending = false;
    return v;
  }
  return std::nullopt;
}

std::uint64_t MsixTable::read(std::uint64_t offset, unsigned n) const {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < n && offset + i < size(); ++i) {
    const std::uint64_t at = offset + i;
    const std::uint64_t byte = entries_[at / kEntrySize].word[at % kEntrySize / 4] >> (8 * (at % 4)) & 0xFF;
    value |= byte << (8 * i);
  }
  return value;
}

std::uint64_t MsixTable::read_pending(std::uint64_t offset, unsigned n) const {
  std::uint64_t value = 0;
  for (unsigned bit = 0; bit < 8 * n; ++bit) {
    const std::uint64_t v = offset * 8 + bit;
    if (v < entries_.size() && entries_[v].pending) value |= 1ULL << bit;
  }
  return value;
}

}  // namespace pcie
