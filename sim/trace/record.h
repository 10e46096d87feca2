// SPDX-License-Identifier: Apache-2.0
// Records that are kept before they go on to the sinks.
#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "sim/trace/trace.h"

namespace sim::trace {

/// A packet record with bytes of its own.
struct KeptPacket {
  PacketRecord record;
  std::vector<std::byte> bytes;
};
struct KeptBytes {
  BytesRecord record;
  std::vector<std::byte> bytes;
};
using KeptRecord = std::variant<Span, Instant, Level, State, KeptPacket, KeptBytes, Journey>;

inline KeptRecord keep(const PacketRecord& p) { return KeptPacket{p, {p.bytes.begin(), p.bytes.end()}}; }
inline KeptRecord keep(const BytesRecord& b) { return KeptBytes{b, {b.bytes.begin(), b.bytes.end()}}; }
template <class R>
KeptRecord keep(const R& r) {
  return r;
}

/// Hands a kept record to a sink.
inline void pass_on(const KeptRecord& kept, Sink& to) {
  std::visit(
      [&](const auto& r) {
        if constexpr (requires { r.record; }) {
          auto whole = r.record;
          whole.bytes = r.bytes;
          to.on(whole);
        } else {
          to.on(r);
        }
      },
      kept);
}

/// First and last time that a record is about.
struct Extent {
  Picos first, last;
};
inline Extent extent(const Span& s) { return {s.enqueued, s.end}; }
inline Extent extent(const Journey& j) { return {j.start, j.last}; }
template <class R>
Extent extent(const R& r) {
  return {r.t, r.t};
}

/// Several sinks behind one.
class Fan {
 public:
  explicit Fan(std::vector<std::unique_ptr<Sink>> sinks) : sinks_(std::move(sinks)) {}
  template <class F>
  void each(F&& f) {
    for (auto& s : sinks_) f(*s);
  }
  template <class R>
  void emit(const R& r) {
    each([&](Sink& s) { s.on(r); });
  }

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
};

}  // namespace sim::trace
