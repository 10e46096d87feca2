// SPDX-License-Identifier: Apache-2.0
// Queue pairs and CQs of kernel consumers: sizes, rings in DMA-coherent kernel memory, doorbell records, and the CQEs of a
// queue pair that goes. The driver computes sizes as it does for itself: room for a UMR operation in each send WQE, which
// programs do not ask for. Types RC and UC. Source: mlx5_ib qp.c (calc_sq_size, set_rq_size, _create_kernel_qp), cq.c.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/trace_points.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;

namespace {

constexpr std::uint32_t kCtrl = 16, kRaddr = 16, kAtomic = 16, kDataSeg = 16, kInlineSeg = 4;
constexpr std::uint32_t kUmrCtrl = 48, kMkeySeg = 64, kUmrInline = 4;  // inlined translations, in units of 16
constexpr std::uint32_t kSgeLimit = 512;                               // bytes of a WQE in which SGEs are counted
constexpr std::uint8_t kInvalidOpOwn = MLX5_CQE_INVALID << 4;

std::uint32_t align(std::uint32_t v, std::uint32_t to) { return (v + to - 1) / to * to; }

std::uint32_t sq_overhead(ibv_qp_type type) {
  if (type == IBV_QPT_UC) return kCtrl + std::max(kRaddr, kUmrCtrl + kMkeySeg);
  return kCtrl + std::max(kAtomic + kRaddr, kUmrCtrl + kMkeySeg + kUmrInline);
}

int size_sq(const DeviceCaps& caps, ibv_qp_type type, ibv_qp_cap& cap, Mlx5Qp& qp) {
  if (cap.max_send_wr == 0) return 0;
  const std::uint32_t overhead = sq_overhead(type);
  std::uint32_t size = overhead + cap.max_send_sge * kDataSeg;
  if (cap.max_inline_data != 0) size = std::max(size, overhead + kInlineSeg + cap.max_inline_data);
  if (size > caps.max_wqe_sz_sq) return -EINVAL;
  const std::uint32_t wqe = align(size, prm::kWqebb);
  if (wqe > caps.max_wqe_sz_sq) return -EINVAL;
  const std::uint64_t ring = std::bit_ceil(std::uint64_t{cap.max_send_wr} * wqe);
  if (ring / prm::kWqebb > 1U << caps.log_max_qp_sz) return -ENOMEM;
  const std::uint32_t in_limit =
      type == IBV_QPT_RC ? (std::min(wqe, kSgeLimit) - kCtrl - kRaddr) / kDataSeg : (wqe - overhead) / kDataSeg;
  const std::uint32_t max_gs = std::min(in_limit, (wqe - overhead) / kDataSeg);
  if (max_gs < cap.max_send_sge) return -ENOMEM;

  KernelQp& k = *qp.kernel;
  k.sq.wqe_cnt = static_cast<std::uint32_t>(ring / prm::kWqebb);
  k.sq.max_gs = max_gs;
  k.sq.max_post = static_cast<std::uint32_t>(ring / wqe);
  k.max_inline = wqe - overhead - kInlineSeg;
  cap.max_send_wr = k.sq.max_post;
  cap.max_send_sge = max_gs;
  cap.max_inline_data = k.max_inline;
  qp.sq_wqebbs = k.sq.wqe_cnt;
  return 0;
}

int size_rq(const DeviceCaps& caps, ibv_qp_cap& cap, Mlx5Qp& qp) {
  if (cap.max_recv_wr > 1U << caps.log_max_qp_sz) return -EINVAL;
  if (cap.max_recv_wr == 0) {
    cap.max_recv_sge = 0;
    return 0;
  }
  const std::uint32_t wqe = std::bit_ceil(std::max(1U, cap.max_recv_sge) * kDataSeg);
  if (wqe > caps.max_wqe_sz_rq) return -EINVAL;
  const std::uint32_t ring = std::max(prm::kWqebb, std::bit_ceil(cap.max_recv_wr) * wqe);
  KernelWorkQueue& rq = qp.kernel->rq;
  rq.wqe_cnt = ring / wqe;
  rq.wqe_shift = static_cast<std::uint32_t>(std::bit_width(wqe) - 1);
  rq.max_gs = wqe / kDataSeg;
  rq.max_post = rq.wqe_cnt;
  cap.max_recv_wr = rq.max_post;
  cap.max_recv_sge = rq.max_gs;
  qp.rq_wqes = rq.wqe_cnt;
  qp.rq_shift = rq.wqe_shift;
  return 0;
}

void set_up(KernelWorkQueue& wq, std::byte* buf) {
  wq.buf = buf;
  wq.wrid.resize(wq.wqe_cnt);
  wq.wqe_head.resize(wq.wqe_cnt);
  wq.wrs.resize(wq.wqe_cnt);
}

void open_gauges(Kernel& kernel, Mlx5Qp& qp) {
  if (!kernel.context().tracer.on(sim::trace::Category::kernel)) return;
  const std::int32_t host = kernel.platform().host;
  const std::string lane = "host" + std::to_string(host) + ".kernel.qp" + std::to_string(qp.qpn);
  const sim::Picos now = cpu::current().now();
  KernelQp& k = *qp.kernel;
  if (k.sq.wqe_cnt != 0) k.sq.occupancy.open(kernel.context(), trace_points::sq_occupancy, host, lane + ".sq", now);
  if (k.rq.wqe_cnt != 0) k.rq.occupancy.open(kernel.context(), trace_points::rq_occupancy, host, lane + ".rq", now);
}

}  // namespace

