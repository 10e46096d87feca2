// SPDX-License-Identifier: Apache-2.0
// No option is dead: each field that a scenario can set changes some result of at least one of a few scenarios. Results
// are journeys, counters, busy times, work completions, frames, device attributes and the end of simulated time.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernel/syscalls.h"
#include "tests/system/config_walker.h"
#include "tests/system/parameter_probe.h"
#include "tests/system/run_workload.h"
#include "verbs_frontend/process_state.h"

namespace sys::test {
namespace {

using namespace sim::literals;

ScenarioConfig both(ScenarioConfig s, const std::function<void(HostConfig&)>& f) {
  for (HostConfig& h : s.hosts) f(h);
  return s;
}
ScenarioConfig stream(Op op, std::uint64_t size, std::uint64_t iters, std::uint32_t depth, std::uint32_t mtu = 1024) {
  ScenarioConfig s = one_workload(op, size, iters);
  s.workloads[0].tx_depth = depth;
  s.workloads[0].mtu = mtu;
  return s;
}

struct Named {
  const char* name;
  ScenarioConfig config;
};
/// Small scenarios, each of which feels what the others do not.
std::vector<Named> scenarios() {
  std::vector<Named> all;
  ScenarioConfig s = one_workload(Op::send_lat, 8, 6);
  s.workloads[0].inline_size = 60;
  s.run.time_limit = 1_s;
  fabric::ImpairmentEventConfig event;
  event.opcode = 4;
  event.iter = 3;
  event.type = fabric::ImpairmentType::delay;
  s.fabric.link.impairment.events = {event};
  all.push_back({"inline", s});
  event.opcode.reset();
  event.relative = true;
  event.qpn = event.psn = event.iter = 1;
  for (const sim::Picos after : {0_ps, 2_s}) {  // the second is later than everything
    event.after = after;
    s.fabric.link.impairment.events = {event};
    all.push_back({"relative", s});
  }
  s = one_workload(Op::read_lat, 4096, 6);
  s.workloads[0].mtu = 1024;
  all.push_back({"read", s});
  s = one_workload(Op::send_lat, 64, 6);
  s.workloads[0].completion = CompletionMode::event;
  all.push_back({"event", s});
  s = stream(Op::write_bw, 3000, 24, 16);
  s.workloads[0].qps = 6;
  s.workloads[0].post_list = 4;
  s.workloads[0].cq_mod = 2;
  s.workloads.resize(3, s.workloads[0]);
  all.push_back({"tiny_caches", both(s, [](HostConfig& h) {
                   h.hca.context.qpc_entries = h.hca.context.cqc_entries = h.hca.context.mpt_entries =
                       h.hca.context.mtt_lines = 1;
                   h.hca.send.tx_buffer = 8_KiB;
                   h.hca.send.max_outstanding_psn = 4;
                   h.hca.send.engines = 1;
                   h.hca.dma.tags = 2;
                   h.memory.llc_size = 64_KiB;
                   h.memory.llc_ways = 2;
                   h.root_complex.max_reads = 1;
                 })});
  s = stream(Op::send_bw, 200, 40, 8);
  s.workloads[0].rx_depth = 8;
  all.push_back({"arm64", both(s, [](HostConfig& h) { h.core.arch = cpu::Arch::arm64; })});
  s = stream(Op::read_bw, 16384, 12, 4, 4096);
  all.push_back({"small_iommu", both(s, [](HostConfig& h) {
                   h.iommu.iotlb_entries = 4;
                   h.iommu.iotlb_ways = 2;
                   h.iommu.walk_cache_entries = 1;
                   h.iommu.walks_in_flight = 1;
                 })});
  s = stream(Op::send_bw, 4000, 60, 8);
  s.workloads[0].qp_timeout = 6;
  s.workloads[0].retry_cnt = 2;
  s.fabric.link.impairment.drop = s.fabric.link.impairment.delay = s.fabric.link.impairment.reorder = 0.05;
  s.fabric.link.impairment.corrupt = s.fabric.link.impairment.duplicate = 0.02;
  all.push_back({"impaired", s});
  s.workloads[0].qp_timeout = 10;
  all.push_back({"adaptive", both(s, [](HostConfig& h) {
                   h.hca.transport.timeout_model = hca::TimeoutModel::mlx5_nolimit;
                   h.hca.transport.adaptive_retrans = true;
                   h.hca.transport.adaptive_first = 3_ms;
                 })});
  s = stream(Op::write_bw, 8192, 24, 8, 4096);
  all.push_back({"few_credits", both(s, [](HostConfig& h) {
                   for (auto* c : {&h.pcie.root_port_credits, &h.pcie.endpoint_credits}) {
                     *c = {1, 20, 1, 1, 20};
                   }
                 })});
  s = one_workload(Op::send_lat, 220, 12);  // BlueFlame copies of four lines
  s.workloads[0].inline_size = 220;
  s.workloads.resize(4, s.workloads[0]);
  all.push_back({"small_buffers", both(s, [](HostConfig& h) {
                   h.pcie.max_payload_size = 128;
                   h.pcie.endpoint_credits = {64, 9, 8, 0, 9};
                   h.pcie.link.update_fc_latency = 1_us;
                   h.core.wc_buffers = 1;
                   h.cores = 1;
                 })});
  s = stream(Op::send_bw, 64, 60, 8);
  s.workloads[0].completion = CompletionMode::event;
  s.workloads.resize(4, s.workloads[0]);
  all.push_back({"event_stream", both(s, [](HostConfig& h) { h.cores = 1; })});
  all.push_back({"moderated", both(s, [](HostConfig& h) {
                   h.cores = 1;
                   h.hca.completion.eq_moderation_period = 5_us;
                   h.hca.completion.eq_moderation_count = 2;
                   h.core.noise_interval = 20_us;
                   h.core.noise_length = 3_us;
                 })});
  s.workloads.resize(2);
  all.push_back({"remote_readers", both(s, [](HostConfig& h) {
                   h.core.cstate_exit_latency = 10_us;
                   h.core.cstate_entry = 1_us;
                   h.hca.internal_error_at = 3_ms;
                 })});
  s = one_workload(Op::send_lat, 64, 6);
  all.push_back({"many_cores", both(s, [](HostConfig& h) {
                   h.cores = h.hca.caps.comp_vectors = 12;
                   h.hca.caps.log_max_eq = 4;
                 })});
  s = stream(Op::read_bw, 8192, 24, 8, 4096);
  all.push_back({"few_data_credits", both(s, [](HostConfig& h) { h.pcie.endpoint_credits = {64, 20, 8, 0, 20}; })});
  s.workloads[0].max_rd_atomic = 2;
  all.push_back({"few_credits_read", both(s, [](HostConfig& h) {
                   for (auto* c : {&h.pcie.root_port_credits, &h.pcie.endpoint_credits}) *c = {1, 20, 1, 1, 20};
                   h.iommu.mode = iommu::Mode::passthrough;
                 })});
  s = stream(Op::send_bw, 64, 64, 32);
  s.workloads[0].cq_depth = 4;
  s.workloads[0].retry_cnt = 1;
  s.workloads[0].qp_timeout = 8;
  all.push_back({"overrun", s});
  s = stream(Op::send_bw, 4096, 40, 32);
  s.workloads[0].rx_depth = 1;
  s.workloads[0].rnr_retry = 1;
  s.workloads[0].min_rnr_timer = 1;
  all.push_back({"rnr", s});
  s = stream(Op::send_bw, 64, 40, 16);
  s.workloads[0].consumer = ConsumerKind::kernel;
  s.workloads[0].rx_depth = 20;
  all.push_back({"kernel_softirq", both(s, [](HostConfig& h) {
                   h.kernel.cq_poll.irq_poll_budget = 4;
                   h.kernel.cq_poll.batch = 2;
                 })});
  s.workloads[0].poll_context = kernel::PollContext::workqueue;
  s.workloads[0].inline_size = 64;
  all.push_back({"kernel_work", both(s, [](HostConfig& h) { h.kernel.cq_poll.work_budget = 2; })});
  s.workloads[0].poll_context = kernel::PollContext::direct;
  all.push_back({"kernel_direct", both(s, [](HostConfig& h) { h.kernel.cq_poll.direct_batch = 2; })});
  s = stream(Op::send_bw, 64, 3000, 64);
  s.workloads[0].server_consumer = ConsumerKind::kernel;
  s.workloads[0].dim = true;
  s.run.jitter.step = 2_us;
  all.push_back({"kernel_dim", s});
  s = one_workload(Op::write_lat, 700, 6);
  all.push_back({"write", both(s, [](HostConfig& h) {
                   h.memory.ddio = false;
                   h.iommu.mode = iommu::Mode::off;
                   h.kernel.device.removal_notice = kernel::RemovalNotice::health_poll;
                   h.core.poll_mode = cpu::PollMode::spin;
                 })});
  return all;
}

/// A hash over every frame, and the times at which they leave.
struct FrameHash final : sim::trace::Sink {
  explicit FrameHash(std::uint64_t& out) : hash(out) {}
  using Sink::on;
  void on(const sim::trace::PacketRecord& r) override {
    for (const std::byte b : r.bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001B3ULL;
    hash = (hash ^ static_cast<std::uint64_t>(r.t.n)) * 0x100000001B3ULL;
  }
  void close(sim::Picos) override {}
  std::uint64_t& hash;
};

// Calls that the workloads do not make: a QP with many segments, a peer that nobody knows, poll(), a copy.
void use(ibv_context* c, std::string& out) {
  cpu::Thread& thread = cpu::current();
  ibv_pd* pd = ibv_alloc_pd(c);
  ibv_cq* cq = ibv_create_cq(c, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {8, 8, 1, 32, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  append(out, "receive segments", qp == nullptr ? 0 : init.cap.max_recv_sge);
  init.cap = {8, 8, 1, 1, 0};
  if (qp == nullptr) qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) return;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_256;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid.raw[0] = 0x20;
  a.ah_attr.grh.sgid_index = 3;
  a.ah_attr.port_num = 1;
  sim::Picos start = thread.now();
  const int e = ibv_modify_qp(qp, &a,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  append(out, "unknown peer", static_cast<std::uint64_t>(e));
  append(out, "time", static_cast<std::uint64_t>((thread.now() - start).n));
  ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);

  start = thread.now();
  loop(c, out);
  append(out, "loopback", static_cast<std::uint64_t>((thread.now() - start).n));
  windows(c, out);
  moderation(c, out);
  start = thread.now();
  std::array<kernel::PollFd, 1> fds{};
  fds[0].fd = c->async_fd;
  kernel::Syscalls& calls = *verbs::process().syscalls;
  calls.poll(fds, sim::Picos{0});
  const int epoll = calls.epoll_create();
  calls.epoll_ctl(epoll, EPOLL_CTL_ADD, c->async_fd, {EPOLLIN, 0});
  calls.close(epoll);
  append(out, "poll", static_cast<std::uint64_t>((thread.now() - start).n));
  start = thread.now();
  auto* bytes = static_cast<std::byte*>(thread.space().alloc(8192, 4096));
  thread.copy(bytes, bytes + 4096, 4096);
  thread.space().free(bytes);
  append(out, "copy", static_cast<std::uint64_t>((thread.now() - start).n));
}

// What any program can ask of the device.
std::string attributes() {
  int n = 0;
  ibv_device** list = ibv_get_device_list(&n);
  if (list == nullptr || n == 0) return "no device\n";
  ibv_context* c = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (c == nullptr) return "no context\n";
  std::string out;
  ibv_device_attr d{};
  ibv_port_attr p{};
  if (ibv_query_device(c, &d) == 0) {
    out.append(d.fw_ver).append("\n");
    for (const std::uint64_t v : {std::uint64_t{d.node_guid}, std::uint64_t{d.vendor_part_id},
                                  std::uint64_t{d.max_mr_size}, std::uint64_t{d.device_cap_flags}})
      append(out, "device", v);
    for (const int v : {d.max_qp, d.max_qp_wr, d.max_sge, d.max_cq, d.max_cqe, d.max_mr, d.max_pd, d.max_qp_rd_atom,
                        d.max_qp_init_rd_atom, d.max_srq, d.max_srq_wr, d.max_sge_rd, static_cast<int>(d.atomic_cap)})
      append(out, "device", static_cast<std::uint64_t>(v));
    append(out, "vectors", static_cast<std::uint64_t>(c->num_comp_vectors));
  }
  if (ibv_query_port(c, 1, &p) == 0)
    for (const std::uint64_t v :
         {std::uint64_t{p.active_mtu}, std::uint64_t{p.max_msg_sz}, std::uint64_t{p.active_speed},
          std::uint64_t{p.active_width}, std::uint64_t(p.gid_tbl_len), std::uint64_t{p.pkey_tbl_len}})
      append(out, "port", v);
  for (int i = 0; i < p.gid_tbl_len; ++i) {
    ibv_gid g{};
    if (ibv_query_gid(c, 1, i, &g) == 0)
      for (const std::uint8_t b : g.raw) append(out, "gid", b);
  }
  use(c, out);
  ibv_close_device(c);
  return out;
}

std::string results(const ScenarioConfig& s) {
  std::string out;
  try {
    sim::Context context(s.seed);
    JourneyLog journeys;
    std::uint64_t frames = 0xCBF29CE484222325ULL;
    std::string device;
    context.journeys.set_sink(&journeys);
    context.tracer.add_sink(std::make_unique<FrameHash>(frames));
    context.tracer.open({}, 1U << static_cast<unsigned>(sim::trace::Category::fabric));
    Cluster cluster(context, s, sim::EngineMode::run_ahead);
    cluster.on_ready([&](sim::Picos t) {
      Process& p = cluster.host(0).create_process();
      cluster.host(0).create_thread(p, s.hosts[0].cores - 1, "query", [&] { device = attributes(); }).start(t);
    });
    cluster.start();
    cluster.engine().run(s.run.time_limit.n > 0 ? s.run.time_limit : 3_s);
    for (const sim::Journey& j : journeys.all) {
      append(out, "journey", j.bytes);
      for (const sim::Picos p : j.stage) append(out, "stage", static_cast<std::uint64_t>(p.n));
    }
    for (const auto& [path, c] : context.stats.counters()) append(out, path, c.value);
    for (const auto& [path, b] : context.stats.busy_times()) {
      append(out, path, static_cast<std::uint64_t>(b.busy.n));
      append(out, path, b.capacity);
    }
    for (const auto& w : cluster.workloads()) {
      for (const auto& [status, n] : w->record().wc_status) append(out, status, n);
      append(out, w->record().name, static_cast<std::uint64_t>(w->record().ended.n));
      append(out, "corrupted", w->record().corrupted);
    }
    for (const auto& e : cluster.async_events())
      append(out, e.host + e.type + e.object, static_cast<std::uint64_t>(e.time.n));
    for (const auto& name : cluster.host_names()) out += name;
    append(out, "frames", frames);
    append(out, "end", static_cast<std::uint64_t>(context.now().n));
    if (!device.empty()) {  // the program has done its work
      cluster.host(0).remove_device(true);
      cluster.engine().run(context.now() + 5_s);
    }
    append(out, "removed", static_cast<std::uint64_t>(context.now().n));
    out += device;
  } catch (const std::exception& e) {
    out.append("refused: ").append(e.what());
  }
  return out;
}

// SystemC has one kernel per process, so each run has a process of its own.
std::string in_child(const ScenarioConfig& s) {
  int fd[2];
  if (pipe(fd) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const std::string text = results(s);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(fd[1], text.data() + done, text.size() - done);
      if (n <= 0) _exit(1);
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(fd[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(fd[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(fd[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return "crashed";
  return text;
}

/// Fields that may change nothing, with the reason.
const std::map<std::string, std::string> kExempt{
    {"fabric.topology", "has one value"},
    {"hosts.kernel.netdev.pkey_table_length", "has one value"},
    {"hosts.hca.receive.srq_limit_at_arm", "shows when a program arms a limit; tests/system/srq_test.cpp"},
    {"hosts.hca.completion.clock_period", "shows in CQE time stamps and hca_core_clock; tests/system/objects_test.cpp"},
    {"hosts.hca.completion.eq_overflow", "the event queues have room; tests/hca/event_unit_test.cpp"},
    {"hosts.kernel.syscall.epoll_event", "nobody waits by epoll; tests/kernel/epoll_test.cpp"},
    {"hosts.hca.uar.bf_assembly_timeout",
     "the provider never leaves a BlueFlame copy incomplete; tests/hca/uar_test.cpp"},
    {"hosts.hca.transport.forbidden_event", "no workload does what its QP forbids; tests/system/fault_map_test.cpp"},
    {"hosts.hca.transport.result_fault", "no workload reads into foreign memory; tests/system/fault_map_test.cpp"},
    {"hosts.iommu.large_pages", "the kernel maps 4 KiB pages; tests/iommu/iommu_test.cpp"},
    {"hosts.iommu.fault_records", "needs several translation faults at once; tests/iommu/iommu_test.cpp"},
    {"hosts.kernel.driver.privileged", "Q_Keys belong to datagram QPs; tests/kernel/modify_qp_test.cpp"},
    {"hosts.pcie.bdf", "names the device to the IOMMU"},
    {"hosts.pcie.root_port_credits.completion_headers", "one register read at a time; tests/pcie"},
    {"hosts.pcie.root_port_credits.completion_data", "one register read at a time; tests/pcie"},
    {"hosts.pcie.endpoint_credits.non_posted_headers", "one register read at a time; tests/pcie"},
    {"run.stall_limit", "tests/experiment/programs_test.cpp"},
    {"workloads.verify", "only a bug of the simulator corrupts bytes"},
};

std::string changed_scenario(const ScenarioConfig& base, const std::string& path, unsigned variant,
                             ScenarioConfig& out) {
  out = base;
  Walker w{.prefix = {}, .target = path, .variant = variant};
  w.prefix = "hosts";
  w.walk(out.hosts[0]);
  if (w.changed && path != "hosts.kernel.netdev.ipv4" && path != "hosts.name") {
    const std::string name = out.hosts[1].name;
    out.hosts[1] = out.hosts[0];
    out.hosts[1].name = name;
  }
  w.prefix = "fabric";
  w.walk(out.fabric);
  w.prefix = "run";
  w.walk(out.run);
  for (WorkloadConfig& c : out.workloads) {
    w.prefix = "workloads";
    w.walk(c);
    if (path == "workloads.server" && !c.server.empty()) c.server = "host0";
  }
  if (!w.changed) return "same";
  return agrees(out) ? "" : "refused";
}

std::vector<std::string> all_paths() {
  ScenarioConfig s = scenarios()[0].config;
  std::vector<std::string> paths;
  Walker w{.prefix = "hosts", .target = {}, .variant = 0, .paths = &paths};
  w.walk(s.hosts[0]);
  w.prefix = "fabric";
  w.walk(s.fabric);
  w.prefix = "run";
  w.walk(s.run);
  w.prefix = "workloads";
  w.walk(s.workloads[0]);
  return paths;
}

class NoDeadOption : public testing::TestWithParam<const char*> {};
TEST_P(NoDeadOption, EachFieldChangesSomeResult) {
  const std::string block = GetParam();
  const auto all = scenarios();
  std::vector<std::string> before;
  for (const Named& n : all) {
    before.push_back(in_child(n.config));
    ASSERT_NE(before.back(), "crashed") << n.name;
    ASSERT_EQ(before.back().find("refused:"), std::string::npos) << n.name << ": " << before.back();
  }
  std::size_t fields = 0;
  for (const std::string& path : all_paths()) {
    if (path.rfind(block, 0) != 0 || kExempt.count(path) != 0) continue;
    ++fields;
    std::string found;
    for (unsigned variant = 0; variant < kVariants && found.empty(); ++variant) {
      for (std::size_t i = 0; i < all.size() && found.empty(); ++i) {
        ScenarioConfig s;
        if (!changed_scenario(all[i].config, path, variant, s).empty()) continue;
        const std::string after = in_child(s);
        EXPECT_NE(after, "crashed") << path << " in " << all[i].name << ", variant " << variant;
        if (after != before[i]) found = all[i].name;
      }
    }
    EXPECT_FALSE(found.empty()) << path << " changes nothing";
  }
  EXPECT_GT(fields, 0u);
}
TEST(Exemptions, NameExistingFields) {
  const std::vector<std::string> paths = all_paths();
  for (const auto& [path, why] : kExempt) EXPECT_EQ(std::count(paths.begin(), paths.end(), path), 1) << path;
}
INSTANTIATE_TEST_SUITE_P(Blocks, NoDeadOption,
                         testing::Values("hosts.name", "hosts.cores", "hosts.core.", "hosts.memory",
                                         "hosts.root_complex", "hosts.pcie", "hosts.iommu", "hosts.hca.caps",
                                         "hosts.hca.keys", "hosts.hca.uar", "hosts.hca.command", "hosts.hca.context",
                                         "hosts.hca.dma", "hosts.hca.send", "hosts.hca.receive", "hosts.hca.transport",
                                         "hosts.hca.completion", "hosts.hca.internal_error_at", "hosts.kernel",
                                         "hosts.verbs", "hosts.env", "fabric", "run", "workloads"),
                         [](const auto& i) {
                           std::string name = i.param;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace sys::test
