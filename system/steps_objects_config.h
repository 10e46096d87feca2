// SPDX-License-Identifier: Apache-2.0
// The verbs objects that a program of a scenario declares: memory regions, queues, channels, address handles. Names are
// unique within a program; other programs write "program.name".
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/located.h"
#include "sim/units.h"
#include "system/verbs_names.h"

namespace sys {

using Name = sim::Located;
inline constexpr sim::Provenance kGiven = sim::assumed("given by the scenario");
inline constexpr const char* kAtStart = "made before the first step; false: by a step \"create\"";

/// A piece of memory and the key for it.
struct MrConfig {
  Name pd, memory_of;
  sim::Bytes size{4096}, offset{0};
  std::optional<std::uint64_t> iova;
  std::vector<ibv_access_flags> access{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ};
  std::optional<std::uint8_t> pattern;
  bool at_start = true;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pd", c.pd, "its protection domain; empty = the only one", kGiven);
    v("size", c.size, "length that is registered", sim::assumed("one page"), sim::Range{0, 1ULL << 32});
    v("memory_of", c.memory_of, "another MR of the process whose memory this one registers too; empty = its own",
      kGiven);
    v("offset", c.offset, "where the region begins in its memory", sim::assumed("at a page boundary"),
      sim::Range{0, 1ULL << 32});
    v("iova", c.iova, "address that keys of the MR stand for (ibv_reg_mr_iova); absent = the memory's own", kGiven);
    v("access", c.access, "access flags", sim::assumed("everything but atomics"));
    v("pattern", c.pattern, "fill it with this pattern first, see `store`; absent = zeros", kGiven);
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct PdConfig {
  bool at_start = true;
  sim::Origin origin;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct ChannelConfig {
  bool at_start = true;
  sim::Origin origin;
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct CqConfig {
  std::int32_t cqe = 63;
  Name channel;
  std::uint32_t comp_vector = 0;
  bool ignore_overrun = false, at_start = true;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cqe", c.cqe, "entries asked for", sim::assumed("more than the default queues can fill"));
    v("channel", c.channel, "completion channel for its events; empty = none", kGiven);
    v("comp_vector", c.comp_vector, "completion vector", kGiven);
    v("ignore_overrun", c.ignore_overrun, "IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: overwrite instead of failing", kGiven);
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

/// Address of a peer, for address handles and connected QPs.
struct AhAttrConfig {
  Name to;
  std::uint32_t sgid_index = 3;
  bool is_global = true;
  std::uint32_t hop_limit = 64, traffic_class = 0, flow_label = 0, sl = 0, port_num = 1;
  std::string dgid;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("to", c.to, "program on the host to reach; empty = the peer of the QP", kGiven);
    v("dgid", c.dgid, "destination GID as an IPv6 address, instead of that host's", kGiven);
    v("sgid_index", c.sgid_index, "GID table index; 3 is RoCE v2 over IPv4",
      sim::assumed("order in which Linux fills the table"), sim::Range{0, 255});
    v("is_global", c.is_global, "with a GRH, as RoCE needs", sim::spec("RoCE"));
    v("hop_limit", c.hop_limit, "hop limit", sim::assumed("Linux"), sim::Range{0, 255});
    v("traffic_class", c.traffic_class, "traffic class", kGiven, sim::Range{0, 255});
    v("flow_label", c.flow_label, "flow label", kGiven, sim::Range{0, 0xFFFFF});
    v("sl", c.sl, "service level", kGiven, sim::Range{0, 15});
    v("port_num", c.port_num, "port", kGiven, sim::Range{0, 255});
  }
};

/// Attributes of ibv_qp_attr by their names; those that are absent are not in the mask.
struct QpAttrConfig {
  std::optional<ibv_qp_state> cur_qp_state;
  std::optional<std::uint32_t> path_mtu, qkey, rq_psn, sq_psn, dest_qp_num, pkey_index, max_rd_atomic,
      max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
  std::optional<std::vector<ibv_access_flags>> qp_access_flags;
  std::optional<bool> en_sqd_async_notify;
  std::optional<AhAttrConfig> ah_attr;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const sim::Range byte{0, 255}, word{0, 0xFFFFFFFFU};
    v("cur_qp_state", c.cur_qp_state, "state that the caller believes the QP to be in", kGiven);
    v("path_mtu", c.path_mtu, "path MTU in bytes", sim::assumed("4096"), sim::Range{256, 4096});
    v("qkey", c.qkey, "Q_Key (UD)", sim::assumed("0x11111111"), word);
    v("rq_psn", c.rq_psn, "first PSN to receive", sim::assumed("the sq_psn of the peer"), word);
    v("sq_psn", c.sq_psn, "first PSN to send", sim::assumed("256"), word);
    v("dest_qp_num", c.dest_qp_num, "QP number of the peer", sim::assumed("that of the peer"), word);
    v("qp_access_flags", c.qp_access_flags, "remote operations that the QP allows",
      sim::assumed("REMOTE_WRITE and REMOTE_READ"));
    v("pkey_index", c.pkey_index, "index of the P_Key", sim::assumed("0"), sim::Range{0, 65535});
    v("max_rd_atomic", c.max_rd_atomic, "READs and atomics outstanding as requester", sim::assumed("16"), byte);
    v("max_dest_rd_atomic", c.max_dest_rd_atomic, "READs and atomics outstanding as responder", sim::assumed("16"),
      byte);
    v("min_rnr_timer", c.min_rnr_timer, "code of the RNR timer: 0 is the longest, 655.36 ms; 12 is 0.64 ms",
      sim::assumed("12, as perftest"), byte);
    v("port_num", c.port_num, "port", sim::assumed("1"), byte);
    v("timeout", c.timeout, "local ACK timeout: 4.096 us * 2^timeout, 0 = never", sim::assumed("14, as perftest"),
      byte);
    v("retry_cnt", c.retry_cnt, "transport retries", sim::assumed("7"), byte);
    v("rnr_retry", c.rnr_retry, "RNR retries, 7 = for ever", sim::assumed("7"), byte);
    v("en_sqd_async_notify", c.en_sqd_async_notify, "raise SQ_DRAINED when the send queue has drained", kGiven);
    v("ah_attr", c.ah_attr, "address of the peer", sim::assumed("that of the peer"));
  }
  template <class F>
  void check(F&& fail) const {
    if (path_mtu && !std::has_single_bit(*path_mtu)) fail("path_mtu", "must be 256, 512, 1024, 2048 or 4096");
  }
};

struct QpConfig {
  Name pd, cq, send_cq, recv_cq, srq, peer;
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t max_send_wr = 16, max_recv_wr = 16, max_send_sge = 1, max_recv_sge = 1, max_inline_data = 0;
  bool sq_sig_all = false, at_start = true;
  std::optional<ibv_qp_state> state;
  QpAttrConfig attr;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pd", c.pd, "its protection domain; empty = the only one", kGiven);
    v("type", c.type, "transport", sim::assumed("reliable connection"));
    v("cq", c.cq, "CQ of both queues; empty = the only one", kGiven);
    v("send_cq", c.send_cq, "CQ of the send queue, instead of `cq`", kGiven);
    v("recv_cq", c.recv_cq, "CQ of the receive queue, instead of `cq`", kGiven);
    v("srq", c.srq, "shared receive queue; empty = none", kGiven);
    v("max_send_wr", c.max_send_wr, "send WRs asked for (-t)", kGiven);
    v("max_recv_wr", c.max_recv_wr, "receive WRs asked for (-r)", kGiven);
    v("max_send_sge", c.max_send_sge, "SGEs per send WR", kGiven);
    v("max_recv_sge", c.max_recv_sge, "SGEs per receive WR", kGiven);
    v("max_inline_data", c.max_inline_data, "inline bytes per send WR (-I)", kGiven);
    v("sq_sig_all", c.sq_sig_all, "every send WR gives a completion", kGiven);
    v("peer", c.peer, "the QP that it talks to, as \"program.qp\"", kGiven);
    v("state", c.state, "state to which it is brought before the first step",
      sim::assumed("RTS with a peer and for UD, else RESET"));
    v("attr", c.attr, "attributes for that, and for modify_qp", sim::assumed("as perftest"));
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct SrqConfig {
  Name pd;
  std::uint32_t max_wr = 16, max_sge = 1, srq_limit = 0;
  bool at_start = true;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pd", c.pd, "its protection domain; empty = the only one", kGiven);
    v("max_wr", c.max_wr, "receive WRs asked for", kGiven);
    v("max_sge", c.max_sge, "SGEs per WR", kGiven);
    v("srq_limit", c.srq_limit, "limit below which SRQ_LIMIT_REACHED is raised, 0 = not armed", kGiven);
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct AhConfig {
  Name pd;
  AhAttrConfig attr;
  bool at_start = true;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pd", c.pd, "its protection domain; empty = the only one", kGiven);
    v("attr", c.attr, "where to", kGiven);
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

struct MwConfig {
  Name pd;
  ibv_mw_type type = IBV_MW_TYPE_2;
  bool at_start = true;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("pd", c.pd, "its protection domain; empty = the only one", kGiven);
    v("type", c.type, "type of the memory window", sim::assumed("the one that is bound by a send WR"));
    v("at_start", c.at_start, kAtStart, kGiven);
  }
};

}  // namespace sys
