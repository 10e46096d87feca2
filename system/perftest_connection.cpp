// SPDX-License-Identifier: Apache-2.0
#include "system/perftest_connection.h"

#include <cstring>

namespace sys {

QpTransition to_init() {
  QpTransition t;
  t.attr.qp_state = IBV_QPS_INIT;
  t.attr.port_num = 1;
  t.attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  t.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  return t;
}

QpTransition to_rtr(const WorkloadConfig& config, const PeerAddress& peer) {
  QpTransition t;
  t.attr.qp_state = IBV_QPS_RTR;
  t.attr.path_mtu = static_cast<ibv_mtu>(__builtin_ctz(config.mtu) - 7);
  t.attr.dest_qp_num = peer.qpn;
  t.attr.rq_psn = peer.psn;
  t.attr.max_dest_rd_atomic = static_cast<std::uint8_t>(config.max_rd_atomic);
  t.attr.min_rnr_timer = static_cast<std::uint8_t>(config.min_rnr_timer);
  t.attr.ah_attr.is_global = 1;
  std::memcpy(t.attr.ah_attr.grh.dgid.raw, peer.gid, sizeof peer.gid);
  t.attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(config.gid_index);
  t.attr.ah_attr.grh.hop_limit = 64;
  t.attr.ah_attr.port_num = 1;
  t.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
           IBV_QP_MIN_RNR_TIMER;
  return t;
}

QpTransition to_rts(const WorkloadConfig& config, std::uint32_t psn) {
  QpTransition t;
  t.attr.qp_state = IBV_QPS_RTS;
  t.attr.timeout = static_cast<std::uint8_t>(config.qp_timeout);
  t.attr.retry_cnt = static_cast<std::uint8_t>(config.retry_cnt);
  t.attr.rnr_retry = static_cast<std::uint8_t>(config.rnr_retry);
  t.attr.sq_psn = psn;
  t.attr.max_rd_atomic = static_cast<std::uint8_t>(config.max_rd_atomic);
  t.mask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  return t;
}

std::uint32_t first_psn(std::uint32_t qpn, bool client) { return (qpn * 0x9E37U + (client ? 1U : 2U)) & 0xFFFFFF; }

}  // namespace sys
