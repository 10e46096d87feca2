// SPDX-License-Identifier: Apache-2.0
// One machine: memory, cores, root complex, IOMMU, PCIe link, adapter, kernel; and the processes that run on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "cpu/core.h"
#include "cpu/thread.h"
#include "hca/hca.h"
#include "iommu/iommu.h"
#include "kernel/kernel.h"
#include "kernel/process.h"
#include "memory/address_space.h"
#include "memory/host_memory.h"
#include "pcie/endpoint.h"
#include "pcie/link.h"
#include "pcie/root_complex.h"
#include "sim/engine.h"
#include "system/exchange.h"
#include "system/scenario.h"

namespace sys {

/// A simulated process: address space, kernel side, verbs state. Its threads are cpu::Threads.
struct Process : verbs::ProcessState {
  Process(kernel::Kernel& kernel, memory::HostMemory& memory, std::uint64_t arena_base, std::uint64_t arena_size)
      : space(memory, arena_base, arena_size), os(kernel, space) {}
  memory::AddressSpace space;
  kernel::Process os;
  Exchange* exchange = nullptr;
};

class Host : public sc_core::sc_module {
 public:
  /// `index` numbers the host in the cluster; MAC and IPv4 addresses follow from it.
  Host(sc_core::sc_module_name name, sim::Context& context, sim::Engine& engine, const HostConfig& config,
       std::int32_t index, kernel::NeighbourTable& neighbours, Exchange& exchange);
  ~Host() override;

  /// The adapter's port: bind `hca().port` to a link, and the opposite link to hca().
  hca::Hca& hca() { return hca_; }
  kernel::Kernel& kernel() { return kernel_; }
  /// What the adapter's queues hold and wait for.
  hca::Report report() const { return hca_.report(); }
  cpu::Core& core(std::size_t i) { return *cores_[i % cores_.size()]; }
  memory::HostMemory& memory() { return memory_; }
  iommu::Iommu& iommu() { return iommu_; }
  pcie::Endpoint& endpoint() { return endpoint_; }
  std::int32_t index() const { return index_; }
  Exchange& exchange() { return exchange_; }
  const HostConfig& config() const { return config_; }

  /// Takes the adapter away: by unbinding its driver, or by surprise, pulled out of its slot.
  void remove_device(bool surprise);

  /// A new process of this host.
  Process& create_process();
  /// A program thread of `process` on core `core`; not started. Its number is unique in the simulation and does not depend
  /// on the order in which hosts are built.
  cpu::Thread& create_thread(Process& process, std::size_t core, std::string name, std::function<void()> body);
  /// A thread of the kernel, for a kernel consumer; not started.
  cpu::Thread& create_kernel_thread(std::size_t core, const std::string& name, std::function<void()> body);
  const std::vector<std::unique_ptr<cpu::Thread>>& threads() const { return threads_; }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  static std::array<std::uint8_t, 6> mac(std::int32_t index);
  static std::string ipv4(std::int32_t index);

 private:
  sim::Context& context_;
  sim::Engine& engine_;
  const HostConfig config_;
  const std::int32_t index_;
  Exchange& exchange_;
  memory::HostMemory memory_;
  std::vector<std::unique_ptr<cpu::Core>> cores_;
  pcie::RootComplex root_complex_;
  iommu::Iommu iommu_;
  pcie::Endpoint endpoint_;
  pcie::Link link_up_, link_down_;
  hca::Hca hca_;
  kernel::Kernel kernel_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<cpu::Thread>> threads_;
};

}  // namespace sys
