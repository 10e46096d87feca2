// SPDX-License-Identifier: Apache-2.0
// The device's objects: queue pairs, completion queues, event queues, memory keys, protection domains. Plain state; the
// blocks that act on it are uar/, transport/, completion/ and command/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/packet.h"
#include "hca/dma/dma_engine.h"
#include "hca/prm.h"
#include "hca/transport/psn.h"
#include "hca/transport/wire.h"
#include "memory/address.h"
#include "sim/buffer.h"
#include "sim/pool.h"
#include "sim/task.h"
#include "sim/trace/gauge.h"
#include "sim/trace/state_track.h"
#include "sim/wqe_tags.h"

namespace hca {

/// Host memory of a queue: bus addresses of its pages, and the byte offset of the queue in the first.
struct QueueBuffer {
  std::vector<memory::Iova> pages;
  unsigned log_page = memory::kPageShift;
  std::uint32_t offset = 0;
  memory::Iova at(std::uint64_t byte) const {
    const std::uint64_t b = byte + offset;
    return pages[b >> log_page] + (b & ((1ULL << log_page) - 1));
  }
  /// Bytes from `byte` to the end of its page.
  std::uint64_t contiguous(std::uint64_t byte) const {
    const std::uint64_t page = 1ULL << log_page;
    return page - ((byte + offset) & (page - 1));
  }
};

/// `window`: through a memory window, which has checked its own rights.
enum class MkeyAccess : std::uint8_t { local_read, local_write, remote_read, remote_write, remote_atomic, window };

/// Entry of an indirect key: a piece of another key.
struct Klm {
  std::uint32_t bytes = 0, key = 0;
  std::uint64_t va = 0;
};

struct Mkey {
  bool allocated = false, free = false;
  bool umr = false;                ///< UMR WQEs may change it; of a region: windows may be bound to it
  bool remote_invalidate = false;  ///< SEND with invalidate may free it: a window of type 2
  std::uint8_t variant = 0, mode = prm::kMkcModeMtt, log_page = memory::kPageShift;
  bool lr = false, lw = false, rr = false, rw = false, atomic = false, length64 = false;
  bool relaxed_read = false, relaxed_write = false;  ///< PCIe relaxed ordering of its payload
  std::uint32_t qpn = 0xFFFFFF, pd = 0;
  std::uint64_t start = 0, length = 0;
  std::uint32_t mtt_first = 0, mtt_count = 0;  ///< entries in the translation table
  std::uint32_t klm_room = 0;                  ///< KLM entries that an indirect key has room for
  std::vector<Klm> klms;                       ///< of an indirect key, in the order of its addresses
  std::array<std::byte, prm::kMkcSize> image{};
};

struct Eq {
  std::uint32_t eqn = 0;
  QueueBuffer buffer;
  unsigned log_size = 0;
  std::uint16_t vector = 0;
  std::uint64_t event_mask = 0;
  std::uint32_t uar_page = 0;  ///< its doorbells come from here
  std::uint32_t producer = 0, consumer = 0;
  bool armed = false;
  bool overrun = false;          ///< an event found it full: it takes no more
  std::uint32_t announced = 0;   ///< producer at the last MSI-X message
  sim::Picos next_interrupt{0};  ///< moderation: the period of the last MSI-X message ends
  bool scheduled = false;        ///< somebody looks again when it does
  sim::trace::Cause newest;      ///< of the last EQE that was written
  sim::trace::Gauge occupancy;
  bool takes(prm::EventType type) const { return (event_mask >> type & 1) != 0; }
};

/// Notification state of a CQ: cqc.st.
enum class ArmState : std::uint8_t { fired, armed, armed_solicited };

/// One CQE on its way: everything but owner and position.
struct PendingCqe {
  std::array<std::byte, 64> bytes{};
  sim::BufferRef data;  ///< of the 64-byte format: lies before the 64 bytes in a 128-byte CQE
  sim::trace::Cause cause;
  std::uint32_t qpn = 0;
  bool solicited = false;
  bool resizes = false;  ///< RESIZE_CQ: the last one of its buffer
  sim::Picos since{0};
};

/// Event moderation of a CQ (S-MOD-2). count and period 0: none.
struct CqModeration {
  std::uint16_t count = 0;   ///< CQEs that make an event
  std::uint16_t period = 0;  ///< microseconds after which one CQE is enough
  bool from_cqe = false;     ///< the period starts with each CQE, otherwise with the last event or the arm behind it
  bool solicited_breaks = false;
  std::uint32_t told = 0;  ///< CQEs that the last event, or the arm behind it, covers
  sim::Picos origin{0};    ///< start of the period
  bool scheduled = false;
  bool active() const { return count != 0 || period != 0; }
};

/// A resize under way.
struct CqResize {
  QueueBuffer buffer;
  unsigned log_size = 0;
  sim::Completion<bool> done;
};

struct Cq {
  std::uint32_t cqn = 0;
  QueueBuffer buffer;
  unsigned log_size = 0;
  std::uint32_t cqe_bytes = 64;  ///< 64, or 128 with the CQE in the second half
  std::uint32_t eqn = 0;
  memory::Iova dbr;
  std::uint32_t uar_page = 0;  ///< it is armed from here
  std::uint32_t producer = 0;  ///< counts CQEs, never wrapped
  std::uint32_t consumer = 0;  ///< last value known from the doorbell record or an arm doorbell, extended to 32 bits
  std::uint32_t last_solicited = 0;  ///< producer count after the latest solicited CQE
  bool ignore_overrun = false, overflow = false;
  bool record_unreadable = false;  ///< what overflow came from: the consumer index could not be read
  ArmState arm = ArmState::fired;
  std::uint32_t arm_sn = 0;
  bool fired_since_arm = false;
  CqModeration moderation;
  sim::trace::Cause newest;  ///< of the last CQE that was written
  sim::trace::Gauge occupancy;
  std::unique_ptr<CqResize> resize;
  bool writing = false;     ///< a flow is posting CQEs
  bool refreshing = false;  ///< the consumer index is being read ahead of need
  sim::Ring<PendingCqe> pending;
  sim::Ring<std::uint64_t> leaving;  ///< arm_rule next_cqe: numbers of the posted writes of CQEs that may not have left
  sim::Tags* tags = nullptr;
  std::array<std::byte, prm::kCqcSize> image{};
};

/// A send WQE that has been started and not yet completed.
struct SentWqe {
  std::uint16_t index = 0;  ///< WQEBB index
  std::uint8_t opcode = 0;  ///< prm send opcode
  std::uint8_t ds = 0;
  bool signaled = false, solicited = false;
  bool data_arrived = false;                            ///< READ, atomic: the whole answer is placed
  bool no_packet = false;                               ///< NOP, UMR
  bool result_in_cqe = false;                           ///< READ, atomic: the answer goes into the CQE; `wqe` holds it
  bool executing = false;                               ///< UMR: the key has not been changed yet
  std::uint8_t failed_syndrome = 0, failed_vendor = 0;  ///< reported when every earlier WQE has completed
  std::uint32_t length = 0;                             ///< message bytes
  Psn first_psn, last_psn;
  std::uint32_t response_bytes = 0;  ///< READ: bytes received so far
  sim::BufferRef wqe;                ///< READ, atomic: the WQE, for its scatter list
  std::uint32_t wqe_offset = 0;
  sim::MsgId msg = 0;
  std::uint64_t span = 0;  ///< cause of its completion unless an answer is: its hca.wqe, or the step that failed
  bool is_atomic() const { return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA; }
  /// Completes with an answer that carries data; an ACK is not enough.
  bool awaits_data() const { return opcode == MLX5_OPCODE_RDMA_READ || is_atomic(); }
};

/// A doorbell that covers send WQEs which have not started.
struct DoorbellSpan {
  std::uint16_t producer = 0;
  std::uint64_t span = 0;
};

/// A span that has begun; id 0 = none, or it is not recorded.
struct OpenSpan {
  std::uint64_t id = 0;
  sim::trace::Cause cause;
  sim::Picos since{0};
};

struct OutQueue;
struct Qp;

/// A packet in transmit order: leaves when its payload has arrived. Lives in a pool and owns itself until it has left or
/// been cancelled and its last payload read has returned.
struct OutPacket {
  sim::Ptr<OutPacket> self;
  fabric::PacketPtr packet;
  wire::Headers headers;
  sim::Ptr<wire::FrameTemplate> frame;  ///< UD: headers of its address vector; null = those of the QP
  Qp* qp = nullptr;                     ///< valid while `queued`
  OutQueue* queue = nullptr;
  std::uint32_t buffer_bytes = 0;  ///< credit of the transmit buffer to give back
  std::uint16_t reads = 0;         ///< payload reads outstanding
  bool failed = false, queued = false;
  bool last = false;            ///< last packet of its message: charges the journey
  bool report_leaving = false;  ///< nothing acknowledges it: the requester is told when it has left (S-UC-2, S-UD-7)
  sim::Picos enqueued{0};
};

/// Packets of one direction of a QP (requests, or responses), in order.
struct OutQueue {
  sim::Ring<OutPacket*> ring;
};

/// A received packet with its decoded headers.
struct RxPacket {
  fabric::PacketPtr packet;
  wire::Parsed parsed;
  sim::Picos arrived{0};
  bool from_wire = true;
  bool multicast = false;  ///< a copy for a member of a multicast group
  const wire::Bth& bth() const { return parsed.headers.bth; }
};
using RxPtr = sim::Ptr<RxPacket>;

/// What the responder still has to send, in order.
struct ResponseJob {
  enum Kind : std::uint8_t { ack, read, atomic } kind = ack;
  std::uint8_t syndrome = 0;
  Psn psn;
  std::uint32_t msn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t va = 0;
  std::uint32_t length = 0;
  sim::trace::Cause cause;
  bool duplicate = false;  ///< of a READ or atomic that has been answered before
  std::uint32_t pd = 0;    ///< READ: protection domain of its key
  /// An ACK, and no NAK.
  bool acknowledges() const { return kind == ack && wire::aeth_kind(syndrome) == wire::AethKind::ack; }
};

/// A READ or atomic request that the responder has accepted, kept for duplicates until max_dest_rd_atomic newer ones have
/// come (S-RC-23, S-RC-24).
struct ResponderResource {
  Psn first;
  std::uint32_t packets = 1;   ///< PSNs that it takes
  std::uint8_t operation = 0;  ///< wire::Operation
  bool executed = false;       ///< atomic: `original` is valid
  std::uint32_t rkey = 0, length = 0;
  std::uint64_t va = 0;
  std::uint64_t swap_add = 0, compare = 0, original = 0;
  std::uint32_t pd = 0;  ///< protection domain of its key
};

/// A receive WQE held on chip.
struct RqWqe {
  std::uint32_t counter = 0;  ///< what its CQE reports: count of receives (RQ) or index in the ring (SRQ)
  sim::BufferRef buffer;
  std::uint32_t offset = 0;    ///< of its first data segment
  std::uint32_t segments = 0;  ///< data segments at most
};

/// qpc.state codes. A QP in `sqd` whose started messages are not done yet is reported as kQpSqDraining.
enum class QpState : std::uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, sqer = 4, sqd = 5, err = 6 };

