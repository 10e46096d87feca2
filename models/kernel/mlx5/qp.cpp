// SPDX-License-Identifier: Apache-2.0
// Queue pairs of the driver, types RC, UC, UD and XRC. Rings belong to user space, which also computed their sizes; the
// driver checks them against the device. Those of kernel consumers are in kernel_qp.cpp. Other types are refused.
// Source: mlx5_ib qp.c (create_user_qp, set_rq_size, set_user_buf_size, create_xrc_tgt_qp).
#include <rdma/mlx5-abi.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>

#include "hca/prm.h"
#include "kernel/core/qp_state.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/undo.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;

namespace {
constexpr std::uint32_t kWqebbShift = 6;
constexpr std::uint32_t kKnownFlags = MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE |
                                      MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_BFREG_INDEX |
                                      MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE | MLX5_QP_FLAG_UAR_PAGE_INDEX;

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::bit_width(power) - 1); }

std::uint32_t cqe_size_of(const Cq* cq) { return static_cast<const Mlx5Cq*>(cq)->cqe_size; }

int size_qp(const DeviceCaps& caps, const QpInitAttr& attr, const mlx5_ib_create_qp& user, Mlx5Qp& qp) {
  const std::uint32_t most = 1U << caps.log_max_qp_sz;
  if (attr.cap.max_recv_wr > most || attr.cap.max_send_wr > most) return -EINVAL;
  if (attr.cap.max_send_sge > (caps.max_wqe_sz_sq - 16) / 16 || attr.cap.max_recv_sge > caps.max_wqe_sz_rq / 16)
    return -EINVAL;
  const bool has_rq = attr.cap.max_recv_wr != 0 && attr.srq == nullptr && attr.qp_type != IBV_QPT_XRC_SEND;
  if (has_rq) {
    if (user.rq_wqe_shift < 4 || user.rq_wqe_shift >= 32 || (1U << user.rq_wqe_shift) > caps.max_wqe_sz_rq)
      return -EINVAL;
    if (!std::has_single_bit(user.rq_wqe_count) || user.rq_wqe_count > most) return -EINVAL;
    qp.rq_wqes = user.rq_wqe_count;
    qp.rq_shift = user.rq_wqe_shift;
  }
  if (user.sq_wqe_count != 0 && !std::has_single_bit(user.sq_wqe_count)) return -EINVAL;
  if (user.sq_wqe_count > most || (attr.cap.max_send_wr != 0 && user.sq_wqe_count == 0)) return -EINVAL;
  qp.sq_wqebbs = user.sq_wqe_count;
  return 0;
}

}  // namespace

void build_qpc(const Mlx5Qp& qp, std::span<std::byte> qpc) {
  const auto set = [&](prm::Field f, std::uint32_t v) { prm::set(qpc.data(), f, v); };
  constexpr std::uint32_t kMigrated = 3;
  set(prm::kQpcSt, device_service(qp.qp_type));
  set(prm::kQpcPmState, kMigrated);
  if (qp.pd != nullptr) set(prm::kQpcPd, qp.pd->pdn);
  set(prm::kQpcLogMsgMax, qp.device->kernel.caps().log_max_msg);
  if (qp.rq_wqes != 0) {
    set(prm::kQpcLogRqSize, log2_of(qp.rq_wqes));
    set(prm::kQpcLogRqStride, qp.rq_shift - 4);
  }
  set(prm::kQpcNoSq, qp.sq_wqebbs == 0 ? 1 : 0);
  if (qp.sq_wqebbs != 0) set(prm::kQpcLogSqSize, log2_of(qp.sq_wqebbs));
  set(prm::kQpcRqType, qp.srq != nullptr ? prm::kRqSrq : qp.rq_wqes == 0 ? prm::kRqZero : prm::kRqRegular);
  if (qp.srq != nullptr) set(prm::kQpcSrqn, qp.srq->srqn);
  if (qp.domain != nullptr) set(prm::kQpcXrcd, qp.domain->xrcdn);
  set(prm::kQpcUarPage, qp.uar);
  set(prm::kQpcUserIndex, qp.user_index);
  if (qp.send_cq != nullptr) set(prm::kQpcCqnSnd, qp.send_cq->cqn);
  if (qp.recv_cq != nullptr) set(prm::kQpcCqnRcv, qp.recv_cq->cqn);
  set(prm::kQpcPageOffset, qp.page_offset);
  set(prm::kQpcWqSignature, (qp.flags & MLX5_QP_FLAG_SIGNATURE) != 0 ? 1 : 0);
  // Messages of up to half a CQE come in the CQE; results only if each request has one, or the program says so.
  const bool connected = qp.qp_type == IBV_QPT_RC || qp.qp_type == IBV_QPT_UC;
  if ((qp.flags & MLX5_QP_FLAG_SCATTER_CQE) != 0 && connected && qp.recv_cq != nullptr && qp.send_cq != nullptr) {
    set(prm::kQpcCsRes, cqe_size_of(qp.recv_cq) == 128 ? prm::kCsResData64 : prm::kCsResData32);
    const bool results = qp.sq_sig_all || (qp.flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE) != 0;
    if (results && qp.qp_type == IBV_QPT_RC)
      set(prm::kQpcCsReq, cqe_size_of(qp.send_cq) == 128 ? prm::kCsReqData64 : prm::kCsReqData32);
  }
  if (qp.dbr != nullptr)
    prm::set64(qpc.data(), prm::kQpcDbrAddr, qp.dbr->region.mapping.pages.front().v + qp.dbr_offset);
  if (qp.kernel != nullptr) prm::set64(qpc.data(), prm::kQpcDbrAddr, qp.kernel->dbr.at.v);
}

