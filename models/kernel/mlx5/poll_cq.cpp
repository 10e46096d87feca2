// SPDX-License-Identifier: Apache-2.0
// ib_poll_cq and ib_req_notify_cq for kernel consumers, on CQEs that name their queue pair by its number. A consumer that
// polls in a loop, with nothing in between, is not simulated poll by poll: from the third empty poll on, its thread waits
// for a write to the next CQE's ownership byte and goes on at the instant at which the loop would have looked.
// Source: mlx5_ib cq.c, mlx5_core cq.c (mlx5_cq_arm). Not built: CQE compression, resizing, inline scatter.
#include <cerrno>
#include <cstddef>

#include "cpu/call_span.h"
#include "cpu/core.h"
#include "hca/prm.h"
#include "kernel/core/verbs.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/trace_points.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;
using prm::be16;
using prm::be32;
using prm::be64;

namespace {

std::byte* slot(const Mlx5Cq& cq, std::uint32_t n) {
  return cq.kernel->buffer.bytes + std::size_t{n & (cq.entries - 1)} * sizeof(mlx5_cqe64);
}
std::byte* op_own_of(std::byte* cqe) { return cqe + offsetof(mlx5_cqe64, op_own); }

/// Whether the CQE of consumer counter `n` is software's, by its ownership byte.
bool owned(const Mlx5Cq& cq, std::uint32_t n, std::uint8_t op_own) {
  return op_own >> 4 != MLX5_CQE_INVALID &&
         (op_own & MLX5_CQE_OWNER_MASK) == static_cast<std::uint8_t>((n & cq.entries) != 0);
}

/// Looks at the next CQE as of now, after skipping the empty polls of a loop.
bool look(cpu::Thread& t, Mlx5Cq& cq, sim::Picos entry) {
  KernelCq& k = *cq.kernel;
  const std::byte* const byte = op_own_of(slot(cq, k.cons_index));
  t.sync();
  if (owned(cq, k.cons_index, std::to_integer<std::uint8_t>(*byte))) {
    k.forget_empty_polls();
  } else {
    const bool in_loop = k.poller == &t && k.last_return == entry;
    const sim::Picos period = in_loop ? t.now() - k.last_sample : sim::Picos{-1};
    if (in_loop && period == k.period && t.core().config().poll_mode == cpu::PollMode::fast_forward) {
      const sim::Picos since = t.now(), before = since - t.stolen();
      t.wait_for_write(byte, 1, period);
      k.polled.start += t.now() - since;
      k.empty_polls->add(static_cast<std::uint64_t>((t.now() - t.stolen() - before) / period));
    }
    k.poller = &t;
    k.period = period;
    k.last_sample = t.now();
  }
  return owned(cq, k.cons_index, t.load(reinterpret_cast<const std::uint8_t*>(byte)));
}

ibv_wc_status status_of(std::uint8_t syndrome) {
  switch (syndrome) {
    case prm::kSynLocalLength:
      return IBV_WC_LOC_LEN_ERR;
    case prm::kSynLocalQpOp:
      return IBV_WC_LOC_QP_OP_ERR;
    case prm::kSynLocalProt:
      return IBV_WC_LOC_PROT_ERR;
    case prm::kSynFlush:
      return IBV_WC_WR_FLUSH_ERR;
    case prm::kSynMwBind:
      return IBV_WC_MW_BIND_ERR;
    case prm::kSynBadResp:
      return IBV_WC_BAD_RESP_ERR;
    case prm::kSynLocalAccess:
      return IBV_WC_LOC_ACCESS_ERR;
    case prm::kSynRemoteInvalReq:
      return IBV_WC_REM_INV_REQ_ERR;
    case prm::kSynRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case prm::kSynRemoteOp:
      return IBV_WC_REM_OP_ERR;
    case prm::kSynTransportRetry:
      return IBV_WC_RETRY_EXC_ERR;
    case prm::kSynRnrRetry:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case prm::kSynRemoteAborted:
      return IBV_WC_REM_ABORT_ERR;
    default:
      return IBV_WC_GENERAL_ERR;
  }
}

void good_request(const mlx5_cqe64& cqe, ibv_wc& wc) {
  switch (be32(cqe.sop_drop_qpn) >> 24) {
    case MLX5_OPCODE_RDMA_WRITE_IMM:
      wc.wc_flags |= IBV_WC_WITH_IMM;
      [[fallthrough]];
    case MLX5_OPCODE_RDMA_WRITE:
      wc.opcode = IBV_WC_RDMA_WRITE;
      break;
    case MLX5_OPCODE_SEND_IMM:
      wc.wc_flags |= IBV_WC_WITH_IMM;
      [[fallthrough]];
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_INVAL:
      wc.opcode = IBV_WC_SEND;
      break;
    default:
      wc.opcode = IBV_WC_RDMA_READ;
      wc.byte_len = be32(cqe.byte_cnt);
  }
}

void good_receive(const mlx5_cqe64& cqe, std::uint8_t opcode, ibv_wc& wc) {
  wc.byte_len = be32(cqe.byte_cnt);
  wc.opcode = opcode == MLX5_CQE_RESP_WR_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (opcode == MLX5_CQE_RESP_WR_IMM || opcode == MLX5_CQE_RESP_SEND_IMM) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = cqe.imm_inval_pkey;
  } else if (opcode == MLX5_CQE_RESP_SEND_INV) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = be32(cqe.imm_inval_pkey);
  }
  const std::uint32_t flags = be32(cqe.flags_rqpn);
  wc.src_qp = flags & 0xffffff;
  wc.sl = flags >> 24 & 0xf;
  if ((flags >> 28 & 3) != 0) wc.wc_flags |= IBV_WC_GRH;
}

