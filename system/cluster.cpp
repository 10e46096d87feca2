// SPDX-License-Identifier: Apache-2.0
// Construction in either order, start in host order: nothing that happens depends on which module was built first.
#include "system/cluster.h"

#include <algorithm>

#include "system/watchdog.h"

namespace sys {
namespace {

/// Who looks at completions, on the client's side and the server's.
std::string completions_of(const WorkloadConfig& c) {
  const auto side = [&](bool client) {
    if (!c.in_kernel(client)) return std::string(sim::enum_name(c.mode(client))) + " mode";
    return "in the kernel by " + std::string(sim::enum_name(c.poll_context)) + (c.dim ? " with DIM" : "");
  };
  const std::string client = side(true), server = side(false);
  return client == server ? client : "client " + client + ", server " + server;
}

}  // namespace

Cluster::Cluster(sim::Context& context, const ScenarioConfig& scenario, sim::EngineMode mode, bool reverse)
    : context_(context), scenario_(scenario), engine_("engine", context.scheduler, mode) {
  context_.jitter.configure(scenario_.run.jitter);
  const auto count = scenario_.hosts.size();
  SIM_CHECK(count == 2, "back_to_back connects two hosts");
  for (std::size_t i = 0; i < count; ++i) {
    const auto mac = Host::mac(static_cast<std::int32_t>(i));
    std::uint64_t value = 0;
    for (const std::uint8_t b : mac) value = value << 8 | b;
    const std::string address = scenario_.hosts[i].kernel.netdev.ipv4.empty() ? Host::ipv4(static_cast<std::int32_t>(i))
                                                                              : scenario_.hosts[i].kernel.netdev.ipv4;
    if (const auto gid = kernel::gid_of_ipv4(address)) neighbours_.add(*gid, value);
    neighbours_.add(kernel::link_local_gid(value), value);
  }
  hosts_.resize(count);
  links_.resize(count);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = reverse ? count - 1 - n : n;
    HostConfig config = scenario_.hosts[i];
    config.name = scenario_.host_name(i);
    hosts_[i] = std::make_unique<Host>(("host" + std::to_string(i)).c_str(), context, engine_, config,
                                       static_cast<std::int32_t>(i), neighbours_, exchange_);
    const std::string path = "fabric.host" + std::to_string(i) + "_to_host" + std::to_string(1 - i);
    fabric::LinkConfig link = scenario_.fabric.link;
    std::erase_if(link.impairment.events, [&](const fabric::ImpairmentEventConfig& e) {
      return !e.to.empty() && e.to != scenario_.host_name(1 - i);
    });
    links_[i] = std::make_unique<fabric::Link>(("link" + std::to_string(i)).c_str(), context, link, path);
  }
  for (std::size_t i = 0; i < count; ++i) {
    hosts_[i]->hca().port.bind(*links_[i]);
    links_[i]->out.bind(hosts_[1 - i]->hca());
  }
  for (std::size_t w = 0; w < scenario_.workloads.size(); ++w) {
    const WorkloadConfig& config = scenario_.workloads[w];
    const std::size_t client = config.client.empty() && !config.server.empty() ? 1 - host_number(config.server, 1)
                                                                               : host_number(config.client, 0);
    const std::size_t server = host_number(config.server, 1 - client);
    workloads_.push_back(std::make_unique<Workload>(config, static_cast<std::uint32_t>(w), *hosts_[client],
                                                    *hosts_[server], async_events_));
    workloads_.back()->create(w, [this] {
      if (on_measurement_) on_measurement_();
    });
  }
  if (!scenario_.programs.empty())
    programs_ = std::make_unique<Programs>(scenario_, hosts_, static_cast<std::uint32_t>(workloads_.size()),
                                           async_events_, [this] {
                                             if (on_measurement_) on_measurement_();
                                           });
}

Cluster::~Cluster() { context_.frames.destroy_flows(); }

std::size_t Cluster::host_number(const std::string& name, std::size_t fallback) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (scenario_.host_name(i) == name) return i;
  return fallback;
}

std::vector<std::string> Cluster::host_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < hosts_.size(); ++i) names.push_back(scenario_.host_name(i));
  return names;
}

void Cluster::start() {
  for (auto& h : hosts_) {
    h->kernel().on_ready(&Cluster::host_ready, this);
    h->kernel().start(sim::Picos{0});
  }
}

void Cluster::host_ready(void* self) {
  auto* c = static_cast<Cluster*>(self);
  if (++c->ready_ < c->hosts_.size()) return;
  sim::Picos t = c->context_.now();
  for (const auto& h : c->hosts_) t = sim::max(t, h->kernel().ready_at());
  for (auto& w : c->workloads_) w->start(t);
  if (c->programs_) c->programs_->start(t);
  if (c->on_ready_) c->on_ready_(t);
}

bool Cluster::finished() const {
  return std::all_of(workloads_.begin(), workloads_.end(), [](const auto& w) { return w->finished(); }) &&
         (programs_ == nullptr || programs_->finished());
}

sim::Picos Cluster::finished_at() const {
  sim::Picos t{0};
  for (const auto& w : workloads_) t = sim::max(t, w->finished_at());
  return programs_ != nullptr ? sim::max(t, programs_->finished_at()) : t;
}

std::uint64_t Cluster::expected_messages() const {
  if (programs_ != nullptr) return 0;  // nobody knows what steps will deliver
  std::uint64_t n = 0;
  for (const auto& w : workloads_) n += w->expected_messages();
  return n;
}

std::vector<std::pair<std::string, std::string>> Cluster::summary() const {
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const HostConfig& h = scenario_.hosts[i];
    lines.emplace_back(scenario_.host_name(i),
                       std::to_string(h.cores) + " cores " + std::string(sim::enum_name(h.core.arch)) + ", PCIe gen " +
                           std::to_string(h.pcie.link.generation) + " x" + std::to_string(h.pcie.link.width) +
                           ", MPS " + std::to_string(h.pcie.max_payload_size) + " B, MRRS " +
                           std::to_string(h.pcie.max_read_request_size) + " B, IOMMU " +
                           std::string(sim::enum_name(h.iommu.mode)));
  }
  lines.emplace_back("fabric", "RoCEv2, " + sim::to_string(scenario_.fabric.link.rate) + ", " +
                                   std::string(sim::enum_name(scenario_.fabric.topology)));
  for (const auto& w : workloads_) {
    const WorkloadConfig& c = w->config();
    lines.emplace_back(w->record().name, std::string(sim::enum_name(c.op)) + ", " + sim::to_string(c.size) + ", " +
                                             std::to_string(c.iters) + " iterations, MTU " + std::to_string(c.mtu) +
                                             " B, " + completions_of(c) + ", tx_depth " + std::to_string(c.depth()) +
                                             ", cq_mod " + std::to_string(c.cq_mod) + ", " + std::to_string(c.qps) +
                                             " QP");
  }
  for (const auto& [name, p] : scenario_.programs)
    lines.emplace_back(name, "program on " + (p.host.empty() ? scenario_.host_name(0) : p.host) + ", " +
                                 (p.plugin ? p.plugin->file.text : std::to_string(p.steps.size()) + " steps"));
  return lines;
}

std::vector<Stuck> Cluster::stuck() const { return Watchdog(hosts_, programs_.get()).report(); }

std::vector<std::string> Cluster::waiting() const {
  std::vector<std::string> out;
  for (Stuck& s : stuck()) out.push_back(std::move(s.text));
  return out;
}

bool Cluster::stalled(sim::Picos now, sim::Picos limit) const {
  return Watchdog(hosts_, programs_.get()).stalled(now, limit);
}

}  // namespace sys
