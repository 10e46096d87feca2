// SPDX-License-Identifier: Apache-2.0
// Work requests and work completions as the steps of a program write them, field by field as in ibv_send_wr, ibv_recv_wr
// and ibv_wc. Memory is named by its MR; addresses and keys may be overridden to make mistakes.
#pragma once

#include "system/steps_objects_config.h"

namespace sys {

struct SgeConfig {
  Name mr;
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> length, lkey;
  std::optional<std::uint64_t> addr;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mr", c.mr, "the memory; empty = the only MR", kGiven);
    v("offset", c.offset, "where in it the piece begins", kGiven);
    v("length", c.length, "bytes", sim::assumed("up to the end of the MR"));
    v("addr", c.addr, "address, instead of that of the MR", kGiven);
    v("lkey", c.lkey, "key, instead of that of the MR", kGiven);
  }
};

struct RemoteConfig {
  Name mr;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> addr;
  std::optional<std::uint32_t> rkey;
  std::int64_t rkey_plus = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mr", c.mr, "MR or memory window of the other side, as \"program.name\"", kGiven);
    v("offset", c.offset, "where in it", kGiven);
    v("addr", c.addr, "address, instead of that of the MR", kGiven);
    v("rkey", c.rkey, "key, instead of that of the MR", kGiven);
    v("rkey_plus", c.rkey_plus, "added to the key, to make a wrong one", kGiven);
  }
};

struct AtomicConfig {
  std::uint64_t compare_add = 0, swap = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("compare_add", c.compare_add, "value to compare with, or to add", kGiven);
    v("swap", c.swap, "new value of a compare and swap", kGiven);
  }
};

struct UdConfig {
  Name ah, qp;
  std::optional<std::uint32_t> remote_qpn, remote_qkey;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("ah", c.ah, "address handle; empty = the only one", kGiven);
    v("qp", c.qp, "destination QP, as \"program.qp\"", kGiven);
    v("remote_qpn", c.remote_qpn, "QP number, instead of that of `qp`", kGiven);
    v("remote_qkey", c.remote_qkey, "Q_Key", sim::assumed("that of the destination QP"));
  }
};

/// What a memory window is bound to: by a BIND_MW work request, or by ibv_bind_mw.
struct BindConfig {
  Name mw, mr;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  std::vector<ibv_access_flags> access{IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mw", c.mw, "the window; empty = the only one", kGiven);
    v("mr", c.mr, "the MR below it; empty = the only one", kGiven);
    v("offset", c.offset, "where in the MR the window begins", kGiven);
    v("length", c.length, "bytes of the window", sim::assumed("up to the end of the MR"));
    v("access", c.access, "access flags of the window", sim::assumed("remote read and write"));
  }
};

struct SendWrConfig {
  std::optional<std::uint64_t> wr_id;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::vector<SgeConfig> sge;
  std::vector<ibv_send_flags> send_flags;
  std::uint32_t imm_data = 0;
  std::optional<RemoteConfig> remote;
  std::optional<AtomicConfig> atomic;
  std::optional<UdConfig> ud;
  std::optional<BindConfig> bind_mw;
  Name invalidate;
  std::optional<std::uint32_t> invalidate_rkey;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("wr_id", c.wr_id, "comes back in the work completion", sim::assumed("the number of the WR in its queue, from 0"));
    v("opcode", c.opcode, "operation", kGiven);
    v("sge", c.sge, "gather list; READ and atomics: where the result goes", kGiven);
    v("send_flags", c.send_flags, "flags; without SIGNALED a success gives no completion", sim::spec("ibv_post_send"));
    v("imm_data", c.imm_data, "immediate data", kGiven);
    v("remote", c.remote, "remote memory of WRITE, READ and atomics", kGiven);
    v("atomic", c.atomic, "operands of an atomic", kGiven);
    v("ud", c.ud, "destination of a datagram", kGiven);
    v("bind_mw", c.bind_mw, "what BIND_MW binds", kGiven);
    v("invalidate", c.invalidate, "window or MR whose key LOCAL_INV and SEND_WITH_INV invalidate", kGiven);
    v("invalidate_rkey", c.invalidate_rkey, "key, instead of that of `invalidate`", kGiven);
  }
};

struct RecvWrConfig {
  std::optional<std::uint64_t> wr_id;
  std::vector<SgeConfig> sge;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("wr_id", c.wr_id, "comes back in the work completion", sim::assumed("the number of the WR in its queue, from 0"));
    v("sge", c.sge, "scatter list; may be empty", kGiven);
  }
};

/// What a work completion has to be; only what is given is compared. Of a failed one only wr_id, status, vendor_err and qp
/// mean anything.
struct WcConfig {
  std::optional<std::uint64_t> wr_id;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::optional<ibv_wc_opcode> opcode;
  std::optional<std::uint32_t> byte_len, imm_data, vendor_err;
  std::optional<std::vector<ibv_wc_flags>> wc_flags;
  Name qp;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("wr_id", c.wr_id, "wr_id of its WR", kGiven);
    v("status", c.status, "status", kGiven);
    v("opcode", c.opcode, "opcode", kGiven);
    v("byte_len", c.byte_len, "bytes received", kGiven);
    v("imm_data", c.imm_data, "immediate data", kGiven);
    v("vendor_err", c.vendor_err, "vendor error", kGiven);
    v("wc_flags", c.wc_flags, "flags, exactly these", kGiven);
    v("qp", c.qp, "QP", kGiven);
  }
};

}  // namespace sys
