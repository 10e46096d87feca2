// SPDX-License-Identifier: Apache-2.0
// WQEs that arrived through BlueFlame and wait for their turn: the requester takes them instead of reading the ring
// (S-BF-5). A small pool; when it is full, or the WQE is not the next one to execute, the ring is read.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "hca/prm.h"

namespace hca {

class BlueflameBuffers {
 public:
  explicit BlueflameBuffers(std::uint32_t count) : slots_(count) {}
  /// Keeps a complete WQE. False if no buffer is free.
  bool keep(std::uint32_t qpn, std::uint16_t index, std::span<const std::byte> wqe) {
    for (Slot& s : slots_) {
      if (s.used) continue;
      s.used = true;
      s.qpn = qpn;
      s.index = index;
      std::memcpy(s.bytes.data(), wqe.data(), wqe.size());
      ++used_;
      return true;
    }
    return false;
  }
  /// Moves the WQE (qpn, index) to `out` (kBfBufSize bytes) and frees its buffer; false if it is not here.
  bool take(std::uint32_t qpn, std::uint16_t index, std::byte* out) {
    if (used_ == 0) return false;
    for (Slot& s : slots_) {
      if (!s.used || s.qpn != qpn || s.index != index) continue;
      std::memcpy(out, s.bytes.data(), s.bytes.size());
      s.used = false;
      --used_;
      return true;
    }
    return false;
  }
  /// Forgets one WQE, if it is here.
  void discard(std::uint32_t qpn, std::uint16_t index) {
    for (Slot& s : slots_) {
      if (!s.used || s.qpn != qpn || s.index != index) continue;
      s.used = false;
      --used_;
    }
  }
  /// Forgets all WQEs of a QP (reset, destroy, error).
  void drop(std::uint32_t qpn) {
    for (Slot& s : slots_) {
      if (s.used && s.qpn == qpn) {
        s.used = false;
        --used_;
      }
    }
  }

 private:
  struct Slot {
    bool used = false;
    std::uint16_t index = 0;
    std::uint32_t qpn = 0;
    std::array<std::byte, prm::kBfBufSize> bytes{};
  };
  std::vector<Slot> slots_;
  std::uint32_t used_ = 0;
};

}  // namespace hca
