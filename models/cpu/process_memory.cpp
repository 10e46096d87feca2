// SPDX-License-Identifier: Apache-2.0
// malloc(3) and posix_memalign(3) over AddressSpace. Allocation itself costs no simulated time.
#include "cpu/process_memory.h"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cpu/thread.h"

namespace {
void* allocate(std::size_t size, std::size_t alignment) {
  void* const p = cpu::current().space().alloc(size, alignment);
  if (p == nullptr) errno = ENOMEM;
  return p;
}
}  // namespace

void* rdmasim_malloc(size_t size) { return allocate(size, 16); }

void* rdmasim_calloc(size_t count, size_t size) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(total, 16);
}

void rdmasim_free(void* p) {
  if (p == nullptr) return;
  memory::AddressSpace& space = cpu::current().space();
  if (space.owns(p)) space.free(p);
  else std::free(p);
}

void* rdmasim_realloc(void* p, size_t size) {
  if (p == nullptr) return allocate(size, 16);
  memory::AddressSpace& space = cpu::current().space();
  if (!space.owns(p)) return std::realloc(p, size);
  if (size == 0) {
    space.free(p);
    return nullptr;
  }
  void* const bigger = allocate(size, 16);
  if (bigger == nullptr) return nullptr;
  const std::size_t old = space.size_of(p);
  std::memcpy(bigger, p, old < size ? old : size);
  space.free(p);
  return bigger;
}

int rdmasim_posix_memalign(void** out, size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const p = cpu::current().space().alloc(size, alignment);
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}

void* rdmasim_aligned_alloc(size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate(size, alignment);
}

void* rdmasim_memalign(size_t alignment, size_t size) { return rdmasim_aligned_alloc(alignment, size); }
