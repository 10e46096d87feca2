// SPDX-License-Identifier: Apache-2.0
// The kernel of one host: boots the RDMA device, owns its event queues, takes its interrupts, and offers the RDMA core to
// the processes of the host.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/core.h"
#include "cpu/thread.h"
#include "iommu/iommu_prm.h"
#include "kernel/core/rdma_core.h"
#include "kernel/dma_map.h"
#include "kernel/kernel_config.h"
#include "kernel/mlx5/command.h"
#include "kernel/mlx5/eq.h"
#include "kernel/mlx5/objects.h"
#include "kernel/regular_files.h"
#include "kernel/softirq.h"
#include "kernel/wait.h"
#include "kernel/work_queue.h"
#include "pcie/msix.h"
#include "pcie/root_complex.h"
#include "sim/context.h"
#include "sim/engine.h"
#include "sim/rng.h"

namespace kernel {

/// What the host gives to its kernel. Everything outlives the kernel.
struct Platform {
  memory::HostMemory* memory = nullptr;
  sim::Engine* engine = nullptr;
  std::vector<cpu::Core*> cores;  ///< at least one; vectors are spread over them in this order
  std::uint64_t arena_base = 0;   ///< of kernel memory, see memory::AddressSpace
  std::uint64_t arena_size = 64ULL << 30;
  memory::Phys bar0{};  ///< bus address of the device's BAR 0
  std::uint16_t requester = 0;
  iommu::IommuControl* iommu = nullptr;     ///< null: no IOMMU
  pcie::ConfigSpace* pci_config = nullptr;  ///< of the device's function; null: MSI-X is enabled already
  NeighbourTable* neighbours = nullptr;     ///< null: only addresses of this host resolve
  std::int32_t host = 0;
  std::uint32_t thread_number = 0;          ///< of the kernel thread, unique in the simulation
  std::uint32_t removal_thread_number = 0;  ///< of the thread that takes the device down
  /// First of the numbers of further kernel threads: softirqs, kworkers, kernel consumers.
  std::uint32_t more_thread_numbers = 3072;
};

/// What QUERY_HCA_CAP said.
struct DeviceCaps {
  std::uint32_t log_max_qp = 0, log_max_qp_sz = 0, log_max_cq = 0, log_max_cq_sz = 0, log_max_srq = 0,
                log_max_srq_sz = 0, log_max_xrcd = 0;
  std::uint32_t log_max_mkey = 0, log_max_eq = 0, log_max_pd = 0, log_max_ra_req = 0, log_max_ra_res = 0,
                log_max_msg = 0;
  std::uint32_t port_type = 0, num_ports = 0, cqe_version = 0, log_bf_reg_size = 0, max_wqe_sz_sq = 0,
                max_wqe_sz_rq = 0;
  std::uint32_t vendor_part_id = 0, fw_major = 0, fw_minor = 0, fw_sub = 0, comp_vectors = 0, max_port_mtu = 0;
  std::uint32_t log_max_mcg = 0, max_qp_mcg = 0, frequency_khz = 0;
  bool blue_flame = false, atomic = false, ignore_overrun = false, moderation = false, dump_fill_mkey = false;
  std::uint64_t node_guid = 0;
  Mac mac = 0;
};

class UverbsClient;

class Kernel : public sc_core::sc_module, public pcie::InterruptSink, private EventClient {
 public:
  Kernel(sc_core::sc_module_name name, sim::Context& context, const KernelConfig& config, const Platform& platform);
  ~Kernel() override;

  /// Begins booting at time t. Once, before or during the run.
  void start(sim::Picos t);
  /// The device is registered and usable.
  bool ready() const { return ready_; }
  sim::Picos ready_at() const { return ready_at_; }
  /// Calls fn(arg) once the device is usable, at that time; at once if it is already.
  void on_ready(void (*fn)(void*), void* arg);
  /// Why the device could not be brought up; empty otherwise.
  const std::string& boot_error() const { return boot_error_; }
  /// Steps of the device's life so far.
  const std::vector<RegistrationStep>& registration() const { return rdma_.steps(); }

