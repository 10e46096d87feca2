// SPDX-License-Identifier: Apache-2.0
// CQs of kernel consumers that the core polls for them (ib_alloc_cq): in the softirq, in a work queue, or by the consumer's
// own calls; each work completion goes to the function of its WR. Source: ib_core cq.c.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/core/dim.h"
#include "kernel/core/objects.h"
#include "kernel/softirq.h"
#include "kernel/work_queue.h"

namespace kernel {

/// What wr_id of a kernel consumer's WR points to (ib_cqe): who gets the work completion. In softirq context it may
/// not block.
struct WrCqe {
  void (*done)(Cq& cq, const ibv_wc& wc) = nullptr;
};
inline std::uint64_t wr_id_of(WrCqe& cqe) { return reinterpret_cast<std::uint64_t>(&cqe); }

/// The core's part of such a CQ.
struct CqPoll {
  PollContext context = PollContext::direct;
  std::size_t core = 0;  ///< that takes its interrupts
  std::vector<ibv_wc> wc;
  IrqPoll irq_poll;
  Work work;
  std::unique_ptr<Dim> dim;  ///< null: no adaptive moderation
  Work dim_work;
  std::uint64_t polled = 0;  ///< work completions so far
};

struct PolledCqAttr {
  std::uint32_t cqe = 0, comp_vector = 0;
  PollContext context = PollContext::softirq;
  bool dim = false;  ///< adaptive moderation; not with PollContext::direct
};
/// Creates and arms the CQ; `consumer` is its Object::context. 0 or -errno.
int ib_alloc_cq(Device& device, const PolledCqAttr& attr, const Consumer& who, void* consumer, std::unique_ptr<Cq>& cq);
/// Ends its polling and destroys it. -EBUSY: queue pairs refer to it.
int ib_free_cq(Cq& cq);
/// Handles up to `budget` work completions (-1: all) of a CQ with PollContext::direct; returns how many.
int ib_process_cq_direct(Cq& cq, int budget);

}  // namespace kernel
