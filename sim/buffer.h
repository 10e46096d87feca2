// SPDX-License-Identifier: Apache-2.0
// Reference-counted byte buffers from size-class pools. A packet's payload and the TLPs that carry it share one buffer,
// so payload bytes are copied twice in all: out of the sender's memory and into the receiver's.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/poison.h"

namespace sim {

class BufferPool;

namespace detail {
struct BufferHeader {
  BufferPool* home;
  BufferHeader* next;
  std::uint32_t refs;
  std::uint32_t size_class;
  std::size_t size;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};
}  // namespace detail

/// Shared ownership of a buffer. Copying shares; the last owner returns it to the pool.
class BufferRef {
 public:
  BufferRef() = default;
  BufferRef(const BufferRef& o) : h_(o.h_) {
    if (h_ != nullptr) ++h_->refs;
  }
  BufferRef(BufferRef&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(h_, o.h_);
    return *this;
  }
  ~BufferRef() {
    if (h_ != nullptr && --h_->refs == 0) release(h_);
  }
  std::byte* data() const { return h_->data(); }
  /// Bytes asked for when the buffer was made; 0 without a buffer.
  std::size_t size() const { return h_ != nullptr ? h_->size : 0; }
  explicit operator bool() const { return h_ != nullptr; }

 private:
  friend class BufferPool;
  explicit BufferRef(detail::BufferHeader* h) : h_(h) {}
  static void release(detail::BufferHeader* h);
  detail::BufferHeader* h_ = nullptr;
};

/// Buffers of 64 B, 256 B, 1 KiB, 4 KiB, 16 KiB and 64 KiB.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  /// A buffer of at least `size` bytes (<= 64 KiB), contents undefined.
  BufferRef make(std::size_t size) {
    unsigned c = 0;
    while (class_size(c) < size) ++c;
    SIM_CHECK(c < kClasses, "buffer larger than 64 KiB");
    if (free_[c] == nullptr) grow(c);
    detail::BufferHeader* h = free_[c];
    free_[c] = h->next;
    h->refs = 1;
    h->size = size;
    unpoison(h->data(), size);
    ++live_;
    return BufferRef(h);
  }
  std::size_t live() const { return live_; }

 private:
  friend class BufferRef;
  static constexpr unsigned kClasses = 6;
  static constexpr std::size_t class_size(unsigned c) { return std::size_t{64} << (2 * c); }
  void grow(unsigned c) {
    const std::size_t stride = sizeof(detail::BufferHeader) + class_size(c);
    const std::size_t count = class_size(c) > 4096 ? 4 : 32;
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(stride * count));
    for (std::size_t i = 0; i < count; ++i) {
      auto* h = new (slabs_.back().get() + i * stride) detail::BufferHeader{this, free_[c], 0, c, 0};
      free_[c] = h;
      poison(h->data(), class_size(c));
    }
  }
  std::array<detail::BufferHeader*, kClasses> free_{};
  std::size_t live_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
};

inline void BufferRef::release(detail::BufferHeader* h) {
  h->next = h->home->free_[h->size_class];
  h->home->free_[h->size_class] = h;
  poison(h->data(), BufferPool::class_size(h->size_class));
  --h->home->live_;
}

}  // namespace sim
