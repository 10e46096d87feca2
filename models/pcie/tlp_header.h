// SPDX-License-Identifier: Apache-2.0
// The header of a TLP as the bytes that a link carries, for traces.
#pragma once

#include <array>
#include <cstddef>

#include "pcie/tlp.h"

namespace pcie {

inline constexpr std::size_t kMaxTlpHeader = 16;

/// Header bytes in the order of transmission; header_bytes(tlp) of them count. Traffic class 0, no snoop attribute, no digest;
/// the completer id is 0. Tags are of 10 bits. Source: PCI Express Base Specification 4.0, 2.2.
std::array<std::byte, kMaxTlpHeader> encode_header(const Tlp& tlp);

}  // namespace pcie