int create_kernel_qp(Mlx5Qp& qp, const QpInitAttr& attr) {
  if ((attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC) || attr.srq != nullptr) return -EOPNOTSUPP;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return -EINVAL;
  Kernel& kernel = qp.device->kernel;
  qp.kernel = std::make_unique<KernelQp>();
  KernelQp& k = *qp.kernel;
  ibv_qp_cap cap = attr.cap;
  if (const int error = size_rq(kernel.caps(), cap, qp); error != 0) return error;
  if (const int error = size_sq(kernel.caps(), attr.qp_type, cap, qp); error != 0) return error;
  const std::size_t rq_bytes = std::size_t{k.rq.wqe_cnt} << k.rq.wqe_shift;
  const std::size_t bytes = rq_bytes + std::size_t{k.sq.wqe_cnt} * prm::kWqebb;
  if (bytes != 0) k.buffer = kernel.dma().alloc(bytes);
  set_up(k.rq, k.buffer.bytes);
  set_up(k.sq, k.buffer.bytes + rq_bytes);
  k.dbr = kernel.kernel_dbrs().alloc(kernel.dma());
  if (attr.sq_sig_all) k.signal_bits = MLX5_WQE_CTRL_CQ_UPDATE;
  qp.uar = kernel.uar().index;
  constexpr std::uint32_t kNoUserIndex = 0xffffff;  // CQEs name the queue pair by its number
  qp.user_index = kNoUserIndex;
  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(qp, qpc);
  if (const int error = kernel::create_qp(kernel.commands(), qpc, k.buffer.mapping, qp.qpn); error != 0) {
    free_kernel_qp(qp);
    return error;
  }
  kernel.add_qp(qp);
  qp.cap = cap;
  k.tags = &kernel.context().wqe_tags.sq.of(kernel.platform().host, qp.qpn);
  k.tags->clear();
  k.tags->reserve(std::max(1U, k.sq.wqe_cnt));
  k.new_msgs.reserve(k.sq.max_post);
  open_gauges(kernel, qp);
  return 0;
}

void free_kernel_qp(Mlx5Qp& qp) {
  Kernel& kernel = qp.device->kernel;
  KernelQp& k = *qp.kernel;
  if (k.tags != nullptr) k.tags->clear();
  for (KernelWorkQueue* wq : {&k.rq, &k.sq}) wq->occupancy.set(cpu::current().now(), 0);
  kernel.kernel_dbrs().free(kernel.dma(), k.dbr);
  kernel.dma().free(k.buffer);
}

void reset_kernel_qp(Mlx5Qp& qp) {
  clean_kernel_cq(static_cast<Mlx5Cq&>(*qp.recv_cq), qp.qpn);
  if (qp.send_cq != qp.recv_cq) clean_kernel_cq(static_cast<Mlx5Cq&>(*qp.send_cq), qp.qpn);
  KernelQp& k = *qp.kernel;
  for (KernelWorkQueue* wq : {&k.rq, &k.sq}) {
    wq->reset();
    wq->trace_occupancy(cpu::current().now());
  }
  k.bf_offset = 0;
  cpu::Thread& t = cpu::current();
  t.store(reinterpret_cast<std::uint32_t*>(k.dbr.bytes + prm::kRcvDbr), 0U);
  t.store(reinterpret_cast<std::uint32_t*>(k.dbr.bytes + prm::kSndDbr), 0U);
}

void set_flow(Qp& qp, std::uint32_t flow) { static_cast<Mlx5Qp&>(qp).kernel->flow = flow; }

int create_kernel_cq(Mlx5Cq& cq, CqParams& params) {
  Kernel& kernel = cq.device->kernel;
  cq.kernel = std::make_unique<KernelCq>();
  KernelCq& k = *cq.kernel;
  k.buffer = kernel.dma().alloc(std::size_t{cq.entries} * cq.cqe_size);
  for (std::uint32_t i = 0; i < cq.entries; ++i)
    k.buffer.bytes[std::size_t{i} * cq.cqe_size + offsetof(mlx5_cqe64, op_own)] = std::byte{kInvalidOpOwn};
  k.dbr = kernel.kernel_dbrs().alloc(kernel.dma());
  params.dbr = k.dbr.at.v;
  params.uar = kernel.uar().index;
  if (const int error = kernel::create_cq(kernel.commands(), params, k.buffer.mapping, cq.cqn); error != 0) {
    free_kernel_cq(cq);
    return error;
  }
  k.tags = &kernel.context().wqe_tags.cq.of(kernel.platform().host, cq.cqn);
  k.tags->clear();
  k.tags->reserve(cq.entries);
  k.delivered.reserve(64);
  k.empty_polls = &kernel.counter("empty_polls");
  return 0;
}

void free_kernel_cq(Mlx5Cq& cq) {
  Kernel& kernel = cq.device->kernel;
  KernelCq& k = *cq.kernel;
  if (k.tags != nullptr) {
    k.tags->clear();
    k.tags->occupancy.set(kernel.context().now(), 0);
  }
  kernel.kernel_dbrs().free(kernel.dma(), k.dbr);
  kernel.dma().free(k.buffer);
}

}  // namespace kernel::mlx5_ib
