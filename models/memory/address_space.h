// SPDX-License-Identifier: Apache-2.0
// One virtual address space (a process, or the kernel of a host): an arena at a fixed virtual address whose pages are
// backed by frames of HostMemory, MMIO mappings, and pinning. The arena is real memory of this process mapped at that
// very address, so a pointer that a simulated program holds is its simulated virtual address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "memory/address.h"
#include "memory/host_memory.h"
#include "sim/check.h"

namespace memory {

/// x86 memory type of a mapping.
enum class MemoryType : std::uint8_t { write_back, write_combining, uncached };

struct Translation {
  Phys phys;
  MemoryType type;
  bool mmio;  ///< a device window rather than a frame
};

class AddressSpace {
 public:
  /// `base` is the fixed virtual address of the arena (2 MiB aligned), unique per space in the simulation; `size` its
  /// reserved length, 64 GiB by default and used lazily. Throws std::runtime_error if the range is taken.
  AddressSpace(HostMemory& memory, std::uint64_t base, std::uint64_t size = 64ULL << 30);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Zero-filled memory, aligned to `align` (power of two, default 16). Sizes of a page or more are page aligned, like
  /// malloc's mmap path is not but posix_memalign's users expect. nullptr when the arena is exhausted.
  void* alloc(std::size_t size, std::size_t align = 16);
  /// Throws std::invalid_argument for a pointer that alloc() did not give out. Pages that are pinned keep their frames
  /// until they are unpinned.
  void free(void* p);
  std::size_t size_of(const void* p) const;  ///< size asked for at alloc(), 0 for a pointer it did not give out

  /// Page-table look-up; empty when unmapped.
  std::optional<Translation> translate(Va va) const;
  /// Maps `size` bytes of the device window at `bus` and returns its virtual address (page aligned). The range is not
  /// backed by bytes: a plain C++ access to it faults, only Thread::mmio_* may touch it.
  Va map_mmio(Phys bus, std::uint64_t size, MemoryType type);
  void unmap_mmio(Va va);
  /// The mapping stays, but no device answers behind it any more: stores vanish, loads give all ones.
  void disconnect_mmio(Va va);

  /// Pins the pages of [va, va+len) and returns their frames in order; empty if any page is unmapped or MMIO. Pins nest.
  std::optional<std::vector<Phys>> pin(Va va, std::uint64_t len);
  void unpin(Va va, std::uint64_t len);
  std::size_t pinned_pages() const;

  HostMemory& memory() { return memory_; }

  std::uint64_t base() const { return base_; }
  /// Whether the address lies in this arena, allocated or not.
  bool owns(const void* p) const { return reinterpret_cast<std::uint64_t>(p) - base_ < size_; }
  /// Physical address of a byte of allocated arena memory; for the hot path of a core. SIM_CHECK when unmapped.
  Phys phys_of(Va va) const {
    const std::uint64_t page = (va.v - base_) >> kPageShift;
    SIM_CHECK(page < pages_ && table_[page].frame != 0, "access to memory that the process has not allocated");
    return {table_[page].frame + va.offset()};
  }

 private:
  /// Page-table entry of an arena page.
  struct Page {
    std::uint64_t frame;  // physical address, 0 = unmapped
    std::uint32_t pins;
    std::uint32_t block;  // the block that the page belongs to + 1, 0 = none
  };
  /// A run of pages: one large allocation, or equal slots for small ones.
  struct Block {
    std::uint64_t first = 0, pages = 0;  // page numbers inside the arena
    std::uint32_t slot = 0;              // slot size, 0 for a large allocation
    bool freed = false;                  // given back by the program, but still pinned
    std::vector<std::uint64_t> sizes;    // size asked for + 1 per slot, 0 = free
  };
  struct MmioPage {
    std::uint64_t bus = 0;
    std::uint64_t run = 0;  // length of the mapping in pages, on its first page only
    MemoryType type = MemoryType::uncached;
    bool used = false;
  };

  void* alloc_slot(std::size_t size, std::uint32_t slot_class);
  void* alloc_pages(std::size_t size, std::size_t align, std::uint32_t slot);
  bool take_run(std::uint64_t pages, std::uint64_t align, std::uint64_t& first);
  void give_run(std::uint64_t first, std::uint64_t pages);
  void release(std::uint32_t block);
  bool pinned(const Block& b) const;
  std::uint64_t* size_slot(const void* p);

  HostMemory& memory_;
  std::uint64_t base_, size_, pages_, mmio_base_;
  Page* table_ = nullptr;                             // one entry per arena page, mapped lazily
  std::map<std::uint64_t, std::uint64_t> free_runs_;  // first page -> pages; neighbours are merged
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_blocks_;
  std::vector<std::vector<std::uint64_t>> free_slots_;  // per slot class, addresses; the last one is handed out next
  std::vector<MmioPage> mmio_;
  std::size_t pinned_pages_ = 0;
};

inline Va va_of(const void* p) { return {reinterpret_cast<std::uint64_t>(p)}; }

}  // namespace memory