  /// The device is to go, from now on: the driver is unbound and takes it down by commands, or, with `surprise`, the driver
  /// finds out that it is not there any more (DeviceConfig::removal_notice). Once; without effect unless ready().
  void remove_device(bool surprise);
  /// Everything of the device has been given back.
  bool device_removed() const { return device_ == nullptr; }

  /// pcie::InterruptSink: `data` is the vector that the MSI-X table entry carries.
  void interrupt(std::uint64_t address, std::uint32_t data, sim::trace::Cause cause) override;
  /// The thread that boots the device and later issues commands; it never ends and is idle most of the time.
  cpu::Thread& kernel_thread() { return *thread_; }

  // For the RDMA core and the processes.
  sim::Context& context() { return context_; }
  const KernelConfig& config() const { return config_; }
  const Platform& platform() const { return platform_; }
  memory::AddressSpace& space() { return space_; }
  DmaMapper& dma() { return dma_; }
  CommandInterface& commands() { return commands_; }
  Waiters& waiters() { return waiters_; }
  const DeviceCaps& caps() const { return caps_; }
  /// The RDMA device; it has a name and may be used from its registration on, until device_removed().
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }
  RdmaCore& rdma() { return rdma_; }
  UverbsClient& uverbs() { return *uverbs_; }
  const UverbsClient& uverbs() const { return *uverbs_; }
  std::uint32_t comp_vectors() const { return static_cast<std::uint32_t>(comp_eqs_.size()); }
  Eq& comp_eq(std::uint32_t vector) { return *comp_eqs_.at(vector); }
  Eq& async_eq() { return *async_eq_; }
  Eq& command_eq() { return *command_eq_; }
  /// The port has a carrier.
  bool carrier() const { return carrier_; }
  /// An atomic allocation that has no memory (kernel.interrupt.event_alloc_failures).
  bool atomic_alloc_fails();
  /// An address of the network device comes or goes, as `ip addr` asks: GID table, device, GID_CHANGE. 0, -EEXIST,
  /// -EADDRNOTAVAIL, -ENOSPC (no entry free), -ENODEV (the device is gone), or the device's error. From a thread.
  int add_address(const Gid& gid);
  int remove_address(const Gid& gid);
  /// Position in Platform::cores of the core that takes a completion vector's interrupts.
  unsigned core_of_vector(unsigned comp_vector) const;
  std::uint8_t active_mtu() const;
  /// Low byte of the next memory key: keys of one index differ in it, so that stale ones fail (S-MR-4).
  std::uint8_t next_key_variant() { return ++key_variant_; }
  /// MAC address of a destination GID; 0 after -errno in `error` (S-ROCE-6). Waits as neighbour discovery does.
  Mac resolve(const Gid& gid, int& error);
  sim::Counter& counter(const std::string& name);

  /// Pins and maps user memory. 0, -EINVAL (empty or wrapping range), -ENOMEM (RLIMIT_MEMLOCK), -EFAULT (not mapped).
  int acquire(memory::AddressSpace& user, memory::Va start, std::uint64_t length, UserRegion& region);
  void release(memory::AddressSpace& user, UserRegion& region);

  // For kernel consumers.
  /// A thread of the kernel on a core, not started.
  std::unique_ptr<cpu::Thread> create_thread(std::size_t core, const std::string& name, std::function<void()> body);
  /// When softirqs and kworkers were last at work; 0 if never.
  sim::Picos last_activity() const;
  /// irq_poll of a core.
  Softirq& softirq(std::size_t core);
  WorkQueue& completion_work() { return completion_work_; }  ///< ib-comp-wq
  WorkQueue& system_work() { return system_work_; }
  const KernelUar& uar() const { return uar_; }
  KernelDbrPool& kernel_dbrs() { return kernel_dbrs_; }

