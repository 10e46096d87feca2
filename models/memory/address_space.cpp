// SPDX-License-Identifier: Apache-2.0
// The arena is anonymous memory of this process at a fixed address, so that runs are repeatable to the pointer value.
// Small sizes come from slots of equal size in 16 KiB blocks, larger ones from runs of pages, first fit by address.
// Frames are attached when a block is created and detached when its pages go back; the page table is a flat array.
// Not modelled: demand paging, swapping, huge pages, copy on write.
#include "memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace memory {
namespace {
constexpr std::array<std::uint32_t, 24> kSlots{16,  32,  48,  64,  80,  96,  112, 128,  160,  192,  224,  256,
                                               320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048};
constexpr std::uint64_t kBlockPages = 4;
constexpr std::uint64_t kMmioOffset = 1ULL << 44;  // MMIO mappings lie 16 TiB above the arena
constexpr std::uint64_t kMmioSize = 1ULL << 32;
constexpr std::uint64_t kNoDevice = 0xff00'0000'0000'0000ULL;  // bus address that no device claims

void* map_at(std::uint64_t at, std::uint64_t size, int protection) {
  void* const want = reinterpret_cast<void*>(at);
  void* const got =
      ::mmap(want, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED || got != want) {
    if (got != MAP_FAILED) ::munmap(got, size);
    throw std::runtime_error("cannot reserve the address range of an address space at " + std::to_string(at) + ": " +
                             (got == MAP_FAILED ? std::strerror(errno) : "range taken"));
  }
  return got;
}
}  // namespace

AddressSpace::AddressSpace(HostMemory& memory, std::uint64_t base, std::uint64_t size)
    : memory_(memory),
      base_(base),
      size_(size),
      pages_(size >> kPageShift),
      mmio_base_(base + kMmioOffset),
      free_runs_{{0, size >> kPageShift}},
      free_slots_(kSlots.size()) {
  SIM_CHECK(base % (2ULL << 20) == 0 && size % kPageSize == 0 && size > 0, "arena range is not aligned");
  map_at(base_, size_, PROT_READ | PROT_WRITE);
  try {
    map_at(mmio_base_, kMmioSize, PROT_NONE);
  } catch (...) {
    ::munmap(reinterpret_cast<void*>(base_), size_);
    throw;
  }
  void* const table = ::mmap(nullptr, pages_ * sizeof(Page), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) {
    ::munmap(reinterpret_cast<void*>(base_), size_);
    ::munmap(reinterpret_cast<void*>(mmio_base_), kMmioSize);
    throw std::runtime_error("no memory for the page table of an address space");
  }
  table_ = static_cast<Page*>(table);
}

AddressSpace::~AddressSpace() {
  std::vector<Phys> frames;
  for (const Block& b : blocks_)
    for (std::uint64_t i = b.first; i < b.first + b.pages; ++i) frames.push_back({table_[i].frame});
  memory_.unmap_frames(frames);
  ::munmap(table_, pages_ * sizeof(Page));
  ::munmap(reinterpret_cast<void*>(mmio_base_), kMmioSize);
  ::munmap(reinterpret_cast<void*>(base_), size_);
}

bool AddressSpace::take_run(std::uint64_t pages, std::uint64_t align, std::uint64_t& first) {
  for (auto it = free_runs_.begin(); it != free_runs_.end(); ++it) {
    const auto [start, length] = *it;
    // The base itself is 2 MiB aligned; larger alignments have to count it in.
    const std::uint64_t absolute = (base_ >> kPageShift) + start;
    const std::uint64_t skip = (align - absolute % align) % align;
    if (length < skip || length - skip < pages) continue;
    first = start + skip;
    free_runs_.erase(it);
    if (skip != 0) free_runs_[start] = skip;
    if (length - skip != pages) free_runs_[first + pages] = length - skip - pages;
    return true;
  }
  return false;
}

void AddressSpace::give_run(std::uint64_t first, std::uint64_t pages) {
  const auto next = free_runs_.lower_bound(first);
  if (next != free_runs_.end() && next->first == first + pages) {
    pages += next->second;
    free_runs_.erase(next);
  }
  const auto after = free_runs_.lower_bound(first);
  if (after != free_runs_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += pages;
      return;
    }
  }
  free_runs_[first] = pages;
}

