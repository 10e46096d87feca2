// SPDX-License-Identifier: Apache-2.0
// Coroutines for hardware and kernel flows that cross two or more latencies.
//   Flow      a detached flow: starts at once, frees itself at its end
//   Task<T>   a step of a flow: started by co_await, returns T
//   co_await context.delay(d)    lets simulated time pass; a zero delay costs no event
//   co_await completion          waits for a one-shot result that some other block delivers
//   co_await semaphore.acquire() waits in FIFO order for a unit of a limited resource
// Frames come from the FramePool of the Context; the coroutine's object (or its first argument) supplies it through a
// member function `context()`.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/poison.h"
#include "sim/pool.h"
#include "sim/scheduler.h"

namespace sim {

struct Context;

/// Recycles coroutine frames by size class and remembers the detached flows that still run.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() { destroy_flows(); }

  void* take(std::size_t n) {
    const std::size_t c = (n + sizeof(Header) + kStep - 1) / kStep;
    SIM_CHECK(c < kClasses, "coroutine frame too large");
    if (free_[c] == nullptr) grow(c);
    Header* h = free_[c];
    free_[c] = h->next;
    h->home = this;
    h->size_class = c;
    unpoison(h + 1, n);
    return h + 1;
  }
  static void give(void* p) {
    Header* h = static_cast<Header*>(p) - 1;
    FramePool* home = h->home;
    h->next = home->free_[h->size_class];
    home->free_[h->size_class] = h;
    poison(h + 1, h->size_class * kStep - sizeof(Header));
  }

  /// Links of the list of running flows; embedded in each Flow's promise.
  struct FlowLink {
    FlowLink* prev = nullptr;
    FlowLink* next = nullptr;
    std::coroutine_handle<> handle;
  };
  void enlist(FlowLink& l) {
    l.next = flows_.next;
    l.prev = &flows_;
    if (flows_.next != nullptr) flows_.next->prev = &l;
    flows_.next = &l;
    ++running_;
  }
  void delist(FlowLink& l) {
    l.prev->next = l.next;
    if (l.next != nullptr) l.next->prev = l.prev;
    --running_;
  }
  std::size_t running() const { return running_; }
  /// Destroys every suspended flow; called at the end of a simulation, while the modules still exist.
  void destroy_flows() {
    while (flows_.next != nullptr) {
      FlowLink* l = flows_.next;
      delist(*l);
      l->handle.destroy();
    }
  }

 private:
  static constexpr std::size_t kStep = 64, kClasses = 64;
  struct alignas(16) Header {
    FramePool* home;
    Header* next;
    std::size_t size_class;
  };
  void grow(std::size_t c) {
    constexpr std::size_t kCount = 16;
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(c * kStep * kCount));
    for (std::size_t i = 0; i < kCount; ++i) {
      auto* h = new (slabs_.back().get() + i * c * kStep) Header{this, free_[c], c};
      free_[c] = h;
      poison(h + 1, c * kStep - sizeof(Header));
    }
  }
  std::array<Header*, kClasses> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  FlowLink flows_;
  std::size_t running_ = 0;
};

FramePool& frames_of(Context& context);

namespace detail {
template <class Owner>
FramePool& frame_pool(Owner& owner) {
  if constexpr (requires { owner.context(); }) return frames_of(owner.context());
  else return frames_of(owner);
}
struct PooledFrame {
  template <class Owner, class... Rest>
  static void* operator new(std::size_t n, Owner& owner, Rest&&...) {
    return frame_pool(owner).take(n);
  }
  static void operator delete(void* p) { FramePool::give(p); }
};
}  // namespace detail

/// A detached flow. An exception that leaves it propagates to whoever resumed it, i.e. out of the engine's run().
struct Flow {
  struct promise_type : detail::PooledFrame, FramePool::FlowLink {
    template <class Owner, class... Rest>
    explicit promise_type(Owner& owner, Rest&&...) : pool(detail::frame_pool(owner)) {
      handle = std::coroutine_handle<promise_type>::from_promise(*this);
      pool.enlist(*this);
    }
    Flow get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept {
      pool.delist(*this);
      return {};
    }
    void return_void() {}
    void unhandled_exception() { throw; }
    FramePool& pool;
  };
};

template <class T = void>
class Task;