namespace {

int create_on_device(Mlx5Qp& qp, const DmaMapping& pages) {
  Kernel& kernel = qp.device->kernel;
  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(qp, qpc);
  if (const int error = kernel::create_qp(kernel.commands(), qpc, pages, qp.qpn); error != 0) return error;
  kernel.add_qp(qp);
  return 0;
}

void give_back(Mlx5Qp& qp) {
  if (qp.kernel != nullptr) return free_kernel_qp(qp);
  if (qp.ucontext == nullptr) return;
  Mlx5Ucontext& context = context_of(qp);
  qp.device->kernel.release(*context.user, qp.buffer);
  release_dbr(context, qp.dbr);
  if (qp.bfreg >= 0) context.bfregs.give(static_cast<std::uint32_t>(qp.bfreg));
}

/// The doorbell register: one of the context's, or that of a thread domain.
int take_register(Mlx5Qp& qp, const mlx5_ib_create_qp& user) {
  Mlx5Ucontext& context = context_of(qp);
  if ((user.flags & MLX5_QP_FLAG_BFREG_INDEX) != 0) {
    const auto dynamic = context.dynamic_uars.find(BfregPool::page_of(user.bfreg_index));
    if (dynamic == context.dynamic_uars.end() || dynamic->second == 0) return -EINVAL;
    qp.uar = dynamic->second;
  } else {
    qp.bfreg = static_cast<std::int32_t>(context.bfregs.take());
    qp.uar = context.uars.at(BfregPool::page_of(static_cast<std::uint32_t>(qp.bfreg)));
  }
  return 0;
}

}  // namespace

int create_qp(Qp& core, const QpInitAttr& attr, const Udata* udata) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  if (udata == nullptr) return create_kernel_qp(qp, attr);
  Kernel& kernel = qp.device->kernel;
  if (udata->in.size() < offsetof(mlx5_ib_create_qp, flags)) return -EINVAL;
  const auto user = udata->request<mlx5_ib_create_qp>();
  if ((user.flags & ~kKnownFlags) != 0) return -EINVAL;
  constexpr std::uint32_t kUnsupported = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE;
  if ((user.flags & kUnsupported) != 0) return -EOPNOTSUPP;
  if (user.uidx > 0xffffff) return -EINVAL;
  qp.user_index = user.uidx;
  if (attr.qp_type == IBV_QPT_XRC_RECV) {
    udata->respond(mlx5_ib_create_qp_resp{});
    return create_on_device(qp, {});
  }
  if (user.buf_addr % 64 != 0) return -EINVAL;
  if (const int error = size_qp(kernel.caps(), attr, user, qp); error != 0) return error;
  const std::uint64_t bytes = (std::uint64_t{qp.rq_wqes} << qp.rq_shift) + (std::uint64_t{qp.sq_wqebbs} << kWqebbShift);
  Undo undo([&] { give_back(qp); });
  Mlx5Ucontext& context = context_of(qp);
  if (bytes != 0)
    if (const int error = kernel.acquire(*context.user, {user.buf_addr}, bytes, qp.buffer); error != 0) return error;
  std::uint64_t dbr_bus = 0;
  if (const int error = acquire_dbr(context, user.db_addr, qp.dbr, dbr_bus); error != 0) return error;
  qp.dbr_offset = memory::Va{user.db_addr}.offset();
  if (const int error = take_register(qp, user); error != 0) return error;
  qp.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  qp.flags = user.flags;
  if (const int error = create_on_device(qp, qp.buffer.mapping); error != 0) return error;
  undo.dismiss();
  qp.cap = attr.cap;
  if (qp.rq_wqes == 0) qp.cap.max_recv_wr = qp.cap.max_recv_sge = 0;
  mlx5_ib_create_qp_resp resp{};
  if (qp.bfreg >= 0) resp.bfreg_index = BfregPool::user_index(static_cast<std::uint32_t>(qp.bfreg));
  udata->respond(resp);
  return 0;
}

