// SPDX-License-Identifier: Apache-2.0
// The send side of one queue pair, as one flow per QP with work: context, WQE (BlueFlame, read-ahead or DMA read), checks,
// windows and fences, then send_message(): for each packet translate, gather, headers, transmit (S-RC-2…6, 30…32, S-WQE).
// Engines bound how many QPs are served at once; each WQE gives its engine back, so QPs take turns.
#include "hca/transport/requester.h"

#include <algorithm>
#include <utility>

#include "hca/trace_points.h"
#include "hca/transport/datagram.h"

namespace hca {
namespace {

// Operation of the packet of a SEND or WRITE at the start, in the middle, at the end, or alone.
std::uint8_t request_operation(const SendWqe& w, bool start, bool end) {
  if (w.is_write()) {
    if (!end) return start ? wire::kWriteFirst : wire::kWriteMiddle;
    if (w.has_immediate()) return start ? wire::kWriteOnlyImm : wire::kWriteLastImm;
    return start ? wire::kWriteOnly : wire::kWriteLast;
  }
  if (!end) return start ? wire::kSendFirst : wire::kSendMiddle;
  if (w.opcode == MLX5_OPCODE_SEND_IMM) return start ? wire::kSendOnlyImm : wire::kSendLastImm;
  if (w.opcode == MLX5_OPCODE_SEND_INVAL) return start ? wire::kSendOnlyInvalidate : wire::kSendLastInvalidate;
  return start ? wire::kSendOnly : wire::kSendLast;
}

}  // namespace

Requester::Requester(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions, TxPort& tx,
                     ContextCache& qpc, BlueflameBuffers& blueflame, QpControl& control, const std::string& path)
    : device_(device),
      dma_(dma),
      translation_(translation),
      completions_(completions),
      tx_(tx),
      qpc_(qpc),
      blueflame_(blueflame),
      control_(control),
      engines_(device.config.send.engines),
      frames_(device.context.pools.of<wire::FrameTemplate>("datagram header")),
      trace_(device.context, device.host, path),
      wqes_(device.context.stats.counter(path + ".wqes")),
      wqe_fetches_(device.context.stats.counter(path + ".wqe_fetches")),
      retransmits_(device.context.stats.counter(path + ".retransmitted_packets")),
      timeouts_(device.context.stats.counter(path + ".timeouts")),
      rnr_naks_(device.context.stats.counter(path + ".rnr_naks_received")),
      sequence_naks_(device.context.stats.counter(path + ".sequence_naks_received")),
      stale_(device.context.stats.counter(path + ".stale_responses")),
      busy_(device.context.stats.busy(path + ".engines", device.config.send.engines)) {}

bool Requester::can_work(const Qp& qp) const {
  if (qp.no_sq) return false;
  if (qp.flushes_sends()) return qp.sq_ci != qp.sq_pi;
  if (!qp.sends() || qp.rnr_waiting) return false;
  if (qp.send_psn != qp.next_psn) return true;  // behind a failed WQE too: those before it must still complete
  if (qp.sq_ci == qp.sq_pi || qp.sq_error || qp.state != QpState::rts) return false;
  return static_cast<std::uint32_t>(qp.next_psn - qp.unacked_psn) < device_.config.send.max_outstanding_psn;
}

void Requester::kick(Qp& qp) {
  if (!qp.sending && can_work(qp)) serve(qp);
}

sim::Flow Requester::serve(Qp& qp) {
  qp.sending = true;
  while (can_work(qp)) {
    co_await engines_.acquire();
    const sim::Picos start = sim::max(device_.context.now(), qp.next_wqe_at);
    co_await device_.context.delay(start - device_.context.now());
    qp.next_wqe_at = start + device_.config.send.wqe_interval;
    if (!qpc_.hit(qp.qpn)) co_await qpc_.fill(qp.qpn, doorbell_of(qp, 0));
    co_await device_.context.delay(device_.config.context.qpc_hit);
    bool stalled = false;
    if (!can_work(qp)) {
      // done by a failure or an answer in the meantime
    } else if (qp.flushes_sends()) {
      co_await flush_next(qp);
    } else if (qp.send_psn != qp.next_psn) {
      co_await resend(qp);
    } else {
      const std::uint16_t before = qp.sq_ci;
      co_await start_wqe(qp);
      // A fence or the READ window: an answer kicks again. Not so if retransmission cut in.
      stalled = qp.state == QpState::rts && qp.sq_ci == before && qp.send_psn == qp.next_psn;
    }
    qpc_.dirty(qp.qpn);
    busy_.add(device_.context.now() - start);
    engines_.release();
    if (stalled) break;
  }
  qp.sending = false;
}

// Makes the WQE at `index` current. False if host memory could not be read.
sim::Task<bool> Requester::fetch_wqe(Qp& qp, std::uint16_t index, sim::trace::Cause cause) {
  if (qp.current_valid) co_return true;
  sim::BufferRef bf = device_.context.buffers.make(prm::kBfBufSize);
  if (blueflame_.take(qp.qpn, index, bf.data())) {
    qp.current = std::move(bf);
    qp.current_offset = 0;
    qp.current_valid = true;
    // What was read ahead is of no use any more, and its indices come round again.
    if (static_cast<std::uint16_t>(index - qp.prefetch_first) >= qp.prefetch_count) qp.prefetched = {};
    co_return true;
  }
  std::uint16_t ahead = static_cast<std::uint16_t>(index - qp.prefetch_first);
  if (!qp.prefetched || ahead >= qp.prefetch_count) {
    const auto posted = static_cast<std::uint16_t>(qp.sq_pi - index);
    const std::uint32_t count = std::clamp<std::uint32_t>(posted, 1, device_.config.send.wqe_prefetch);
    if (!co_await read_wqebbs(qp, index, count, qp.prefetched, cause)) co_return false;
    qp.prefetch_first = index;
    qp.prefetch_count = static_cast<std::uint16_t>(count);
    ahead = 0;
  }
  const std::uint32_t blocks = std::max(1U, wqe_basic_blocks(wqe_ds(qp.prefetched.data() + ahead * prm::kWqebb)));
  if (ahead + blocks > qp.prefetch_count) {  // only its head was read ahead
    if (!co_await read_wqebbs(qp, index, blocks, qp.prefetched, cause)) co_return false;
    qp.prefetch_first = index;
    qp.prefetch_count = static_cast<std::uint16_t>(blocks);
    ahead = 0;
  }
  qp.current = qp.prefetched;
  qp.current_offset = ahead * prm::kWqebb;
  qp.current_valid = true;
  co_return true;
}

sim::Task<bool> Requester::read_wqebbs(Qp& qp, std::uint16_t index, std::uint32_t count, sim::BufferRef& to,
                                       sim::trace::Cause cause) {
  const sim::Picos start = device_.context.now();
  const std::uint64_t span = trace_.begin_span(points::wqe_fetch);
  const sim::trace::Cause reads{cause.msg, span != 0 ? span : cause.parent};
  DmaStatus status = DmaStatus::ok;
  sim::BufferRef buffer = device_.context.buffers.make(count * prm::kWqebb);
  wqe_fetches_.add();
  for (std::uint32_t done = 0; done < count && status == DmaStatus::ok;) {
    const std::uint32_t slot = (index + done) % qp.sq_wqebbs;
    const std::uint64_t byte = qp.sq_offset + std::uint64_t{slot} * prm::kWqebb;
    const auto room = static_cast<std::uint32_t>(qp.buffer.contiguous(byte) / prm::kWqebb);
    const std::uint32_t n = std::min({count - done, qp.sq_wqebbs - slot, room});
    status = co_await dma_.fetch(qp.buffer.at(byte), n * prm::kWqebb, buffer, done * prm::kWqebb, reads);
    done += n;
  }
  trace_.end_span(span, points::wqe_fetch, cause, start, start, device_.context.now(), qp.qpn, index,
                  count * prm::kWqebb);
  if (status != DmaStatus::ok) co_return false;
  to = std::move(buffer);
  co_return true;
}

// The next WQE of the queue, from its fetch to its last packet being handed to the transmit port.
sim::Task<void> Requester::start_wqe(Qp& qp) {
  const sim::Picos start = device_.context.now();
  const std::uint16_t index = qp.sq_ci;
  const std::uint32_t life = qp.generation;
  const sim::MsgId msg = qp.tags != nullptr ? qp.tags->find(index) : 0;
  sim::Journeys& journeys = device_.context.journeys;
  journeys.mark(msg, sim::Stage::doorbell_context, start);
  const sim::trace::Cause cause = begin_wqe(qp, msg);
  const bool fetched = co_await fetch_wqe(qp, index, cause);  // (1) WQE
  co_await device_.context.delay(device_.config.send.wqe_decode);
  if (life != qp.generation || qp.state != QpState::rts) co_return;
  if (!fetched) {  // the ring itself cannot be read: nothing can be reported about its WQEs (S-ERR-11)
    control_.queue_unreadable(qp);
    co_return;
  }
  if (qp.send_psn != qp.next_psn || qp.sq_error) co_return;  // retransmission or a failure cut in
  journeys.mark(msg, sim::Stage::wqe_fetch, device_.context.now());
  const SendWqe wqe = parse_send_wqe({qp.current, qp.current_offset}, qp.service);
  if (const std::uint8_t syndrome = check_wqe(qp, wqe); syndrome != 0) {  // (2) checks
    qp.current_valid = false;
    skip_wqe(qp, wqe.ds);
    end_wqe(qp, index, wqe.opcode, wqe.length, start, {});
    SentWqe bad;
    bad.index = index;
    bad.opcode = wqe.opcode;
    bad.msg = msg;
    bad.span = cause.parent;
    bad.failed_syndrome = syndrome;
    bad.failed_vendor = syndrome == prm::kSynLocalLength ? kVendorLocalLength : kVendorLocalQpOp;
    bad.first_psn = bad.last_psn = qp.next_psn;
    qp.sq_error = true;
    push_sent(qp, std::move(bad));
    complete(qp, 0);
    co_return;
  }
  if (must_wait(qp, wqe)) co_return;  // (3) fence, READ window
  qp.current_valid = false;
  qp.sq_ci = static_cast<std::uint16_t>(qp.sq_ci + wqe_basic_blocks(wqe.ds));
  wqes_.add();
  if (wqe.is_umr()) {
    end_wqe(qp, index, wqe.opcode, wqe.length, start, wqe.image());
    start_umr(qp, wqe, cause);
    co_return;
  }
  if (wqe.opcode == MLX5_OPCODE_NOP) {
    SentWqe nop;
    nop.index = index;
    nop.opcode = wqe.opcode;
    nop.signaled = wqe.signaled;
    nop.msg = msg;
    nop.span = cause.parent;
    nop.first_psn = nop.last_psn = qp.next_psn - 1U;
    nop.no_packet = true;
    end_wqe(qp, index, wqe.opcode, 0, start, wqe.image());
    push_sent(qp, std::move(nop));
    complete(qp, 0);
    co_return;
  }
  SentWqe s;
  s.index = index;
  s.opcode = wqe.opcode;
  s.ds = wqe.ds;
  s.signaled = wqe.signaled;
  s.solicited = wqe.solicited;
  s.length = wqe.is_atomic() ? 8 : static_cast<std::uint32_t>(wqe.length);
  s.first_psn = qp.next_psn;
  s.last_psn = qp.next_psn + (wire::packet_count(s.length, qp.mtu) - 1);
  s.msg = msg;
  s.span = cause.parent;
  const Psn first = s.first_psn;
  qp.next_psn = s.last_psn + 1U;
  if (s.awaits_data()) {
    s.wqe = wqe.bytes.buffer;
    s.wqe_offset = wqe.bytes.offset;
    set_reads(qp, qp.reads_outstanding + 1);
    push_sent(qp, std::move(s));
    qp.send_psn = qp.sent_psn = qp.next_psn;
    if (wqe.is_read()) send_read_request(qp, wqe, first, 0, cause);
    else send_atomic_request(qp, wqe, first, cause);
    start_timer(qp);
  } else {
    push_sent(qp, std::move(s));
    co_await send_message(qp, wqe, first, 0, cause);  // (4) packets
  }
  end_wqe(qp, index, wqe.opcode, wqe.length, start, wqe.image());
}

// Packets `from_packet`… of a SEND or WRITE whose first PSN is `first`. Ends early when retransmission restarts elsewhere or
// an acknowledgement covers what comes next.
sim::Task<void> Requester::send_message(Qp& qp, const SendWqe& wqe, Psn first, std::uint32_t from_packet,
                                        sim::trace::Cause cause) {
  const std::uint32_t life = qp.generation, rewinds = qp.rewinds;
  const auto length = static_cast<std::uint32_t>(wqe.length);
  const std::uint32_t packets = wire::packet_count(length, qp.mtu);
  GatherCursor cursor(wqe.bytes.data(), wqe.first_data_ds, wqe.ds);
  cursor.skip(std::uint64_t{from_packet} * qp.mtu);
  for (std::uint32_t i = from_packet; i < packets; ++i) {
    const auto moved = [&] { return life != qp.generation || rewinds != qp.rewinds || qp.send_psn != first + i; };
    const std::uint32_t n = std::min(qp.mtu, length - i * qp.mtu);
    if (n > 0) co_await tx_.buffer().acquire(n);
    if (moved()) {
      if (n > 0) tx_.buffer().release(n);
      co_return;
    }
    OutPacket* p = tx_.make(qp, qp.requests);
    p->buffer_bytes = n;
    p->last = i + 1 == packets;
    p->report_leaving = p->last && qp.unreliable();
    p->packet->payload_length = n;
    p->packet->cause = {cause.msg, cause.parent, p->last};
    Extents gather;
    Fault fault = Fault::none;
    const bool ok = co_await gather_packet(qp, wqe, cursor, n, *p, gather, fault);
    if (i == from_packet) device_.context.journeys.mark(cause.msg, sim::Stage::translation, device_.context.now());
    if (!ok || moved()) {
      const std::uint64_t up = p->packet->cause.parent;
      tx_.discard(p);
      if (!moved()) fail(qp, first + i, prm::kSynLocalProt, kVendorLocalProt, up);
      co_return;
    }
    wire::Headers& h = p->headers;
    const bool start = i == 0, end = p->last;
    h.bth.opcode = wire::make_opcode(qp.transport(), request_operation(wqe, start, end));
    h.bth.solicited = end && wqe.solicited && (wqe.is_send() || wqe.has_immediate());
    h.bth.pkey = qp.pkey;
    h.bth.dest_qpn = qp.remote_qpn;
    h.bth.psn = first + i;
    h.bth.ack_req = !qp.unreliable() && (end || (h.bth.psn.value() + 1) % qp.ack_req_interval == 0);
    h.xrc_srqn = wqe.xrc_srqn;
    h.reth = {wqe.remote_va, wqe.rkey, length};
    h.immediate = wqe.immediate_raw;
    h.invalidate_rkey = prm::be32(wqe.immediate_raw);
    if (qp.service == prm::kStUd) address_datagram(qp, wqe, *p);
    qp.send_psn = h.bth.psn + 1U;
    if (qp.send_psn.ahead_of(qp.sent_psn)) qp.sent_psn = qp.send_psn;
    if (h.bth.ack_req) start_timer(qp);
    tx_.submit(p, gather);
    if (!end) co_await device_.context.delay(device_.config.send.packet_interval);
  }
}

// Fills one packet's payload: inline bytes at once, everything else as bus addresses to read.
sim::Task<bool> Requester::gather_packet(Qp& qp, const SendWqe& wqe, GatherCursor& cursor, std::uint32_t n,
                                         OutPacket& p, Extents& out, Fault& fault) {
  if (n == 0) co_return true;
  p.packet->payload = device_.context.buffers.make(n);
  p.packet->payload_offset = 0;
  for (std::uint32_t done = 0; done < n;) {
    const auto g = cursor.next(n - done);
    SIM_CHECK(g.has_value(), "message shorter than its length");
    if (g->inline_data) {
      std::memcpy(p.packet->payload.data() + done, wqe.bytes.data() + g->va, g->length);
    } else {
      fault = co_await translation_.translate(g->lkey, g->va, g->length, MkeyAccess::local_read, qp.pd, qp.qpn,
                                              p.packet->cause, out);
      if (fault != Fault::none) co_return false;
    }
    done += g->length;
  }
  co_return true;
}

void Requester::send_read_request(Qp& qp, const SendWqe& wqe, Psn psn, std::uint32_t already, sim::trace::Cause cause) {
  device_.context.journeys.mark(cause.msg, sim::Stage::translation, device_.context.now());
  OutPacket* p = tx_.make(qp, qp.requests);
  p->last = true;
  p->packet->cause = {cause.msg, cause.parent, true};
  wire::Headers& h = p->headers;
  h.bth.opcode = wire::make_opcode(qp.transport(), wire::kReadRequest);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qpn = qp.remote_qpn;
  h.bth.ack_req = true;
  h.bth.psn = psn;
  h.xrc_srqn = wqe.xrc_srqn;
  h.reth = {wqe.remote_va + already, wqe.rkey, static_cast<std::uint32_t>(wqe.length) - already};
  tx_.submit(p, {});
}

// Leaves a WQE that is not executed behind; never goes beyond what is posted, whatever its length says (S-BF-6).
void Requester::skip_wqe(Qp& qp, std::uint32_t ds) {
  const auto posted = static_cast<std::uint16_t>(qp.sq_pi - qp.sq_ci);
  const auto blocks = std::min<std::uint32_t>(posted, std::max(1U, wqe_basic_blocks(ds)));
  qp.sq_ci = static_cast<std::uint16_t>(qp.sq_ci + blocks);
}

// Syndrome of a WQE that may not be executed, 0 if it may (S-ERR-16, S-ERR-17).
std::uint8_t Requester::check_wqe(const Qp& qp, const SendWqe& wqe) const {
  const bool known = wqe.is_send() || wqe.is_write() || wqe.is_read() || wqe.is_umr() ||
                     wqe.opcode == MLX5_OPCODE_NOP || (wqe.is_atomic() && device_.config.caps.atomic);
  if (!known || wqe.malformed || wqe.qpn != qp.qpn || wqe.index != qp.sq_ci) return prm::kSynLocalQpOp;
  if (wqe.ds * prm::kDs > device_.config.caps.max_wqe_sz_sq) return prm::kSynLocalQpOp;
  if (wqe_basic_blocks(wqe.ds) > static_cast<std::uint16_t>(qp.sq_pi - qp.sq_ci)) return prm::kSynLocalQpOp;
  if (qp.signature && !signature_holds(wqe)) return prm::kSynLocalQpOp;
  if (qp.unreliable() && !unreliable_allows(qp, wqe, device_)) return prm::kSynLocalQpOp;
  if (qp.service == prm::kStUd && wqe.length > qp.mtu) return prm::kSynLocalLength;  // one packet (S-UD-1)
  const bool awaits_data = wqe.is_read() || wqe.is_atomic();
  if (awaits_data && (wqe.has_inline || qp.max_rd_atomic == 0)) return prm::kSynLocalQpOp;
  if (wqe.is_atomic()) {  // the result needs eight bytes in the first segment (S-ATM-6)
    const auto result = GatherCursor(wqe.bytes.data(), wqe.first_data_ds, wqe.ds).next(8);
    return result && result->length == 8 ? std::uint8_t{0} : std::uint8_t{prm::kSynLocalLength};
  }
  if (wqe.length > 1ULL << device_.config.caps.log_max_msg) return prm::kSynLocalLength;
  return 0;
}

// A fenced WQE waits for earlier READs and atomics, one with a small fence for earlier UMRs; READs and atomics wait for room
// in the window (S-RC-31, S-RC-32, S-RC-76). No more than 2^23 PSNs may be outstanding, or old and new could not be told
// apart (S-RC-1).
bool Requester::must_wait(const Qp& qp, const SendWqe& wqe) const {
  const bool fenced = wqe.fence == 2 || wqe.fence == 3 || wqe.fence == 4;
  const bool small_fenced = wqe.fence == 1 || wqe.fence == 3 || wqe.fence == 4;
  if ((small_fenced || wqe.is_umr()) && qp.umr_executing) return true;
  if (fenced && qp.reads_outstanding > 0) return true;
  if ((wqe.is_read() || wqe.is_atomic()) && qp.reads_outstanding >= qp.max_rd_atomic) return true;
  const auto outstanding = static_cast<std::uint32_t>(qp.next_psn - qp.unacked_psn);
  return outstanding > 0 && outstanding + wire::packet_count(wqe.length, qp.mtu) > 1U << 23;
}

// What is queued or being built behind the packet would leave with a gap before it.
void Requester::payload_failed(Qp& qp, Psn psn, sim::trace::Cause why) {
  rewind(qp, qp.next_psn);
  fail(qp, psn, prm::kSynLocalProt, kVendorLocalProt, why.parent);
}

// Headers of the WQE's own address vector; check_wqe() has found it usable.
void Requester::address_datagram(Qp& qp, const SendWqe& wqe, OutPacket& p) {
  const Datagram d = parse_datagram(wqe.bytes.data());
  p.frame = frames_.make();
  *p.frame = wire::FrameTemplate(path_of(d, device_).value_or(wire::Path{}));
  p.headers.bth.dest_qpn = d.dest_qpn;
  p.headers.deth = {outgoing_qkey(d.qkey, qp.qkey), qp.qpn};
}

void Requester::packet_left(Qp& qp, Psn psn, std::uint64_t up) {
  if (!qp.sends()) return;
  qp.unacked_psn = psn + 1U;
  complete(qp, up);
  kick(qp);
}

void Requester::reset(Qp& qp) {
  tx_.cancel(qp.requests);
  blueflame_.drop(qp.qpn);
  while (!qp.sent.empty()) pop_sent(qp);
  end_wqe(qp, qp.sq_ci, 0, 0, device_.context.now(), {});
  qp.doorbells.clear();
  qp.rx_responses.clear();
  qp.current_valid = false;
  qp.prefetched = {};
  qp.prefetch_count = 0;
  qp.sq_pi = qp.sq_ci = 0;
  set_reads(qp, 0);
  qp.sq_error = qp.rnr_waiting = qp.read_gap_reported = qp.notify_drained = false;
  qp.ack_deadline = sim::kNever;
  qp.expiries = 0;
  ++qp.rewinds;
}

}  // namespace hca