/// Frees the slots up to and including the WQE and ends the journeys that end at this side.
void reclaim(KernelCq& k, KernelWorkQueue& sq, std::uint32_t idx, ibv_wc_status status, sim::Journeys& journeys,
             sim::Picos now) {
  const std::uint32_t new_tail = sq.wqe_head[idx] + 1;
  for (std::uint32_t n = sq.tail; n != new_tail; ++n) {
    const KernelWorkQueue::WrInfo wr = sq.wr(n);
    const bool receiver_ends = wr.opcode != IBV_WR_RDMA_WRITE && wr.opcode != IBV_WR_RDMA_READ;
    if (status != IBV_WC_SUCCESS && n + 1 == new_tail) journeys.fail(wr.msg, static_cast<std::uint8_t>(status), now);
    else if (!receiver_ends) k.delivered.push_back(wr.msg);
  }
  k.polled.about(sq.wr(new_tail - 1).msg);
  sq.tail = new_tail;
  sq.trace_occupancy(now);
}

enum class Seen : std::uint8_t { empty, found, unknown };

Seen poll_one(cpu::Thread& t, Mlx5Cq& cq, sim::Picos entry, ibv_wc& wc) {
  KernelCq& k = *cq.kernel;
  Kernel& kernel = cq.device->kernel;
  if (!look(t, cq, entry)) return Seen::empty;
  const std::byte* const at = slot(cq, k.cons_index);
  const std::uint32_t counter = k.cons_index++;
  k.tags->occupancy.add(kernel.context().now(), -1);  // the device's clock: it counts them up
  t.barrier(cpu::Barrier::rmb);
  mlx5_cqe64 cqe;
  t.load(at, &cqe, sizeof cqe);
  t.compute(kernel.config().verbs.poll_cqe);

  wc = {};
  wc.qp_num = be32(cqe.sop_drop_qpn) & 0xffffff;
  auto* const qp = static_cast<Mlx5Qp*>(kernel.find_qp(wc.qp_num));
  if (qp == nullptr || qp->kernel == nullptr) return Seen::unknown;
  const std::uint8_t opcode = cqe.op_own >> 4;
  const bool error = opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
  if (error) {
    const auto& e = reinterpret_cast<const mlx5_err_cqe&>(cqe);
    wc.status = status_of(e.syndrome);
    wc.vendor_err = e.vendor_err_synd;
    ++k.polled.failed;
  }
  if (opcode == MLX5_CQE_REQ || opcode == MLX5_CQE_REQ_ERR) {
    KernelWorkQueue& sq = qp->kernel->sq;
    const std::uint32_t idx = sq.index(be16(cqe.wqe_counter));
    wc.wr_id = sq.wrid[idx];
    if (!error) good_request(cqe, wc);
    reclaim(k, sq, idx, wc.status, kernel.context().journeys, t.now());
    return Seen::found;
  }
  KernelWorkQueue& rq = qp->kernel->rq;
  wc.wr_id = rq.wrid[rq.index(rq.tail++)];
  rq.trace_occupancy(t.now());
  const sim::MsgId id = k.tags->find(counter);
  k.polled.about(id);
  if (error) {
    kernel.context().journeys.fail(id, static_cast<std::uint8_t>(wc.status), t.now());
  } else {
    good_receive(cqe, opcode, wc);
    k.delivered.push_back(id);
  }
  return Seen::found;
}

void store_consumer_index(cpu::Thread& t, KernelCq& k) {
  const std::uint32_t value = be32(k.cons_index & 0xffffff);
  t.store(k.dbr.bytes + prm::kCqSetCi, &value, sizeof value);
}

}  // namespace

