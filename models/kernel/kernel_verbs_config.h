// SPDX-License-Identifier: Apache-2.0
// Costs of kernel consumers: the driver's data path in the kernel, and how the core polls their CQs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/config.h"
#include "sim/units.h"

namespace kernel {

/// Who polls a kernel consumer's CQ: its own calls, irq_poll, or a work queue (enum ib_poll_context).
enum class PollContext : std::uint8_t { direct, softirq, workqueue };

}  // namespace kernel

template <>
struct sim::EnumNames<kernel::PollContext> {
  static constexpr std::array<std::pair<kernel::PollContext, std::string_view>, 3> values{
      {{kernel::PollContext::direct, "direct"},
       {kernel::PollContext::softirq, "softirq"},
       {kernel::PollContext::workqueue, "workqueue"}}};
};

namespace kernel {

/// Time that the instructions of the driver's in-kernel verbs take, beyond the loads, stores, barriers and locks that the
/// core charges itself.
struct KernelVerbsConfig {
  sim::Picos post_send_call{12'000};
  sim::Picos post_send_wr{14'000};
  sim::Picos post_recv_call{8'000};
  sim::Picos post_recv_wr{6'000};
  sim::Picos sge{1'500};
  sim::Picos inline_copy_16b{700};
  sim::Picos poll_call{3'000};
  sim::Picos poll_cqe{16'000};
  sim::Picos arm_call{6'000};
  bool arm_read_back = false;
  bool report_missed_cqes = true;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto same = sim::assumed("as in user space: the same steps on the same core");
    v("post_send_call", c.post_send_call, "ib_post_send: entry, checks and return, once per call", same);
    v("post_send_wr", c.post_send_wr, "ib_post_send, per WR: opcode table, control segment, bookkeeping", same);
    v("post_recv_call", c.post_recv_call, "ib_post_recv: entry and return, once per call", same);
    v("post_recv_wr", c.post_recv_wr, "ib_post_recv, per WR: checks and bookkeeping", same);
    v("sge", c.sge, "per data segment of a send or receive WR of a kernel consumer", same);
    v("inline_copy_16b", c.inline_copy_16b, "copying a kernel consumer's inline data into the WQE, per 16 bytes", same);
    v("poll_call", c.poll_call, "ib_poll_cq: entry, ownership test and return", same);
    v("poll_cqe", c.poll_cqe, "ib_poll_cq, per completion: look-up of the QP, parsing and filling the WC", same);
    v("arm_call", c.arm_call, "ib_req_notify_cq: entry and return", same);
    v("arm_read_back", c.arm_read_back,
      "ib_req_notify_cq reads from the UAR page behind the arm, which a device of arm_rule next_cqe needs (as "
      "verbs.arm_read_back)",
      sim::spec("mlx5 driver: not"));
    v("report_missed_cqes", c.report_missed_cqes,
      "ib_req_notify_cq with IB_CQ_REPORT_MISSED_EVENTS looks at the next CQE and returns 1 if it is there; otherwise "
      "it leaves that to the device, as mlx5_ib does",
      sim::spec("the verb's contract"));
  }
};

/// Poll contexts of the core (ib_alloc_cq).
struct CqPollConfig {
  sim::Picos comp_handler{100'000};
  sim::Picos softirq_delay{300'000};
  sim::Picos work_delay{2'000'000};
  sim::Picos done_call{5'000};
  std::uint32_t irq_poll_budget = 256;
  std::uint32_t work_budget = 65536;
  std::uint32_t batch = 16;
  std::uint32_t direct_batch = 8;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("comp_handler", c.comp_handler,
      "completion handler of a kernel consumer's CQ in the hard interrupt: scheduling irq_poll or queueing the work",
      sim::assumed("a test-and-set, a list and a flag; half of the tasklet's handler"));
    v("softirq_delay", c.softirq_delay, "from the end of the hard interrupt to irq_poll in the softirq",
      sim::assumed("as the tasklet, which is a softirq too"));
    v("work_delay", c.work_delay, "from queueing a work item to a sleeping kworker running it",
      sim::assumed("wake-up and context switch, as for a blocked reader"));
    v("done_call", c.done_call, "calling the done function of one work completion, beside what that does",
      sim::assumed("an indirect call"));
    v("irq_poll_budget", c.irq_poll_budget, "work completions that one softirq handles at most",
      sim::spec("Linux irq_poll: 256"), sim::Range{1, 65536});
    v("work_budget", c.work_budget, "work completions that one run of a CQ's work handles at most",
      sim::spec("Linux ib_core: 65536"), sim::Range{1, 1 << 20});
    v("batch", c.batch, "work completions that one ib_poll_cq of the core asks for", sim::spec("Linux ib_core: 16"),
      sim::Range{1, 1024});
    v("direct_batch", c.direct_batch, "the same in ib_process_cq_direct", sim::spec("Linux ib_core: 8"),
      sim::Range{1, 1024});
  }
};

}  // namespace kernel
