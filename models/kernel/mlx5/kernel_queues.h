// SPDX-License-Identifier: Apache-2.0
// Rings of kernel consumers: what the driver keeps for a queue pair or CQ whose WQEs and CQEs it builds and reads itself
// (struct mlx5_ib_wq, mlx5_ib_qp, mlx5_ib_cq).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/thread.h"
#include "kernel/dma_map.h"
#include "sim/journey.h"
#include "sim/stats.h"
#include "sim/trace/gauge.h"
#include "sim/wqe_tags.h"

namespace kernel {

/// A doorbell record in kernel memory.
struct KernelDbr {
  std::byte* bytes = nullptr;
  memory::Iova at{};  ///< its DMA address
  std::size_t page = 0;
};

/// Doorbell records of kernel queues: one per cache line of a DMA-coherent page; a page goes with its last record.
class KernelDbrPool {
 public:
  KernelDbr alloc(DmaMapper& dma);
  void free(DmaMapper& dma, KernelDbr& record);
  std::size_t pages() const;

 private:
  static constexpr std::size_t kRecord = 64, kRecords = memory::kPageSize / kRecord;
  struct Page {
    DmaBuffer memory;
    std::uint64_t used = 0;  ///< bit per record
  };
  std::vector<Page> pages_;  // by number; without memory = free
};

/// The pages by which the driver itself reaches the device: UAR page, its number, and where it is mapped (uncached).
struct KernelUar {
  std::uint32_t index = 0;
  memory::Va map{};
};

struct KernelWorkQueue {
  std::byte* buf = nullptr;
  std::uint32_t wqe_cnt = 0;         ///< ring slots: 64-byte WQEBBs in an SQ, WQEs in an RQ
  std::uint32_t wqe_shift = 6;       ///< log2 of the bytes per slot
  std::uint32_t max_post = 0;        ///< WRs that fit
  std::uint32_t max_gs = 0;          ///< SGEs of a WR
  std::uint32_t head = 0, tail = 0;  ///< WRs posted, WRs completed
  std::uint16_t cur_post = 0;        ///< SQ: WQEBBs posted
  std::vector<std::uint64_t> wrid;
  std::vector<std::uint32_t> wqe_head;
  struct WrInfo {
    sim::MsgId msg = 0;
    std::uint8_t opcode = 0;  ///< enum ibv_wr_opcode
  };
  std::vector<WrInfo> wrs;  ///< SQ: by WR number
  sim::trace::Gauge occupancy;
  cpu::SpinLock lock;

  std::byte* slot(std::uint32_t i) const { return buf + (static_cast<std::size_t>(i) << wqe_shift); }
  std::byte* end() const { return slot(wqe_cnt); }
  std::uint32_t index(std::uint32_t counter) const { return counter & (wqe_cnt - 1); }
  WrInfo& wr(std::uint32_t number) { return wrs[number & (wrs.size() - 1)]; }
  void reset() { head = tail = cur_post = 0; }
  /// Records how many WRs lie between head and tail, which have changed.
  void trace_occupancy(sim::Picos t) { occupancy.set(t, head - tail); }
};

struct KernelQp {
  DmaBuffer buffer;  ///< RQ, then SQ
  KernelDbr dbr;
  KernelWorkQueue sq, rq;
  std::uint64_t bf_offset = 0;  ///< half of the doorbell register that the next doorbell uses
  std::uint32_t max_inline = 0;
  std::uint8_t signal_bits = 0;      ///< CE bits of every WQE (sq_sig_all)
  std::uint32_t flow = 0;            ///< which workload its WRs belong to, for latency accounting
  std::vector<sim::MsgId> new_msgs;  ///< accepted in the call under way
  sim::Tags* tags = nullptr;
};

struct KernelCq {
  DmaBuffer buffer;
  KernelDbr dbr;
  std::uint32_t cons_index = 0;
  cpu::SpinLock lock;
  sim::Tags* tags = nullptr;
  std::vector<sim::MsgId> delivered;  ///< journeys that end when the poll under way returns

  /// The poll under way, for its span.
  struct Polled {
    sim::Picos start{0};  ///< its entry; of one that ends a loop of skipped polls, the entry of the last
    std::uint32_t failed = 0;
    sim::MsgId msg = 0;  ///< the first that it is about
    void about(sim::MsgId id) {
      if (msg == 0) msg = id;
    }
  } polled;

  // Detection of a loop of empty polls, which is skipped.
  cpu::Thread* poller = nullptr;
  sim::Picos last_return{-1}, last_sample{-1}, period{-1};
  sim::Counter* empty_polls = nullptr;
  void forget_empty_polls() {
    poller = nullptr;
    last_return = last_sample = period = sim::Picos{-1};
  }
};

}  // namespace kernel
