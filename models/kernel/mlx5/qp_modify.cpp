// SPDX-License-Identifier: Apache-2.0
// modify_qp of the driver: table of transitions, value checks, then the context for the device command. A refused call
// changes nothing. The real device has no command that leads into SQD; mlx5_no_sqd leaves it out here too (S-QP-6).
// Source: mlx5_ib qp.c; rules S-QP-10 … S-QP-32, S-ROCE-2, S-ROCE-5.
#include <array>
#include <bit>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/core/qp_state.h"
#include "kernel/mlx5/mlx5_ib.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;

namespace {

constexpr std::uint32_t kRouteHopLimit = 64;  // S-ROCE-5

struct Change {
  ibv_qp_state from, to;
  std::uint32_t mask;
};

int check_values(const Kernel& kernel, const QpAttr& attr, std::uint32_t mask) {
  const DeviceCaps& caps = kernel.caps();
  const auto given = [&](std::uint32_t bit) { return (mask & bit) != 0; };
  if (given(IBV_QP_PKEY_INDEX) && attr.pkey_index >= kernel.config().netdev.pkey_table_length) return -EINVAL;
  if (given(IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > 1U << caps.log_max_ra_req) return -EINVAL;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > 1U << caps.log_max_ra_res) return -EINVAL;
  if (given(IBV_QP_PATH_MTU) &&
      (attr.path_mtu < IBV_MTU_256 || static_cast<std::uint32_t>(attr.path_mtu) > caps.max_port_mtu))
    return -EINVAL;
  if (given(IBV_QP_TIMEOUT) && attr.timeout > 31) return -EINVAL;
  if (given(IBV_QP_RETRY_CNT) && attr.retry_cnt > 7) return -EINVAL;
  if (given(IBV_QP_RNR_RETRY) && attr.rnr_retry > 7) return -EINVAL;
  if (given(IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > 31) return -EINVAL;
  if (given(IBV_QP_DEST_QPN) && attr.dest_qp_num > 0xffffff) return -EINVAL;
  return 0;
}

void set_access(const Mlx5Qp& qp, const QpAttr& attr, std::uint32_t mask, std::byte* qpc) {
  const std::uint32_t depth = (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? attr.max_dest_rd_atomic : qp.max_dest_rd_atomic;
  std::uint32_t access = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? attr.qp_access_flags : qp.access;
  if (depth == 0) access &= IBV_ACCESS_REMOTE_WRITE;
  const bool atomic = (access & IBV_ACCESS_REMOTE_ATOMIC) != 0;
  prm::set(qpc, prm::kQpcRre, (access & IBV_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
  prm::set(qpc, prm::kQpcRwe, (access & IBV_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
  prm::set(qpc, prm::kQpcRae, atomic ? 1 : 0);
  if (atomic) prm::set(qpc, prm::kQpcAtomicMode, 1);
}

/// The address path of a RoCE QP.
void set_path(const Mlx5Qp& qp, const QpAttr& attr, std::uint32_t mask, std::byte* path) {
  const ibv_global_route& d = attr.ah_attr.grh;
  prm::set(path, prm::kAdsGrh, 1);
  prm::set(path, prm::kAdsSrcAddrIndex, d.sgid_index);
  prm::set(path, prm::kAdsHopLimit, qp.qp_type == IBV_QPT_UD ? d.hop_limit : kRouteHopLimit);
  prm::set(path, prm::kAdsTclass, d.traffic_class);
  prm::set(path, prm::kAdsFlowLabel, d.flow_label & 0xfffff);
  std::memcpy(path + prm::kAdsRgid, d.dgid.raw, sizeof d.dgid.raw);
  if (qp.device->gids.at(d.sgid_index).type == GidType::roce_v2)
    prm::set(path, prm::kAdsUdpSport,
             udp_source_port(d.flow_label, qp.qpn, (mask & IBV_QP_DEST_QPN) != 0 ? attr.dest_qp_num : qp.dest_qpn));
  prm::set(path, prm::kAdsSl, attr.ah_attr.sl & 0xfU);
  prm::set(path, prm::kAdsStatRate, attr.ah_attr.static_rate & 0xfU);
  prm::set(path, prm::kAdsRmacHigh, static_cast<std::uint32_t>(attr.dmac >> 32));
  prm::set(path, prm::kAdsRmacLow, static_cast<std::uint32_t>(attr.dmac));
}

void set_numbers(const Kernel& kernel, const Mlx5Qp& qp, const Change& change, const QpAttr& attr, std::byte* qpc) {
  const auto given = [&](std::uint32_t bit) { return (change.mask & bit) != 0; };
  const auto set = [&](prm::Field f, std::uint32_t v) { prm::set(qpc, f, v); };
  std::byte* const path = qpc + prm::kQpcPath;
  prm::set(path, prm::kAdsPkeyIndex, given(IBV_QP_PKEY_INDEX) ? attr.pkey_index : qp.pkey_index);
  prm::set(path, prm::kAdsPort, given(IBV_QP_PORT) ? attr.port_num : qp.port);
  if (given(IBV_QP_TIMEOUT)) prm::set(path, prm::kAdsAckTimeout, attr.timeout);
  if (qp.qp_type == IBV_QPT_UD) set(prm::kQpcMtu, kernel.active_mtu());
  else if (given(IBV_QP_PATH_MTU)) set(prm::kQpcMtu, attr.path_mtu);
  if (qp.qp_type != IBV_QPT_UC && qp.qp_type != IBV_QPT_UD)
    set(prm::kQpcLogAckReqFreq, kernel.config().driver.log_ack_req_freq);  // S-QP-32
  if (given(IBV_QP_DEST_QPN)) set(prm::kQpcRemoteQpn, attr.dest_qp_num);
  if (given(IBV_QP_RQ_PSN)) set(prm::kQpcNextRcvPsn, attr.rq_psn & 0xffffff);
  if (given(IBV_QP_SQ_PSN)) set(prm::kQpcNextSendPsn, attr.sq_psn & 0xffffff);
  if (given(IBV_QP_QKEY)) set(prm::kQpcQkey, attr.qkey);
  if (given(IBV_QP_RETRY_CNT)) set(prm::kQpcRetryCount, attr.retry_cnt);
  if (given(IBV_QP_RNR_RETRY)) set(prm::kQpcRnrRetry, attr.rnr_retry);
  if (given(IBV_QP_MIN_RNR_TIMER)) set(prm::kQpcMinRnrNak, attr.min_rnr_timer);
  // Depths are stored as log2, rounded up (S-QP-30).
  if (given(IBV_QP_MAX_QP_RD_ATOMIC)) {
    if (attr.max_rd_atomic != 0)
      set(prm::kQpcLogSraMax, static_cast<std::uint32_t>(std::bit_width(attr.max_rd_atomic - 1U)));
    else set(prm::kQpcNoReads, 1);  // S-QP-30
  }
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic != 0)
    set(prm::kQpcLogRraMax, static_cast<std::uint32_t>(std::bit_width(attr.max_dest_rd_atomic - 1U)));
}

void remember(Mlx5Qp& qp, const Change& change, const QpAttr& attr) {
  const auto given = [&](std::uint32_t bit) { return (change.mask & bit) != 0; };
  qp.state = change.to;
  if (given(IBV_QP_PKEY_INDEX)) qp.pkey_index = attr.pkey_index;
  if (given(IBV_QP_DEST_QPN)) qp.dest_qpn = attr.dest_qp_num;
  if (given(IBV_QP_ACCESS_FLAGS)) qp.access = attr.qp_access_flags;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC)) qp.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (change.to == IBV_QPS_RESET) {
    qp.max_dest_rd_atomic = 0;
    qp.access = 0;
  }
}

}  // namespace

int modify_qp(Qp& core, const QpAttr& attr, std::uint32_t mask, const Udata* /*udata*/) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  Kernel& kernel = qp.device->kernel;
  // The caller's word for the current state goes into the table check; a wrong one is refused here, where firmware
  // would refuse it (S-QP-11).
  Change change{qp.state, qp.state, mask};
  if ((mask & IBV_QP_CUR_STATE) != 0) change.from = attr.cur_qp_state;
  change.to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : change.from;
  if (!modify_allowed(qp.qp_type, change.from, change.to, mask)) return -EINVAL;
  if (const int error = check_values(kernel, attr, mask); error != 0) return error;
  if (change.from == IBV_QPS_RESET && change.to == IBV_QPS_RESET) return 0;
  const auto opcode = device_command(change.from, change.to);
  if (!opcode) return -EINVAL;
  const bool into_sqd = change.to == IBV_QPS_SQD;
  if (into_sqd && kernel.config().driver.mlx5_no_sqd) return -EINVAL;

  std::array<std::byte, prm::kQpcSize> qpc{};
  build_qpc(qp, qpc);
  set_numbers(kernel, qp, change, attr, qpc.data());
  set_access(qp, attr, mask, qpc.data());
  if ((mask & IBV_QP_AV) != 0) set_path(qp, attr, mask, qpc.data() + prm::kQpcPath);
  const std::uint32_t opt = device_opt_mask(qp.qp_type, change.from, change.to, mask);
  const std::uint32_t op_mod =
      (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr.en_sqd_async_notify != 0 ? prm::kSqdNotify : 0;
  if (const int error = kernel::modify_qp(kernel.commands(), *opcode, qp.qpn, opt, qpc, op_mod); error != 0)
    return error;
  remember(qp, change, attr);
  if (change.to == IBV_QPS_RESET && qp.kernel != nullptr) reset_kernel_qp(qp);
  return 0;
}

}  // namespace kernel::mlx5_ib
