// SPDX-License-Identifier: Apache-2.0
// Bringing the device up, in the order of mlx5_core's probe: command interface, ENABLE_HCA, ISSI, pages, capabilities,
// INIT_HCA, interrupts, event queues; then the registration with the RDMA core (core/rdma_core.cpp).
// A failure leaves the host without an RDMA device; boot_error() says why.
#include <cerrno>

#include "kernel/kernel.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/trace_points.h"
#include "kernel/uverbs/uverbs_device.h"
#include "sim/check.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr std::uint16_t kCommandVector = 0, kAsyncVector = 1, kFirstCompVector = 2;
constexpr std::size_t kPagesPerCommand = 512;

constexpr std::uint64_t bit(prm::EventType t) { return 1ULL << t; }
constexpr std::uint64_t kAsyncMask = bit(prm::kEventPathMig) | bit(prm::kEventCommEst) | bit(prm::kEventSqDrained) |
                                     bit(prm::kEventCqError) | bit(prm::kEventWqCatas) | bit(prm::kEventPathMigFailed) |
                                     bit(prm::kEventInternalError) | bit(prm::kEventPortChange) |
                                     bit(prm::kEventWqInvalReq) | bit(prm::kEventWqAccess) | bit(prm::kEventSrqCatas) |
                                     bit(prm::kEventSrqLastWqe) | bit(prm::kEventSrqLimit);

std::string failed(const char* step, int error) {
  return std::string(step) + " failed with errno " + std::to_string(-error);
}
}  // namespace

void Kernel::boot() {
  rdma_.register_client(*uverbs_);
  if (probe() == 0) mlx5_ib::set_device_ops(*device_, caps_);
  if (boot_error_.empty() && rdma_.register_device(*device_, "mlx5_", boot_error_) == 0) {
    ready_at_ = thread_->now();
    ready_ = true;
    for (const auto& [fn, arg] : on_ready_) fn(arg);
    on_ready_.clear();
  }
  commands_.serve();
}

int Kernel::probe() {
  cpu::Thread& t = *thread_;
  dma_.init();
  bar_head_ = space_.map_mmio(platform_.bar0, prm::kUarPageSize * prm::kFirstUar, memory::MemoryType::uncached);
  while ((prm::be32(t.mmio_load32(bar_head_ + prm::kInitInitializing)) >> 31) != 0)
    t.sleep(config_.driver.command_poll);
  commands_.start(bar_head_);

  const auto simple = [&](std::uint16_t opcode, const char* name, std::uint32_t argument = 0) {
    Command c(opcode, 16, opcode == prm::kQueryIssi ? 112 : 16);
    if (argument != 0) c.set(prm::kInObject, argument);
    const int error = commands_.execute(c);
    if (error != 0) boot_error_ = failed(name, error);
    return error;
  };
  int error = simple(prm::kEnableHca, "ENABLE_HCA");
  if (error == 0) error = simple(prm::kQueryIssi, "QUERY_ISSI");
  if (error == 0) error = simple(prm::kSetIssi, "SET_ISSI", 1);
  if (error == 0) error = give_pages();
  if (error == 0) error = query_caps();
  if (error == 0) error = simple(prm::kInitHca, "INIT_HCA");
  if (error == 0) error = set_up_interrupts();
  return error;
}

int Kernel::give_pages() {
  Command query(prm::kQueryPages, 16, 16);
  if (const int error = commands_.execute(query); error != 0) {
    boot_error_ = failed("QUERY_PAGES", error);
    return error;
  }
  for (std::size_t left = query.get(prm::kPagesOutCount); left > 0;) {
    const std::size_t n = std::min(left, kPagesPerCommand);
    icm_.push_back(dma_.alloc(n * memory::kPageSize));
    Command give(prm::kManagePages, prm::kPagesInPas + 8 * n, 16, prm::kManagePagesGive);
    give.set(prm::kPagesInCount, static_cast<std::uint32_t>(n));
    put_pages(give, prm::kPagesInPas, icm_.back().mapping);
    if (const int error = commands_.execute(give); error != 0) {
      boot_error_ = failed("MANAGE_PAGES", error);
      return error;
    }
    left -= n;
  }
  return 0;
}

