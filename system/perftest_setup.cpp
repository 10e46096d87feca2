// SPDX-License-Identifier: Apache-2.0
// Resources and connection of a perftest-style program, through the verbs API alone.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/perftest_connection.h"
#include "system/perftest_program.h"
#include "verbs_frontend/process_state.h"

namespace sys {

PerftestProgram::PerftestProgram(Workload& workload, Process& process, bool client)
    : workload_(workload),
      config_(workload.config_),
      process_(process),
      host_(*workload.hosts_[client ? 0 : 1]),
      client_(client) {}

void PerftestProgram::run() {
  thread_ = &cpu::current();
  open();
  connect();
  meet("connected");
  CpuMeter& cpu = client_ ? workload_.record_.client_cpu : workload_.record_.server_cpu;
  cpu.start();
  switch (config_.op) {
    case Op::send_lat:
      send_lat();
      break;
    case Op::write_lat:
      write_lat();
      break;
    case Op::read_lat:
      if (client_) read_lat();
      break;
    case Op::send_bw:
      client_ ? stream() : sink();
      break;
    case Op::write_bw:
    case Op::read_bw:
      if (client_) stream();
      break;
  }
  cpu.stop();
  workload_.record_.ended = sim::max(workload_.record_.ended, thread_->now());
  meet("done");
  close();
}

void PerftestProgram::failed(const std::string& call, int error) const {
  throw ProgramFailure("workload \"" + workload_.record_.name + "\", " + (client_ ? "client" : "server") + " on " +
                       host_.config().name + ": " + call + " failed: " + strerrorname_np(error) + " (" +
                       strerror(error) + ")");
}

void PerftestProgram::require(bool ok, const char* call) const {
  if (!ok) failed(call, errno);
}

void PerftestProgram::meet(const char* what, const void* mine, void* theirs, std::size_t n) {
  const std::string tag = std::to_string(workload_.flow_) + ":" + what;
  if (const int e = process_.exchange->swap(tag, mine, theirs, n)) failed("out-of-band exchange", e);
}

void PerftestProgram::open() {
  int n = 0;
  ibv_device** list = ibv_get_device_list(&n);
  require(list != nullptr, "ibv_get_device_list");
  if (n == 0) failed("ibv_get_device_list (no device)", ENODEV);
  context_ = ibv_open_device(list[0]);
  require(context_ != nullptr, "ibv_open_device");
  ibv_free_device_list(list);
  workload_.watch_async_events(context_, process_, host_);
  if (const int e = ibv_query_port(context_, 1, &port_)) failed("ibv_query_port", e);
  if (128U << port_.active_mtu < config_.mtu)
    failed("mtu " + std::to_string(config_.mtu) + " exceeds the port's active MTU of " +
               std::to_string(128U << port_.active_mtu) + ":",
           EINVAL);
  pd_ = ibv_alloc_pd(context_);
  require(pd_ != nullptr, "ibv_alloc_pd");

  const std::size_t bytes = region_bytes();
  buffer_ = static_cast<std::byte*>(process_.space.alloc(bytes * 2, 4096));
  pattern_ = static_cast<std::byte*>(process_.space.alloc(bytes, 4096));
  if (buffer_ == nullptr || pattern_ == nullptr) failed("posix_memalign", ENOMEM);
  const char* mine = client_ ? "PING" : "PONG";
  const char* theirs = client_ ? "PONG" : "PING";
  for (std::size_t i = 0; i < bytes; ++i) {
    buffer_[i] = static_cast<std::byte>(mine[i % 4]);
    pattern_[i] = static_cast<std::byte>(theirs[i % 4]);
  }
  mr_ = ibv_reg_mr(pd_, buffer_, bytes * 2, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  require(mr_ != nullptr, "ibv_reg_mr");

  if (config_.mode(client_) == CompletionMode::event) {
    channel_ = ibv_create_comp_channel(context_);
    require(channel_ != nullptr, "ibv_create_comp_channel");
  }
  const std::uint32_t sends = config_.depth() * config_.qps, receives = config_.rx_depth * config_.qps;
  const auto vector = static_cast<int>(config_.comp_vector);
  send_cq_ = ibv_create_cq(context_, static_cast<int>(config_.cq_depth != 0 ? config_.cq_depth : sends), nullptr,
                           channel_, vector);
  require(send_cq_ != nullptr, "ibv_create_cq (send)");
  if (config_.is_send()) {
    recv_cq_ = ibv_create_cq(context_, static_cast<int>(config_.cq_depth != 0 ? config_.cq_depth : receives), nullptr,
                             channel_, vector);
    require(recv_cq_ != nullptr, "ibv_create_cq (receive)");
  }
  wc_.resize(16);
  send_wr_.resize(config_.post_list);
  sge_.resize(config_.post_list);
}

void PerftestProgram::connect() {
  ibv_gid gid{};
  require(ibv_query_gid(context_, 1, static_cast<int>(config_.gid_index), &gid) == 0, "ibv_query_gid");
  connections_.resize(config_.qps);
  for (std::uint32_t q = 0; q < config_.qps; ++q) {
    Connection& c = connections_[q];
    ibv_qp_init_attr init{};
    init.send_cq = send_cq_;
    init.recv_cq = recv_cq_ != nullptr ? recv_cq_ : send_cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = config_.depth();
    init.cap.max_recv_wr = config_.is_send() ? config_.rx_depth : 1;
    init.cap.max_send_sge = 1;
    init.cap.max_recv_sge = 1;
    init.cap.max_inline_data = config_.inline_size;
    c.qp = ibv_create_qp(pd_, &init);
    require(c.qp != nullptr, "ibv_create_qp");
    verbs::set_flow(c.qp, workload_.flow_);

    QpTransition start = to_init();
    const int e = ibv_modify_qp(c.qp, &start.attr, start.mask);
    if (e != 0) failed("ibv_modify_qp to INIT", e);
    if (config_.is_send()) post_receives(c, config_.rx_depth);
    c.mine = {c.qp->qp_num, first_psn(c.qp->qp_num, client_), mr_->rkey, reinterpret_cast<std::uint64_t>(buffer_), {}};
    std::memcpy(c.mine.gid, gid.raw, sizeof c.mine.gid);
    meet(("qp" + std::to_string(q)).c_str(), &c.mine, &c.peer, sizeof c.mine);
    modify_to_rts(c);
  }
}

void PerftestProgram::modify_to_rts(Connection& c) {
  QpTransition rtr = to_rtr(config_, c.peer), rts = to_rts(config_, c.mine.psn);
  if (const int e = ibv_modify_qp(c.qp, &rtr.attr, rtr.mask)) failed("ibv_modify_qp to RTR", e);
  if (const int e = ibv_modify_qp(c.qp, &rts.attr, rts.mask)) failed("ibv_modify_qp to RTS", e);
}

void PerftestProgram::close() {
  for (Connection& c : connections_)
    if (const int e = ibv_destroy_qp(c.qp)) failed("ibv_destroy_qp", e);
  if (const int e = ibv_destroy_cq(send_cq_)) failed("ibv_destroy_cq", e);
  if (recv_cq_ != nullptr)
    if (const int e = ibv_destroy_cq(recv_cq_)) failed("ibv_destroy_cq", e);
  if (channel_ != nullptr)
    if (const int e = ibv_destroy_comp_channel(channel_)) failed("ibv_destroy_comp_channel", e);
  if (const int e = ibv_dereg_mr(mr_)) failed("ibv_dereg_mr", e);
  if (const int e = ibv_dealloc_pd(pd_)) failed("ibv_dealloc_pd", e);
  ibv_close_device(context_);
  process_.space.free(buffer_);
  process_.space.free(pattern_);
}

}  // namespace sys
