// SPDX-License-Identifier: Apache-2.0
// Slots are addressed by the low bits of the id; the table doubles when a live journey is in the way.
#include "sim/journey.h"

namespace sim {

std::string_view name_of(Stage s) {
  static constexpr std::array<std::string_view, kStages> kNames{
      "cpu_post", "store_buffer_wc", "pcie_down", "doorbell_context", "wqe_fetch", "translation",
      "payload_dma", "packetise", "wire", "receive", "rq_wqe", "scatter",
      "cqe_write", "visible", "event", "poll"};
  return kNames[static_cast<std::size_t>(s)];
}

Journeys::Journeys() : slots_(4096) {}

void Journeys::grow() {
  std::vector<Journey> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Journey& j : old)
    if (j.id != 0) slots_[j.id & (slots_.size() - 1)] = j;
}

MsgId Journeys::begin(Picos t, std::uint32_t flow, std::uint8_t opcode, std::uint32_t bytes) {
  const MsgId id = next_++;
  while (slots_[id & (slots_.size() - 1)].id != 0) grow();
  slots_[id & (slots_.size() - 1)] = Journey{id, flow, bytes, opcode, t, t, {}};
  ++live_;
  return id;
}

void Journeys::finish(MsgId id, Stage s, Picos t) {
  Journey* j = find(id);
  if (j == nullptr) return;
  mark(id, s, t);
  if (sink_ != nullptr) sink_->finished(*j);
  j->id = 0;
  --live_;
}

void Journeys::drop(MsgId id) {
  if (Journey* j = find(id)) {
    j->id = 0;
    --live_;
  }
}

}  // namespace sim
