// SPDX-License-Identifier: Apache-2.0
// DMA mapping for one device: addresses that the device may use (IOVAs), and the IO page tables behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "iommu/iommu_prm.h"
#include "kernel/kernel_config.h"
#include "memory/address_space.h"

namespace kernel {

/// Ranges of IOVAs by whole pages, taken downwards from a top; a released range is given out again.
class IovaAllocator {
 public:
  explicit IovaAllocator(std::uint64_t top) : next_(top) {}
  /// First address of `pages` consecutive pages.
  memory::Iova take(std::uint64_t pages);
  void give(memory::Iova first, std::uint64_t pages);
  std::uint64_t pages_out() const { return out_; }

 private:
  std::uint64_t next_;
  std::uint64_t out_ = 0;
  std::map<std::uint64_t, std::vector<std::uint64_t>> free_;  // by number of pages
};

/// The DMA addresses of some pages, in order. With translation they are consecutive; in passthrough they are the
/// physical addresses.
struct DmaMapping {
  std::vector<memory::Iova> pages;
  bool empty() const { return pages.empty(); }
};

/// Kernel memory that the device reaches.
struct DmaBuffer {
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  DmaMapping mapping;
  /// DMA address of the byte at `offset`.
  memory::Iova at(std::size_t offset) const {
    return mapping.pages[offset / memory::kPageSize] + offset % memory::kPageSize;
  }
};

class DmaMapper {
 public:
  /// `iommu` may be null: no IOMMU, addresses are physical.
  DmaMapper(memory::AddressSpace& kernel, iommu::IommuControl* iommu, std::uint16_t requester,
            const DriverConfig& config);

  /// Installs the root table. Before the first map(), from a kernel thread.
  void init();
  DmaMapping map(std::span<const memory::Phys> frames);
  /// Removes the mapping and waits until the IOMMU has dropped its cached translations (strict mode, S-MR-31).
  void unmap(DmaMapping& mapping);
  /// Zeroed, page-aligned, mapped kernel memory. Throws std::bad_alloc when the arena is exhausted.
  DmaBuffer alloc(std::size_t size);
  void free(DmaBuffer& buffer);
  bool translated() const { return iommu_ != nullptr; }
  std::uint64_t pages_mapped() const { return mapped_; }
  memory::HostMemory& memory() { return kernel_.memory(); }

 private:
  std::uint64_t& leaf(memory::Iova at);
  std::uint64_t* new_table();
  memory::Phys phys_of(const void* p) const;

  memory::AddressSpace& kernel_;
  iommu::IommuControl* iommu_;
  const std::uint16_t requester_;
  const DriverConfig& config_;
  IovaAllocator iovas_;
  std::uint64_t* root_ = nullptr;
  std::uint64_t mapped_ = 0;
};

}  // namespace kernel
