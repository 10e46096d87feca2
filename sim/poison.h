// SPDX-License-Identifier: Apache-2.0
// Pooled memory that nobody owns is marked for AddressSanitizer, which otherwise sees one large allocation. Nothing in
// builds without it.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RDMASIM_POISON 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RDMASIM_POISON 1
#endif

#ifdef RDMASIM_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace sim {

/// [p, p + n) must not be touched until unpoison().
inline void poison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t n) {
#ifdef RDMASIM_POISON
  __asan_poison_memory_region(p, n);
#endif
}
inline void unpoison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t n) {
#ifdef RDMASIM_POISON
  __asan_unpoison_memory_region(p, n);
#endif
}

}  // namespace sim
