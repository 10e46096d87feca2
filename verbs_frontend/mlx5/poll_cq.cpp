// SPDX-License-Identifier: Apache-2.0
// ibv_poll_cq on CQEs of version 1: ownership test, barrier, look-up by user index, WC, consumer index record
// (S-CQE-4 to S-CQE-16, S-CQE-18, S-PS-40). A loop of empty polls with nothing in between is skipped: from the third
// poll on, the thread waits for a write to the next CQE's ownership byte and goes on at the instant at which the loop
// would have looked. Not built: CQE compression.
#include <algorithm>

#include "cpu/core.h"
#include "verbs_frontend/mlx5/srq.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

std::byte* slot_of(const Cq& cq) { return cq.buf + std::size_t{cq.cons_index & (cq.entries - 1)} * cq.cqe_size; }
std::byte* cqe64_of(const Cq& cq) { return slot_of(cq) + (cq.cqe_size - sizeof(mlx5_cqe64)); }

bool owned_by_software(const Cq& cq, std::uint8_t op_own) {
  const bool lap = (cq.cons_index & cq.entries) != 0;
  return op_own >> 4 != MLX5_CQE_INVALID && (op_own & MLX5_CQE_OWNER_MASK) == static_cast<std::uint8_t>(lap);
}

/// Looks at the next CQE's ownership byte as of now, after skipping the empty polls of a loop.
bool look(Machine& m, Cq& cq, sim::Picos entry) {
  cpu::Thread& t = m.thread();
  const std::byte* op_own = cqe64_of(cq) + offsetof(mlx5_cqe64, op_own);
  t.sync();
  const bool visible = owned_by_software(cq, std::to_integer<std::uint8_t>(*op_own));
  const bool in_loop = cq.poller == &t && cq.last_return == entry;
  if (visible) {
    forget_empty_polls(cq);
  } else {
    const sim::Picos period = in_loop ? t.now() - cq.last_sample : sim::Picos{-1};
    if (in_loop && period == cq.period && t.core().config().poll_mode == cpu::PollMode::fast_forward) {
      const sim::Picos since = t.now(), before = since - t.stolen();
      t.wait_for_write(op_own, 1, period);
      cq.polled.start += t.now() - since;
      const auto skipped = static_cast<std::uint64_t>((t.now() - t.stolen() - before) / period);
      cq.empty_polls->add(skipped);
      t.core().store_buffer().count_skipped(skipped);  // each would have stored the consumer index again
    }
    cq.poller = &t;
    cq.period = period;
    cq.last_sample = t.now();
  }
  return owned_by_software(cq, m.load<std::uint8_t>(op_own));
}

/// The QP or XRC SRQ that a CQE names goes into `c`, and of a receive the SRQ. False if there is none.
bool find_resource(Cq& cq, std::uint32_t user_index, bool receive, Completion& c) {
  if (cq.current != nullptr && cq.current->user_index == user_index) [[likely]] {
    c.qp = cq.current;
  } else {
    const Resource r = mlx5_of(cq.cq().context).find(user_index);
    c.qp = cq.current = r.qp;
    c.srq = r.srq;
    if (!r.used()) return false;
  }
  if (receive && c.qp != nullptr && c.qp->qp().srq != nullptr) c.srq = &srq_of(c.qp->qp().srq);
  return true;
}

void fail(Machine& m, sim::MsgId id, ibv_wc_status status) {
  m.state().context->journeys.fail(id, static_cast<std::uint8_t>(status), m.now());
}

void note(Cq& cq, sim::MsgId id) {
  if (cq.polled.msg == 0) cq.polled.msg = id;
}

/// Frees the slots up to and including WQE `idx` (S-PS-40) and ends the journeys that end at this side.
void reclaim(Machine& m, Cq& cq, Qp& qp, std::uint32_t idx, ibv_wc_status status) {
  WorkQueue& sq = qp.sq;
  const std::uint32_t new_tail = sq.wqe_head[idx] + 1;
  if (new_tail - sq.tail <= sq.max_post) {
    for (std::uint32_t n = sq.tail; n != new_tail; ++n) {
      const WorkQueue::WrInfo wr = sq.wr(n);
      cq.sq_slots_freed->add();
      cq.sq_slot_time_ps->add(static_cast<std::uint64_t>((m.now() - wr.posted).n));
      const bool receiver_ends = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM ||
                                 wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
      if (status != IBV_WC_SUCCESS && n + 1 == new_tail) fail(m, wr.msg, status);
      else if (!receiver_ends) cq.delivered.push_back(wr.msg);
    }
  }
  note(cq, sq.wr(new_tail - 1).msg);
  sq.tail = new_tail;
  sq.trace_occupancy(m.now());
}