int Kernel::query_caps() {
  constexpr std::uint32_t kGeneralCurrent = 1;
  Command c(prm::kQueryHcaCap, 16, prm::kCapOffset + prm::kCapSize, kGeneralCurrent);
  if (const int error = commands_.execute(c); error != 0) {
    boot_error_ = failed("QUERY_HCA_CAP", error);
    return error;
  }
  const auto cap = [&](prm::Field f) { return c.get(f, prm::kCapOffset); };
  caps_.log_max_qp = cap(prm::kCapLogMaxQp);
  caps_.log_max_qp_sz = cap(prm::kCapLogMaxQpSz);
  caps_.log_max_cq = cap(prm::kCapLogMaxCq);
  caps_.log_max_cq_sz = cap(prm::kCapLogMaxCqSz);
  caps_.log_max_srq = cap(prm::kCapLogMaxSrq);
  caps_.log_max_srq_sz = cap(prm::kCapLogMaxSrqSz);
  caps_.log_max_xrcd = cap(prm::kCapLogMaxXrcd);
  caps_.log_max_mkey = cap(prm::kCapLogMaxMkey);
  caps_.log_max_eq = cap(prm::kCapLogMaxEq);
  caps_.log_max_pd = cap(prm::kCapLogMaxPd);
  caps_.log_max_ra_req = cap(prm::kCapLogMaxRaReq);
  caps_.log_max_ra_res = cap(prm::kCapLogMaxRaRes);
  caps_.log_max_msg = cap(prm::kCapLogMaxMsg);
  caps_.port_type = cap(prm::kCapPortType);
  caps_.num_ports = cap(prm::kCapNumPorts);
  caps_.cqe_version = cap(prm::kCapCqeVersion);
  caps_.log_bf_reg_size = cap(prm::kCapLogBfRegSize);
  caps_.max_wqe_sz_sq = cap(prm::kCapMaxWqeSzSq);
  caps_.max_wqe_sz_rq = cap(prm::kCapMaxWqeSzRq);
  caps_.vendor_part_id = cap(prm::kCapVendorPartId);
  caps_.fw_major = cap(prm::kCapFwRevMajor);
  caps_.fw_minor = cap(prm::kCapFwRevMinor);
  caps_.fw_sub = cap(prm::kCapFwRevSub);
  caps_.comp_vectors = cap(prm::kCapNumCompVectors);
  caps_.max_port_mtu = cap(prm::kCapMaxPortMtu);
  caps_.log_max_mcg = cap(prm::kCapLogMaxMcg);
  caps_.max_qp_mcg = cap(prm::kCapMaxQpMcg);
  caps_.frequency_khz = cap(prm::kCapDeviceFrequency);
  caps_.blue_flame = cap(prm::kCapBf) != 0;
  caps_.atomic = cap(prm::kCapAtomic) != 0;
  caps_.ignore_overrun = cap(prm::kCapIgnoreOverrun) != 0;
  caps_.dump_fill_mkey = cap(prm::kCapDumpFillMkey) != 0;
  caps_.moderation = cap(prm::kCapModeration) != 0;
  caps_.node_guid = prm::get64(c.out.data(), prm::kCapOffset + prm::kCapNodeGuid);
  caps_.mac = prm::get64(c.out.data(), prm::kCapOffset + prm::kCapMac) & 0xffff'ffff'ffffULL;
  if (caps_.num_ports == 0 || caps_.comp_vectors == 0) {
    boot_error_ = "the device reports no port or no completion vector";
    return -ENODEV;
  }
  return 0;
}

void Kernel::program_msix(std::uint16_t vector, unsigned core) {
  cpu::Thread& t = *thread_;
  const memory::Va entry = bar_head_ + prm::kMsixTable + std::uint64_t{vector} * 16;
  t.mmio_store32(entry, static_cast<std::uint32_t>(pcie::kInterruptWindow) | core << 12);
  t.mmio_store32(entry + 4, 0);
  t.mmio_store32(entry + 8, vector);
  t.mmio_store32(entry + 12, 0);
}

unsigned Kernel::core_of_vector(unsigned comp_vector) const {
  const auto cores = static_cast<unsigned>(platform_.cores.size());
  const auto& list = config_.driver.irq_affinity;
  if (list.empty()) return comp_vector % cores;
  const unsigned core = list[comp_vector % list.size()];
  SIM_CHECK(core < cores, "irq_affinity names a core that the host does not have");
  return core;
}

