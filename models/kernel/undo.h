// SPDX-License-Identifier: Apache-2.0
// Undoes a step of a creation that does not get to its end.
#pragma once

#include <utility>

namespace kernel {

template <class F>
class Undo {
 public:
  explicit Undo(F f) : f_(std::move(f)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (armed_) f_();
  }
  void dismiss() { armed_ = false; }

 private:
  F f_;
  bool armed_ = true;
};

}  // namespace kernel
