// SPDX-License-Identifier: Apache-2.0
// dma_map for one device in the IOMMU's strict mode: each page gets an entry in a four-level table in kernel memory, and
// unmapping waits for the invalidation. Pages are not merged into larger entries. Entries become visible at the calling
// thread's time; the stores that write them are charged as dma_map_page, not through the store buffer.
// Source: Linux dma-iommu (strict), Intel VT-d specification chapter 9 (table format).
#include "kernel/dma_map.h"

#include <new>

#include "kernel/wait.h"
#include "sim/check.h"

namespace kernel {

memory::Iova IovaAllocator::take(std::uint64_t pages) {
  out_ += pages;
  if (const auto it = free_.find(pages); it != free_.end() && !it->second.empty()) {
    const std::uint64_t first = it->second.back();
    it->second.pop_back();
    return {first};
  }
  SIM_CHECK(next_ > pages * memory::kPageSize, "out of DMA addresses");
  next_ -= pages * memory::kPageSize;
  return {next_};
}

void IovaAllocator::give(memory::Iova first, std::uint64_t pages) {
  out_ -= pages;
  free_[pages].push_back(first.v);
}

DmaMapper::DmaMapper(memory::AddressSpace& kernel, iommu::IommuControl* iommu, std::uint16_t requester,
                     const DriverConfig& config)
    : kernel_(kernel),
      iommu_(iommu),
      requester_(requester),
      config_(config),
      iovas_(config.iova_top & iommu::kPteAddress) {}

void DmaMapper::init() {
  if (iommu_ != nullptr && iommu_->passthrough()) iommu_ = nullptr;
  if (iommu_ == nullptr) return;
  root_ = new_table();
  iommu_->set_root(requester_, phys_of(root_));
}

memory::Phys DmaMapper::phys_of(const void* p) const {
  const auto t = kernel_.translate(memory::va_of(p));
  SIM_CHECK(t && !t->mmio, "kernel memory without a frame");
  return t->phys;
}

std::uint64_t* DmaMapper::new_table() {
  void* table = kernel_.alloc(memory::kPageSize, memory::kPageSize);
  if (table == nullptr) throw std::bad_alloc();
  charge(config_.clear_page);
  return static_cast<std::uint64_t*>(table);
}

std::uint64_t& DmaMapper::leaf(memory::Iova at) {
  std::uint64_t* table = root_;
  for (unsigned level = iommu::kLevels - 1; level > 0; --level) {
    std::uint64_t& entry = table[iommu::table_index(at, level)];
    if (entry == 0) entry = phys_of(new_table()).v | iommu::kPteRead | iommu::kPteWrite;
    table = reinterpret_cast<std::uint64_t*>(kernel_.memory().raw({entry & iommu::kPteAddress}));
  }
  return table[iommu::table_index(at, 0)];
}

DmaMapping DmaMapper::map(std::span<const memory::Phys> frames) {
  DmaMapping m;
  m.pages.reserve(frames.size());
  mapped_ += frames.size();
  if (iommu_ == nullptr) {
    for (const memory::Phys p : frames) m.pages.push_back({p.page().v});
    return m;
  }
  SIM_CHECK(root_ != nullptr, "DMA mapping before init()");
  const memory::Iova first = iovas_.take(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    m.pages.push_back(first + i * memory::kPageSize);
    leaf(m.pages.back()) = frames[i].page().v | iommu::kPteRead | iommu::kPteWrite;
  }
  charge(config_.dma_map_page * static_cast<std::int64_t>(frames.size()));
  return m;
}

void DmaMapper::unmap(DmaMapping& mapping) {
  if (mapping.empty()) return;
  mapped_ -= mapping.pages.size();
  if (iommu_ != nullptr) {
    const std::uint64_t pages = mapping.pages.size();
    charge(config_.dma_unmap_page * static_cast<std::int64_t>(pages));
    cpu::Thread* const thread = cpu::current_or_null();
    if (thread != nullptr) thread->sync();
    for (const memory::Iova at : mapping.pages) leaf(at) = 0;
    const sim::Picos done = iommu_->invalidate(requester_, mapping.pages.front(), pages);
    if (thread != nullptr && done > thread->now()) thread->compute(done - thread->now());
    iovas_.give(mapping.pages.front(), pages);
  }
  mapping.pages.clear();
}

DmaBuffer DmaMapper::alloc(std::size_t size) {
  const std::size_t pages = (size + memory::kPageSize - 1) / memory::kPageSize;
  DmaBuffer b;
  b.size = pages * memory::kPageSize;
  b.bytes = static_cast<std::byte*>(kernel_.alloc(b.size, memory::kPageSize));
  if (b.bytes == nullptr) throw std::bad_alloc();
  charge(config_.clear_page * static_cast<std::int64_t>(pages));
  std::vector<memory::Phys> frames;
  frames.reserve(pages);
  for (std::size_t i = 0; i < pages; ++i) frames.push_back(phys_of(b.bytes + i * memory::kPageSize));
  b.mapping = map(frames);
  return b;
}

void DmaMapper::free(DmaBuffer& buffer) {
  if (buffer.bytes == nullptr) return;
  unmap(buffer.mapping);
  kernel_.free(buffer.bytes);
  buffer = {};
}

}  // namespace kernel
