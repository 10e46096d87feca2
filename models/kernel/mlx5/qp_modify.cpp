// SPDX-License-Identifier: Apache-2.0
// modify_qp: the checks of ib_uverbs, ib_core and mlx5_ib in their order, then the context for the device command. A
// refused call changes nothing. Alternate paths do not exist on RoCE. The real device has no command that leads into SQD;
// mlx5_no_sqd leaves it out here too (S-QP-6).
// Source: ib_uverbs (modify_qp), ib_core (_ib_modify_qp), mlx5_ib qp.c; rules S-QP-10 … S-QP-32, S-ROCE-2, S-ROCE-5.
#include <bit>
#include <cerrno>

#include "hca/prm.h"
#include "kernel/core/qp_state.h"
#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace prm = hca::prm;

namespace {

constexpr std::uint32_t kRouteHopLimit = 64;  // S-ROCE-5

struct Change {
  ibv_qp_state from, to;
  std::uint32_t mask;
};

/// Address vector and port (ib_uverbs): INIT to RTR keeps the port; elsewhere the AV's port becomes the QP's.
int check_ports(const Kernel& kernel, const Qp& qp, ib_uverbs_modify_qp& cmd) {
  const auto valid = [&](std::uint8_t port) { return port >= 1 && port <= kernel.caps().num_ports; };
  const std::uint32_t mask = cmd.attr_mask;
  if ((mask & IBV_QP_PORT) != 0 && !valid(cmd.port_num)) return -EINVAL;
  if ((mask & IBV_QP_AV) == 0) return 0;
  if (!valid(cmd.dest.port_num)) return -EINVAL;
  if ((mask & IBV_QP_STATE) != 0 && cmd.qp_state == IBV_QPS_RTR) return cmd.dest.port_num == qp.port ? 0 : -EINVAL;
  if ((mask & IBV_QP_PORT) != 0) return cmd.port_num == cmd.dest.port_num ? 0 : -EINVAL;
  cmd.port_num = cmd.dest.port_num;
  cmd.attr_mask |= IBV_QP_PORT;
  return 0;
}

int check_values(const Kernel& kernel, const ib_uverbs_modify_qp& cmd) {
  const DeviceCaps& caps = kernel.caps();
  const auto given = [&](std::uint32_t bit) { return (cmd.attr_mask & bit) != 0; };
  if (given(IBV_QP_PKEY_INDEX) && cmd.pkey_index >= kernel.config().netdev.pkey_table_length) return -EINVAL;
  if (given(IBV_QP_MAX_QP_RD_ATOMIC) && cmd.max_rd_atomic > 1U << caps.log_max_ra_req) return -EINVAL;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && cmd.max_dest_rd_atomic > 1U << caps.log_max_ra_res) return -EINVAL;
  if (given(IBV_QP_PATH_MTU) && (cmd.path_mtu < IBV_MTU_256 || cmd.path_mtu > caps.max_port_mtu)) return -EINVAL;
  if (given(IBV_QP_TIMEOUT) && cmd.timeout > 31) return -EINVAL;
  if (given(IBV_QP_RETRY_CNT) && cmd.retry_cnt > 7) return -EINVAL;
  if (given(IBV_QP_RNR_RETRY) && cmd.rnr_retry > 7) return -EINVAL;
  if (given(IBV_QP_MIN_RNR_TIMER) && cmd.min_rnr_timer > 31) return -EINVAL;
  if (given(IBV_QP_DEST_QPN) && cmd.dest_qp_num > 0xffffff) return -EINVAL;
  return 0;
}

