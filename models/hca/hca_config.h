// SPDX-License-Identifier: Apache-2.0
// Configuration of the HCA: capabilities that software sees, and the latencies, intervals and sizes of its blocks. An
// interval is occupancy (how often a pipeline can start), a latency is how long one item takes through it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hca/transport/transport_config.h"
#include "sim/config.h"
#include "sim/units.h"

namespace hca {

/// What QUERY_HCA_CAP reports.
struct CapabilityConfig {
  std::uint32_t log_max_qp = 17, log_max_cq = 17, log_max_mkey = 17, log_max_eq = 6, log_max_pd = 16, log_max_srq = 16,
                log_max_xrcd = 16;
  std::uint32_t log_max_qp_sz = 15, log_max_cq_sz = 22, log_max_srq_sz = 15;
  std::uint32_t log_max_ra_req = 4, log_max_ra_res = 4, log_max_msg = 30;
  std::uint32_t max_wqe_sz_sq = 1024, max_wqe_sz_rq = 512;
  bool atomic = true;
  std::uint32_t comp_vectors = 4;
  std::uint32_t vendor_part_id = 4119;
  std::uint64_t node_guid = 0;
  std::string fw_version = "16.35.2000";

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto p = sim::spec("QUERY_HCA_CAP of a ConnectX-5");
    v("log_max_qp", c.log_max_qp, "log2 of the number of queue pairs", p, sim::Range{4, 24});
    v("log_max_cq", c.log_max_cq, "log2 of the number of completion queues", p, sim::Range{2, 24});
    v("log_max_mkey", c.log_max_mkey, "log2 of the number of memory keys", p, sim::Range{4, 24});
    v("log_max_eq", c.log_max_eq, "log2 of the number of event queues", p, sim::Range{3, 8});
    v("log_max_pd", c.log_max_pd, "log2 of the number of protection domains", p, sim::Range{1, 24});
    v("log_max_srq", c.log_max_srq, "log2 of the number of shared receive queues", p, sim::Range{1, 24});
    v("log_max_xrcd", c.log_max_xrcd, "log2 of the number of XRC domains; 0 = no XRC", p, sim::Range{0, 24});
    v("log_max_qp_sz", c.log_max_qp_sz, "log2 of the largest work queue, in WQEBBs and in WRs", p, sim::Range{6, 16});
    v("log_max_cq_sz", c.log_max_cq_sz, "log2 of the largest completion queue", p, sim::Range{4, 24});
    v("log_max_srq_sz", c.log_max_srq_sz, "log2 of the largest shared receive queue", p, sim::Range{4, 16});
    v("log_max_ra_req", c.log_max_ra_req, "log2 of max_qp_init_rd_atom", p, sim::Range{0, 7});
    v("log_max_ra_res", c.log_max_ra_res, "log2 of max_qp_rd_atom", p, sim::Range{0, 7});
    v("log_max_msg", c.log_max_msg, "log2 of the longest message", p, sim::Range{12, 31});
    v("max_wqe_sz_sq", c.max_wqe_sz_sq, "bytes of the longest send WQE", p, sim::Range{192, 1024});
    v("max_wqe_sz_rq", c.max_wqe_sz_rq, "bytes of the longest receive WQE", p, sim::Range{16, 512});
    v("atomic", c.atomic, "atomic operations, atomic among the QPs of this device", p);
    v("comp_vectors", c.comp_vectors, "completion vectors (MSI-X vectors beside the two for commands and async events)",
      sim::assumed("one per core of a small host"), sim::Range{1, 60});
    v("vendor_part_id", c.vendor_part_id, "PCI device id; perftest picks defaults by it", p, sim::Range{1, 65535});
    v("node_guid", c.node_guid, "node GUID, 0 = derived from the host number", sim::assumed("no meaning on RoCE"));
    v("fw_version", c.fw_version, "firmware version, major.minor.sub", sim::assumed("a release of the modelled part"));
  }
};

/// Status of a LOCAL_INV that is refused.
enum class InvalidateError : std::uint8_t { bind, qp_operation };
/// Answer to a SEND with invalidate whose key names no window of the QP.
enum class BadRemoteInvalidate : std::uint8_t { nak, acknowledge };

}  // namespace hca