namespace detail {
struct TaskFinal {
  bool await_ready() noexcept { return false; }
  template <class P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) noexcept {
    return h.promise().continuation;
  }
  void await_resume() noexcept {}
};
struct TaskPromiseBase : PooledFrame {
  std::suspend_always initial_suspend() noexcept { return {}; }
  TaskFinal final_suspend() noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }
  std::coroutine_handle<> continuation;
  std::exception_ptr error;
};
template <class T>
struct TaskPromise : TaskPromiseBase {
  Task<T> get_return_object();
  void return_value(T v) { value.emplace(std::move(v)); }
  T result() { return std::move(*value); }
  std::optional<T> value;
};
template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void result() {}
};
}  // namespace detail

/// A step of a flow that yields T. Awaited exactly once; the awaiting flow continues when it returns.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  explicit Task(std::coroutine_handle<promise_type> h) : h_(h) {}
  Task(Task&& o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (h_) h_.destroy();
  }
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> c) noexcept {
    h_.promise().continuation = c;
    return h_;
  }
  T await_resume() {
    if (h_.promise().error) std::rethrow_exception(h_.promise().error);
    return h_.promise().result();
  }

 private:
  std::coroutine_handle<promise_type> h_;
};

namespace detail {
template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}
}  // namespace detail

/// One-shot result: complete() may come before or after the co_await. Reusable after reset().
template <class T>
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  void complete(T v) {
    SIM_CHECK(!value_, "completion delivered twice");
    value_.emplace(std::move(v));
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }
  bool done() const { return value_.has_value(); }
  void reset() { value_.reset(); }
  bool await_ready() const noexcept { return value_.has_value(); }
  void await_suspend(std::coroutine_handle<> h) {
    SIM_CHECK(!waiter_, "two flows wait for one completion");
    waiter_ = h;
  }
  /// Valid until reset().
  T& await_resume() { return *value_; }

 private:
  std::optional<T> value_;
  std::coroutine_handle<> waiter_;
};

/// Counting semaphore with FIFO service: `co_await sem.acquire(n)`, `sem.release(n)`.
class Semaphore {
 public:
  explicit Semaphore(std::uint64_t count) : count_(count) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  struct Acquire {
    Semaphore& s;
    std::uint64_t n;
    std::coroutine_handle<> h{};
    bool await_ready() noexcept {
      if (!s.waiters_.empty() || s.count_ < n) return false;
      s.count_ -= n;
      return true;
    }
    void await_suspend(std::coroutine_handle<> c) {
      h = c;
      s.waiters_.push_back(this);
    }
    void await_resume() noexcept {}
  };
  Acquire acquire(std::uint64_t n = 1) { return {*this, n}; }
  bool try_acquire(std::uint64_t n = 1) {
    if (!waiters_.empty() || count_ < n) return false;
    count_ -= n;
    return true;
  }
  void release(std::uint64_t n = 1) {
    count_ += n;
    while (!waiters_.empty() && count_ >= waiters_.front()->n) {
      Acquire* a = waiters_.pop_front();
      count_ -= a->n;
      a->h.resume();
    }
  }
  std::uint64_t available() const { return count_; }
  std::size_t waiting() const { return waiters_.size(); }

 private:
  std::uint64_t count_;
  Ring<Acquire*> waiters_;
};

/// A condition that flows wait for: notify() wakes all that wait now, in the order in which they came.
class Signal {
 public:
  Signal() = default;
  Signal(Signal&&) = default;
  Signal& operator=(Signal&&) = default;
  struct Wait {
    Signal& s;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) { s.waiters_.push_back(h); }
    void await_resume() const noexcept {}
  };
  Wait wait() { return {*this}; }
  void notify() {
    for (std::size_t n = waiters_.size(); n > 0; --n) waiters_.pop_front().resume();
  }

 private:
  Ring<std::coroutine_handle<>> waiters_;
};

/// Awaitable pause; see Context::delay().
struct Delay {
  Scheduler& scheduler;
  Picos d;
  bool await_ready() const noexcept { return d.n <= 0; }
  void await_suspend(std::coroutine_handle<> h) const {
    scheduler.after(
        d, [](void* a, std::uint64_t) { std::coroutine_handle<>::from_address(a).resume(); }, h.address());
  }
  void await_resume() const noexcept {}
};

}  // namespace sim
