// SPDX-License-Identifier: Apache-2.0
// One virtual address space (a process, or the kernel of a host): an arena at a fixed virtual address whose pages are
// backed by frames of HostMemory, MMIO mappings, and pinning. The arena is real memory of this process mapped at that
// very address, so a pointer that a simulated program holds is its simulated virtual address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/address.h"
#include "memory/host_memory.h"

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
  void free(void* p);
  std::size_t size_of(const void* p) const;  ///< size asked for at alloc(), 0 for a pointer it did not give out

  /// Page-table look-up; empty when unmapped.
  std::optional<Translation> translate(Va va) const;
  /// Maps `size` bytes of the device window at `bus` and returns its virtual address (page aligned). The range is not
  /// backed by bytes: a plain C++ access to it faults, only Thread::mmio_* may touch it.
  Va map_mmio(Phys bus, std::uint64_t size, MemoryType type);
  void unmap_mmio(Va va);

  /// Pins the pages of [va, va+len) and returns their frames in order; empty if any page is unmapped or MMIO. Pins nest.
  std::optional<std::vector<Phys>> pin(Va va, std::uint64_t len);
  void unpin(Va va, std::uint64_t len);
  std::size_t pinned_pages() const;

  HostMemory& memory() { return memory_; }

 private:
  HostMemory& memory_;
  // … the rest is the implementer's
};

inline Va va_of(const void* p) { return {reinterpret_cast<std::uint64_t>(p)}; }

}  // namespace memory
