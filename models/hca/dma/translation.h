// SPDX-License-Identifier: Apache-2.0
// Memory protection and translation: a key, a range and an access become bus addresses, or a fault (S-MR-7). MPT entries
// and MTT lines come through their caches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hca/context/context_cache.h"
#include "hca/context/objects.h"
#include "hca/hca_config.h"

namespace hca {

enum class Fault : std::uint8_t { none, key, bounds, access, pd, dma };

/// A run of bus addresses.
struct Extent {
  memory::Iova at;
  std::uint32_t length = 0;
  bool relaxed = false;  ///< PCIe relaxed ordering
};
/// Extents of at most one packet: page pieces of up to 4096 bytes, merged where contiguous. A WQE has up to 62 segments, and
/// each of them may lie across a page boundary.
struct Extents {
  Extents() {}  // making one clears nothing: it happens for every packet
  union {
    std::array<Extent, 126> item;  ///< the first `count` are valid
  };
  std::uint32_t count = 0;
  void add(memory::Iova at, std::uint32_t n, bool relaxed = false) {
    if (count > 0 && item[count - 1].at + item[count - 1].length == at && item[count - 1].relaxed == relaxed) {
      item[count - 1].length += n;
      return;
    }
    SIM_CHECK(count < item.size(), "too many extents");
    item[count++] = {at, n, relaxed};
  }
};

class Translation {
 public:
  Translation(sim::Context& context, const ContextConfig& config, DmaEngine& dma, Icm& icm, ObjectTable<Mkey>& mkeys,
              std::int32_t host, const std::string& path);
  sim::Context& context() { return context_; }

  /// Checks key, bounds, rights and PD of [va, va+length); costs mpt_hit, plus a fill on a miss. `cause` moves on to the
  /// look-up, as it does below.
  sim::Task<Fault> check(std::uint32_t key, std::uint64_t va, std::uint64_t length, MkeyAccess access, std::uint32_t pd,
                         std::uint32_t qpn, sim::trace::Cause& cause);
  /// check() and the addresses, appended to `out`; costs mpt_hit + mtt_hit, plus fills.
  sim::Task<Fault> translate(std::uint32_t key, std::uint64_t va, std::uint32_t length, MkeyAccess access,
                             std::uint32_t pd, std::uint32_t qpn, sim::trace::Cause& cause, Extents& out);

  /// Brings the context of key `index` on chip; costs mpt_hit, plus a fill on a miss. False if there is no such key.
  sim::Task<bool> load(std::uint32_t index, sim::trace::Cause cause);

  /// Stores a new key's translations; false when the table or the ICM is full.
  bool add_translations(Mkey& key, std::vector<memory::Iova> pages);
  void remove_translations(Mkey& key);
  ContextCache& mpt() { return mpt_; }

 private:
  sim::Task<Fault> translate_window(std::uint32_t key, std::uint64_t va, std::uint32_t length, std::uint32_t pd,
                                    std::uint32_t qpn, sim::trace::Cause& cause, Extents& out);
  /// The look-up that began at `start` is over.
  Fault end(Fault f, std::uint32_t key, std::uint64_t va, std::uint64_t length, sim::Picos start,
            sim::trace::Cause& cause);
  static Fault permitted(const Mkey* m, std::uint32_t key, std::uint64_t va, std::uint64_t length, MkeyAccess access,
                         std::uint32_t pd, std::uint32_t qpn);
  static void encode_mpt(void* self, std::uint32_t index, std::byte* out);
  static void encode_mtt(void* self, std::uint32_t index, std::byte* out);

  sim::Context& context_;
  const ContextConfig& config_;
  Icm& icm_;
  ObjectTable<Mkey>& mkeys_;
  std::vector<memory::Iova> mtt_table_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> mtt_free_;  // (first, count), multiples of 8
  ContextCache mpt_, mtt_;
  sim::trace::Source trace_;
  sim::Counter& faults_;
};

}  // namespace hca