template <>
struct sim::EnumNames<hca::InvalidateError> {
  static constexpr std::array<std::pair<hca::InvalidateError, std::string_view>, 2> values{
      {{hca::InvalidateError::bind, "bind"}, {hca::InvalidateError::qp_operation, "qp_operation"}}};
};
template <>
struct sim::EnumNames<hca::BadRemoteInvalidate> {
  static constexpr std::array<std::pair<hca::BadRemoteInvalidate, std::string_view>, 2> values{
      {{hca::BadRemoteInvalidate::nak, "nak"}, {hca::BadRemoteInvalidate::acknowledge, "acknowledge"}}};
};

namespace hca {

/// Memory keys and windows.
struct KeyConfig {
  sim::Picos umr_execute{150'000};
  InvalidateError invalidate_error = InvalidateError::bind;
  BadRemoteInvalidate bad_remote_invalidate = BadRemoteInvalidate::nak;
  bool bound_region_is_busy = true;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("umr_execute", c.umr_execute, "from the look-up of the keys of a bind or invalidate to the key being changed",
      sim::assumed("an update of the key context behind the pipeline"));
    v("invalidate_error", c.invalidate_error, "status of a LOCAL_INV that is refused: MW_BIND_ERR or LOC_QP_OP_ERR",
      sim::assumed("the device sees the same WQE as for the bind of length 0"));
    v("bad_remote_invalidate", c.bad_remote_invalidate,
      "a SEND with invalidate of an unknown key earns a remote access NAK, or is acknowledged; the receive fails",
      sim::assumed("devices differ"));
    v("bound_region_is_busy", c.bound_region_is_busy,
      "a region to which a window is bound cannot be deregistered (EBUSY); otherwise the window faults from then on",
      sim::assumed("man page of ibv_dereg_mr"));
  }
};

struct UarConfig {
  sim::Picos doorbell_decode{15'000};
  std::uint32_t bf_buffers = 64;
  sim::Picos bf_assembly_timeout{500'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("doorbell_decode", c.doorbell_decode, "from the arrival of a UAR write to its QP being scheduled",
      sim::assumed("share of the 130 ns transmit path of a ConnectX-5"));
    v("bf_buffers", c.bf_buffers, "BlueFlame WQEs the device holds until they execute; 0 = always fetch",
      sim::assumed("no published figure"), sim::Range{0, 65536});
    v("bf_assembly_timeout", c.bf_assembly_timeout,
      "a BlueFlame copy still incomplete after this long counts as a plain doorbell",
      sim::assumed("no published figure"));
  }
};

struct CommandConfig {
  sim::Picos execute{8'000'000};
  sim::Picos create_execute{20'000'000};
  sim::Picos modify_qp_execute{25'000'000};
  std::uint32_t icm_pages = 512;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("execute", c.execute, "firmware time of a simple command",
      sim::assumed("tens of microseconds per command incl. transport"));
    v("create_execute", c.create_execute, "firmware time of CREATE_* and DESTROY_*",
      sim::assumed("tens of microseconds per command incl. transport"));
    v("modify_qp_execute", c.modify_qp_execute, "firmware time of a QP state change",
      sim::measured("full RESET to RTS recovery of both ends 1.0 to 1.6 ms on ConnectX-6"));
    v("icm_pages", c.icm_pages, "4 KiB pages of host memory that the device asks for to back its contexts",
      sim::assumed("enough for a few thousand objects"), sim::Range{16, 65536});
  }
};

/// On-chip caches of contexts whose home is host memory (ICM).
struct ContextConfig {
  std::uint32_t qpc_entries = 1024, cqc_entries = 1024, mpt_entries = 2048, mtt_lines = 4096;
  sim::Picos qpc_hit{5'000}, cqc_hit{5'000}, mpt_hit{8'000}, mtt_hit{7'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto size = sim::assumed("no published figure; QP scaling knees lie between 256 and a few thousand");
    v("qpc_entries", c.qpc_entries, "QP contexts held on chip", size, sim::Range{1, 1 << 20});
    v("cqc_entries", c.cqc_entries, "CQ contexts held on chip", size, sim::Range{1, 1 << 20});
    v("mpt_entries", c.mpt_entries, "memory keys held on chip", size, sim::Range{1, 1 << 20});
    v("mtt_lines", c.mtt_lines, "64-byte lines of eight translations held on chip", size, sim::Range{1, 1 << 22});
    const auto hit = sim::assumed("a few cycles of SRAM look-up");
    v("qpc_hit", c.qpc_hit, "QP context look-up that hits", hit);
    v("cqc_hit", c.cqc_hit, "CQ context look-up that hits", hit);
    v("mpt_hit", c.mpt_hit, "memory key look-up that hits", hit);
    v("mtt_hit", c.mtt_hit, "translation look-up that hits", hit);
  }
};