void requester(Machine& m, Cq& cq, Completion& c, std::byte* slot) {
  Qp& qp = *c.qp;
  const std::uint32_t idx = qp.sq.index(be16(c.cqe.wqe_counter));
  c.wr_id = qp.sq.wrid[idx];
  const ibv_wr_opcode posted = static_cast<ibv_wr_opcode>(qp.sq.wr(qp.sq.wqe_head[idx]).opcode);
  c.umr_opcode = posted == IBV_WR_BIND_MW     ? IBV_WC_BIND_MW
                 : posted == IBV_WR_LOCAL_INV ? IBV_WC_LOCAL_INV
                                              : IBV_WC_SEND;
  if (c.is_error) {
    c.status = status_of(reinterpret_cast<const mlx5_err_cqe&>(c.cqe).syndrome);
  } else if (c.cqe.op_own & MLX5_INLINE_SCATTER_32) {
    c.status = scatter_to_send(m, qp, idx, slot, be32(c.cqe.byte_cnt));
  } else if (c.cqe.op_own & MLX5_INLINE_SCATTER_64) {
    // The real driver reads from one byte before the slot here; for slot 0 that byte is taken as zero.
    std::array<std::byte, 64> data{slot == cq.buf ? std::byte{0} : slot[-1]};
    std::memcpy(data.data() + 1, slot, data.size() - 1);
    c.status = scatter_to_send(m, qp, idx, data.data(), std::min<std::uint32_t>(be32(c.cqe.byte_cnt), data.size()));
  }
  reclaim(m, cq, qp, idx, c.status);
}

/// A message arrived: its journey ends when the poll returns.
void settle_receive(Machine& m, Cq& cq, const Completion& c, std::uint32_t counter) {
  const sim::MsgId id = cq.tags->find(counter);
  note(cq, id);
  if (c.status == IBV_WC_SUCCESS) cq.delivered.push_back(id);
  else fail(m, id, c.status);
}

void responder(Machine& m, Cq& cq, Completion& c, std::byte* cqe64, std::uint32_t counter) {
  Qp& qp = *c.qp;
  c.wr_id = qp.rq.wqe_cnt != 0 ? qp.rq.wrid[qp.rq.index(qp.rq.tail)] : 0;
  if (c.is_error) {
    c.status = status_of(reinterpret_cast<const mlx5_err_cqe&>(c.cqe).syndrome);
  } else {
    if (c.cqe.op_own & MLX5_INLINE_SCATTER_32) c.status = scatter_to_receive(m, qp, cqe64, be32(c.cqe.byte_cnt));
    else if (c.cqe.op_own & MLX5_INLINE_SCATTER_64)
      c.status = scatter_to_receive(m, qp, cqe64 - sizeof(mlx5_cqe64), be32(c.cqe.byte_cnt));
    c.scatter_failed = c.status != IBV_WC_SUCCESS;
  }
  ++qp.rq.tail;
  qp.rq.trace_occupancy(m.now());
  settle_receive(m, cq, c, counter);
}