// A new block of pages with frames; its first byte, or nullptr.
void* AddressSpace::alloc_pages(std::size_t size, std::size_t align, std::uint32_t slot) {
  const std::uint64_t count = std::max<std::uint64_t>(1, (size + kPageSize - 1) >> kPageShift);
  std::uint64_t first = 0;
  if (size > size_ || !take_run(count, std::max<std::uint64_t>(1, align >> kPageShift), first)) return nullptr;
  auto* const at = reinterpret_cast<std::byte*>(base_ + (first << kPageShift));
  std::vector<Phys> frames;
  try {
    frames = memory_.map_frames(at, count, false, true);
  } catch (const std::bad_alloc&) {
    give_run(first, count);
    return nullptr;
  }
  std::uint32_t id;
  if (free_blocks_.empty()) {
    id = static_cast<std::uint32_t>(blocks_.size());
    blocks_.emplace_back();
  } else {
    id = free_blocks_.back();
    free_blocks_.pop_back();
  }
  blocks_[id] = {first, count, slot, false, {}};
  if (slot == 0) blocks_[id].sizes.push_back(size + 1);
  else blocks_[id].sizes.assign((count << kPageShift) / slot, 0);
  for (std::uint64_t i = 0; i < count; ++i) table_[first + i] = {frames[i].v, 0, id + 1};
  return at;
}

void* AddressSpace::alloc_slot(std::size_t size, std::uint32_t slot_class) {
  auto& free = free_slots_[slot_class];
  const std::uint32_t slot = kSlots[slot_class];
  if (free.empty()) {
    void* const at = alloc_pages(kBlockPages << kPageShift, kPageSize, slot);
    if (at == nullptr) return nullptr;
    for (std::uint64_t i = (kBlockPages << kPageShift) / slot; i-- > 0;)
      free.push_back(reinterpret_cast<std::uint64_t>(at) + i * slot);
  }
  void* const p = reinterpret_cast<void*>(free.back());
  free.pop_back();
  *size_slot(p) = size + 1;
  std::memset(p, 0, slot);
  return p;
}

void* AddressSpace::alloc(std::size_t size, std::size_t align) {
  SIM_CHECK(std::has_single_bit(align), "alignment is not a power of two");
  if (size <= kSlots.back() && align <= kSlots.back())
    for (std::uint32_t c = 0; c < kSlots.size(); ++c)
      if (kSlots[c] >= size && kSlots[c] % align == 0) return alloc_slot(size, c);
  return alloc_pages(size, align, 0);
}

// Where the size of the allocation that starts at p is kept; nullptr if none can start there.
std::uint64_t* AddressSpace::size_slot(const void* p) {
  if (!owns(p)) return nullptr;
  const std::uint64_t at = reinterpret_cast<std::uint64_t>(p) - base_;
  const std::uint32_t id = table_[at >> kPageShift].block;
  if (id == 0 || blocks_[id - 1].freed) return nullptr;
  Block& b = blocks_[id - 1];
  const std::uint64_t offset = at - (b.first << kPageShift);
  if (b.slot == 0) return offset == 0 ? b.sizes.data() : nullptr;
  return offset % b.slot == 0 && offset / b.slot < b.sizes.size() ? &b.sizes[offset / b.slot] : nullptr;
}

std::size_t AddressSpace::size_of(const void* p) const {
  const std::uint64_t* const s = const_cast<AddressSpace*>(this)->size_slot(p);
  return s == nullptr || *s == 0 ? 0 : *s - 1;
}

bool AddressSpace::pinned(const Block& b) const {
  for (std::uint64_t i = b.first; i < b.first + b.pages; ++i)
    if (table_[i].pins != 0) return true;
  return false;
}

void AddressSpace::free(void* p) {
  if (p == nullptr) return;
  std::uint64_t* const size = size_slot(p);
  if (size == nullptr || *size == 0) throw std::invalid_argument("free() of a pointer that is not allocated");
  const std::uint32_t id = table_[(reinterpret_cast<std::uint64_t>(p) - base_) >> kPageShift].block - 1;
  Block& b = blocks_[id];
  if (b.slot != 0) {
    // A slot may straddle two pages, whose frames are not neighbours.
    for (std::uint64_t at = reinterpret_cast<std::uint64_t>(p), end = at + b.slot; at < end;) {
      const std::uint64_t n = std::min(end - at, kPageSize - at % kPageSize);
      memory_.settle(phys_of({at}), n);
      at += n;
    }
    *size = 0;
    const auto c = std::find(kSlots.begin(), kSlots.end(), b.slot) - kSlots.begin();
    free_slots_[static_cast<std::size_t>(c)].push_back(reinterpret_cast<std::uint64_t>(p));
  } else if (pinned(b)) {
    b.freed = true;
  } else {
    release(id);
  }
}

