// SPDX-License-Identifier: Apache-2.0
// The IOMMU of one host: translates DMA addresses of devices by page tables that the kernel keeps in host memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

#include "iommu/iommu_prm.h"
#include "iommu/iotlb.h"
#include "iommu/page_walk_cache.h"
#include "memory/host_memory.h"
#include "pcie/root_complex.h"
#include "sim/config.h"
#include "sim/context.h"

namespace iommu {

enum class Mode : std::uint8_t {
  off,          ///< no IOMMU: DMA addresses are physical, at no cost
  passthrough,  ///< present, but the device's context says untranslated
  translated,   ///< page tables
};

struct IommuConfig {
  Mode mode = Mode::translated;
  sim::Picos passthrough_latency{2'000};
  sim::Picos hit_latency{5'000};
  sim::Picos walk_access_latency{200'000};
  sim::Picos invalidation_latency{500'000};
  std::uint32_t iotlb_entries = 64;
  std::uint32_t iotlb_ways = 4;
  std::uint32_t walk_cache_entries = 32;
  std::uint32_t walks_in_flight = 6;
  bool large_pages = true;
  std::uint32_t fault_records = 8;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mode", c.mode, "off, passthrough or translated", sim::assumed("kernel default with the IOMMU enabled"));
    v("passthrough_latency", c.passthrough_latency, "look-up of the device's context, in mode passthrough",
      sim::assumed("one cache look-up"));
    v("hit_latency", c.hit_latency, "IOTLB look-up; paid by hits and misses",
      sim::measured("pcie-bench (SIGCOMM 2018): hits cost no measurable time"));
    v("walk_access_latency", c.walk_access_latency,
      "path between page walker and memory, per page-table read, without the memory access itself",
      sim::measured("pcie-bench (SIGCOMM 2018): a miss adds 280 ns on Xeon E5-2630 v4"));
    v("invalidation_latency", c.invalidation_latency, "invalidation command until it is complete on an idle IOMMU",
      sim::assumed("invalidation queue round trip without virtualisation"));
    v("iotlb_entries", c.iotlb_entries, "translations cached",
      sim::measured("pcie-bench (SIGCOMM 2018): knee at a window of 64 pages"), sim::Range{1, 1 << 20});
    v("iotlb_ways", c.iotlb_ways, "associativity of the IOTLB", sim::assumed("common"), sim::Range{1, 1 << 20});
    v("walk_cache_entries", c.walk_cache_entries, "upper page-table levels cached (0 = none)",
      sim::assumed("a miss costs about one memory access"), sim::Range{0, 4096});
    v("walks_in_flight", c.walks_in_flight, "page walks at the same time; later misses queue",
      sim::measured("pcie-bench (SIGCOMM 2018): 19 to 22 million walks/s of 280 ns"), sim::Range{1, 1024});
    v("large_pages", c.large_pages, "2 MiB pages are supported; when not, an entry that has the large bit faults",
      sim::spec("Intel VT-d specification, second-level large page support"));
    v("fault_records", c.fault_records,
      "fault recording registers; faults beyond are only counted until software takes one", sim::assumed("Xeon"),
      sim::Range{1, 256});
  }
  template <class F>
  void check(F&& fail) const {
    if (iotlb_ways == 0 || iotlb_entries % iotlb_ways != 0) fail("iotlb_ways", "must divide iotlb_entries");
  }
};

enum class FaultReason : std::uint8_t {
  none,
  no_root,      ///< the kernel has set no page table for the device
  not_present,  ///< an entry on the way allows neither read nor write
  read_denied,
  write_denied,
  large_page,     ///< large bit where large pages are not supported
  bad_table,      ///< a page-table pointer that is no memory
  address_width,  ///< beyond the 48 bits that four levels translate
};

struct FaultRecord {
  sim::Picos t{0};
  std::uint16_t requester = 0;
  memory::Iova at{};
  bool write = false;
  FaultReason reason = FaultReason::none;
};

/// Translation takes no events: the time at which a translation is known is computed when it is asked for. Page tables are
/// read at that instant, as if every walk ended at once; invalidate() therefore waits for all that still use the old
/// translation (VT-d: drain of reads and writes).
class Iommu final : public sc_core::sc_module, public pcie::AddressTranslator, public IommuControl {
 public:
  /// Optional: who knows when translated accesses have reached memory.
  sc_core::sc_port<pcie::DmaDrain, 1, sc_core::SC_ZERO_OR_MORE_BOUND> drain;

  /// `path` names tracks and counters, e.g. "host0.iommu".
  Iommu(sc_core::sc_module_name name, sim::Context& context, const IommuConfig& config, memory::HostMemory& memory,
        std::int32_t host, const std::string& path);

  pcie::DmaTranslation translate(std::uint16_t requester, memory::Iova at, std::uint32_t length, bool write,
                                 sim::trace::Cause cause) override;
  void set_root(std::uint16_t requester, memory::Phys root) override;
  sim::Picos invalidate(std::uint16_t requester, memory::Iova at, std::uint64_t pages) override;
  bool passthrough() const override { return config_.mode != Mode::translated; }

  /// Removes and returns the oldest fault record.
  std::optional<FaultRecord> take_fault();
  const IommuConfig& config() const { return config_; }

 private:
  struct Root {
    std::uint16_t requester;
    memory::Phys table;
  };
  struct Walk {
    FaultReason fault = FaultReason::none;
    memory::Phys base{};
    std::uint64_t permissions = 0;
    bool large = false;
    std::uint32_t accesses = 0;
    sim::Picos duration{0};
  };
  pcie::DmaTranslation miss(std::uint16_t requester, memory::Iova at, bool write, sim::trace::Cause cause);
  Walk walk(std::uint16_t requester, memory::Iova at, memory::Phys root);
  sim::Picos take_walker(sim::Picos from, sim::Picos duration);
  pcie::DmaTranslation fault(FaultRecord record, sim::Picos ready, sim::trace::Cause cause);
  const Root* root_of(std::uint16_t requester) const;
  void trace_entries();

  sim::Context& context_;
  const IommuConfig config_;
  memory::HostMemory& memory_;
  Iotlb iotlb_;
  PageWalkCache walk_cache_;
  std::vector<Root> roots_;
  std::vector<sim::Picos> walkers_;  // when each is free
  sim::Picos last_ready_{0};
  sim::Ring<FaultRecord> faults_;

  sim::trace::Source trace_, misses_trace_, entries_trace_;
  std::uint32_t entries_traced_ = 0;
  sim::BusyTime& walkers_busy_;
  sim::Counter& hits_;
  sim::Counter& misses_;
  sim::Counter& merged_;
  sim::Counter& walk_accesses_;
  sim::Counter& fault_count_;
  sim::Counter& lost_fault_records_;
  sim::Counter& invalidations_;
};

}  // namespace iommu

template <>
struct sim::EnumNames<iommu::Mode> {
  static constexpr std::array<std::pair<iommu::Mode, std::string_view>, 3> values{
      {{iommu::Mode::off, "off"}, {iommu::Mode::passthrough, "passthrough"}, {iommu::Mode::translated, "translated"}}};
};
