// SPDX-License-Identifier: Apache-2.0
// Commands that create, modify, query and destroy QPs of type RC, UC, UD and XRC. Rings belong to user space, which also
// computed their sizes; the driver checks them against the device. Other types are refused.
// Source: ib_uverbs uverbs_cmd.c, mlx5_ib qp.c (create_user_qp, set_rq_size, set_user_buf_size).
#include <bit>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/core/qp_state.h"
#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr std::uint32_t kWqebbShift = 6;
constexpr std::uint32_t kKnownFlags = MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE |
                                      MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_BFREG_INDEX |
                                      MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE | MLX5_QP_FLAG_UAR_PAGE_INDEX;

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::bit_width(power) - 1); }
}  // namespace

int UverbsFile::size_qp(const ib_uverbs_create_qp& cmd, const mlx5_ib_create_qp& user, Qp& qp) const {
  const DeviceCaps& caps = kernel_.caps();
  const std::uint32_t most = 1U << caps.log_max_qp_sz;
  if (cmd.max_recv_wr > most || cmd.max_send_wr > most) return -EINVAL;
  if (cmd.max_send_sge > (caps.max_wqe_sz_sq - 16) / 16 || cmd.max_recv_sge > caps.max_wqe_sz_rq / 16) return -EINVAL;
  const bool has_rq = cmd.max_recv_wr != 0 && cmd.is_srq == 0 && cmd.qp_type != IBV_QPT_XRC_SEND;
  if (has_rq) {
    if (user.rq_wqe_shift < 4 || user.rq_wqe_shift >= 32 || (1U << user.rq_wqe_shift) > caps.max_wqe_sz_rq)
      return -EINVAL;
    if (!std::has_single_bit(user.rq_wqe_count) || user.rq_wqe_count > most) return -EINVAL;
    qp.rq_wqes = user.rq_wqe_count;
    qp.rq_shift = user.rq_wqe_shift;
  }
  if (user.sq_wqe_count != 0 && !std::has_single_bit(user.sq_wqe_count)) return -EINVAL;
  if (user.sq_wqe_count > most || (cmd.max_send_wr != 0 && user.sq_wqe_count == 0)) return -EINVAL;
  qp.sq_wqebbs = user.sq_wqe_count;
  return 0;
}

void UverbsFile::build_qpc(const Qp& qp, std::span<std::byte> qpc) const {
  const auto set = [&](prm::Field f, std::uint32_t v) { prm::set(qpc.data(), f, v); };
  constexpr std::uint32_t kMigrated = 3;
  set(prm::kQpcSt, device_service(qp.qp_type));
  set(prm::kQpcPmState, kMigrated);
  if (qp.pd != nullptr) set(prm::kQpcPd, qp.pd->pdn);
  set(prm::kQpcLogMsgMax, kernel_.caps().log_max_msg);
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
    set(prm::kQpcCsRes, qp.recv_cq->cqe_size == 128 ? prm::kCsResData64 : prm::kCsResData32);
    const bool results = qp.sq_sig_all || (qp.flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE) != 0;
    if (results && qp.qp_type == IBV_QPT_RC)
      set(prm::kQpcCsReq, qp.send_cq->cqe_size == 128 ? prm::kCsReqData64 : prm::kCsReqData32);
  }
  if (qp.dbr != nullptr)
    prm::set64(qpc.data(), prm::kQpcDbrAddr, qp.dbr->region.mapping.pages.front().v + qp.dbr_offset);
}

