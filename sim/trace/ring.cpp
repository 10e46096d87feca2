// SPDX-License-Identifier: Apache-2.0
// Records stay in the order in which they were made. The present is the latest beginning of a record so far; those that
// ended more than `length` before it leave at the front.
#include "sim/trace/ring.h"

#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "sim/trace/record.h"

namespace sim::trace {
namespace {

class RingSink final : public Sink {
 public:
  RingSink(Picos length, std::vector<std::unique_ptr<Sink>> sinks) : length_(length), out_(std::move(sinks)) {}

  void open(const RunInfo& info) override {
    out_.each([&](Sink& s) { s.open(info); });
  }
  void on(const Track& t) override { out_.emit(t); }
  void on(const Span& s) override { take(s, s.point->mark == Mark::error && s.point->marked(s.args)); }
  void on(const Instant& i) override { take(i, i.point->mark == Mark::error && i.point->marked(i.args)); }
  void on(const Level& l) override { take(l, false); }
  void on(const State& s) override { take(s, false); }
  void on(const PacketRecord& p) override { take(p, false); }
  void on(const BytesRecord& b) override { take(b, false); }
  void on(const Journey& j) override { take(j, false); }
  void close(Picos end) override {
    release();
    out_.each([&](Sink& s) { s.close(end); });
  }

 private:
  template <class R>
  using Last = std::map<std::pair<std::uint32_t, std::string_view>, R>;  // by track and point

  template <class R>
  void take(const R& r, bool trigger) {
    if (released_) return;
    const Picos begin = extent(r).first;
    present_ = max(present_, begin);
    kept_.push_back(keep(r));
    while (last_of(kept_.front()) < begin_of_piece()) {
      forget(kept_.front());
      kept_.pop_front();
    }
    if (trigger) release();
  }
  static Picos last_of(const KeptRecord& k) {
    return std::visit(
        [](const auto& r) {
          if constexpr (requires { r.record; }) return r.record.t;
          else return extent(r).last;
        },
        k);
  }
  Picos begin_of_piece() const { return max(present_ - length_, Picos{0}); }
  // Of a record that is too old only the value that goes on to hold is of interest.
  void forget(const KeptRecord& k) {
    if (const auto* l = std::get_if<Level>(&k)) levels_.insert_or_assign({l->track, l->point->name}, *l);
    if (const auto* s = std::get_if<State>(&k)) states_.insert_or_assign({s->track, s->point->name}, *s);
  }
  void release() {
    if (std::exchange(released_, true)) return;
    const Picos from = begin_of_piece();
    for (const KeptRecord& k : kept_)
      if (last_of(k) < from) forget(k);  // it stood behind one that is not too old
    for (auto& [key, l] : levels_) emit_at(from, l);
    for (auto& [key, s] : states_) emit_at(from, s);
    for (const KeptRecord& k : std::exchange(kept_, {}))
      if (last_of(k) >= from) out_.each([&](Sink& s) { pass_on(k, s); });
  }
  template <class R>
  void emit_at(Picos t, R& r) {
    r.t = t;
    out_.emit(r);
  }

  const Picos length_;
  Fan out_;
  std::deque<KeptRecord> kept_;
  Last<Level> levels_;
  Last<State> states_;
  Picos present_{0};
  bool released_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_ring(Picos length, std::vector<std::unique_ptr<Sink>> sinks) {
  return std::make_unique<RingSink>(length, std::move(sinks));
}

}  // namespace sim::trace
