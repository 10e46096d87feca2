// SPDX-License-Identifier: Apache-2.0
// One on-chip cache of contexts over ICM: which entries are on chip, LRU by set, dirty entries written back on eviction.
// Values live in the device's object tables; the cache decides whether a look-up costs a DMA read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hca/context/icm.h"
#include "hca/dma/dma_engine.h"
#include "sim/context.h"

namespace hca {

class ContextCache {
 public:
  /// Writes the ICM image of entry `index` to `out` (icm_entry_size bytes, zeroed).
  using EncodeFn = void (*)(void* ctx, std::uint32_t index, std::byte* out);

  /// `entries` cached items of `table`, 8 ways (fewer when smaller). `line` entries are fetched together.
  ContextCache(sim::Context& context, DmaEngine& dma, Icm& icm, IcmTable table, std::uint32_t entries,
               std::uint32_t line, EncodeFn encode, void* encode_ctx, std::int32_t host, const std::string& path);
  sim::Context& context() { return context_; }

  /// True if the entry is on chip; marks it used. The fast path of every look-up.
  bool hit(std::uint32_t index) {
    const std::uint32_t key = index / line_ + 1;
    Way* set = &ways_[set_of(key) * assoc_];
    for (std::uint32_t w = 0; w < assoc_; ++w) {
      if (set[w].key == key) {
        set[w].used = ++clock_;
        hits_.add();
        return true;
      }
    }
    return false;
  }
  /// Reads the entry from ICM (after a miss) and installs it, writing a dirty victim back.
  sim::Task<DmaStatus> fill(std::uint32_t index, sim::trace::Cause cause);
  /// Installs without a read (a command has just created the entry) and marks dirty.
  void install(std::uint32_t index);
  /// The on-chip copy has changed; it is written back when evicted.
  void dirty(std::uint32_t index);
  void invalidate(std::uint32_t index);

 private:
  struct Way {
    std::uint32_t key = 0;  // line number + 1, 0 = empty
    bool dirty = false;
    std::uint64_t used = 0;
  };
  std::size_t set_of(std::uint32_t key) const {
    return static_cast<std::size_t>(std::uint64_t{key * 0x9E3779B1U} >> set_shift_);
  }
  Way* find(std::uint32_t key);
  Way* place(std::uint32_t key, sim::trace::Cause cause);

  sim::Context& context_;
  DmaEngine& dma_;
  Icm& icm_;
  const IcmTable table_;
  const std::uint32_t line_;
  EncodeFn encode_;
  void* encode_ctx_;
  std::uint32_t assoc_, set_shift_;
  std::vector<Way> ways_;
  std::uint64_t clock_ = 0;
  sim::trace::Source trace_;
  sim::Counter& hits_;
  sim::Counter& misses_;
  sim::Counter& evictions_;
};

}  // namespace hca