struct Qp {
  /// Requests that arrive are executed (S-QP-40).
  bool receives() const { return state != QpState::reset && state != QpState::init && state != QpState::err; }
  /// Takes acknowledgements and repeats what was begun; only RTS starts new WQEs.
  bool sends() const { return state == QpState::rts || state == QpState::sqd; }
  /// Send WQEs end as flushed.
  bool flushes_sends() const { return state == QpState::err || state == QpState::sqer; }
  /// UC and UD: nothing is acknowledged or retransmitted.
  bool unreliable() const { return service == prm::kStUc || service == prm::kStUd; }
  /// BTH transport of its packets.
  wire::Transport transport() const {
    constexpr wire::Transport kOfService[] = {wire::kRc, wire::kUc, wire::kUd, wire::kXrc};
    return kOfService[service & 3];
  }
  /// The receiving end of XRC: it has no queue of its own.
  bool xrc_target() const { return service == prm::kStXrc && no_sq; }
  /// A flow of the responder that has waited since generation `life` has nothing more to do: RESET, or ERR and flushed.
  bool ended(std::uint32_t life) const { return life != generation || !receives(); }

  // Identity and state
  std::uint32_t qpn = 0, remote_qpn = 0, pd = 0;
  QpState state = QpState::reset;
  std::uint8_t service = prm::kStRc;  ///< prm::QpcService
  std::uint8_t mtu_code = 0;
  std::uint8_t receive_in_cqe = 0, result_in_cqe = 0;  ///< most bytes of a message, or result, that go into the CQE
  std::uint32_t mtu = 1024;

