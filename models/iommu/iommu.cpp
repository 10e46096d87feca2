// SPDX-License-Identifier: Apache-2.0
// Address translation for DMA: IOTLB, page-walk cache, and a walk of the real page tables in host memory whose every step
// is one memory access. Follows the second-level translation of Intel VT-d (specification, chapters 3, 4, 6 and 7).
// Not modelled: first-level and nested translation, PASID, ATS, interrupt remapping, the invalidation queue in memory.
#include "iommu/iommu.h"

#include <algorithm>
#include <utility>

#include "iommu/trace_points.h"

namespace iommu {

Iommu::Iommu(sc_core::sc_module_name name, sim::Context& context, const IommuConfig& config, memory::HostMemory& memory,
             std::int32_t host, const std::string& path)
    : sc_module(name),
      context_(context),
      config_(config),
      memory_(memory),
      iotlb_(config.iotlb_entries, config.iotlb_ways),
      walk_cache_(config.walk_cache_entries),
      walkers_(config.walks_in_flight),
      trace_(context, host, path),
      misses_trace_(context, host, path + ".iotlb_misses", sim::trace::TrackKind::counter),
      entries_trace_(context, host, path + ".iotlb_entries", sim::trace::TrackKind::counter),
      walkers_busy_(context.stats.busy(path + ".walkers", config.walks_in_flight)),
      hits_(context.stats.counter(path + ".iotlb_hits")),
      misses_(context.stats.counter(path + ".iotlb_misses")),
      merged_(context.stats.counter(path + ".walks_shared")),
      walk_accesses_(context.stats.counter(path + ".walk_accesses")),
      fault_count_(context.stats.counter(path + ".faults")),
      lost_fault_records_(context.stats.counter(path + ".fault_records_lost")),
      invalidations_(context.stats.counter(path + ".invalidations")) {}

pcie::DmaTranslation Iommu::translate(std::uint16_t requester, memory::Iova at, std::uint32_t length, bool write,
                                      sim::trace::Cause cause) {
  SIM_CHECK(at.offset() + length <= memory::kPageSize, "translation across a page boundary");
  const sim::Picos now = context_.now();
  if (config_.mode == Mode::off) return {memory::Phys{at.v}, now};
  if (config_.mode == Mode::passthrough) return {memory::Phys{at.v}, now + config_.passthrough_latency};
  const Iotlb::Entry* e = iotlb_.find(requester, at);
  if (e == nullptr || !(write ? e->write : e->read)) return miss(requester, at, write, cause);
  const sim::Picos known = now + config_.hit_latency;
  hits_.add();
  if (e->ready > known) {
    merged_.add();
    trace_.span(trace_points::kMerged, cause, now, known, e->ready, at.v, e->at(at).v);
  }
  last_ready_ = max(last_ready_, max(known, e->ready));
  return {e->at(at), max(known, e->ready)};
}

// Faults are not cached: the next request walks again.
pcie::DmaTranslation Iommu::miss(std::uint16_t requester, memory::Iova at, bool write, sim::trace::Cause cause) {
  const sim::Picos now = context_.now();
  const sim::Picos known = now + config_.hit_latency;
  misses_.add();
  misses_trace_.level(trace_points::kMisses, now, static_cast<std::int64_t>(misses_.value));
  const Root* root = root_of(requester);
  if (root == nullptr) return fault({known, requester, at, write, FaultReason::no_root}, known, cause);
  Walk w = walk(requester, at, root->table);
  const sim::Picos ready = take_walker(known, w.duration);
  walk_accesses_.add(w.accesses);
  last_ready_ = max(last_ready_, ready);
  if (w.fault == FaultReason::none && (w.permissions & (write ? kPteWrite : kPteRead)) == 0)
    w.fault = write ? FaultReason::write_denied : FaultReason::read_denied;
  Iotlb::Entry e;
  e.large = w.large;
  e.base = w.base;
  const bool ok = w.fault == FaultReason::none;
  trace_.span(trace_points::kWalk, cause, now, ready - w.duration, ready, at.v, ok ? e.at(at).v : 0U, w.accesses,
              static_cast<std::uint64_t>(w.fault));
  if (!ok) return fault({ready, requester, at, write, w.fault}, ready, cause);
  e.page = at.v >> (w.large ? kLargePageShift : memory::kPageShift);
  e.ready = ready;
  e.requester = requester;
  e.read = (w.permissions & kPteRead) != 0;
  e.write = (w.permissions & kPteWrite) != 0;
  iotlb_.insert(e);
  trace_entries();
  return {e.at(at), ready};
}

Iommu::Walk Iommu::walk(std::uint16_t requester, memory::Iova at, memory::Phys root) {
  Walk w;
  if (at.v >> (memory::kPageShift + kLevels * kIndexBits) != 0) {
    w.fault = FaultReason::address_width;
    return w;
  }
  PageWalkCache::Table table = walk_cache_.find(requester, at, root);
  for (;;) {
    const memory::Phys pte = table.base + 8ULL * table_index(at, table.level);
    if (!memory_.contains(pte, 8)) return w.fault = FaultReason::bad_table, w;
    ++w.accesses;
    w.duration += config_.walk_access_latency + memory_.device_read_latency(pte, 8);
    std::uint64_t entry = 0;
    memory_.read(pte, std::as_writable_bytes(std::span(&entry, 1)));
    if ((entry & (kPteRead | kPteWrite)) == 0) return w.fault = FaultReason::not_present, w;
    table.permissions &= entry;
    w.large = table.level == 1 && (entry & kPteLarge) != 0;
    if (w.large && !config_.large_pages) return w.fault = FaultReason::large_page, w;
    if (table.level == 0 || w.large) {
      w.base = {entry & kPteAddress & ~((w.large ? kLargePageSize : memory::kPageSize) - 1)};
      w.permissions = table.permissions;
      return w;
    }
    table.base = {entry & kPteAddress};
    --table.level;
    walk_cache_.insert(requester, at, table);
  }
}

void Iommu::trace_entries() {
  if (std::exchange(entries_traced_, iotlb_.size()) != iotlb_.size())
    entries_trace_.level(trace_points::kEntries, context_.now(), iotlb_.size());
}

// Occupies the first walker to be free, from `from` on, for `duration`; returns when the walk ends.
sim::Picos Iommu::take_walker(sim::Picos from, sim::Picos duration) {
  sim::Picos& free_at = *std::min_element(walkers_.begin(), walkers_.end());
  free_at = max(from, free_at) + duration;
  walkers_busy_.add(duration);
  return free_at;
}

pcie::DmaTranslation Iommu::fault(FaultRecord record, sim::Picos ready, sim::trace::Cause cause) {
  fault_count_.add();
  trace_.instant(trace_points::kFault, cause, ready, record.at.v, record.write,
                 static_cast<std::uint64_t>(record.reason));
  if (faults_.size() < config_.fault_records) faults_.push_back(record);
  else lost_fault_records_.add();
  return {std::nullopt, ready};
}

std::optional<FaultRecord> Iommu::take_fault() {
  if (faults_.empty()) return std::nullopt;
  return faults_.pop_front();
}

const Iommu::Root* Iommu::root_of(std::uint16_t requester) const {
  for (const Root& r : roots_)
    if (r.requester == requester) return &r;
  return nullptr;
}

void Iommu::set_root(std::uint16_t requester, memory::Phys root) {
  SIM_CHECK(!passthrough(), "page tables for an IOMMU that does not translate");
  iotlb_.invalidate_all(requester);
  trace_entries();
  walk_cache_.invalidate_all(requester);
  for (Root& r : roots_) {
    if (r.requester != requester) continue;
    r.table = root;
    return;
  }
  roots_.push_back({requester, root});
}

sim::Picos Iommu::invalidate(std::uint16_t requester, memory::Iova at, std::uint64_t pages) {
  const sim::Picos now = context_.now();
  iotlb_.invalidate(requester, at, pages);
  trace_entries();
  walk_cache_.invalidate_all(requester);
  invalidations_.add();
  sim::Picos done = max(now + config_.invalidation_latency, last_ready_);
  if (drain.size() != 0) done = max(done, drain->drained(requester));
  trace_.span(trace_points::kInvalidate, {}, now, now, done, at.v, pages);
  return done;
}

}  // namespace iommu
