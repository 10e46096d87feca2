// SPDX-License-Identifier: Apache-2.0
// The provider's window on the simulated machine: the current thread's loads, stores, MMIO and barriers, shown to the
// process' tap if there is one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hca/prm.h"
#include "verbs_frontend/process_state.h"

namespace verbs::mlx5 {

using hca::prm::be16;
using hca::prm::be32;
using hca::prm::be64;

/// Spin lock of a queue.
struct Lock {
  cpu::SpinLock spin;
  bool needed = true;
};

class Machine {
 public:
  /// `locks` = false: MLX5_SINGLE_THREADED, no spin lock is taken.
  explicit Machine(bool locks = true) : thread_(cpu::current()), state_(process()), locks_(locks) {}

  cpu::Thread& thread() { return thread_; }
  ProcessState& state() { return state_; }
  const VerbsConfig& config() const { return *state_.config; }
  sim::Picos now() const { return thread_.now(); }
  void compute(sim::Picos d) { thread_.compute(d); }

  template <class T>
  void store(void* at, T value) {
    thread_.store(at, &value, sizeof value);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_store(at, &value, sizeof value);
  }
  void store_bytes(void* at, const void* bytes, std::size_t n) {
    thread_.store(at, bytes, n);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_store(at, bytes, n);
  }
  template <class T>
  T load(const void* at) {
    T v;
    thread_.load(at, &v, sizeof v);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_load(at, sizeof v);
    return v;
  }
  void load_bytes(const void* at, void* out, std::size_t n) {
    thread_.load(at, out, n);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_load(at, n);
  }
  void mmio_store64(memory::Va at, std::uint64_t bytes) {
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_mmio_store(at, bytes);
    thread_.mmio_store64(at, bytes);
  }
  void barrier(cpu::Barrier b) {
    thread_.barrier(b);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_barrier(b);
  }
  void lock(cpu::SpinLock& l, bool wc = false) {
    if (!locks_) return;
    thread_.lock(l, wc);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_lock();
  }
  /// The lock of a queue: not taken when its thread domain makes the program responsible (S-OBJ-65).
  void lock(Lock& l) {
    if (l.needed) lock(l.spin);
  }
  void unlock(Lock& l) {
    if (l.needed) unlock(l.spin);
  }
  void unlock(cpu::SpinLock& l) {
    if (!locks_) return;
    thread_.unlock(l);
    if (state_.tap != nullptr) [[unlikely]]
      state_.tap->on_unlock();
  }

 private:
  cpu::Thread& thread_;
  ProcessState& state_;
  bool locks_;
};

}  // namespace verbs::mlx5