int query_qp(Qp& core, ibv_qp_attr& a, ibv_qp_init_attr& init) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  std::array<std::byte, prm::kQpcSize> qpc{};
  if (const int error = kernel::query_qp(qp.device->kernel.commands(), qp.qpn, qpc); error != 0) return error;
  const auto get = [&](prm::Field f) { return prm::get(qpc.data(), f); };
  const auto path = [&](prm::Field f) { return prm::get(qpc.data() + prm::kQpcPath, f); };
  const auto path8 = [&](prm::Field f) { return static_cast<std::uint8_t>(path(f)); };
  const auto get8 = [&](prm::Field f) { return static_cast<std::uint8_t>(get(f)); };
  qp.state = state_of_device(get(prm::kQpcState));

  a.qp_state = a.cur_qp_state = qp.state;
  a.sq_draining = get(prm::kQpcState) == prm::kQpSqDraining ? 1 : 0;
  a.path_mtu = static_cast<ibv_mtu>(get(prm::kQpcMtu));
  a.path_mig_state = IBV_MIG_MIGRATED;
  a.qkey = get(prm::kQpcQkey);
  a.rq_psn = get(prm::kQpcNextRcvPsn);
  a.sq_psn = get(prm::kQpcNextSendPsn);
  a.dest_qp_num = get(prm::kQpcRemoteQpn);
  a.qp_access_flags = (get(prm::kQpcRre) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_READ} : 0U) |
                      (get(prm::kQpcRwe) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_WRITE} : 0U) |
                      (get(prm::kQpcRae) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_ATOMIC} : 0U);
  a.pkey_index = static_cast<std::uint16_t>(path(prm::kAdsPkeyIndex));
  a.port_num = path8(prm::kAdsPort);
  a.timeout = path8(prm::kAdsAckTimeout);
  a.retry_cnt = get8(prm::kQpcRetryCount);
  a.rnr_retry = get8(prm::kQpcRnrRetry);
  a.min_rnr_timer = get8(prm::kQpcMinRnrNak);
  a.max_rd_atomic =
      get(prm::kQpcNoReads) != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1U << get(prm::kQpcLogSraMax));
  a.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << get(prm::kQpcLogRraMax));
  a.cap = qp.cap;
  init.sq_sig_all = qp.sq_sig_all ? 1 : 0;
  init.cap = qp.cap;
  if (qp.qp_type != IBV_QPT_UD && path(prm::kAdsGrh) != 0) {
    ibv_ah_attr& av = a.ah_attr;
    std::memcpy(av.grh.dgid.raw, qpc.data() + prm::kQpcPath + prm::kAdsRgid, 16);
    av.grh.flow_label = path(prm::kAdsFlowLabel);
    av.grh.sgid_index = path8(prm::kAdsSrcAddrIndex);
    av.grh.hop_limit = path8(prm::kAdsHopLimit);
    av.grh.traffic_class = path8(prm::kAdsTclass);
    av.sl = path8(prm::kAdsSl);
    av.is_global = 1;
    av.port_num = a.port_num;
  }
  return 0;
}

int destroy_qp(Qp& core) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  Kernel& kernel = qp.device->kernel;
  if (qp.state != IBV_QPS_RESET)
    if (const int error = kernel::modify_qp(kernel.commands(), prm::kQp2Rst, qp.qpn, 0, {}); error != 0)
      kernel.counter("qp_reset_failures").add();
  qp.state = IBV_QPS_RESET;
  if (qp.kernel != nullptr) reset_kernel_qp(qp);
  if (const int error = kernel::destroy_qp(kernel.commands(), qp.qpn); error != 0) return error;
  kernel.remove_qp(qp);
  give_back(qp);
  return 0;
}

}  // namespace kernel::mlx5_ib
