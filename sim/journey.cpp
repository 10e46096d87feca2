// SPDX-License-Identifier: Apache-2.0
// Slots are addressed by the low bits of the id. When a live journey is in the way of a new one, the table doubles if
// it is half full; otherwise the old journey is an exception and moves to the side map.
#include "sim/journey.h"

#include <algorithm>

namespace sim {

std::string_view name_of(Stage s) {
  static constexpr std::array<std::string_view, kStages> kNames{
      "cpu_post",  "store_buffer_wc", "pcie_down",   "doorbell_context",
      "wqe_fetch", "translation",     "payload_dma", "packetise",
      "wire",      "receive",         "rq_wqe",      "scatter",
      "cqe_write", "visible",         "eqe_write",   "msix",
      "irq_entry", "irq_handler",     "tasklet",     "softirq",
      "wake_up",   "syscall_return",  "poll"};
  return kNames[static_cast<std::size_t>(s)];
}

Journeys::Journeys() : slots_(4096) {}

void Journeys::grow() {
  std::vector<Journey> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Journey& j : old)
    if (j.id != 0) slots_[j.id & (slots_.size() - 1)] = j;
}

Journey* Journeys::find_straggler(MsgId id) {
  const auto it = stragglers_.find(id);
  return it == stragglers_.end() ? nullptr : &it->second;
}

MsgId Journeys::begin(Picos t, std::uint32_t flow, std::uint8_t opcode, std::uint32_t bytes, const Poster& poster) {
  const MsgId id = next_++;
  if (live_ * 2 >= slots_.size()) grow();
  Journey& slot = slots_[id & (slots_.size() - 1)];
  if (slot.id != 0) stragglers_.emplace(slot.id, slot);
  slot = Journey{id, flow, bytes, opcode, 0, poster, t, t, {}};
  ++live_;
  return id;
}

void Journeys::free_slot(MsgId id) {
  Journey& j = slots_[id & (slots_.size() - 1)];
  if (j.id == id) j.id = 0;
  else stragglers_.erase(id);
  --live_;
}

void Journeys::finish(MsgId id, Stage s, Picos t) {
  Journey* j = find(id);
  if (j == nullptr || j->status != 0) return;
  mark(id, s, t);
  if (sink_ != nullptr) sink_->finished(*j);
  free_slot(id);
}

void Journeys::fail(MsgId id, std::uint8_t status, Picos t) {
  Journey* j = find(id);
  if (j == nullptr) return;
  j->status = status;
  j->last = max(j->last, t);
  if (sink_ != nullptr) sink_->failed(*j);
  free_slot(id);
}

void Journeys::give_up(MsgId id, std::uint8_t status) {
  if (Journey* j = find(id); j != nullptr) j->status = status;
}

void Journeys::take_back(MsgId id) {
  if (find(id) != nullptr) free_slot(id);
}

void Journeys::end(Picos t) {
  std::vector<MsgId> left;
  for (const auto& [id, j] : stragglers_) left.push_back(id);
  for (const Journey& j : slots_)
    if (j.id != 0) left.push_back(j.id);
  std::ranges::sort(left);
  for (const MsgId id : left) {
    const std::uint8_t status = find(id)->status;
    fail(id, status != 0 ? status : kUnfinished, t);
  }
}

}  // namespace sim
