// SPDX-License-Identifier: Apache-2.0
// A kernel consumer on the machine of these tests: its thread, its objects, and a device that writes CQEs for it.
#pragma once

#include <utility>

#include "kernel/core/cq_poll.h"
#include "kernel/core/resource_tracking.h"
#include "kernel/core/verbs.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "machine.h"

namespace test {

struct KernelMachine : Machine {
  using Machine::Machine;
  /// Runs `body` in a kernel thread of core 0 once the device is ready.
  void run_in_kernel(std::function<void()> body) {
    body_ = std::move(body);
    kernel->on_ready(
        [](void* m) {
          auto* self = static_cast<KernelMachine*>(m);
          self->thread = self->kernel->create_thread(0, "ulp", [self] { self->body_(); });
          self->thread->start(self->context.now());
        },
        this);
    kernel->start({});
    ASSERT_EQ(engine.run(), sim::Outcome::quiescent);
    ASSERT_TRUE(kernel->ready()) << kernel->boot_error();
    EXPECT_TRUE(thread->finished()) << "waits for: " << thread->program_thread().wait_reason();
  }
  kernel::Consumer consumer() const { return kernel::Consumer(owner); }

  /// Writes a CQE as the device does, at the ring's slot of `counter`.
  void complete(kernel::Cq& cq, std::uint32_t counter, mlx5_cqe64 cqe) {
    auto& m = static_cast<kernel::Mlx5Cq&>(cq);
    cqe.op_own = static_cast<std::uint8_t>(cqe.op_own | ((counter & m.entries) != 0 ? 1 : 0));
    device.dma_write(m.kernel->buffer.at(std::size_t{counter & (m.entries - 1)} * sizeof cqe), &cqe, sizeof cqe);
  }
  static mlx5_cqe64 sent(std::uint32_t qpn, std::uint16_t wqe, std::uint8_t opcode = MLX5_OPCODE_SEND) {
    mlx5_cqe64 c{};
    c.sop_drop_qpn = prm::be32(std::uint32_t{opcode} << 24 | qpn);
    c.wqe_counter = prm::be16(wqe);
    c.op_own = MLX5_CQE_REQ << 4;
    return c;
  }
  static mlx5_cqe64 received(std::uint32_t qpn, std::uint32_t bytes) {
    mlx5_cqe64 c{};
    c.sop_drop_qpn = prm::be32(qpn);
    c.byte_cnt = prm::be32(bytes);
    c.op_own = MLX5_CQE_RESP_SEND << 4;
    return c;
  }
  static mlx5_cqe64 failed(mlx5_cqe64 c, std::uint8_t opcode, std::uint8_t syndrome) {
    auto& e = reinterpret_cast<mlx5_err_cqe&>(c);
    e.syndrome = syndrome;
    e.vendor_err_synd = 0x77;
    c.op_own = static_cast<std::uint8_t>(opcode << 4);
    return c;
  }

  kernel::ResourceOwner owner{0, "test_ulp"};
  std::unique_ptr<cpu::Thread> thread;

 private:
  std::function<void()> body_;
};

/// PD, CQ and RC queue pair of a kernel consumer.
struct KernelObjects {
  explicit KernelObjects(KernelMachine& machine, std::uint32_t sends = 4, std::uint32_t receives = 4,
                         std::uint32_t send_sge = 1, std::uint32_t recv_sge = 2, std::uint32_t inline_bytes = 0)
      : m(machine) {
    kernel::Device& device = m.kernel->device();
    EXPECT_EQ(kernel::ib_alloc_kernel_pd(device, 0, m.consumer(), pd), 0);
    EXPECT_EQ(kernel::ib_create_cq(device, {.cqe = 15, .comp_vector = 0, .flags = 0}, m.consumer(), nullptr, cq), 0);
    kernel::QpInitAttr init;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {sends, receives, send_sge, recv_sge, inline_bytes};
    EXPECT_EQ(kernel::ib_create_qp(*pd, init, m.consumer(), nullptr, qp), 0);
  }
  kernel::KernelQp& rings() { return *static_cast<kernel::Mlx5Qp&>(*qp).kernel; }
  kernel::KernelCq& ring() { return *static_cast<kernel::Mlx5Cq&>(*cq).kernel; }
  void destroy() {
    EXPECT_EQ(kernel::ib_destroy_qp(*qp), 0);
    EXPECT_EQ(kernel::ib_destroy_cq(*cq), 0);
    EXPECT_EQ(kernel::ib_dealloc_pd(*pd), 0);
  }
  KernelMachine& m;
  std::unique_ptr<kernel::Pd> pd;
  std::unique_ptr<kernel::Cq> cq;
  std::unique_ptr<kernel::Qp> qp;
};

}  // namespace test
