// SPDX-License-Identifier: Apache-2.0
// A saturated resource: what it is, how much of its time is overhead, and what would widen it.
#include <algorithm>
#include <cmath>

#include "experiment/explain_parts.h"
#include "experiment/result.h"
#include "sim/units.h"

namespace experiment {
namespace {

using sim::Json;

/// "host1" of "host1.pcie.link.up".
std::size_t host_of(const std::string& path) {
  return path.size() > 4 ? static_cast<std::size_t>(std::strtoul(path.c_str() + 4, nullptr, 10)) : 0;
}

std::string workload_path(std::optional<std::size_t> w, const char* key) {
  return w ? "workloads." + std::to_string(*w) + "." + key : "";
}

void wire(const Facts& f, const std::string& path, std::optional<std::size_t> w, Diagnosis& d) {
  d.id = "wire";
  d.what = "the link of the fabric carries frames all the time: it is the wire that limits";
  d.evidence.push_back(f.configured("fabric.link.rate", "data rate of the link"));
  d.evidence.push_back(f.counted(path + ".bytes", "bytes of frames that it has carried"));
  if (w) d.evidence.push_back(f.found("/workloads/" + std::to_string(*w) + "/bandwidth_gbps", "Gb/s of payload"));
  if (const std::string mtu = workload_path(w, "mtu"); w && f.config_number(mtu, 4096) < 4096)
    d.advice.push_back(f.turn(mtu, 4096, "fewer headers for the same payload"));
  const auto rate = sim::parse_rate(f.config_text("fabric.link.rate"));
  if (rate)
    d.advice.push_back(f.turn("fabric.link.rate", sim::to_string(sim::BitRate{rate.value.bps * 2}), "a faster link"));
}

void pcie(const Facts& f, const std::string& path, Diagnosis& d) {
  const bool up = path.ends_with(".up");
  const std::string host = "host" + std::to_string(host_of(path)),
                    config = "hosts." + std::to_string(host_of(path)) + ".pcie.";
  const std::string direction = host + ".pcie." + (up ? "up" : "down");
  d.id = up ? "pcie_up" : "pcie_down";
  d.what =
      up ? "the PCIe link towards memory carries TLPs all the time: it limits what the adapter can write, and ask for"
         : "the PCIe link towards the adapter carries TLPs all the time: it limits what the adapter can read";
  const double payload = f.counter(direction + ".mwr_bytes") + f.counter(direction + ".cpld_bytes"),
               bytes = f.counter(direction + ".wire_bytes");
  d.evidence.push_back(f.counted(direction + ".wire_bytes", "bytes of TLPs and their framing"));
  if (bytes > 0) d.evidence.push_back(Facts::derived(payload / bytes, "of them payload"));
  d.evidence.push_back(f.configured(config + "link.generation", "PCI Express generation"));
  d.evidence.push_back(f.configured(config + "link.width", "lanes"));
  // The other host's link may be as busy, in the other direction; turning one of them alone then changes nothing.
  std::vector<std::string> links;
  for (std::size_t h = 0; h < f.hosts(); ++h) {
    const std::string link = "host" + std::to_string(h) + ".pcie.link.";
    if (std::max(f.utilisation(link + "up"), f.utilisation(link + "down")) >= 0.95 * f.utilisation(path))
      links.push_back("hosts." + std::to_string(h) + ".pcie.");
  }
  const auto everywhere = [&](const char* key) {
    std::vector<std::string> paths;
    for (const std::string& l : links) paths.push_back(l + key);
    return paths;
  };
  if (const double width = f.config_number(config + "link.width", 16); width < 16)
    d.advice.push_back(f.turn_all(everywhere("link.width"), whole(width * 2), "twice the lanes"));
  if (const double generation = f.config_number(config + "link.generation", 6); generation < 6)
    d.advice.push_back(
        f.turn_all(everywhere("link.generation"), whole(generation + 1), "about twice the rate per lane"));
  if (const double mps = f.config_number(config + "max_payload_size", 4096); mps < 512)
    d.advice.push_back(
        f.turn_all(everywhere("max_payload_size"), whole(mps * 2), "fewer headers for the same payload"));
}

void iommu(const Facts& f, const std::string& path, Diagnosis& d) {
  const std::string host = "host" + std::to_string(host_of(path)) + ".iommu.",
                    config = "hosts." + std::to_string(host_of(path)) + ".iommu.";
  d.id = "iommu_walks";
  d.what =
      "the page walkers of the IOMMU work all the time: translations miss the IOTLB more often than they can be walked";
  const double hits = f.counter(host + "iotlb_hits"), misses = f.counter(host + "iotlb_misses");
  d.evidence.push_back(f.counted(host + "iotlb_misses", "translations that missed"));
  d.evidence.push_back(Facts::derived(misses / std::max(1.0, hits + misses), "of all translations"));
  d.evidence.push_back(f.configured(config + "iotlb_entries", "translations that the IOTLB holds"));
  const double entries = f.config_number(config + "iotlb_entries", 64);
  std::vector<std::string> modes, iotlbs, walkers;
  for (std::size_t h = 0; h < f.hosts(); ++h) {
    if (f.utilisation("host" + std::to_string(h) + ".iommu.walkers") < 0.5) continue;
    const std::string other = "hosts." + std::to_string(h) + ".iommu.";
    modes.push_back(other + "mode");
    iotlbs.push_back(other + "iotlb_entries");
    walkers.push_back(other + "walks_in_flight");
  }
  d.advice.push_back(f.turn_all(modes, "passthrough", "no translation, and no protection"));
  d.advice.push_back(
      f.turn_all(iotlbs, whole(std::clamp(entries * 16, 4096.0, 1048576.0)), "an IOTLB for the whole buffer"));
  d.advice.push_back(
      f.turn_all(walkers, whole(f.config_number(config + "walks_in_flight", 6) * 4), "more walks at a time"));
}

void kernel(const Facts& f, const std::string& path, std::optional<std::size_t> w, Diagnosis& d) {
  d.id = "kernel_cpu";
  d.what = "a core does nothing but interrupts and softirqs";
  const std::string core = path.substr(0, path.rfind('.'));
  d.evidence.push_back(f.found("/cores/" + core + "/kernel_ns", "ns in the kernel"));
  d.evidence.push_back(
      f.counted("host" + std::to_string(host_of(path)) + ".kernel.interrupts", "interrupts of the host"));
  if (w && f.config_text(workload_path(w, "consumer")) == "user")
    d.advice.push_back(f.turn(workload_path(w, "completion"), "poll", "no interrupts"));
  else if (w)
    for (const char* key : {"cq_mod", "post_list"})
      if (f.config_number(workload_path(w, key), 1) < 16)
        d.advice.push_back(f.turn(workload_path(w, key), 16, "less work for the core per message"));
}

/// A unit of the adapter with an interval of its own.
struct Unit {
  const char *suffix, *id, *what, *config, *why;
};
constexpr Unit kUnits[] = {
    {".hca.rx", "hca_receive_port", "the receive pipeline of the adapter takes a packet whenever it can",
     "hca.receive.rx_interval", "a faster adapter"},
    {".hca.dma.issue", "hca_dma", "the DMA engine of the adapter issues a TLP whenever it can",
     "hca.dma.issue_interval", "a faster DMA engine"}};

}  // namespace

std::vector<std::string> saturated_paths(const Facts& f) {
  std::vector<std::pair<double, std::string>> found;
  for (const auto& m : f.result().find("utilisation")->members()) {
    // An engine counts as busy while it waits for what comes behind it, so that is told first.
    const double waits = m.key.ends_with(".requester.engines") ? 1 : 0;
    if (m.value.number() >= Bottleneck::kSaturated) found.emplace_back(waits - m.value.number(), m.key);
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (auto& [u, path] : found) out.push_back(std::move(path));
  return out;
}

Diagnosis saturated(const Facts& f, const std::string& path, std::optional<std::size_t> w) {
  Diagnosis d;
  d.severity = Severity::limit;
  d.who = path;
  d.id = "resource";
  d.what = "this resource is busy all the time";
  d.evidence.push_back(f.found("/utilisation/" + path, "share of the time in which it was busy"));
  const std::string host = "hosts." + std::to_string(host_of(path)) + ".";
  if (path.starts_with("fabric.")) wire(f, path, w, d);
  else if (path.find(".pcie.link.") != std::string::npos) pcie(f, path, d);
  else if (path.ends_with(".iommu.walkers")) iommu(f, path, d);
  else if (path.ends_with(".kernel")) kernel(f, path, w, d);
  else if (path.ends_with(".root_complex.reads")) {
    d.id = "root_complex_reads";
    d.what = "as many DMA reads are at the memory as the root complex takes at a time";
    const std::string most = host + "root_complex.max_reads";
    d.evidence.push_back(f.configured(most, "reads at a time"));
    d.advice.push_back(f.turn(most, whole(f.config_number(most, 64) * 2), "more reads at a time"));
  } else if (path.ends_with(".hca.requester.engines")) {
    d.id = "hca_requester";
    d.what = "the send engines of the adapter work on WQEs all the time";
    d.evidence.push_back(f.configured(host + "hca.send.engines", "engines"));
    d.advice.push_back(
        f.turn(host + "hca.send.engines", whole(f.config_number(host + "hca.send.engines", 4) * 2), "more engines"));
  }
  for (const Unit& u : kUnits)
    if (path.ends_with(u.suffix)) {
      d.id = u.id;
      d.what = u.what;
      d.evidence.push_back(f.configured(host + u.config, "least time between two"));
      const double ns = f.config_ns(host + u.config);
      d.advice.push_back(
          f.turn(host + u.config, sim::to_string(sim::Picos{static_cast<std::int64_t>(ns * 500)}), u.why));
    }
  return d;
}

}  // namespace experiment