  // Requester
  std::uint16_t sq_pi = 0, sq_ci = 0;  ///< WQEBB counters: posted, started
  bool sending = false;                ///< a flow serves the SQ
  bool sq_error = false;               ///< no new WQE starts; the rest is flushed
  bool notify_drained = false;         ///< SQD: an event is owed when the last started message is done
  bool umr_executing = false;          ///< an UMR WQE is being executed
  Psn next_psn;                        ///< of the next new packet
  Psn unacked_psn;                     ///< oldest without an acknowledgement
  Psn send_psn;                        ///< next to transmit; behind next_psn while retransmitting
  Psn sent_psn;                        ///< behind the last that has ever been transmitted
  sim::Ring<SentWqe> sent;
  std::uint32_t reads_outstanding = 0;  ///< READs and atomics
  std::uint8_t max_rd_atomic = 0, retry_count = 0, rnr_retry = 0, retries_left = 0, rnr_left = 0, ack_timeout = 0;
  sim::Picos ack_deadline = sim::kNever, rnr_until{0}, next_wqe_at{0};
  bool timer_scheduled = false, rnr_waiting = false;
  std::uint32_t expiries = 0;      ///< of the ACK timeout since the latest progress
  bool read_gap_reported = false;  ///< lost READ data have been asked for again; nothing new has come since
  std::uint32_t ack_req_interval =
      1U << 8;                ///< packets between two acknowledgement requests inside a message (S-QP-32)
  std::uint32_t rewinds = 0;  ///< grows when retransmission restarts: a flow in mid-message gives up
  OutQueue requests;
  sim::Ring<RxPtr> rx_responses;
  bool taking_responses = false;  ///< a flow serves rx_responses
  sim::BufferRef current;         ///< WQE at sq_ci, once fetched
  std::uint32_t current_offset = 0;
  bool current_valid = false;
  sim::BufferRef prefetched;  ///< send WQEBBs read ahead
  std::uint16_t prefetch_first = 0, prefetch_count = 0;
  sim::Ring<DoorbellSpan> doorbells;  ///< while they are recorded
  OpenSpan wqe_span;                  ///< hca.wqe of the WQE that is served
  std::uint64_t again_span = 0;       ///< what made it send again