void set_access(Qp& qp, const ib_uverbs_modify_qp& cmd, std::byte* qpc) {
  const std::uint32_t depth =
      (cmd.attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? cmd.max_dest_rd_atomic : qp.max_dest_rd_atomic;
  std::uint32_t access = (cmd.attr_mask & IBV_QP_ACCESS_FLAGS) != 0 ? cmd.qp_access_flags : qp.access;
  if (depth == 0) access &= IBV_ACCESS_REMOTE_WRITE;
  const bool atomic = (access & IBV_ACCESS_REMOTE_ATOMIC) != 0;
  prm::set(qpc, prm::kQpcRre, (access & IBV_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
  prm::set(qpc, prm::kQpcRwe, (access & IBV_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
  prm::set(qpc, prm::kQpcRae, atomic ? 1 : 0);
  if (atomic) prm::set(qpc, prm::kQpcAtomicMode, 1);
}

/// The address path of a RoCE QP; resolves the remote MAC address.
int set_path(Kernel& kernel, const Qp& qp, const ib_uverbs_modify_qp& cmd, std::byte* path) {
  const ib_uverbs_qp_dest& d = cmd.dest;
  Gid gid;
  std::memcpy(gid.data(), d.dgid, gid.size());
  int error = 0;
  const Mac mac = kernel.resolve(gid, error);
  if (error != 0) return error;
  prm::set(path, prm::kAdsGrh, 1);
  prm::set(path, prm::kAdsSrcAddrIndex, d.sgid_index);
  prm::set(path, prm::kAdsHopLimit, qp.qp_type == IBV_QPT_UD ? d.hop_limit : kRouteHopLimit);
  prm::set(path, prm::kAdsTclass, d.traffic_class);
  prm::set(path, prm::kAdsFlowLabel, d.flow_label & 0xfffff);
  std::memcpy(path + prm::kAdsRgid, gid.data(), gid.size());
  if (kernel.gids().at(d.sgid_index).type == GidType::roce_v2)
    prm::set(
        path, prm::kAdsUdpSport,
        udp_source_port(d.flow_label, qp.qpn, (cmd.attr_mask & IBV_QP_DEST_QPN) != 0 ? cmd.dest_qp_num : qp.dest_qpn));
  prm::set(path, prm::kAdsSl, d.sl & 0xf);
  prm::set(path, prm::kAdsStatRate, d.static_rate & 0xf);
  prm::set(path, prm::kAdsRmacHigh, static_cast<std::uint32_t>(mac >> 32));
  prm::set(path, prm::kAdsRmacLow, static_cast<std::uint32_t>(mac));
  return 0;
}

void set_numbers(const Kernel& kernel, const Qp& qp, const Change& change, const ib_uverbs_modify_qp& cmd,
                 std::byte* qpc) {
  const auto given = [&](std::uint32_t bit) { return (change.mask & bit) != 0; };
  const auto set = [&](prm::Field f, std::uint32_t v) { prm::set(qpc, f, v); };
  std::byte* const path = qpc + prm::kQpcPath;
  prm::set(path, prm::kAdsPkeyIndex, given(IBV_QP_PKEY_INDEX) ? cmd.pkey_index : qp.pkey_index);
  prm::set(path, prm::kAdsPort, given(IBV_QP_PORT) ? cmd.port_num : qp.port);
  if (given(IBV_QP_TIMEOUT)) prm::set(path, prm::kAdsAckTimeout, cmd.timeout);
  if (qp.qp_type == IBV_QPT_UD) set(prm::kQpcMtu, kernel.active_mtu());
  else if (given(IBV_QP_PATH_MTU)) set(prm::kQpcMtu, cmd.path_mtu);
  if (qp.qp_type != IBV_QPT_UC && qp.qp_type != IBV_QPT_UD)
    set(prm::kQpcLogAckReqFreq, kernel.config().driver.log_ack_req_freq);  // S-QP-32
  if (given(IBV_QP_DEST_QPN)) set(prm::kQpcRemoteQpn, cmd.dest_qp_num);
  if (given(IBV_QP_RQ_PSN)) set(prm::kQpcNextRcvPsn, cmd.rq_psn & 0xffffff);
  if (given(IBV_QP_SQ_PSN)) set(prm::kQpcNextSendPsn, cmd.sq_psn & 0xffffff);
  if (given(IBV_QP_QKEY)) set(prm::kQpcQkey, cmd.qkey);
  if (given(IBV_QP_RETRY_CNT)) set(prm::kQpcRetryCount, cmd.retry_cnt);
  if (given(IBV_QP_RNR_RETRY)) set(prm::kQpcRnrRetry, cmd.rnr_retry);
  if (given(IBV_QP_MIN_RNR_TIMER)) set(prm::kQpcMinRnrNak, cmd.min_rnr_timer);
  // Depths are stored as log2, rounded up (S-QP-30).
  if (given(IBV_QP_MAX_QP_RD_ATOMIC)) {
    if (cmd.max_rd_atomic != 0)
      set(prm::kQpcLogSraMax, static_cast<std::uint32_t>(std::bit_width(cmd.max_rd_atomic - 1U)));
    else set(prm::kQpcNoReads, 1);  // S-QP-30
  }
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && cmd.max_dest_rd_atomic != 0)
    set(prm::kQpcLogRraMax, static_cast<std::uint32_t>(std::bit_width(cmd.max_dest_rd_atomic - 1U)));
}

void remember(Qp& qp, const Change& change, const ib_uverbs_modify_qp& cmd) {
  const auto given = [&](std::uint32_t bit) { return (change.mask & bit) != 0; };
  qp.state = change.to;
  if (given(IBV_QP_PORT)) qp.port = cmd.port_num;
  if (given(IBV_QP_PKEY_INDEX)) qp.pkey_index = cmd.pkey_index;
  if (given(IBV_QP_DEST_QPN)) qp.dest_qpn = cmd.dest_qp_num;
  if (given(IBV_QP_ACCESS_FLAGS)) qp.access = cmd.qp_access_flags;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC)) qp.max_dest_rd_atomic = cmd.max_dest_rd_atomic;
  if (change.to == IBV_QPS_RESET) {
    qp.max_dest_rd_atomic = 0;
    qp.access = 0;
  }
}

}  // namespace

int modify_qp(Kernel& kernel, Qp& qp, ib_uverbs_modify_qp cmd, std::span<std::byte> qpc) {
  if (const int error = check_ports(kernel, qp, cmd); error != 0) return error;
  const std::uint32_t mask = cmd.attr_mask;
  if ((mask & IBV_QP_CUR_STATE) != 0 && cmd.cur_qp_state > IBV_QPS_ERR) return -EINVAL;
  if ((mask & IBV_QP_STATE) != 0 && cmd.qp_state > IBV_QPS_ERR) return -EINVAL;
  if ((mask & IBV_QP_QKEY) != 0 && (cmd.qkey >> 31) != 0 && !kernel.config().driver.privileged) return -EPERM;
  if ((mask & IBV_QP_AV) != 0 && (cmd.dest.is_global == 0 || !kernel.gids().usable(cmd.dest.sgid_index)))
    return -EINVAL;
  if ((mask & IBV_QP_ALT_PATH) != 0) return -EINVAL;

  // The caller's word for the current state goes into the table check; a wrong one is refused here, where firmware
  // would refuse it (S-QP-11).
  Change change{qp.state, qp.state, mask};
  if ((mask & IBV_QP_CUR_STATE) != 0) change.from = static_cast<ibv_qp_state>(cmd.cur_qp_state);
  change.to = (mask & IBV_QP_STATE) != 0 ? static_cast<ibv_qp_state>(cmd.qp_state) : change.from;
  if (!modify_allowed(qp.qp_type, change.from, change.to, mask)) return -EINVAL;
  if (const int error = check_values(kernel, cmd); error != 0) return error;
  if (change.from == IBV_QPS_RESET && change.to == IBV_QPS_RESET) return 0;
  const auto opcode = device_command(change.from, change.to);
  if (!opcode) return -EINVAL;
  const bool into_sqd = change.to == IBV_QPS_SQD;
  if (into_sqd && kernel.config().driver.mlx5_no_sqd) return -EINVAL;

  std::byte* const context = qpc.data();
  set_numbers(kernel, qp, change, cmd, context);
  set_access(qp, cmd, context);
  if ((mask & IBV_QP_AV) != 0)
    if (const int error = set_path(kernel, qp, cmd, context + prm::kQpcPath); error != 0) return error;
  const std::uint32_t opt = device_opt_mask(qp.qp_type, change.from, change.to, mask);
  const std::uint32_t op_mod =
      (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && cmd.en_sqd_async_notify != 0 ? prm::kSqdNotify : 0;
  if (const int error = modify_qp(kernel.commands(), *opcode, qp.qpn, opt, qpc, op_mod); error != 0) return error;
  remember(qp, change, cmd);
  return 0;
}

}  // namespace kernel
