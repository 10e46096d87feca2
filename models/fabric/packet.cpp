// SPDX-License-Identifier: Apache-2.0
// Gathers a frame into contiguous bytes, for captures and tests.
#include "fabric/packet.h"

#include <cstring>

namespace fabric {

void Packet::write_to(std::span<std::byte> out) const {
  SIM_CHECK(out.size() >= frame_length(), "frame does not fit");
  std::byte* p = out.data();
  std::memcpy(p, header.data(), header_length);
  p += header_length;
  if (payload_length != 0) std::memcpy(p, payload.data() + payload_offset, payload_length);
  p += payload_length;
  std::memset(p, 0, pad);
  p += pad;
  if (has_icrc)
    for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(icrc >> 8 * i & 0xFF);
}

}  // namespace fabric