// As the PCI core does: with every vector masked by the function, then by its own bit until its interrupt is requested.
void Kernel::enable_msix() {
  if (platform_.pci_config == nullptr) return;
  for (const std::uint16_t control :
       {static_cast<std::uint16_t>(pcie::kMsixEnable | pcie::kMsixFunctionMask), pcie::kMsixEnable}) {
    thread_->compute(config_.driver.config_access);
    thread_->sync();
    platform_.pci_config->set_msix_control(control);
  }
}

std::unique_ptr<Eq> Kernel::make_eq(std::uint16_t vector, unsigned log_size) {
  const unsigned core = vector < kFirstCompVector ? 0 : core_of_vector(vector - kFirstCompVector);
  program_msix(vector, core);
  auto eq = std::make_unique<Eq>(context_, config_, *interrupt_contexts_[core], static_cast<EventClient&>(*this),
                                 space_, dma_.alloc(sizeof(prm::Eqe) << log_size), log_size, vector, platform_.host);
  if (vector >= by_vector_.size()) by_vector_.resize(vector + std::size_t{1});
  by_vector_[vector] = eq.get();
  return eq;
}

int Kernel::create_eq(Eq& eq, unsigned log_size, std::uint64_t event_mask, std::uint32_t uar) {
  const DmaMapping& pages = eq.ring().mapping;
  Command c(prm::kCreateEq, prm::kCreateEqPas + 8 * pages.pages.size(), 16);
  const auto eqc = [&](prm::Field f, std::uint32_t v) { c.set(f, v, prm::kEqcOffset); };
  eqc(prm::kEqcLogSize, log_size);
  eqc(prm::kEqcUarPage, uar);
  eqc(prm::kEqcIntr, eq.vector());
  eqc(prm::kEqcLogPageSize, 0);
  c.set64(prm::kCreateEqMask, event_mask);
  put_pages(c, prm::kCreateEqPas, pages);
  if (const int error = commands_.execute(c); error != 0) {
    boot_error_ = failed("CREATE_EQ", error);
    return error;
  }
  eq.attach(static_cast<std::uint8_t>(c.get(prm::kOutEqn)), platform_.bar0 + std::uint64_t{uar} * prm::kUarPageSize);
  // The first arm; later ones come from the interrupt handler.
  thread_->mmio_store32(uar_.map + prm::kUarEqDoorbellArm, eq.doorbell_value());
  thread_->barrier(cpu::Barrier::wmb);
  return 0;
}

int Kernel::set_up_interrupts() {
  if (const int error = alloc_uar(commands_, uar_.index); error != 0) {
    boot_error_ = failed("ALLOC_UAR", error);
    return error;
  }
  uar_.map = space_.map_mmio(platform_.bar0 + std::uint64_t{uar_.index} * prm::kUarPageSize, prm::kUarPageSize,
                             memory::MemoryType::uncached);
  const DriverConfig& d = config_.driver;
  enable_msix();
  command_eq_ = make_eq(kCommandVector, d.log_command_eq_size);
  if (const int e = create_eq(*command_eq_, d.log_command_eq_size, bit(prm::kEventCmd), uar_.index); e != 0) return e;
  commands_.use_events();
  async_eq_ = make_eq(kAsyncVector, d.log_async_eq_size);
  if (const int e = create_eq(*async_eq_, d.log_async_eq_size, kAsyncMask, uar_.index); e != 0) return e;

  std::uint32_t n = d.comp_vectors != 0 ? d.comp_vectors : static_cast<std::uint32_t>(platform_.cores.size());
  n = std::min({n, caps_.comp_vectors, prm::kMsixVectors - kFirstCompVector});
  for (std::uint32_t i = 0; i < n; ++i) {
    comp_eqs_.push_back(make_eq(static_cast<std::uint16_t>(kFirstCompVector + i), d.log_comp_eq_size));
    if (const int e = create_eq(*comp_eqs_.back(), d.log_comp_eq_size, bit(prm::kEventComp), uar_.index); e != 0)
      return e;
  }
  return 0;
}

}  // namespace kernel