/// Receive of an SRQ's WQE, which the CQE names by its index (S-CQE-15).
Seen shared_receive(Machine& m, Cq& cq, Completion& c, std::byte* cqe64, std::uint32_t counter) {
  Srq& srq = *c.srq;
  const std::uint32_t index = be16(c.cqe.wqe_counter);
  if (index >= srq.wqe_cnt) return Seen::error;
  if (c.is_error) {
    c.status = status_of(reinterpret_cast<const mlx5_err_cqe&>(c.cqe).syndrome);
    constexpr std::uint8_t kPageFault = 0x93;
    if (c.status == IBV_WC_REM_ABORT_ERR && c.vendor_error() == kPageFault) {
      exchange_srq_wqe(m, srq, index);
      return Seen::skipped;
    }
  } else {
    if (c.cqe.op_own & MLX5_INLINE_SCATTER_32) c.status = scatter_to_shared(m, srq, index, cqe64, be32(c.cqe.byte_cnt));
    else if (c.cqe.op_own & MLX5_INLINE_SCATTER_64)
      c.status = scatter_to_shared(m, srq, index, cqe64 - sizeof(mlx5_cqe64), be32(c.cqe.byte_cnt));
    c.scatter_failed = c.status != IBV_WC_SUCCESS;
  }
  c.wr_id = srq.wrid[index];
  free_srq_wqe(m, srq, index);
  settle_receive(m, cq, c, counter);
  return Seen::found;
}
/// Whether the CQE names a WR of a known QP.
Seen resolve(Machine& m, Cq& cq, Completion& c, std::byte* slot, std::uint32_t counter) {
  std::byte* cqe64 = slot + (cq.cqe_size - sizeof(mlx5_cqe64));
  c.is_error = c.opcode() == MLX5_CQE_REQ_ERR || c.opcode() == MLX5_CQE_RESP_ERR;
  switch (c.opcode()) {
    case MLX5_CQE_REQ:
    case MLX5_CQE_REQ_ERR:
    case MLX5_CQE_RESP_WR_IMM:
    case MLX5_CQE_RESP_SEND:
    case MLX5_CQE_RESP_SEND_IMM:
    case MLX5_CQE_RESP_SEND_INV:
    case MLX5_CQE_RESP_ERR:
      break;
    case MLX5_CQE_NO_PACKET:
    case MLX5_CQE_SIG_ERR:
      c.counted = false;
      return Seen::error;
    default:
      c.counted = false;
      return Seen::found;
  }
  const bool from_requester = c.opcode() == MLX5_CQE_REQ || c.opcode() == MLX5_CQE_REQ_ERR;
  if (!find_resource(cq, mlx5_of(cq.cq().context).index_of(c.cqe), !from_requester, c)) {
    if (c.is_error) c.status = status_of(reinterpret_cast<const mlx5_err_cqe&>(c.cqe).syndrome);
    return Seen::error;
  }
  if (!from_requester && c.srq != nullptr) return shared_receive(m, cq, c, cqe64, counter);
  if (c.qp == nullptr) return Seen::error;
  if (from_requester ? c.qp->sq.wqe_cnt == 0 : c.qp->rq.wqe_cnt == 0) return Seen::error;
  if (from_requester) requester(m, cq, c, slot);
  else responder(m, cq, c, cqe64, counter);
  return Seen::found;
}

void fill_wc(const Completion& c, Seen seen, ibv_wc& wc) {
  wc.wc_flags = 0;
  wc.qp_num = c.qpn();
  if (!c.counted) return;
  if (c.is_error) {
    wc.status = c.status;
    wc.vendor_err = c.vendor_error();
    if (seen == Seen::found) wc.wr_id = c.wr_id;
    return;
  }
  if (seen != Seen::found) return;
  wc.wr_id = c.wr_id;
  wc.status = c.status;
  if (c.opcode() == MLX5_CQE_REQ) {
    ibv_wc_opcode opcode{};
    if (requester_opcode(c, opcode)) wc.opcode = opcode;
    const std::uint8_t op = c.send_opcode();
    if (op == MLX5_OPCODE_RDMA_READ) wc.byte_len = be32(c.cqe.byte_cnt);
    if (op == MLX5_OPCODE_ATOMIC_CS || op == MLX5_OPCODE_ATOMIC_FA) wc.byte_len = 8;
    if (op == MLX5_OPCODE_SEND_IMM || op == MLX5_OPCODE_RDMA_WRITE_IMM) wc.wc_flags |= IBV_WC_WITH_IMM;
    return;
  }
  wc.byte_len = be32(c.cqe.byte_cnt);
  if (c.scatter_failed) return;
  wc.opcode = c.opcode() == MLX5_CQE_RESP_WR_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (c.opcode() == MLX5_CQE_RESP_WR_IMM || c.opcode() == MLX5_CQE_RESP_SEND_IMM) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = c.cqe.imm_inval_pkey;
  } else if (c.opcode() == MLX5_CQE_RESP_SEND_INV) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = be32(c.cqe.imm_inval_pkey);
  }
  const std::uint32_t flags = be32(c.cqe.flags_rqpn);
  wc.slid = be16(c.cqe.slid);
  wc.sl = flags >> 24 & 0xf;
  wc.src_qp = flags & 0xffffff;
  wc.dlid_path_bits = c.cqe.ml_path & 0x7f;
  if (flags >> 28 & 3) wc.wc_flags |= IBV_WC_GRH;
  wc.pkey_index = static_cast<std::uint16_t>(be32(c.cqe.imm_inval_pkey) & 0xffff);
}

}  // namespace