struct DmaConfig {
  sim::Picos issue_interval{2'000};
  sim::Picos read_setup{20'000};
  std::uint32_t tags = 256;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("issue_interval", c.issue_interval, "time between two TLPs of the DMA engine",
      sim::assumed("one per cycle at 500 MHz"));
    v("read_setup", c.read_setup, "from the request of a DMA read to its first TLP",
      sim::measured("DMA engines add 80 to 130 ns to the raw TLP round trip (pcie-bench), split over read_setup and "
                    "the pipelines"));
    v("tags", c.tags, "reads in flight", sim::spec("PCIe 8-bit tags"), sim::Range{1, 1024});
  }
};

struct SendConfig {
  std::uint32_t engines = 4;
  sim::Picos wqe_decode{30'000};
  sim::Picos wqe_interval{60'000};
  sim::Picos packet_interval{5'000};
  sim::Picos tx_pipeline{80'000};
  sim::Picos loopback_latency{50'000};
  std::uint32_t wqe_prefetch = 8;
  sim::Bytes tx_buffer{128ULL << 10};
  std::uint32_t max_outstanding_psn = 1U << 14;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("engines", c.engines, "WQEs of different QPs processed in parallel",
      sim::assumed("processing units of the send side"), sim::Range{1, 64});
    v("wqe_decode", c.wqe_decode, "parsing and checking a WQE", sim::assumed("share of the 130 ns transmit path"));
    v("wqe_interval", c.wqe_interval, "time between the starts of two WQEs of one engine, at least",
      sim::assumed("bounds the message rate of one QP"));
    v("packet_interval", c.packet_interval, "time between two packets of a message, at least",
      sim::assumed("one header per few cycles"));
    v("tx_pipeline", c.tx_pipeline, "from the payload being complete to the first bit at the port",
      sim::assumed("share of the 130 ns transmit path"));
    v("loopback_latency", c.loopback_latency,
      "from the transmit pipeline to the receive pipeline of a packet to the port itself",
      sim::assumed("a crossing of the device's own switch; no published figure"));
    v("wqe_prefetch", c.wqe_prefetch, "WQEBBs read by one DMA read, as far as posted",
      sim::assumed("no published figure"), sim::Range{1, 64});
    v("tx_buffer", c.tx_buffer, "payload bytes being fetched or waiting for the wire",
      sim::assumed("covers the DMA round trip at line rate"), sim::Range{4096, 1e9});
    v("max_outstanding_psn", c.max_outstanding_psn, "packets of a QP that may be unacknowledged",
      sim::assumed("far below the 2^23 of the transport"), sim::Range{1, 1 << 23});
  }
};

struct ReceiveConfig {
  sim::Picos rx_pipeline{90'000};
  sim::Picos rx_interval{5'000};
  sim::Picos scatter{20'000};
  sim::Picos ack_turnaround{15'000};
  std::uint32_t rq_prefetch = 16;
  bool srq_limit_at_arm = true;
  sim::Picos error_poll{10'000'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("rx_pipeline", c.rx_pipeline, "from the last bit of a packet to its QP being known: parse, ICRC, steering",
      sim::assumed("share of the 140 ns receive path of a ConnectX-5"));
    v("rx_interval", c.rx_interval, "time between two packets entering the pipeline, at least",
      sim::assumed("200 M packets per second"));
    v("scatter", c.scatter, "from the destination being translated to the first payload write",
      sim::assumed("share of the 140 ns receive path"));
    v("ack_turnaround", c.ack_turnaround,
      "from the execution of a request to its acknowledgement entering the transmit pipeline",
      sim::assumed("no published figure"));
    v("rq_prefetch", c.rq_prefetch, "receive WQEs read by one DMA read, as far as posted",
      sim::assumed("no published figure"), sim::Range{1, 64});
    v("srq_limit_at_arm", c.srq_limit_at_arm,
      "arming the limit of a shared receive queue that already holds fewer WQEs raises the event at once",
      sim::assumed("the alternative is to wait for the next receive; real devices differ"));
    v("error_poll", c.error_poll,
      "interval at which a queue pair in ERR looks for receives that were posted since, to flush them",
      sim::assumed("there is no receive doorbell; firmware sweeps queue pairs in error"), sim::Range{100'000, 1e12});
  }
};

/// What an event does to an event queue that has no room for it.
enum class EqOverflow : std::uint8_t { device_fatal, drop };
/// Which CQEs an arm makes an event for.
enum class ArmRule : std::uint8_t { compare_ci, next_cqe };

}  // namespace hca

template <>
struct sim::EnumNames<hca::ArmRule> {
  static constexpr std::array<std::pair<hca::ArmRule, std::string_view>, 2> values{
      {{hca::ArmRule::compare_ci, "compare_ci"}, {hca::ArmRule::next_cqe, "next_cqe"}}};
};
template <>
struct sim::EnumNames<hca::EqOverflow> {
  static constexpr std::array<std::pair<hca::EqOverflow, std::string_view>, 2> values{
      {{hca::EqOverflow::device_fatal, "device_fatal"}, {hca::EqOverflow::drop, "drop"}}};
};

namespace hca {

struct CompletionConfig {
  sim::Picos cqe_build{20'000};
  sim::Picos eqe_build{20'000};
  EqOverflow eq_overflow = EqOverflow::device_fatal;
  sim::Picos eq_moderation_period{0};
  std::uint32_t eq_moderation_count = 0;
  sim::Picos clock_period{1'000};
  ArmRule arm_rule = ArmRule::compare_ci;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("cqe_build", c.cqe_build, "from the end of a message to its CQE entering the DMA engine",
      sim::assumed("share of the 140 ns receive path"));
    v("eqe_build", c.eqe_build, "from a CQE to its EQE entering the DMA engine", sim::assumed("as a CQE"));
    v("eq_overflow", c.eq_overflow,
      "an event that finds its event queue full: the queue is dead and the device reports an internal error, or the "
      "event is "
      "lost",
      sim::assumed("an overrun of an event queue is fatal in the programmer's manuals of the part"));
    v("eq_moderation_period", c.eq_moderation_period,
      "least time between two MSI-X messages of one completion event queue; 0 = an interrupt as soon as the queue is "
      "armed",
      sim::spec("mlx5: event queues are not moderated, CQs are"), sim::Range{0, 1e12});
    v("eq_moderation_count", c.eq_moderation_count,
      "so many events since the last MSI-X message end the period early; 0 = none do",
      sim::spec("mlx5: event queues are not moderated, CQs are"), sim::Range{0, 1 << 22});
    v("clock_period", c.clock_period, "period of the clock behind CQE timestamps",
      sim::spec("hca_core_clock of the part"), sim::Range{1, 1e9});
    v("arm_rule", c.arm_rule,
      "compare_ci: an arm whose consumer index is behind what the CQ holds fires at once; next_cqe: only a CQE that "
      "leaves the adapter after the arm has reached it fires, and the driver has to read back (verbs.arm_read_back)",
      sim::assumed("Linux mlx5_ib: an arm reports no missed completion, so the device has to compare"));
  }
  template <class F>
  void check(F&& fail) const {
    if (eq_moderation_count != 0 && eq_moderation_period.n == 0)
      fail("eq_moderation_count", "ends eq_moderation_period early, and there is none");
  }
};

struct HcaConfig {
  CapabilityConfig caps;
  KeyConfig keys;
  UarConfig uar;
  CommandConfig command;
  ContextConfig context;
  DmaConfig dma;
  SendConfig send;
  ReceiveConfig receive;
  TransportConfig transport;
  CompletionConfig completion;
  sim::Picos internal_error_at{0};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto part = sim::spec("block of the HCA");
    v("caps", c.caps, "capabilities reported to software", part);
    v("keys", c.keys, "memory keys and windows", part);
    v("uar", c.uar, "doorbells and BlueFlame", part);
    v("command", c.command, "command interface", part);
    v("context", c.context, "context caches", part);
    v("dma", c.dma, "DMA engine", part);
    v("send", c.send, "send scheduler and requester", part);
    v("receive", c.receive, "receive path and responder", part);
    v("transport", c.transport, "reliable transport", part);
    v("completion", c.completion, "completion and event units", part);
    v("internal_error_at", c.internal_error_at,
      "simulated time at which the device reports an internal error; 0 = it has none", sim::assumed("a sound device"),
      sim::Range{0, 1e18});
  }
};

}  // namespace hca
