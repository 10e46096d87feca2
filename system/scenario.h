// SPDX-License-Identifier: Apache-2.0
// What a scenario file says: machines, the fabric between them, workloads, limits, expectations. The blocks' own config
// structs are used as they are; this file only arranges them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpu/core_config.h"
#include "fabric/link.h"
#include "hca/hca_config.h"
#include "iommu/iommu.h"
#include "kernel/kernel_config.h"
#include "memory/host_memory.h"
#include "pcie/pcie_config.h"
#include "pcie/root_complex.h"
#include "sim/config.h"
#include "sim/jitter.h"
#include "system/expect.h"
#include "system/explore_config.h"
#include "system/steps_config.h"
#include "system/sweep_config.h"
#include "system/workload_config.h"
#include "verbs_frontend/process_state.h"

namespace sys {

struct HostConfig {
  std::string name;
  std::uint32_t cores = 4;
  cpu::CoreConfig core;
  memory::MemoryConfig memory;
  pcie::RootComplexConfig root_complex;
  pcie::PcieConfig pcie;
  iommu::IommuConfig iommu;
  hca::HcaConfig hca;
  kernel::KernelConfig kernel;
  verbs::VerbsConfig verbs;
  std::map<std::string, std::string> env;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto part = sim::assumed("a two-socket Xeon server with a ConnectX-5 class adapter");
    v("name", c.name, "name in workloads, results and traces; empty = host0, host1, …", sim::assumed("numbered"));
    v("cores", c.cores, "cores that run programs and take interrupts", sim::assumed("enough for one program per core"),
      sim::Range{1, 128});
    v("core", c.core, "each core: instruction costs, store buffer, write-combining buffers", part);
    v("memory", c.memory, "host memory and last-level cache", part);
    v("root_complex", c.root_complex, "root complex", part);
    v("pcie", c.pcie, "slot of the adapter", part);
    v("iommu", c.iommu, "IOMMU", part);
    v("hca", c.hca, "the adapter", part);
    v("kernel", c.kernel, "kernel and driver", part);
    v("verbs", c.verbs, "user-space verbs library and mlx5 provider", part);
    v("env", c.env, "environment variables of the programs (MLX5_SHUT_UP_BF, …)", sim::assumed("none set"));
  }
};

enum class Topology : std::uint8_t { back_to_back };

struct FabricConfig {
  Topology topology = Topology::back_to_back;
  fabric::LinkConfig link;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("topology", c.topology, "back_to_back: one cable between two hosts",
      sim::assumed("the usual latency test bench"));
    v("link", c.link, "the cable, the same in both directions", sim::assumed("100 GbE"));
  }
};

struct RunConfig {
  sim::Picos time_limit{0}, stall_limit{10'000'000'000'000};
  sim::JitterConfig jitter;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("time_limit", c.time_limit, "simulated time after which the run ends with verdict time_limit; 0 s = none",
      sim::assumed("programs end by themselves"));
    v("stall_limit", c.stall_limit,
      "when no program has moved for this simulated time and only retries for ever go on, the run ends with verdict "
      "deadlock; 0 "
      "s = never",
      sim::assumed("longer than any finite RNR wait"));
    v("jitter", c.jitter, "random extra delays, each up to what is given, drawn anew every time from the seed",
      sim::assumed("off"));
  }
};

struct ScenarioConfig {
  std::string description, teaches;
  std::uint64_t seed = 1;
  std::vector<HostConfig> hosts = std::vector<HostConfig>(2);
  FabricConfig fabric;
  std::vector<WorkloadConfig> workloads;
  std::map<std::string, ProgramConfig> programs;
  RunConfig run;
  ExploreConfig explore;
  SweepConfig sweep;
  std::vector<ExpectationConfig> expect;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto user = sim::assumed("given by the scenario");
    v("description", c.description, "one line: what the scenario shows", user);
    v("teaches", c.teaches, "one line: what one learns from it", user);
    v("seed", c.seed, "seed of every random stream", sim::assumed("any"));
    v("hosts", c.hosts, "the machines", sim::assumed("two equal hosts"));
    v("fabric", c.fabric, "what connects them", sim::assumed("a direct cable"));
    v("workloads", c.workloads, "pairs of programs in the manner of perftest; all run at the same time", user);
    v("programs", c.programs, "programs as lists of steps, by name; beside or instead of workloads", user);
    v("run", c.run, "limits of the run", sim::assumed("none"));
    v("explore", c.explore, "what rdmasim explore varies; a run ignores it", user);
    v("sweep", c.sweep, "what rdmasim sweep varies and measures; a run ignores it", user);
    v("expect", c.expect, "conditions that the result has to meet", user);
  }
  template <class F>
  void check(F&& fail) const {
    if (hosts.size() != 2)
      fail("hosts", "back_to_back connects exactly two hosts, this scenario has " + std::to_string(hosts.size()));
    if (workloads.empty() && programs.empty()) fail("workloads", "at least one workload or program is needed");
    for (std::size_t i = 0; i < hosts.size(); ++i)
      for (std::size_t j = i + 1; j < hosts.size(); ++j)
        if (host_name(i) == host_name(j)) fail("hosts", "two hosts are named \"" + host_name(i) + "\"");
    for (const HostConfig& h : hosts)
      if (h.core.noise_interval.n != 0 && h.core.noise_interval < h.core.noise_length * 2)
        fail("hosts", "core.noise_interval leaves the cores too little time: at least twice core.noise_length, or 0");
    for (std::size_t i = 0; i < hosts.size(); ++i)
      for (const std::uint32_t core : hosts[i].kernel.driver.irq_affinity)
        if (core >= hosts[i].cores)
          fail("hosts", "kernel.driver.irq_affinity names core " + std::to_string(core) + ", and " + host_name(i) +
                            " has cores 0 to " + std::to_string(hosts[i].cores - 1));
    for (const fabric::ImpairmentEventConfig& e : fabric.link.impairment.events) {
      bool known = e.to.empty();
      for (std::size_t i = 0; i < hosts.size(); ++i) known |= host_name(i) == e.to;
      if (!known)
        fail("fabric", "impairment of packets to \"" + e.to + "\": there is no such host; hosts are " + host_names());
    }
    for (const auto& [name, p] : programs) {
      bool known = p.host.empty();
      for (std::size_t i = 0; i < hosts.size(); ++i) known |= host_name(i) == p.host;
      if (!known)
        fail("programs", "program \"" + name + "\": there is no host \"" + p.host + "\"; hosts are " + host_names());
    }
    for (const WorkloadConfig& w : workloads) {
      for (const std::string* end : {&w.client, &w.server}) {
        bool known = end->empty();
        for (std::size_t i = 0; i < hosts.size(); ++i) known |= host_name(i) == *end;
        if (!known) fail("workloads", "there is no host \"" + *end + "\"; hosts are " + host_names());
      }
      if (!w.client.empty() && w.client == w.server)
        fail("workloads", "client and server of a workload must be different hosts");
    }
  }
  std::string host_name(std::size_t i) const {
    return hosts[i].name.empty() ? "host" + std::to_string(i) : hosts[i].name;
  }
  std::string host_names() const {
    std::string all;
    for (std::size_t i = 0; i < hosts.size(); ++i) all += (i == 0 ? "" : ", ") + host_name(i);
    return all;
  }
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::Topology> {
  static constexpr std::array<std::pair<sys::Topology, std::string_view>, 1> values{
      {{sys::Topology::back_to_back, "back_to_back"}}};
};
