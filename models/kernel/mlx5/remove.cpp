// SPDX-License-Identifier: Apache-2.0
// The end of the device. Orderly, when the driver is unbound: the RDMA core lets go, then event queues, interrupts and the
// adapter's state go by commands and its pages come back. By surprise, when the adapter was pulled out: the driver learns
// of it later, commands under way fail, and what the adapter held is taken back without it.
// Source: mlx5_ib main.c (remove), mlx5_core main.c (mlx5_unload), health.c; rules S-DEV-8, S-DEV-9.
// Not modelled: the traffic of the health poll, re-binding.
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/uverbs/uverbs_device.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr sim::Picos kHandlerPoll{1'000'000};  // how often the end of an interrupt handler is looked for
constexpr std::size_t kPagesPerCommand = 512;
constexpr std::uint32_t kDefaultRemovalThread = 4000;
}  // namespace

void Kernel::remove_device(bool surprise) {
  if (!ready_ || removing_) return;
  removing_ = true;
  surprise_ = surprise;
  sim::Picos at = context_.now();
  if (surprise && config_.device.removal_notice == RemovalNotice::hotplug) {
    at += config_.device.hotplug_delay;
  } else if (surprise) {
    const sim::Picos interval = config_.device.health_poll_interval;
    at = ready_at_ + interval * ((at - ready_at_ + interval - sim::Picos{1}) / interval);
  }
  context_.scheduler.at(at, &Kernel::on_removal_notice, this, 0);
}

void Kernel::on_removal_notice(void* self, std::uint64_t) {
  auto* const k = static_cast<Kernel*>(self);
  k->ready_ = false;  // nobody opens the device any more
  const Platform& p = k->platform_;
  const std::uint32_t number =
      p.removal_thread_number != 0 ? p.removal_thread_number : p.thread_number + kDefaultRemovalThread;
  k->removal_thread_ =
      std::make_unique<cpu::Thread>(*p.cores.back(), *p.engine, k->space_, "host" + std::to_string(p.host) + ".removal",
                                    number, [k] { k->take_down(); });
  k->removal_thread_->start(k->context_.now());
}

void Kernel::take_down() {
  if (surprise_) commands_.device_lost();
  rdma_.unregister_device(*device_);
  while (!comp_eqs_.empty()) {
    release_eq(comp_eqs_.back());
    comp_eqs_.pop_back();
  }
  release_eq(async_eq_);
  commands_.stop_events();
  release_eq(command_eq_);
  if (dealloc_uar(commands_, uar_.index) != 0) counter("uar_release_failures").add();
  const auto simple = [this](std::uint16_t opcode) {
    Command c(opcode, 16, 16);
    if (commands_.execute(c) != 0) counter("teardown_failures").add();
  };
  simple(prm::kTeardownHca);
  release_memory();
  simple(prm::kDisableHca);
  commands_.release();
  space_.unmap_mmio(uar_.map);
  space_.unmap_mmio(bar_head_);
  device_ = nullptr;
  rdma_.step(RegistrationStep::torn_down);
}

// No further interrupt of the vector, then no further entry, then no handler that still reads the ring.
void Kernel::release_eq(std::unique_ptr<Eq>& eq) {
  cpu::Thread& t = cpu::current();
  if (!surprise_) {
    t.mmio_store32(bar_head_ + prm::kMsixTable + std::uint64_t{eq->vector()} * 16 + 12, 1);
    t.barrier(cpu::Barrier::wmb);
  }
  if (destroy_eq(commands_, eq->eqn()) != 0) counter("teardown_failures").add();
  by_vector_[eq->vector()] = nullptr;
  while (eq->busy()) t.sleep(kHandlerPoll);
  DmaBuffer ring = eq->ring();
  eq = nullptr;
  dma_.free(ring);
}

// The device names the pages that it gives back; the buffers that they belong to are known.
void Kernel::release_memory() {
  for (std::uint32_t given = surprise_ ? 0 : 1; given != 0;) {
    Command take(prm::kManagePages, 16, prm::kPagesInPas + 8 * kPagesPerCommand, prm::kManagePagesTake);
    take.set(prm::kPagesInCount, kPagesPerCommand);
    if (commands_.execute(take) != 0) {
      counter("teardown_failures").add();
      break;
    }
    given = take.get(prm::kPagesOutCount);
  }
  for (DmaBuffer& pages : icm_) dma_.free(pages);
  icm_.clear();
}

}  // namespace kernel
