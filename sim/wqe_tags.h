// SPDX-License-Identifier: Apache-2.0
// Which message a WQE or a CQE belongs to. Hardware formats have no room for a message id, so the program side and the
// device side of one simulation meet in this table: the provider publishes the id of each send WQE, the HCA that of each
// CQE. So does the occupancy of a CQ, of which the one knows the producer and the other the consumer. Neither influences any
// simulated behaviour.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/journey.h"
#include "sim/trace/gauge.h"

namespace sim {

/// Ids of one queue, by ring index. The address is stable for the life of the simulation, so either side may keep it.
class Tags {
 public:
  /// Makes room for `entries` slots (rounded up to a power of two). Never shrinks; a change of size clears the ids.
  void reserve(std::uint32_t entries);
  /// Index beyond the ring wraps, as a 16-bit WQE index or a CQ consumer counter does.
  void publish(std::uint32_t index, MsgId id) { ids_[index & mask_] = id; }
  MsgId find(std::uint32_t index) const { return ids_[index & mask_]; }
  void clear();
  /// CQ: CQEs that the device has written and no poll has taken.
  trace::Gauge occupancy;

 private:
  std::vector<MsgId> ids_ = std::vector<MsgId>(16, 0);
  std::uint32_t mask_ = 15;
};

/// The tags of all queues of one kind.
class TagTable {
 public:
  /// The ring of queue `number` (QPN or CQN) on `host`; created empty on first use.
  Tags& of(std::int32_t host, std::uint32_t number);
  void publish(std::int32_t host, std::uint32_t number, std::uint32_t index, MsgId id) {
    of(host, number).publish(index, id);
  }
  MsgId find(std::int32_t host, std::uint32_t number, std::uint32_t index) { return of(host, number).find(index); }
  /// The queue is gone or was reset; its ring stays, without ids.
  void forget(std::int32_t host, std::uint32_t number) { of(host, number).clear(); }

 private:
  std::map<std::pair<std::int32_t, std::uint32_t>, std::unique_ptr<Tags>> rings_;
};

struct WqeTags {
  TagTable sq;  ///< send WQEs by (host, QPN, WQE index of the first WQEBB), published by the provider
  TagTable cq;  ///< CQEs by (host, CQN, slot), published by the HCA when it writes the CQE
};

}  // namespace sim
