// SPDX-License-Identifier: Apache-2.0
// The journey of each work request, from the entry of its post call to the return of the poll that delivers it, split
// into stages. Every block on the critical path calls mark() when it hands the message on; the time since the previous
// mark goes to that stage. The stages of a journey are therefore a partition of its end-to-end time, to the picosecond.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace sim {

/// Identity of one work request for traces and latency accounting: 1, 2, 3, … in post order; 0 = none. It rides on
/// stores, TLPs and packets as metadata and is never part of what hardware sees.
using MsgId = std::uint64_t;

/// What the time of a message is spent on, in the order of a SEND.
enum class Stage : std::uint8_t {
  cpu_post,          ///< entry of the post call until the doorbell store is issued
  store_buffer_wc,   ///< until the write-combining line leaves the core
  pcie_down,         ///< root complex and link until the doorbell reaches the HCA
  doorbell_context,  ///< doorbell decode, scheduling, QP context
  wqe_fetch,         ///< until the WQE is in the HCA (nothing when BlueFlame carried it)
  translation,       ///< lkey/rkey check and address translation of the data to read
  payload_dma,       ///< until the last payload byte has arrived by DMA
  packetise,         ///< header building and transmit pipeline until the packet takes the wire
  wire,              ///< serialisation and propagation, switches included
  receive,           ///< receive pipeline of the HCA: parse, ICRC, QP context, PSN
  rq_wqe,            ///< waiting for the receive WQE
  scatter,           ///< translation of the destination until the payload writes are issued
  cqe_write,         ///< until the CQE (or, without one, the last payload byte) leaves the HCA
  visible,           ///< PCIe up, root complex, IOMMU, memory: until the CPU can see it
  eqe_write,         ///< until the EQE is in memory; this and the next seven only when an event announced the message
  msix,              ///< until the MSI-X message has reached the core
  irq_entry,         ///< until the first instruction of the interrupt handler
  irq_handler,       ///< until the hard interrupt ends
  tasklet,           ///< until the completion handler has put the record into the channel
  softirq,           ///< kernel consumers: until irq_poll polls the CQ
  wake_up,           ///< until the reader runs and finds the record; kernel consumers: until the kworker polls the CQ
  syscall_return,    ///< until the read of the channel returns
  poll,              ///< until the poll returns
};
inline constexpr std::size_t kStages = 23;
/// Stable name used in results and traces, e.g. "wqe_fetch".
std::string_view name_of(Stage s);

/// Who posted a work request.
struct Poster {
  std::int32_t host = 0;
  std::uint32_t qpn = 0;
  std::uint64_t wr_id = 0;
};

/// How a journey has ended: an enum ibv_wc_status, 0 = success, or one of these for what no work completion tells.
inline constexpr std::uint8_t kLost = 254;        ///< dropped where nobody is told, or its CQE found no room
inline constexpr std::uint8_t kUnfinished = 255;  ///< under way when the run ended

/// A finished (or failed) journey.
struct Journey {
  MsgId id = 0;
  std::uint32_t flow = 0;  ///< which workload it belongs to; set by the program that posted it
  std::uint32_t bytes = 0;
  std::uint8_t opcode = 0;  ///< enum ibv_wr_opcode
  std::uint8_t status = 0;  ///< of one under way: what its error completion will say, if the device has given it up
  Poster poster;
  Picos start{0}, last{0};
  std::array<Picos, kStages> stage{};
  Picos total() const { return last - start; }
};

/// Receives every journey that ends. One per simulation, set by the experiment.
struct JourneySink {
  virtual ~JourneySink() = default;
  /// It ended in success: its stages add up to its total.
  virtual void finished(const Journey& j) = 0;
  /// It did not: `last` is when that was known, which may be later than its last mark.
  virtual void failed(const Journey&) {}
};

/// All journeys under way. Slots are recycled; nothing is allocated in the steady state. A journey that outlives
/// thousands of later ones (a message that nobody polls for) is set aside, so that it does not make the table grow.
class Journeys {
 public:
  Journeys();
  void set_sink(JourneySink* sink) { sink_ = sink; }

  MsgId begin(Picos t, std::uint32_t flow, std::uint8_t opcode, std::uint32_t bytes, const Poster& poster = {});
  /// Charges the time since the last mark to `s`. Times before the last mark count as zero. Unknown ids are ignored,
  /// so that a late acknowledgement of a delivered message does no harm.
  void mark(MsgId id, Stage s, Picos t) {
    if (Journey* j = find(id); j != nullptr && t > j->last) {
      j->stage[static_cast<std::size_t>(s)] += t - j->last;
      j->last = t;
    }
  }
  /// The message is delivered: last mark, report to the sink, slot freed. No-op for an id that has ended or was given up.
  void finish(MsgId id, Stage s, Picos t);
  /// Its failure is known: report to the sink with that status, slot freed. No-op for an id that has ended.
  void fail(MsgId id, std::uint8_t status, Picos t);
  /// The device has given it up and says so in a CQE with `status`. Who polls that fails it; nobody can finish it.
  void give_up(MsgId id, std::uint8_t status);
  /// The request is taken back before the device has heard of it: slot freed without a report.
  void take_back(MsgId id);
  /// End of the run: reports all that are under way, in the order of their posts, as given up or unfinished.
  void end(Picos t);
  bool under_way(MsgId id) { return find(id) != nullptr; }
  std::size_t count_under_way() const { return live_; }

 private:
  Journey* find(MsgId id) {
    if (id == 0) return nullptr;
    Journey& j = slots_[id & (slots_.size() - 1)];
    if (j.id == id) [[likely]]
      return &j;
    return stragglers_.empty() ? nullptr : find_straggler(id);
  }
  Journey* find_straggler(MsgId id);
  void free_slot(MsgId id);
  void grow();
  std::vector<Journey> slots_;  // a power of two, addressed by the low bits of the id
  std::map<MsgId, Journey> stragglers_;
  MsgId next_ = 1;
  std::size_t live_ = 0;
  JourneySink* sink_ = nullptr;
};

}  // namespace sim