int poll_cq(Cq& core, int num_entries, ibv_wc* wc) {
  auto& cq = static_cast<Mlx5Cq&>(core);
  KernelCq& k = *cq.kernel;
  Kernel& kernel = cq.device->kernel;
  cpu::Thread& t = cpu::current();
  const sim::Picos entry = t.now();
  k.polled = {entry};
  t.compute(kernel.config().verbs.poll_call);
  t.lock(k.lock);
  int polled = 0;
  Seen seen = Seen::found;
  while (polled < num_entries && seen != Seen::empty) {
    seen = poll_one(t, cq, entry, wc[polled]);
    if (seen == Seen::found) ++polled;
    else if (seen == Seen::unknown) kernel.counter("cqe_of_unknown_qp").add();
  }
  if (polled != 0) store_consumer_index(t, k);
  t.unlock(k.lock);
  for (const sim::MsgId id : k.delivered) kernel.context().journeys.finish(id, sim::Stage::poll, t.now());
  k.delivered.clear();
  if (polled == 0) {
    k.empty_polls->add();
    k.last_return = t.now();
  } else {
    k.forget_empty_polls();
    t.trace().span(trace_points::poll_cq, {k.polled.msg, t.cause().parent}, k.polled.start, k.polled.start, t.now(),
                   cq.cqn, polled, k.cons_index, k.polled.failed);
  }
  return polled;
}

int req_notify_cq(Cq& core, std::uint32_t flags) {
  auto& cq = static_cast<Mlx5Cq&>(core);
  KernelCq& k = *cq.kernel;
  Kernel& kernel = cq.device->kernel;
  cpu::Thread& t = cpu::current();
  k.forget_empty_polls();
  cpu::CallSpan call(t, trace_points::req_notify_cq);
  t.compute(kernel.config().verbs.arm_call);
  const std::uint32_t cmd = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ? prm::kArmCmdSolicited : prm::kArmCmdAny;
  const std::uint32_t word = (cq.arm_sn & 3) << 28 | cmd << 24 | (k.cons_index & 0xffffff);
  const std::uint32_t record = be32(word);
  t.store(k.dbr.bytes + prm::kCqArm, &record, sizeof record);
  t.barrier(cpu::Barrier::wmb);
  t.mmio_store64(kernel.uar().map + prm::kUarCqDoorbell, be64(std::uint64_t{word} << 32 | cq.cqn));
  // The load pushes the doorbell to the device, and its answer pushes every CQE before it to memory.
  if (kernel.config().verbs.arm_read_back) t.mmio_load64(kernel.uar().map + prm::kUarCqDoorbell);
  call.end(0, cq.cqn, k.cons_index, cmd == prm::kArmCmdSolicited);
  if ((flags & IB_CQ_REPORT_MISSED_EVENTS) == 0 || !kernel.config().verbs.report_missed_cqes) return 0;
  t.sync();
  return owned(cq, k.cons_index, t.load(reinterpret_cast<const std::uint8_t*>(op_own_of(slot(cq, k.cons_index))))) ? 1
                                                                                                                   : 0;
}

// The CQEs of the queue pair go, the others close up towards the producer; each slot keeps its own owner bit (S-QP-46).
void clean_kernel_cq(Mlx5Cq& cq, std::uint32_t qpn) {
  KernelCq& k = *cq.kernel;
  cpu::Thread& t = cpu::current();
  t.lock(k.lock);
  t.sync();
  const auto op_own = [&](std::uint32_t n) {
    return t.load(reinterpret_cast<const std::uint8_t*>(op_own_of(slot(cq, n))));
  };
  std::uint32_t producer = k.cons_index;
  while (producer - k.cons_index < cq.entries && owned(cq, producer, op_own(producer))) ++producer;
  const sim::Picos seen = cq.device->kernel.context().now();
  std::uint32_t removed = 0;
  for (std::uint32_t n = producer; n-- != k.cons_index;) {
    mlx5_cqe64 cqe;
    t.load(slot(cq, n), &cqe, sizeof cqe);
    if ((be32(cqe.sop_drop_qpn) & 0xffffff) == qpn) {
      ++removed;
    } else if (removed != 0) {
      cqe.op_own =
          static_cast<std::uint8_t>((cqe.op_own & ~MLX5_CQE_OWNER_MASK) | (op_own(n + removed) & MLX5_CQE_OWNER_MASK));
      t.store(slot(cq, n + removed), &cqe, sizeof cqe);
      k.tags->publish(n + removed, k.tags->find(n));
    }
  }
  if (removed != 0) {
    k.cons_index += removed;
    k.tags->occupancy.add(seen, -std::int64_t{removed});
    t.barrier(cpu::Barrier::wmb);
    store_consumer_index(t, k);
  }
  k.forget_empty_polls();
  t.unlock(k.lock);
}

}  // namespace kernel::mlx5_ib