// Gives the pages of a block back. The kernel zeroes them when they are touched again.
void AddressSpace::release(std::uint32_t id) {
  Block& b = blocks_[id];
  std::vector<Phys> frames;
  frames.reserve(b.pages);
  for (std::uint64_t i = b.first; i < b.first + b.pages; ++i) {
    frames.push_back({table_[i].frame});
  }
  memory_.unmap_frames(frames);
  for (std::uint64_t i = b.first; i < b.first + b.pages; ++i) table_[i] = {};
  ::madvise(reinterpret_cast<void*>(base_ + (b.first << kPageShift)), b.pages << kPageShift, MADV_DONTNEED);
  give_run(b.first, b.pages);
  b = {};
  free_blocks_.push_back(id);
}

std::optional<Translation> AddressSpace::translate(Va va) const {
  if (va.v - base_ < size_) {
    const std::uint64_t frame = table_[(va.v - base_) >> kPageShift].frame;
    if (frame == 0) return std::nullopt;
    return Translation{{frame + va.offset()}, MemoryType::write_back, false};
  }
  const std::uint64_t page = (va.v - mmio_base_) >> kPageShift;
  if (va.v < mmio_base_ || page >= mmio_.size() || !mmio_[page].used) return std::nullopt;
  return Translation{{mmio_[page].bus + va.offset()}, mmio_[page].type, true};
}

Va AddressSpace::map_mmio(Phys bus, std::uint64_t size, MemoryType type) {
  SIM_CHECK(bus.offset() == 0 && size > 0, "a device window is mapped by whole pages");
  const std::uint64_t count = (size + kPageSize - 1) >> kPageShift;
  std::uint64_t first = 0, run = 0;
  for (std::uint64_t i = 0; i < mmio_.size() && run < count; ++i) {
    run = mmio_[i].used ? 0 : run + 1;
    first = i + 1 - run;
  }
  if (run == 0) first = mmio_.size();
  SIM_CHECK((first + count) << kPageShift <= kMmioSize, "address range for device windows is exhausted");
  if (mmio_.size() < first + count) mmio_.resize(first + count);
  for (std::uint64_t i = 0; i < count; ++i)
    mmio_[first + i] = {bus.v + (i << kPageShift), i == 0 ? count : 0, type, true};
  return {mmio_base_ + (first << kPageShift)};
}

void AddressSpace::disconnect_mmio(Va va) {
  const std::uint64_t first = (va.v - mmio_base_) >> kPageShift;
  SIM_CHECK(va.v >= mmio_base_ && first < mmio_.size() && mmio_[first].run != 0,
            "a device window that is not mapped cannot lose its device");
  for (std::uint64_t i = 0; i < mmio_[first].run; ++i) mmio_[first + i].bus = kNoDevice + (i << kPageShift);
}

void AddressSpace::unmap_mmio(Va va) {
  const std::uint64_t first = (va.v - mmio_base_) >> kPageShift;
  SIM_CHECK(va.v >= mmio_base_ && first < mmio_.size() && mmio_[first].run != 0,
            "unmap of a device window that is not mapped");
  const std::uint64_t count = mmio_[first].run;
  for (std::uint64_t i = 0; i < count; ++i) mmio_[first + i] = {};
}

std::optional<std::vector<Phys>> AddressSpace::pin(Va va, std::uint64_t len) {
  std::vector<Phys> frames;
  if (len == 0) return frames;
  if (va.v < base_ || va.v - base_ >= size_ || len > size_ - (va.v - base_)) return std::nullopt;
  const std::uint64_t first = (va.v - base_) >> kPageShift, last = (va.v + len - 1 - base_) >> kPageShift;
  for (std::uint64_t i = first; i <= last; ++i) {
    if (table_[i].frame == 0 || blocks_[table_[i].block - 1].freed) return std::nullopt;
  }
  frames.reserve(last - first + 1);
  for (std::uint64_t i = first; i <= last; ++i) {
    if (table_[i].pins++ == 0) ++pinned_pages_;
    frames.push_back({table_[i].frame});
  }
  return frames;
}

void AddressSpace::unpin(Va va, std::uint64_t len) {
  if (len == 0) return;
  SIM_CHECK(va.v >= base_ && va.v - base_ < size_ && len <= size_ - (va.v - base_), "unpin outside the arena");
  const std::uint64_t first = (va.v - base_) >> kPageShift, last = (va.v + len - 1 - base_) >> kPageShift;
  for (std::uint64_t i = first; i <= last; ++i) {
    SIM_CHECK(table_[i].pins != 0, "unpin of a page that is not pinned");
    if (--table_[i].pins != 0) continue;
    --pinned_pages_;
    const std::uint32_t id = table_[i].block - 1;
    if (blocks_[id].freed && !pinned(blocks_[id])) release(id);
  }
}

std::size_t AddressSpace::pinned_pages() const { return pinned_pages_; }

}  // namespace memory
