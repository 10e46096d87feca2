// SPDX-License-Identifier: Apache-2.0
// The two processes of a workload. Each has a second thread that reads asynchronous events for the report.
#include "system/workload.h"

#include <infiniband/verbs.h>

#include "system/kernel_perftest.h"
#include "system/perftest_program.h"
#include "system/verbs_names.h"

namespace sys {
namespace {

std::string event_object(const ibv_async_event& e) {
  switch (e.event_type) {
    case IBV_EVENT_CQ_ERR:
      return "cq";
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "qp " + std::to_string(e.element.qp->qp_num);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return "srq";
    case IBV_EVENT_DEVICE_FATAL:
      return "device";
    default:
      return "port " + std::to_string(e.element.port_num);
  }
}

}  // namespace

void WorkloadRecord::note(const ibv_wc& wc, std::uint64_t wr_id, bool client, sim::Picos t) {
  const std::string status(sim::enum_name(wc.status));
  ++wc_status[status];
  if (wc.status != IBV_WC_SUCCESS && errors.size() < kErrorsKept)
    errors.push_back({t, client, wc.qp_num, wr_id, status, wc.vendor_err});
}

Workload::Workload(const WorkloadConfig& config, std::uint32_t flow, Host& client, Host& server,
                   std::vector<AsyncEventRecord>& async_events)
    : config_(config), flow_(flow), hosts_{&client, &server}, async_events_(async_events) {
  record_.op = sim::enum_name(config.op);
  record_.name = config.name.empty() ? record_.op : config.name;
}

void Workload::create(std::size_t core, std::function<void()> on_first_post) {
  on_first_post_ = std::move(on_first_post);
  for (const bool client : {true, false})
    config_.in_kernel(client) ? create_kernel_side(client, core) : create_user_side(client, core);
}

void Workload::create_user_side(bool client, std::size_t core) {
  Host& host = *hosts_[client ? 0 : 1];
  Process& process = host.create_process();
  process.flow = flow_;
  threads_.push_back(
      &host.create_thread(process, core, record_.name + (client ? ".client" : ".server"), [this, &process, client] {
        PerftestProgram(*this, process, client).run();
        side_finished();
      }));
}

void Workload::create_kernel_side(bool client, std::size_t core) {
  Host& host = *hosts_[client ? 0 : 1];
  threads_.push_back(
      &host.create_kernel_thread(core, record_.name + (client ? ".client" : ".server"), [this, &host, client] {
        KernelPerftest(*this, host, client).run();
        side_finished();
      }));
}

void Workload::side_finished() {
  ++finished_;
  finished_at_ = sim::max(finished_at_, cpu::current().now());
}

void Workload::start(sim::Picos t) {
  for (cpu::Thread* thread : threads_) thread->start(t);
}

void Workload::watch_async_events(ibv_context* context, Process& process, Host& host) {
  cpu::Thread& watcher =
      host.create_thread(process, host.config().cores - 1, cpu::current().name() + ".async", [this, context, &host] {
        ibv_async_event e{};
        while (ibv_get_async_event(context, &e) == 0) {
          async_events_.push_back(
              {cpu::current().now(), host.config().name, std::string(sim::enum_name(e.event_type)), event_object(e)});
          ibv_ack_async_event(&e);
        }
      });
  watcher.start(cpu::current().now());
}

std::uint64_t Workload::expected_messages() const {
  const bool both_ways = config_.op == Op::send_lat || config_.op == Op::write_lat;
  return config_.iters * config_.qps * (both_ways ? 2 : 1);
}

}  // namespace sys
