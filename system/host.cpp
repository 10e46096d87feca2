// SPDX-License-Identifier: Apache-2.0
// Assembly of a host. Numbers that must be unique in the simulation (threads, arenas, addresses) follow from the host's
// index, so that they do not depend on the order of construction.
#include "system/host.h"

#include <algorithm>

namespace sys {
namespace {

constexpr std::uint32_t kThreadsPerHost = 1U << 12;
constexpr std::uint32_t kProgramThreadsPerHost = kThreadsPerHost * 3 / 4;  // the others are the kernel's
constexpr std::uint32_t kFirstPid = 1000;
constexpr std::uint64_t kArena = 1ULL << 34;  // 16 GiB of address space, backed as used
constexpr std::uint64_t kArenasPerHost = 32;
constexpr std::uint64_t kFirstArena = 0x2000'0000'0000ULL;
constexpr memory::Phys kBar0{0x3F'FE00'0000ULL << 4};

std::uint64_t arena_base(std::int32_t host, std::size_t n) {
  return kFirstArena + (static_cast<std::uint64_t>(host) * kArenasPerHost + n) * kArena;
}

kernel::KernelConfig with_address(kernel::KernelConfig k, std::int32_t index) {
  if (k.netdev.ipv4.empty()) k.netdev.ipv4 = Host::ipv4(index);
  return k;
}

hca::HcaConfig with_vectors(hca::HcaConfig h, std::uint32_t cores) {
  h.caps.comp_vectors = std::min(h.caps.comp_vectors, std::max(1U, cores));
  return h;
}

kernel::Platform platform(memory::HostMemory& memory, sim::Engine& engine,
                          const std::vector<std::unique_ptr<cpu::Core>>& cores, const HostConfig& config,
                          iommu::Iommu& iommu, pcie::ConfigSpace& pci_config, kernel::NeighbourTable& neighbours,
                          std::int32_t index) {
  kernel::Platform p;
  p.pci_config = &pci_config;
  p.memory = &memory;
  p.engine = &engine;
  for (const auto& c : cores) p.cores.push_back(c.get());
  p.arena_base = arena_base(index, 0);
  p.arena_size = kArena;
  p.bar0 = kBar0;
  p.requester = config.pcie.bdf;
  p.iommu = config.iommu.mode == iommu::Mode::off ? nullptr : &iommu;
  p.neighbours = &neighbours;
  p.host = index;
  p.thread_number = static_cast<std::uint32_t>(index) * kThreadsPerHost;
  p.removal_thread_number = p.thread_number + kThreadsPerHost - 1;
  p.more_thread_numbers = p.thread_number + kProgramThreadsPerHost;
  return p;
}

std::vector<std::unique_ptr<cpu::Core>> make_cores(sim::Context& context, const HostConfig& config,
                                                   memory::HostMemory& memory, std::int32_t index) {
  std::vector<std::unique_ptr<cpu::Core>> cores;
  for (std::uint32_t i = 0; i < config.cores; ++i)
    cores.push_back(
        std::make_unique<cpu::Core>(("core" + std::to_string(i)).c_str(), context, config.core, memory, index, i));
  return cores;
}

}  // namespace

std::array<std::uint8_t, 6> Host::mac(std::int32_t index) {
  return {0x02, 0x52, 0x44, 0x00, static_cast<std::uint8_t>(index >> 8), static_cast<std::uint8_t>(index + 1)};
}

std::string Host::ipv4(std::int32_t index) {
  return "10.0." + std::to_string(index / 250) + "." + std::to_string(index % 250 + 1);
}

Host::Host(sc_core::sc_module_name name, sim::Context& context, sim::Engine& engine, const HostConfig& config,
           std::int32_t index, kernel::NeighbourTable& neighbours, Exchange& exchange)
    : sc_module(name),
      context_(context),
      engine_(engine),
      config_(config),
      index_(index),
      exchange_(exchange),
      memory_("memory", context, config.memory, index),
      cores_(make_cores(context, config, memory_, index)),
      root_complex_("root_complex", context, config.root_complex, memory_, index,
                    "host" + std::to_string(index) + ".pcie"),
      iommu_("iommu", context, config.iommu, memory_, index, "host" + std::to_string(index) + ".iommu"),
      endpoint_("endpoint", context, config.pcie,
                pcie::BarLayout{kBar0, sim::Bytes{hca::prm::kBarSize}, hca::prm::kMsixTable,
                                hca::prm::kMsixTable + 0x1000, hca::prm::kMsixVectors},
                index, "host" + std::to_string(index) + ".pcie"),
      link_up_("link_up", context, config.pcie.link, config.pcie.root_port_credits, config.pcie.max_payload_size,
               pcie::Direction::up, index, "host" + std::to_string(index) + ".pcie"),
      link_down_("link_down", context, config.pcie.link, config.pcie.endpoint_credits, config.pcie.max_payload_size,
                 pcie::Direction::down, index, "host" + std::to_string(index) + ".pcie"),
      hca_("hca", context, with_vectors(config.hca, config.cores),
           {mac(index), kernel::rdma_mtu(config.kernel.netdev.mtu.n)}, index, "host" + std::to_string(index) + ".hca"),
      kernel_("kernel", context, with_address(config.kernel, index),
              platform(memory_, engine, cores_, config, iommu_, endpoint_, neighbours, index)) {
  for (auto& c : cores_) c->mmio.bind(root_complex_);
  root_complex_.connect(config.pcie, kBar0, sim::Bytes{hca::prm::kBarSize});
  root_complex_.translator.bind(iommu_);
  root_complex_.interrupts.bind(kernel_);
  root_complex_.down.bind(link_down_);
  iommu_.drain.bind(root_complex_);
  link_down_.out.bind(endpoint_);
  link_up_.out.bind(root_complex_);
  endpoint_.up.bind(link_up_);
  endpoint_.function.bind(hca_);
  hca_.pcie.bind(endpoint_);
}

Host::~Host() = default;

void Host::remove_device(bool surprise) {
  if (surprise) {
    endpoint_.remove();
    hca_.remove();
  }
  kernel_.remove_device(surprise);
}

Process& Host::create_process() {
  const std::size_t n = processes_.size() + 1;  // arena 0 is the kernel's
  SIM_CHECK(n < kArenasPerHost, "too many processes on one host");
  processes_.push_back(std::make_unique<Process>(kernel_, memory_, arena_base(index_, n), kArena));
  Process& p = *processes_.back();
  p.syscalls = &p.os;
  p.config = &config_.verbs;
  p.context = &context_;
  p.host = index_;
  p.kernel_process = &p.os;
  p.os.set_owner({kFirstPid + static_cast<std::uint32_t>(n) - 1, ""});
  p.env = {config_.env.begin(), config_.env.end()};
  p.exchange = &exchange_;
  return p;
}

cpu::Thread& Host::create_thread(Process& process, std::size_t core_index, std::string name,
                                 std::function<void()> body) {
  const auto number =
      static_cast<std::uint32_t>(index_) * kThreadsPerHost + 1 + static_cast<std::uint32_t>(threads_.size());
  SIM_CHECK(threads_.size() + 1 < kProgramThreadsPerHost, "too many threads on one host");
  const auto program = [&process, run = std::move(body)] {
    try {
      run();
    } catch (const cpu::Thread::Killed&) {
      process.os.thread_died();
    }
  };
  threads_.push_back(
      std::make_unique<cpu::Thread>(core(core_index), engine_, process.space, std::move(name), number, program));
  process.os.add_thread(*threads_.back());
  threads_.back()->process = static_cast<verbs::ProcessState*>(&process);
  if (process.os.owner().comm.empty())  // a process is called as its first thread
    process.os.set_owner({process.os.owner().pid, threads_.back()->name()});
  return *threads_.back();
}

cpu::Thread& Host::create_kernel_thread(std::size_t core_index, const std::string& name, std::function<void()> body) {
  threads_.push_back(kernel_.create_thread(core_index % cores_.size(), name, std::move(body)));
  return *threads_.back();
}

}  // namespace sys