ibv_wc_status status_of(std::uint8_t syndrome) {
  switch (syndrome) {
    case hca::prm::kSynLocalLength:
      return IBV_WC_LOC_LEN_ERR;
    case hca::prm::kSynLocalQpOp:
      return IBV_WC_LOC_QP_OP_ERR;
    case hca::prm::kSynLocalProt:
      return IBV_WC_LOC_PROT_ERR;
    case hca::prm::kSynFlush:
      return IBV_WC_WR_FLUSH_ERR;
    case hca::prm::kSynMwBind:
      return IBV_WC_MW_BIND_ERR;
    case hca::prm::kSynBadResp:
      return IBV_WC_BAD_RESP_ERR;
    case hca::prm::kSynLocalAccess:
      return IBV_WC_LOC_ACCESS_ERR;
    case hca::prm::kSynRemoteInvalReq:
      return IBV_WC_REM_INV_REQ_ERR;
    case hca::prm::kSynRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case hca::prm::kSynRemoteOp:
      return IBV_WC_REM_OP_ERR;
    case hca::prm::kSynTransportRetry:
      return IBV_WC_RETRY_EXC_ERR;
    case hca::prm::kSynRnrRetry:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case hca::prm::kSynRemoteAborted:
      return IBV_WC_REM_ABORT_ERR;
    default:
      return IBV_WC_GENERAL_ERR;
  }
}

bool requester_opcode(const Completion& c, ibv_wc_opcode& out) {
  switch (c.send_opcode()) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
      out = IBV_WC_RDMA_WRITE;
      return true;
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_SEND_INVAL:
      out = IBV_WC_SEND;
      return true;
    case MLX5_OPCODE_RDMA_READ:
      out = IBV_WC_RDMA_READ;
      return true;
    case MLX5_OPCODE_ATOMIC_CS:
      out = IBV_WC_COMP_SWAP;
      return true;
    case MLX5_OPCODE_ATOMIC_FA:
      out = IBV_WC_FETCH_ADD;
      return true;
    case MLX5_OPCODE_TSO:
      out = IBV_WC_TSO;
      return true;
    case MLX5_OPCODE_NOP:
    case MLX5_OPCODE_UMR:
    case MLX5_OPCODE_SET_PSV:
      out = static_cast<ibv_wc_opcode>(c.umr_opcode);
      return true;
    default:
      return false;
  }
}

void forget_empty_polls(Cq& cq) {
  cq.poller = nullptr;
  cq.period = cq.last_return = cq.last_sample = sim::Picos{-1};
}

Seen take_completion(Machine& m, Cq& cq, sim::Picos entry, Completion& out) {
  if (!look(m, cq, entry)) return Seen::empty;
  std::byte* slot = slot_of(cq);
  const std::uint32_t counter = cq.cons_index;
  std::byte* cqe64 = cqe64_of(cq);
  ++cq.cons_index;
  cq.tags->occupancy.add(m.state().context->now(), -1);  // the device's clock: it counts them up
  m.barrier(cpu::Barrier::udma_from_device);
  m.load_bytes(cqe64, &out.cqe, sizeof out.cqe);
  m.compute(m.config().poll_cqe);
  const Seen seen = resolve(m, cq, out, slot, counter);
  if (seen == Seen::found) ++cq.polled.count;
  if (seen == Seen::error || (seen == Seen::found && out.status != IBV_WC_SUCCESS)) ++cq.polled.failed;
  return seen;
}

void store_consumer_index(Machine& m, Cq& cq) { m.store(cq.dbr + kCiWord, be32(cq.cons_index & 0xffffff)); }

void settle_journeys(Machine& m, Cq& cq) {
  for (const sim::MsgId id : cq.delivered) m.state().context->journeys.finish(id, sim::Stage::poll, m.now());
  cq.delivered.clear();
}

void trace_poll(Machine& m, const Cq& cq) {
  const Cq::Polled& p = cq.polled;
  if (p.count == 0 && p.failed == 0) return;
  m.thread().trace().span(points::poll_cq, {p.msg, m.thread().cause().parent}, p.start, p.start, m.now(), cq.cqn,
                          p.count, cq.cons_index, p.failed);
}

int poll_cq(ibv_cq* ibcq, int n, ibv_wc* wc) {
  Machine m = machine_for(ibcq->context);
  Cq& cq = cq_of(ibcq);
  const sim::Picos entry = m.now();
  begin_poll(cq, entry);
  m.compute(m.config().poll_call);
  m.lock(cq.lock);
  int polled = 0;
  Seen seen = Seen::found;
  while (polled < n) {
    Completion c;
    seen = take_completion(m, cq, entry, c);
    if (seen == Seen::empty) break;
    fill_wc(c, seen, wc[polled]);
    if (seen == Seen::error) break;
    if (seen == Seen::found) ++polled;
  }
  store_consumer_index(m, cq);
  m.unlock(cq.lock);
  settle_journeys(m, cq);
  if (seen == Seen::empty && polled == 0) {
    cq.empty_polls->add();
    cq.last_return = m.now();
  } else {
    forget_empty_polls(cq);
  }
  trace_poll(m, cq);
  return seen == Seen::error ? -2 : polled;
}

}  // namespace verbs::mlx5
