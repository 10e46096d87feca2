// SPDX-License-Identifier: Apache-2.0
// Set-associative directory with LRU. A miss is one DMA read of the entry (or line) from ICM; a dirty victim is one DMA write.
#include "hca/context/context_cache.h"

#include <algorithm>
#include <bit>

#include "hca/trace_points.h"

namespace hca {

ContextCache::ContextCache(sim::Context& context, DmaEngine& dma, Icm& icm, IcmTable table, std::uint32_t entries,
                           std::uint32_t line, EncodeFn encode, void* encode_ctx, std::int32_t host,
                           const std::string& path)
    : context_(context),
      dma_(dma),
      icm_(icm),
      table_(table),
      line_(line),
      encode_(encode),
      encode_ctx_(encode_ctx),
      trace_(context, host, path),
      hits_(context.stats.counter(path + ".hits")),
      misses_(context.stats.counter(path + ".misses")),
      evictions_(context.stats.counter(path + ".evictions")) {
  assoc_ = std::min(entries, 8U);
  const std::uint32_t sets = std::bit_floor(std::max(1U, entries / assoc_));
  if (sets == 1) assoc_ = entries;
  set_shift_ = 32U - static_cast<std::uint32_t>(std::countr_zero(sets));
  ways_.resize(static_cast<std::size_t>(assoc_) * sets);
}

ContextCache::Way* ContextCache::find(std::uint32_t key) {
  Way* set = &ways_[set_of(key) * assoc_];
  for (std::uint32_t w = 0; w < assoc_; ++w)
    if (set[w].key == key) return &set[w];
  return nullptr;
}

// The way that `key` takes over; its victim has been written back.
ContextCache::Way* ContextCache::place(std::uint32_t key, sim::trace::Cause cause) {
  Way* set = &ways_[set_of(key) * assoc_];
  Way* victim = std::min_element(set, set + assoc_, [](const Way& a, const Way& b) { return a.used < b.used; });
  if (victim->key != 0) {
    evictions_.add();
    if (victim->dirty) {
      const std::uint32_t bytes = icm_entry_size(table_) * line_;
      sim::BufferRef image = context_.buffers.make(bytes);
      std::fill_n(image.data(), bytes, std::byte{0});
      const std::uint32_t first = (victim->key - 1) * line_;
      for (std::uint32_t i = 0; i < line_; ++i)
        encode_(encode_ctx_, first + i, image.data() + i * icm_entry_size(table_));
      dma_.write(icm_.address(table_, first), bytes, image, 0, cause);
    }
  }
  *victim = {key, false, ++clock_};
  return victim;
}

sim::Task<DmaStatus> ContextCache::fill(std::uint32_t index, sim::trace::Cause cause) {
  misses_.add();
  const std::uint32_t first = index / line_ * line_;
  const std::uint32_t bytes = icm_entry_size(table_) * line_;
  const sim::Picos start = context_.now();
  sim::BufferRef image = context_.buffers.make(bytes);
  const std::uint64_t span = trace_.begin_span(points::context_fill);
  const sim::trace::Cause reads{cause.msg, span != 0 ? span : cause.parent};
  const DmaStatus status = co_await dma_.fetch(icm_.address(table_, first), bytes, image, 0, reads);
  trace_.end_span(span, points::context_fill, cause, start, start, context_.now(), static_cast<std::uint64_t>(table_),
                  index);
  if (status == DmaStatus::ok && find(index / line_ + 1) == nullptr) place(index / line_ + 1, {0, reads.parent});
  co_return status;
}

void ContextCache::install(std::uint32_t index) {
  const std::uint32_t key = index / line_ + 1;
  Way* w = find(key);
  if (w == nullptr) w = place(key, {});
  w->dirty = true;
}

void ContextCache::dirty(std::uint32_t index) {
  if (Way* w = find(index / line_ + 1)) w->dirty = true;
}

void ContextCache::invalidate(std::uint32_t index) {
  if (Way* w = find(index / line_ + 1)) *w = {};
}

}  // namespace hca