  // Responder
  Psn expected_psn;
  std::uint32_t msn = 0;
  bool nak_sent = false;  ///< stay silent until an in-sequence packet arrives
  std::uint8_t min_rnr_timer = 0;
  bool rre = false, rwe = false, rae = false;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t resources_busy = 0;  ///< READs and atomics accepted and not yet answered
  sim::Ring<ResponderResource> resources;
  bool context_filling = false;  ///< a received packet waits for the QP context
  sim::Ring<RxPtr> rx_held;      ///< packets behind it
  sim::Ring<RxPtr> rx;           ///< request packets
  bool receiving = false;        ///< a flow serves rx
  std::uint8_t rx_kind = 0xFF;   ///< operation in progress: opcode of its FIRST packet, 0xFF none
  std::uint64_t rx_va = 0;       ///< WRITE: next address
  std::uint32_t rx_rkey = 0, rx_left = 0, rx_bytes = 0;
  RqWqe rx_wqe;  ///< SEND: its receive WQE
  std::uint32_t rx_cqn = 0,
                rx_user_index = 0;  ///< where a receive WQE of the message reports: CQ, and the queue's name there
  bool rx_wqe_valid = false;
  bool rnr_nak_sent = false;  ///< later packets of the burst stay unanswered (S-RC-15)
  sim::Ring<RqWqe> rq_ready;
  std::uint32_t rq_ci = 0;     ///< receive WQEs fetched
  std::uint16_t rq_pi = 0;     ///< producer index last read from the doorbell record
  bool rq_unreadable = false;  ///< the last read of the queue or its record failed
  bool rq_refilling = false, flushing_receives = false;
  sim::Signal rq_refilled;  ///< a read-ahead has ended
  sim::Ring<ResponseJob> responses;
  bool responding = false;
  OutQueue response_packets;