int UverbsFile::create_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_qp>();
  const bool xrc_send = cmd.qp_type == IBV_QPT_XRC_SEND;
  if (cmd.qp_type != IBV_QPT_RC && cmd.qp_type != IBV_QPT_UC && cmd.qp_type != IBV_QPT_UD && !xrc_send &&
      cmd.qp_type != IBV_QPT_XRC_RECV)
    return -EOPNOTSUPP;
  if (io.driver_in.size() < offsetof(mlx5_ib_create_qp, flags)) return -EINVAL;
  const auto user = io.driver_request<mlx5_ib_create_qp>();
  if ((user.flags & ~kKnownFlags) != 0) return -EINVAL;
  constexpr std::uint32_t kUnsupported = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE;
  if ((user.flags & kUnsupported) != 0) return -EOPNOTSUPP;
  if (cmd.qp_type == IBV_QPT_XRC_RECV) return create_xrc_target(cmd, user, io);
  if (user.buf_addr % 64 != 0 || user.uidx > 0xffffff) return -EINVAL;
  Use<Pd> pd;
  Use<Cq> send_cq, recv_cq;
  Use<Srq> srq;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  if (const int error = parent(ObjectType::cq, cmd.send_cq_handle, send_cq); error != 0) return error;
  if (!xrc_send)
    if (const int error = parent(ObjectType::cq, cmd.recv_cq_handle, recv_cq); error != 0) return error;
  if (!xrc_send && cmd.is_srq != 0) {
    if (const int error = parent(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
    if (srq->xrcd != nullptr) return -EINVAL;  // XRC SRQs serve XRC target QPs
  }

  auto qp = std::make_unique<Qp>();
  qp->qp_type = static_cast<ibv_qp_type>(cmd.qp_type);
  if (const int error = size_qp(cmd, user, *qp); error != 0) return error;
  const std::uint64_t bytes =
      (std::uint64_t{qp->rq_wqes} << qp->rq_shift) + (std::uint64_t{qp->sq_wqebbs} << kWqebbShift);
  struct Undo {
    UverbsFile& file;
    Qp& qp;
    bool armed = true;
    ~Undo() {
      if (!armed) return;
      file.kernel_.release(file.user_, qp.buffer);
      file.release_dbr(qp.dbr);
      if (qp.bfreg >= 0) file.bfregs_.give(static_cast<std::uint32_t>(qp.bfreg));
    }
  } undo{*this, *qp};
  if (bytes != 0)
    if (const int error = kernel_.acquire(user_, {user.buf_addr}, bytes, qp->buffer); error != 0) return error;
  std::uint64_t dbr_bus = 0;
  if (const int error = acquire_dbr(user.db_addr, qp->dbr, dbr_bus); error != 0) return error;
  qp->dbr_offset = memory::Va{user.db_addr}.offset();
  if ((user.flags & MLX5_QP_FLAG_BFREG_INDEX) != 0) {  // the register of a thread domain
    const auto dynamic = dynamic_uars_.find(BfregPool::page_of(user.bfreg_index));
    if (dynamic == dynamic_uars_.end() || dynamic->second == 0) return -EINVAL;
    qp->uar = dynamic->second;
  } else {
    qp->bfreg = static_cast<std::int32_t>(bfregs_.take());
    qp->uar = uars_.at(BfregPool::page_of(static_cast<std::uint32_t>(qp->bfreg)));
  }
  qp->page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  qp->user_index = user.uidx;
  qp->flags = user.flags;
  qp->sq_sig_all = cmd.sq_sig_all != 0;
  qp->pd = pd.get();
  qp->send_cq = send_cq.get();
  qp->recv_cq = recv_cq.get();
  qp->srq = srq.get();
  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(*qp, qpc);
  if (const int error = kernel::create_qp(kernel_.commands(), qpc, qp->buffer.mapping, qp->qpn); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  undo.armed = false;

  ++pd->usecnt;
  ++send_cq->usecnt;
  if (recv_cq) ++recv_cq->usecnt;
  if (srq) ++srq->usecnt;
  qp->user_handle = cmd.user_handle;
  qp->async = async_;
  const bool has_rq = qp->rq_wqes != 0;
  qp->cap = {cmd.max_send_wr, has_rq ? cmd.max_recv_wr : 0, cmd.max_send_sge, has_rq ? cmd.max_recv_sge : 0,
             cmd.max_inline_data};
  kernel_.add_qp(*qp);
  mlx5_ib_create_qp_resp driver{};
  if (qp->bfreg >= 0) driver.bfreg_index = BfregPool::user_index(static_cast<std::uint32_t>(qp->bfreg));
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = qp->qpn;
  resp.max_send_wr = cmd.max_send_wr;
  resp.max_recv_wr = qp->cap.max_recv_wr;
  resp.max_send_sge = cmd.max_send_sge;
  resp.max_recv_sge = qp->cap.max_recv_sge;
  resp.max_inline_data = cmd.max_inline_data;
  resp.qp_handle = add(std::move(qp));
  io.respond(resp);
  io.driver_respond(driver);
  return 0;
}

int UverbsFile::modify_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_modify_qp>();
  if ((cmd.attr_mask & ~((static_cast<std::uint32_t>(IBV_QP_DEST_QPN) << 1) - 1)) != 0) return -EOPNOTSUPP;
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(qp->target(), qpc);
  return kernel::modify_qp(kernel_, qp->target(), cmd, qpc);
}

int UverbsFile::query_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_qp>();
  Use<Qp> use_qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, use_qp); error != 0) return error;
  Qp& qp = use_qp->target();
  std::array<std::byte, prm::kQpcSize> qpc{};
  if (const int error = kernel::query_qp(kernel_.commands(), qp.qpn, qpc); error != 0) return error;
  const auto get = [&](prm::Field f) { return prm::get(qpc.data(), f); };
  const auto path = [&](prm::Field f) { return prm::get(qpc.data() + prm::kQpcPath, f); };
  qp.state = state_of_device(get(prm::kQpcState));

  ib_uverbs_query_qp_resp r{};
  r.qp_state = static_cast<std::uint8_t>(qp.state);
  r.cur_qp_state = r.qp_state;
  r.sq_draining = get(prm::kQpcState) == prm::kQpSqDraining ? 1 : 0;
  r.path_mtu = static_cast<std::uint8_t>(get(prm::kQpcMtu));
  r.path_mig_state = IBV_MIG_MIGRATED;
  r.qkey = get(prm::kQpcQkey);
  r.rq_psn = get(prm::kQpcNextRcvPsn);
  r.sq_psn = get(prm::kQpcNextSendPsn);
  r.dest_qp_num = get(prm::kQpcRemoteQpn);
  r.qp_access_flags = (get(prm::kQpcRre) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_READ} : 0U) |
                      (get(prm::kQpcRwe) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_WRITE} : 0U) |
                      (get(prm::kQpcRae) != 0 ? std::uint32_t{IBV_ACCESS_REMOTE_ATOMIC} : 0U);
  r.pkey_index = static_cast<std::uint16_t>(path(prm::kAdsPkeyIndex));
  r.port_num = static_cast<std::uint8_t>(path(prm::kAdsPort));
  r.timeout = static_cast<std::uint8_t>(path(prm::kAdsAckTimeout));
  r.retry_cnt = static_cast<std::uint8_t>(get(prm::kQpcRetryCount));
  r.rnr_retry = static_cast<std::uint8_t>(get(prm::kQpcRnrRetry));
  r.min_rnr_timer = static_cast<std::uint8_t>(get(prm::kQpcMinRnrNak));
  r.max_rd_atomic =
      get(prm::kQpcNoReads) != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1U << get(prm::kQpcLogSraMax));
  r.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << get(prm::kQpcLogRraMax));
  r.sq_sig_all = qp.sq_sig_all ? 1 : 0;
  r.max_send_wr = qp.cap.max_send_wr;
  r.max_recv_wr = qp.cap.max_recv_wr;
  r.max_send_sge = qp.cap.max_send_sge;
  r.max_recv_sge = qp.cap.max_recv_sge;
  r.max_inline_data = qp.cap.max_inline_data;
  if (qp.qp_type != IBV_QPT_UD && path(prm::kAdsGrh) != 0) {
    std::memcpy(r.dest.dgid, qpc.data() + prm::kQpcPath + prm::kAdsRgid, 16);
    r.dest.flow_label = path(prm::kAdsFlowLabel);
    r.dest.sgid_index = static_cast<std::uint8_t>(path(prm::kAdsSrcAddrIndex));
    r.dest.hop_limit = static_cast<std::uint8_t>(path(prm::kAdsHopLimit));
    r.dest.traffic_class = static_cast<std::uint8_t>(path(prm::kAdsTclass));
    r.dest.sl = static_cast<std::uint8_t>(path(prm::kAdsSl));
    r.dest.is_global = 1;
    r.dest.port_num = r.port_num;
  }
  io.respond(r);
  return 0;
}

int UverbsFile::destroy_device_qp(Qp& qp) {
  CommandInterface& commands = kernel_.commands();
  if (qp.state != IBV_QPS_RESET)
    if (const int error = kernel::modify_qp(commands, prm::kQp2Rst, qp.qpn, 0, {}); error != 0)
      kernel_.counter("qp_reset_failures").add();
  qp.state = IBV_QPS_RESET;
  return kernel::destroy_qp(commands, qp.qpn);
}

int UverbsFile::destroy_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_destroy_qp>();
  ib_uverbs_destroy_qp_resp resp{};
  const auto report = [](Object& o, void* arg) {
    static_cast<ib_uverbs_destroy_qp_resp*>(arg)->events_reported = o.async_events_reported;
  };
  const int error = destroy(ObjectType::qp, cmd.qp_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

}  // namespace kernel
