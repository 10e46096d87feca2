// SPDX-License-Identifier: Apache-2.0
// Objects and connection of the module, through the in-kernel verbs alone. It and its peer meet out of band as two programs
// do, so either may be a program.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/core/rdma_core.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "system/kernel_perftest.h"
#include "system/perftest_connection.h"

namespace sys {

KernelPerftest::KernelPerftest(Workload& workload, Host& host, bool client)
    : workload_(workload), config_(workload.config_), host_(host), kernel_(host.kernel()), client_(client) {}

void KernelPerftest::run() {
  thread_ = &cpu::current();
  kernel_.rdma().register_client(*this);
  if (!failure_.empty()) throw ProgramFailure(failure_);
  if (pd_ == nullptr) failed("ib_register_client (no device)", ENODEV);
  connect();
  meet("connected");
  CpuMeter& cpu = client_ ? workload_.record_.client_cpu : workload_.record_.server_cpu;
  working_ = true;
  cpu.start();
  begin();
  wait_until_done();
  cpu.stop();
  working_ = false;
  expect_device();
  meet("done");
  kernel_.rdma().unregister_client(*this);
}

int KernelPerftest::add(kernel::Device& device) {
  try {
    create_objects(device);
    return 0;
  } catch (const ProgramFailure& e) {
    failure_ = e.what();
    return -EIO;
  }
}

// All that the module has of the device goes; if the device goes first, the module's thread finds out.
void KernelPerftest::remove(kernel::Device& /*device*/) {
  constexpr sim::Picos kMicrosecond{1'000'000};
  stopping_ = true;
  if (working_) finish();
  while (working_) cpu::current().sleep(kMicrosecond);
  for (Connection& c : connections_)
    if (c.qp != nullptr) require("ib_destroy_qp", kernel::ib_destroy_qp(*c.qp));
  require("ib_free_cq", kernel::ib_free_cq(*cq_));
  require("ib_dereg_mr", kernel::ib_dereg_mr(*mr_));
  require("ib_dealloc_pd", kernel::ib_dealloc_pd(*pd_));
  kernel_.dma().free(buffer_);
}

void KernelPerftest::failed(const std::string& call, int error) const {
  throw ProgramFailure("workload \"" + workload_.record_.name + "\", " + (client_ ? "client" : "server") + " on " +
                       host_.config().name + " in the kernel: " + call + " failed: " + strerrorname_np(error) + " (" +
                       strerror(error) + ")");
}

void KernelPerftest::require(const char* call, int error) const {
  if (error < 0) failed(call, -error);
}

void KernelPerftest::expect_device() const {
  if (stopping_) failed("the device was removed:", ENODEV);
}

void KernelPerftest::meet(const std::string& what, const void* mine, void* theirs, std::size_t n) {
  const std::string tag = std::to_string(workload_.flow_) + ":" + what;
  if (const int e = host_.exchange().swap(tag, mine, theirs, n)) failed("out-of-band exchange", e);
  expect_device();
}

void KernelPerftest::create_objects(kernel::Device& device) {
  if (128U << kernel_.active_mtu() < config_.mtu)
    failed("mtu " + std::to_string(config_.mtu) + " exceeds the port's active MTU of " +
               std::to_string(128U << kernel_.active_mtu()) + ":",
           EINVAL);
  require("ib_alloc_pd", kernel::ib_alloc_kernel_pd(device, 0, consumer_, pd_));
  const std::size_t bytes = region_bytes();
  buffer_ = kernel_.dma().alloc(bytes * 2);
  pattern_.resize(bytes);
  const char* mine = client_ ? "PING" : "PONG";
  const char* theirs = client_ ? "PONG" : "PING";
  for (std::size_t i = 0; i < bytes; ++i) {
    buffer_.bytes[i] = static_cast<std::byte>(mine[i % 4]);
    pattern_[i] = static_cast<std::byte>(theirs[i % 4]);
  }
  iova_ = reinterpret_cast<std::uint64_t>(buffer_.bytes);
  require("ib_reg_phys_mr",
          kernel::ib_reg_phys_mr(*pd_, buffer_, iova_, bytes * 2,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, consumer_,
                                 mr_));
  // One page has one DMA address, which the PD's own key covers; more pages may be scattered.
  local_ =
      bytes * 2 <= memory::kPageSize ? ibv_sge{buffer_.at(0).v, 0, pd_->local_dma_lkey} : ibv_sge{iova_, 0, mr_->key};
  // One CQ for sends and receives.
  const std::uint32_t sends = config_.depth() * config_.qps,
                      receives = config_.is_send() ? config_.rx_depth * config_.qps : 0;
  const kernel::PolledCqAttr attr{config_.cq_depth != 0 ? config_.cq_depth : sends + receives, config_.comp_vector,
                                  config_.poll_context, config_.dim};
  require("ib_alloc_cq", kernel::ib_alloc_cq(device, attr, consumer_, this, cq_));
  send_wr_.resize(config_.post_list);
  sge_.resize(config_.post_list);
  if (client_ && config_.op == Op::send_lat) post_times_.reserve(config_.iters);
}

void KernelPerftest::connect() {
  const kernel::GidTable& gids = kernel_.device().gids;
  if (config_.gid_index >= gids.length()) failed("gid_index", EINVAL);
  connections_.resize(config_.qps);
  for (std::uint32_t q = 0; q < config_.qps; ++q) {
    Connection& c = connections_[q];
    c.sends.resize(config_.depth());
    for (Request& r : c.sends) {
      r.done = &KernelPerftest::on_sent;
      r.connection = &c;
    }
    c.receive.done = &KernelPerftest::on_received;
    c.receive.connection = &c;
    kernel::QpInitAttr init;
    init.send_cq = init.recv_cq = cq_.get();
    init.cap = {config_.depth(), config_.is_send() ? config_.rx_depth : 1U, 1, 1, config_.inline_size};
    require("ib_create_qp", kernel::ib_create_qp(*pd_, init, consumer_, nullptr, c.qp));
    kernel::mlx5_ib::set_flow(*c.qp, workload_.flow_);

    const QpTransition start = to_init();
    require("ib_modify_qp to INIT", kernel::ib_modify_qp(*c.qp, start.attr, start.mask, nullptr));
    if (config_.is_send()) post_receives(c, config_.rx_depth);
    c.mine = {c.qp->qpn, first_psn(c.qp->qpn, client_), mr_->key, iova_, {}};
    std::memcpy(c.mine.gid, gids.at(config_.gid_index).gid.data(), sizeof c.mine.gid);
    meet("qp" + std::to_string(q), &c.mine, &c.peer, sizeof c.mine);
    modify_to_rts(c);
  }
}

void KernelPerftest::modify_to_rts(Connection& c) {
  const QpTransition rtr = to_rtr(config_, c.peer), rts = to_rts(config_, c.mine.psn);
  require("ib_modify_qp to RTR", kernel::ib_modify_qp(*c.qp, rtr.attr, rtr.mask, nullptr));
  require("ib_modify_qp to RTS", kernel::ib_modify_qp(*c.qp, rts.attr, rts.mask, nullptr));
}

}  // namespace sys
