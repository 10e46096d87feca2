// SPDX-License-Identifier: Apache-2.0
// Slab pools: objects and byte buffers that live on the simulation's hot path are recycled, never freed, so that the
// steady state allocates nothing. A pool knows how many of its objects are out, which a finished run reports as leaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/poison.h"

namespace sim {

template <class T>
class Pool;

/// Move-only owner of a pooled object; gives it back to its pool on destruction.
template <class T>
class Ptr {
 public:
  Ptr() = default;
  Ptr(std::nullptr_t) {}
  Ptr(Ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ptr& operator=(Ptr&& o) noexcept {
    if (this != &o) {
      reset();
      p_ = std::exchange(o.p_, nullptr);
    }
    return *this;
  }
  ~Ptr() { reset(); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  void reset() {
    if (p_ != nullptr) Pool<T>::recycle(std::exchange(p_, nullptr));
  }

 private:
  friend class Pool<T>;
  explicit Ptr(T* p) : p_(p) {}
  T* p_ = nullptr;
};

struct PoolBase {
  virtual ~PoolBase() = default;
  virtual std::size_t live() const = 0;
  virtual const char* what() const = 0;
};

/// Free list of T. make() value-initialises by T's constructor; destruction runs when the Ptr lets go.
template <class T>
class Pool final : public PoolBase {
 public:
  explicit Pool(const char* what = "object") : what_(what) {}
  ~Pool() override = default;
  template <class... A>
  Ptr<T> make(A&&... args) {
    if (free_ == nullptr) grow();
    Node* n = free_;
    free_ = n->next;
    unpoison(n->storage, sizeof n->storage);
    ++live_;
    return Ptr<T>(new (n->storage) T(std::forward<A>(args)...));
  }
  std::size_t live() const override { return live_; }
  const char* what() const override { return what_; }

 private:
  friend class Ptr<T>;
  struct Node {
    Pool* home;
    Node* next;
    alignas(T) std::byte storage[sizeof(T)];
  };
  static void recycle(T* obj) {
    obj->~T();
    auto* n = reinterpret_cast<Node*>(reinterpret_cast<std::byte*>(obj) - offsetof(Node, storage));
    Pool* pool = n->home;
    n->next = pool->free_;
    pool->free_ = n;
    poison(n->storage, sizeof n->storage);
    --pool->live_;
  }
  void grow() {
    constexpr std::size_t kCount = sizeof(T) > 1024 ? 16 : 64;
    slabs_.push_back(std::make_unique_for_overwrite<Node[]>(kCount));
    for (std::size_t i = 0; i < kCount; ++i) {
      Node& n = slabs_.back()[i];
      n.home = this;
      n.next = free_;
      free_ = &n;
      poison(n.storage, sizeof n.storage);
    }
  }

  const char* what_;
  Node* free_ = nullptr;
  std::size_t live_ = 0;
  std::vector<std::unique_ptr<Node[]>> slabs_;
};

/// One pool per type for a whole simulation; modules look theirs up once, in their constructor.
class Pools {
 public:
  template <class T>
  Pool<T>& of(const char* what) {
    const std::type_index key(typeid(T));
    for (auto& [k, p] : pools_)
      if (k == key) return static_cast<Pool<T>&>(*p);
    pools_.emplace_back(key, std::make_unique<Pool<T>>(what));
    return static_cast<Pool<T>&>(*pools_.back().second);
  }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [k, p] : pools_) f(*p);
  }

 private:
  std::vector<std::pair<std::type_index, std::unique_ptr<PoolBase>>> pools_;
};

/// Ring buffer FIFO that grows by doubling and never shrinks; no allocation once it has reached its working size.
template <class T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() { return buf_[head_ & mask()]; }
  const T& front() const { return buf_[head_ & mask()]; }
  T& back() { return buf_[(tail_ - 1) & mask()]; }
  T& operator[](std::size_t i) { return buf_[(head_ + i) & mask()]; }
  const T& operator[](std::size_t i) const { return buf_[(head_ + i) & mask()]; }
  void push_back(T v) {
    if (size() == buf_.size()) grow();
    buf_[tail_++ & mask()] = std::move(v);
  }
  T pop_front() {
    SIM_CHECK(!empty(), "pop from an empty ring");
    return std::exchange(buf_[head_++ & mask()], T{});
  }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  std::size_t mask() const { return buf_.size() - 1; }
  void grow() {
    std::vector<T> bigger(buf_.empty() ? 8 : buf_.size() * 2);
    const std::size_t n = size();
    for (std::size_t i = 0; i < n; ++i) bigger[i] = std::move((*this)[i]);
    buf_ = std::move(bigger);
    head_ = 0;
    tail_ = n;
  }
  std::vector<T> buf_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace sim
