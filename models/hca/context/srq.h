// SPDX-License-Identifier: Apache-2.0
// A shared receive queue on the device: a list of WQEs in a ring of slots. Software links the slots; the device follows the
// links in the order of posting (S-RQ-2). The contexts of SRQs stay on chip.
#pragma once

#include <array>
#include <cstdint>

#include "hca/context/objects.h"

namespace hca {

struct Srq {
  std::uint32_t srqn = 0, pd = 0;
  std::uint32_t wqes = 0, stride = 0;  ///< slots of the ring, bytes of each
  QueueBuffer buffer;
  memory::Iova dbr;

  // XRC: an SRQ with its own CQ, in a domain
  bool xrc = false;
  std::uint32_t xrcd = 0, cqn = 0, user_index = 0;

  // The list. Counters are 16 bits wide as the doorbell record is (S-PR-5).
  std::uint16_t posted = 0;   ///< last value known from the doorbell record
  std::uint16_t fetched = 0;  ///< WQEs read from host memory
  std::uint16_t taken = 0;    ///< WQEs given to QPs
  std::uint16_t next = 0;     ///< slot behind the last WQE that was read
  sim::Ring<RqWqe> ready;     ///< read and not given away
  bool refilling = false;
  sim::Signal refilled;       ///< a read-ahead has ended
  std::uint32_t waiting = 0;  ///< QPs that wait for a WQE
  bool failed = false;        ///< ring or record unreadable, or a link that leads nowhere

  std::uint16_t limit = 0;  ///< armed limit, 0 = not armed
  bool checking_limit = false;

  std::array<std::byte, prm::kSrqcSize> image{};

  std::uint16_t in_queue() const { return static_cast<std::uint16_t>(posted - taken); }
  bool idle() const { return !refilling && !checking_limit && waiting == 0; }
};

}  // namespace hca