  void add_cq(Mlx5Cq& cq);
  /// Nothing refers to the CQ any more: take it off the look-up table and the tasklet list.
  void remove_cq(Mlx5Cq& cq);
  void add_qp(Qp& qp) { qps_[qp.qpn] = &qp; }
  void remove_qp(const Qp& qp) { qps_.erase(qp.qpn); }
  /// Null if there is none of that number.
  Qp* find_qp(std::uint32_t qpn) const {
    const auto it = qps_.find(qpn);
    return it != qps_.end() ? it->second : nullptr;
  }
  void add_srq(Srq& srq) { srqs_[srq.srqn] = &srq; }
  void remove_srq(const Srq& srq) { srqs_.erase(srq.srqn); }
  RegularFiles& files() { return files_; }

 private:
  WorkQueue::Spawn spawn();
  void boot();
  int probe();
  int query_caps();
  int give_pages();
  int set_up_interrupts();
  int create_eq(Eq& eq, unsigned log_size, std::uint64_t event_mask, std::uint32_t uar);
  std::unique_ptr<Eq> make_eq(std::uint16_t vector, unsigned log_size);
  void enable_msix();
  void program_msix(std::uint16_t vector, unsigned core);
  int tell_gids(const std::vector<std::uint32_t>& indices);
  void take_down();
  static void on_removal_notice(void* self, std::uint64_t);
  void release_eq(std::unique_ptr<Eq>& eq);
  void release_memory();

  Handling completion_event(std::uint32_t cqn) override;
  void completion_handler(std::uint32_t cqn, sim::trace::Cause cause, const EventTimes& times) override;
  void command_event(std::uint32_t slots, sim::trace::Cause cause) override;
  void async_event(const hca::prm::Eqe& eqe, sim::trace::Cause cause) override;
  sim::Flow deliver_async(hca::prm::Eqe eqe, sim::trace::Cause cause);
  void dispatch_async(const hca::prm::Eqe& eqe, sim::trace::Cause cause);
  Mlx5Cq* find_cq(std::uint32_t cqn) { return cqn < cqs_.size() ? cqs_[cqn] : nullptr; }

  sim::Context& context_;
  const KernelConfig config_;
  const Platform platform_;
  memory::AddressSpace space_;
  DmaMapper dma_;
  Waiters waiters_;
  CommandInterface commands_;
  DeviceCaps caps_;
  std::vector<std::unique_ptr<InterruptContext>> interrupt_contexts_;  // one per core
  std::unique_ptr<cpu::Thread> thread_;
  std::unique_ptr<Eq> command_eq_, async_eq_;
  std::vector<std::unique_ptr<Eq>> comp_eqs_;
  std::vector<Eq*> by_vector_;
  memory::Va bar_head_{};
  KernelUar uar_;  ///< event queues, CQs and queue pairs of the kernel
  KernelDbrPool kernel_dbrs_;
  std::vector<std::unique_ptr<Softirq>> softirqs_;  // by core; null until first used
  WorkQueue completion_work_, system_work_;
  std::uint32_t threads_created_ = 0;
  std::vector<DmaBuffer> icm_;
  std::unique_ptr<Device> device_;
  std::vector<Mlx5Cq*> cqs_;            // by CQN
  std::map<std::uint32_t, Qp*> qps_;    // by QPN
  std::map<std::uint32_t, Srq*> srqs_;  // by SRQN
  RegularFiles files_;
  sim::trace::Source trace_;
  std::unique_ptr<UverbsClient> uverbs_;
  RdmaCore rdma_;
  std::unique_ptr<cpu::Thread> removal_thread_;
  bool removing_ = false, surprise_ = false;
  sim::Semaphore async_order_{1};
  sim::Rng alloc_failures_;
  std::uint8_t key_variant_ = 0;
  bool carrier_ = true;
  bool ready_ = false;
  sim::Picos ready_at_{0};
  std::vector<std::pair<void (*)(void*), void*>> on_ready_;
  std::string boot_error_;
};

}  // namespace kernel
