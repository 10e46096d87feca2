// SPDX-License-Identifier: Apache-2.0
// One host with the kernel under test, a FakeDevice and one process, and the uverbs commands that its programs issue.
#pragma once

#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/core.h"
#include "fake_device.h"
#include "kernel/process.h"

namespace test {

inline kernel::KernelConfig default_config() {
  kernel::KernelConfig c;
  c.netdev.ipv4 = "10.0.0.1";
  return c;
}

struct Machine {
  explicit Machine(const kernel::KernelConfig& config = default_config(), bool passthrough = false) {
    iommu.pass = passthrough;
    kernel::Platform p;
    p.memory = &memory;
    p.engine = &engine;
    p.cores = {&core0, &core1};
    p.arena_base = 0x2000'0000'0000ULL;
    p.bar0 = {kBar0};
    p.requester = 0x100;
    p.iommu = &iommu;
    p.neighbours = &neighbours;
    p.thread_number = 1;
    kernel = std::make_unique<kernel::Kernel>("kernel", context, config, p);
    device.sink = kernel.get();
    core0.mmio(device);
    core1.mmio(device);
    process = std::make_unique<kernel::Process>(*kernel, user);
    neighbours.add(*kernel::gid_of_ipv4("10.0.0.2"), 0x0200'0000'0002ULL);
  }
  ~Machine() { context.frames.destroy_flows(); }

  /// Adds a program that starts when the device is ready.
  cpu::Thread& program(std::function<void()> body, cpu::Core* core = nullptr) {
    const auto number = static_cast<std::uint32_t>(programs.size()) + 2;
    programs.push_back(std::make_unique<cpu::Thread>(core != nullptr ? *core : core0, engine, user,
                                                     "program" + std::to_string(number), number, std::move(body)));
    return *programs.back();
  }
  void run() {
    kernel->on_ready(
        [](void* m) {
          auto* self = static_cast<Machine*>(m);
          for (auto& t : self->programs) t->start(self->context.now());
        },
        this);
    kernel->start({});
    ASSERT_EQ(engine.run(), sim::Outcome::quiescent);
    ASSERT_EQ(kernel->boot_error(), "");
    ASSERT_TRUE(kernel->ready() || kernel->device_removed());
    for (auto& t : programs)
      EXPECT_TRUE(t->finished()) << t->name() << " waits for: " << t->program_thread().wait_reason();
  }
  /// One program, run to its end.
  void run(std::function<void()> body) {
    program(std::move(body));
    run();
  }

  sim::Context context;
  sim::Engine engine{"engine", context.scheduler, sim::EngineMode::run_ahead};
  memory::HostMemory memory{"memory", context, memory::MemoryConfig{}, 0};
  cpu::Core core0{"core0", context, cpu::CoreConfig{}, memory, 0, 0};
  cpu::Core core1{"core1", context, cpu::CoreConfig{}, memory, 0, 1};
  FakeIommu iommu{context, memory};
  FakeDevice device{context, memory, iommu};
  kernel::NeighbourTable neighbours;
  std::unique_ptr<kernel::Kernel> kernel;
  memory::AddressSpace user{memory, 0x2100'0000'0000ULL};
  std::unique_ptr<kernel::Process> process;
  std::vector<std::unique_ptr<cpu::Thread>> programs;
};

/// The core's part of a command or response and the driver's part behind it.
template <class Base, class Driver>
struct Joined {
  alignas(8) std::byte raw[sizeof(Base) + sizeof(Driver)]{};
  Base& base() { return *reinterpret_cast<Base*>(raw); }
  Driver& mlx5() { return *reinterpret_cast<Driver*>(raw + sizeof(Base)); }
};

/// The commands of one opened context. Functions return 0 or -errno.
struct Verbs {
  explicit Verbs(Machine& machine) : m(machine), p(*machine.process) {}

  template <class Cmd, class Resp>
  long send(std::uint32_t command, Cmd cmd, Resp* resp) {
    std::byte message[sizeof(ib_uverbs_cmd_hdr) + sizeof cmd];
    const ib_uverbs_cmd_hdr hdr{command, sizeof message / 4,
                                static_cast<std::uint16_t>(resp != nullptr ? sizeof *resp / 4 : 0)};
    const auto at = reinterpret_cast<std::uint64_t>(resp);
    if (resp != nullptr) std::memcpy(static_cast<void*>(&cmd), &at, sizeof at);
    std::memcpy(message, &hdr, sizeof hdr);
    std::memcpy(message + sizeof hdr, &cmd, sizeof cmd);
    const long r = p.write(fd, message, sizeof message);
    return r == static_cast<long>(sizeof message) ? 0 : r;
  }
  template <class Cmd>
  long send(std::uint32_t command, Cmd cmd) {
    return send(command, cmd, static_cast<std::uint64_t*>(nullptr));
  }

