// SPDX-License-Identifier: Apache-2.0
// A call of a program into a library or the kernel as a span on its thread's lane. What the call does in the machine (stores,
// doorbells, commands) happens while the span is the thread's cause, and so has it as its parent.
#pragma once

#include <concepts>
#include <cstdint>

#include "cpu/thread.h"

namespace cpu {

class CallSpan {
 public:
  CallSpan() = default;
  /// The call begins now.
  CallSpan(Thread& thread, const sim::trace::Point& point) {
    if (!thread.trace().on(point)) [[likely]]
      return;
    thread_ = &thread;
    point_ = &point;
    id_ = thread.trace().begin_span(point);
    start_ = thread.now();
    before_ = thread.cause();
    thread.set_cause({0, id_});
  }
  /// The call returns now. `msg`: the message that it is about, if any; `args` are the point's.
  template <std::convertible_to<std::uint64_t>... A>
  void end(sim::MsgId msg, A... args) {
    if (id_ == 0) [[likely]]
      return;
    thread_->set_cause(before_);
    thread_->trace().end_span(id_, *point_, {msg, before_.parent}, start_, start_, thread_->now(), args...);
    id_ = 0;
  }

 private:
  Thread* thread_ = nullptr;
  const sim::trace::Point* point_ = nullptr;
  std::uint64_t id_ = 0;
  sim::Picos start_{0};
  sim::trace::Cause before_;
};

}  // namespace cpu