  // Cold: set by commands
  QueueBuffer buffer;  ///< RQ at 0, SQ behind it
  std::uint32_t sq_offset = 0, sq_wqebbs = 0, rq_wqes = 0, rq_stride = 0;
  memory::Iova dbr;
  std::uint32_t cqn_send = 0, cqn_recv = 0, user_index = 0;
  std::uint32_t srqn = 0;       ///< SRQ of the QP, of the message in progress on an XRC target; 0 = none
  std::uint32_t xrcd = 0;       ///< domain of an XRC target
  bool force_loopback = false;  ///< packets never take the wire
  std::uint32_t uar_page = 0;   ///< doorbells for this QP come from here
  std::uint32_t qkey = 0;       ///< UD
  bool no_sq = false, signature = false, comm_est_raised = false;
  bool fatal_reported = false;  ///< QP_FATAL has been raised
  wire::FrameTemplate frame;
  wire::Gid remote_gid{};
  std::uint16_t pkey = 0xFFFF;
  sim::Tags* tags = nullptr;
  sim::trace::StateTrack state_track;
  std::uint32_t generation = 0;  ///< grows at RESET and destroy: flows of an earlier life end
  sim::trace::Gauge sq_depth, rd_atomic;
  std::array<std::byte, prm::kQpcSize> image{};
};

/// Number → object. Numbers are given out lowest first.
template <class T>
class ObjectTable {
 public:
  ObjectTable(std::uint32_t first, std::uint32_t limit) : first_(first), limit_(limit) {}
  T* find(std::uint32_t n) const {
    return n >= first_ && n - first_ < items_.size() ? items_[n - first_].get() : nullptr;
  }
  /// A new object and its number; nullptr when the device's limit is reached.
  T* create(std::uint32_t& n) {
    std::size_t i = free_.empty() ? items_.size() : free_.back();
    if (i >= limit_) return nullptr;
    if (free_.empty()) items_.emplace_back();
    else free_.pop_back();
    items_[i] = std::make_unique<T>();
    n = first_ + static_cast<std::uint32_t>(i);
    ++live_;
    return items_[i].get();
  }
  void destroy(std::uint32_t n) {
    items_[n - first_].reset();
    free_.push_back(n - first_);
    --live_;
  }
  std::size_t live() const { return live_; }
  template <class F>
  void for_each(F&& f) {
    for (auto& p : items_)
      if (p) f(*p);
  }

 private:
  std::uint32_t first_, limit_;
  std::vector<std::unique_ptr<T>> items_;
  std::vector<std::size_t> free_;
  std::size_t live_ = 0;
};

}  // namespace hca