  Joined<ib_uverbs_get_context_resp, mlx5_ib_alloc_ucontext_resp> context;
  int open(std::uint32_t total = 16, std::uint32_t low = 4) {
    fd = p.open("/dev/infiniband/uverbs0", 2);
    if (fd < 0) return fd;
    Joined<ib_uverbs_get_context, mlx5_ib_alloc_ucontext_req_v2> cmd;
    cmd.mlx5().total_num_bfregs = total;
    cmd.mlx5().num_low_latency_bfregs = low;
    cmd.mlx5().max_cqe_version = 1;
    return static_cast<int>(send(IB_USER_VERBS_CMD_GET_CONTEXT, cmd, &context));
  }
  int alloc_pd(std::uint32_t& handle) {
    Joined<ib_uverbs_alloc_pd_resp, mlx5_ib_alloc_pd_resp> r;
    const auto e = send(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &r);
    handle = r.base().pd_handle;
    pdn = r.mlx5().pdn;
    return static_cast<int>(e);
  }
  int dealloc_pd(std::uint32_t h) {
    return static_cast<int>(send(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{h}));
  }
  int reg_mr(std::uint32_t pd, const void* at, std::uint64_t n, std::uint64_t iova, std::uint32_t access,
             ib_uverbs_reg_mr_resp& r) {
    ib_uverbs_reg_mr c{};
    c.start = reinterpret_cast<std::uint64_t>(at);
    c.length = n;
    c.hca_va = iova;
    c.pd_handle = pd;
    c.access_flags = access;
    return static_cast<int>(send(IB_USER_VERBS_CMD_REG_MR, c, &r));
  }
  int dereg_mr(std::uint32_t h) { return static_cast<int>(send(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{h})); }
  int channel() {
    struct {
      ib_uverbs_create_comp_channel_resp r;
      std::uint32_t pad;
    } r{};
    const auto e = send(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{}, &r);
    return e != 0 ? static_cast<int>(e) : static_cast<int>(r.r.fd);
  }
  struct Cq {
    std::uint32_t handle = 0, cqe = 0, cqn = 0;
  };
  int create_cq(Cq& cq, std::uint32_t cqe = 15, int channel_fd = -1, std::uint64_t user = 0, std::uint32_t vector = 0) {
    Joined<ib_uverbs_create_cq, mlx5_ib_create_cq> c;
    c.base().user_handle = user;
    c.base().cqe = cqe;
    c.base().comp_vector = vector;
    c.base().comp_channel = channel_fd;
    c.mlx5().buf_addr =
        reinterpret_cast<std::uint64_t>(m.user.alloc(std::max<std::size_t>(4096, std::size_t{cqe} * 128)));
    c.mlx5().db_addr = dbr();
    c.mlx5().cqe_size = 64;
    Joined<ib_uverbs_create_cq_resp, mlx5_ib_create_cq_resp> r;
    const auto e = send(IB_USER_VERBS_CMD_CREATE_CQ, c, &r);
    cq = {r.base().cq_handle, r.base().cqe, r.mlx5().cqn};
    return static_cast<int>(e);
  }
  int destroy_cq(std::uint32_t h, ib_uverbs_destroy_cq_resp* out = nullptr) {
    ib_uverbs_destroy_cq c{};
    c.cq_handle = h;
    ib_uverbs_destroy_cq_resp r{};
    const auto e = send(IB_USER_VERBS_CMD_DESTROY_CQ, c, &r);
    if (out != nullptr) *out = r;
    return static_cast<int>(e);
  }
  struct Qp {
    std::uint32_t handle = 0, qpn = 0, bfreg = 0;
  };
  int create_qp(Qp& qp, std::uint32_t pd, std::uint32_t send_cq, std::uint32_t recv_cq, ibv_qp_type type = IBV_QPT_RC,
                std::uint64_t user = 0) {
    Joined<ib_uverbs_create_qp, mlx5_ib_create_qp> c;
    c.base().user_handle = user;
    c.base().pd_handle = pd;
    c.base().send_cq_handle = send_cq;
    c.base().recv_cq_handle = recv_cq;
    c.base().max_send_wr = 16;
    c.base().max_recv_wr = 16;
    c.base().max_send_sge = c.base().max_recv_sge = 1;
    c.base().qp_type = static_cast<std::uint8_t>(type);
    c.mlx5().buf_addr = reinterpret_cast<std::uint64_t>(m.user.alloc(64 * 64 + 16 * 16));
    c.mlx5().db_addr = dbr();
    c.mlx5().sq_wqe_count = 64;
    c.mlx5().rq_wqe_count = 16;
    c.mlx5().rq_wqe_shift = 4;
    c.mlx5().uidx = 7;
    Joined<ib_uverbs_create_qp_resp, mlx5_ib_create_qp_resp> r;
    const auto e = send(IB_USER_VERBS_CMD_CREATE_QP, c, &r);
    qp = {r.base().qp_handle, r.base().qpn, r.mlx5().bfreg_index};
    return static_cast<int>(e);
  }
  int destroy_qp(std::uint32_t h, ib_uverbs_destroy_qp_resp* out = nullptr) {
    ib_uverbs_destroy_qp c{};
    c.qp_handle = h;
    struct {
      ib_uverbs_destroy_qp_resp r;
      std::uint32_t pad;
    } r{};
    const auto e = send(IB_USER_VERBS_CMD_DESTROY_QP, c, &r);
    if (out != nullptr) *out = r.r;
    return static_cast<int>(e);
  }
  int modify(std::uint32_t h, ib_uverbs_modify_qp c, std::uint32_t mask) {
    c.qp_handle = h;
    c.attr_mask = mask;
    return static_cast<int>(send(IB_USER_VERBS_CMD_MODIFY_QP, c));
  }
  ib_uverbs_query_qp_resp query(std::uint32_t h) {
    ib_uverbs_query_qp c{};
    c.qp_handle = h;
    ib_uverbs_query_qp_resp r{};
    EXPECT_EQ(send(IB_USER_VERBS_CMD_QUERY_QP, c, &r), 0);
    return r;
  }
  /// Attributes that are right for every transition of an RC QP towards 10.0.0.2.
  static ib_uverbs_modify_qp good() {
    ib_uverbs_modify_qp c{};
    const auto gid = *kernel::gid_of_ipv4("10.0.0.2");
    std::memcpy(c.dest.dgid, gid.data(), 16);
    c.dest.sgid_index = 3;
    c.dest.is_global = 1;
    c.dest.hop_limit = 1;
    c.dest.port_num = 1;
    c.port_num = 1;
    c.path_mtu = IBV_MTU_1024;
    c.dest_qp_num = 0x102;
    c.rq_psn = 0x111111;
    c.sq_psn = 0x222222;
    c.qkey = 0x1234;
    c.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    c.max_rd_atomic = c.max_dest_rd_atomic = 1;
    c.min_rnr_timer = 12;
    c.timeout = 14;
    c.retry_cnt = c.rnr_retry = 7;
    return c;
  }
  /// Moves a fresh QP to `to` along the usual way.
  void bring(std::uint32_t h, ibv_qp_type type, ibv_qp_state to) {
    const bool ud = type == IBV_QPT_UD;
    const auto step = [&](ibv_qp_state s, std::uint32_t mask) {
      auto c = good();
      c.qp_state = static_cast<std::uint8_t>(s);
      ASSERT_EQ(modify(h, c, mask | IBV_QP_STATE), 0) << "to state " << s;
    };
    if (to == IBV_QPS_RESET) return;
    step(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    if (to == IBV_QPS_INIT) return;
    if (to == IBV_QPS_ERR) return step(IBV_QPS_ERR, 0);
    std::uint32_t rtr = ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type == IBV_QPT_RC) rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    step(IBV_QPS_RTR, rtr);
    if (to == IBV_QPS_RTR) return;
    std::uint32_t rts = IBV_QP_SQ_PSN;
    if (type == IBV_QPT_RC) rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    step(IBV_QPS_RTS, rts);
  }

  std::uint64_t dbr() {
    if (dbr_page == nullptr) dbr_page = static_cast<std::byte*>(m.user.alloc(4096));
    return reinterpret_cast<std::uint64_t>(dbr_page + 64 * (dbr_next++ % 64));
  }

  Machine& m;
  kernel::Process& p;
  int fd = -1;
  std::uint32_t pdn = 0;
  std::byte* dbr_page = nullptr;
  unsigned dbr_next = 0;
};

}  // namespace test
