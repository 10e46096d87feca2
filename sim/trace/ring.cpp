// SPDX-License-Identifier: Apache-2.0
// Records stay in the order in which they were made. The present is the latest beginning of a record so far; the anchor is the
// latest one of software (of anything, for Trigger::end or when software is filtered out). Kept are the records of the last `length` before the present, for an error
// that may come, and those within `length` of the anchor, for a run that ends without: two queues, of which the second is empty
// while software is busy.
#include "sim/trace/ring.h"

#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "sim/trace/record.h"

namespace sim::trace {
namespace {

bool is_software(const Point& p) {
  return p.category == Category::cpu || p.category == Category::kernel || p.category == Category::verbs ||
         p.category == Category::system;
}

/// Levels and states that hold, of every track and point.
class Values {
 public:
  void note(const KeptRecord& k) {
    if (const auto* l = std::get_if<Level>(&k)) levels_.insert_or_assign({l->track, l->point->name}, *l);
    if (const auto* s = std::get_if<State>(&k)) states_.insert_or_assign({s->track, s->point->name}, *s);
  }
  void note(const Values& later) {
    for (const auto& [key, l] : later.levels_) levels_.insert_or_assign(key, l);
    for (const auto& [key, s] : later.states_) states_.insert_or_assign(key, s);
  }
  void clear() { levels_.clear(), states_.clear(); }
  void emit_at(Picos t, Fan& out) {
    const auto emit = [&](auto& r) { r.t = t, out.emit(r); };
    for (auto& [key, l] : levels_) emit(l);
    for (auto& [key, s] : states_) emit(s);
  }

 private:
  template <class R>
  using Last = std::map<std::pair<std::uint32_t, std::string_view>, R>;  // by track and point
  Last<Level> levels_;
  Last<State> states_;
};

class RingSink final : public Sink {
 public:
  RingSink(Picos length, Trigger trigger, std::vector<std::unique_ptr<Sink>> sinks)
      : length_(length), trigger_(trigger), out_(std::move(sinks)) {}

  void open(const RunInfo& info) override {
    out_.each([&](Sink& s) { s.open(info); });
  }
  void on(const Track& t) override { out_.emit(t); }
  void on(const Span& s) override { event(s); }
  void on(const Instant& i) override { event(i); }
  void on(const Level& l) override { take(l, *l.point); }
  void on(const State& s) override { take(s, *s.point); }
  void on(const PacketRecord& p) override { take(p, *p.point); }
  void on(const BytesRecord& b) override { take(b); }
  void on(const Journey& j) override {
    if (!released_) take(j);
    else if (in_piece(extent(j))) out_.emit(j);
  }
  void close(Picos end) override {
    release_at_end();
    out_.each([&](Sink& s) { s.close(end); });
  }

 private:
  template <class R>
  void event(const R& r) {
    take(r, *r.point);
    if (trigger_ == Trigger::error && r.point->mark == Mark::error && r.point->marked(r.args)) release_at_error();
  }
  template <class R>
  void take(const R& r, const Point& p) {
    if (released_) return;
    const Picos begin = extent(r).first;
    software_seen_ = software_seen_ || is_software(p);
    if ((trigger_ == Trigger::end || is_software(p) || !software_seen_) && begin >= anchor_) anchor(begin);
    present_ = max(present_, begin);
    take(r);
  }
  template <class R>
  void take(const R& r) {
    if (released_) return;
    kept_.push_back(keep(r));
    while (!kept_.empty() && extent_of(kept_.front()).last < present_ - length_) retire();
  }
  static Extent extent_of(const KeptRecord& k) {
    return std::visit(
        [](const auto& r) {
          if constexpr (requires { r.record; }) return extent(r.record);
          else return extent(r);
        },
        k);
  }
  void anchor(Picos t) {
    anchor_ = t;
    for (; !anchored_.empty() && extent_of(anchored_.front()).last < t - length_; anchored_.pop_front())
      before_.note(anchored_.front());
    before_.note(after_);
    after_.clear();
  }
  // The oldest record leaves the last `length`.
  void retire() {
    const Extent e = extent_of(kept_.front());
    if (e.last < anchor_ - length_) before_.note(kept_.front());
    else if (e.first <= anchor_ + length_) anchored_.push_back(std::move(kept_.front()));
    else after_.note(kept_.front());
    kept_.pop_front();
  }
  void release_at_error() {
    if (std::exchange(released_, true)) return;
    for (const KeptRecord& k : std::exchange(anchored_, {})) before_.note(k);
    before_.note(after_);
    hand_on(max(present_ - length_, Picos{0}), present_);
  }
  void release_at_end() {
    if (std::exchange(released_, true)) return;
    kept_.insert(kept_.begin(), std::make_move_iterator(anchored_.begin()), std::make_move_iterator(anchored_.end()));
    hand_on(max(anchor_ - length_, Picos{0}), anchor_ + length_);
  }
  void hand_on(Picos from, Picos to) {
    from_ = from, to_ = to;
    for (const KeptRecord& k : kept_)
      if (extent_of(k).last < from) before_.note(k);  // it stood behind one that is not too old
    before_.emit_at(from, out_);
    for (const KeptRecord& k : std::exchange(kept_, {}))
      if (in_piece(extent_of(k))) out_.each([&](Sink& s) { pass_on(k, s); });
  }
  bool in_piece(const Extent& e) const { return e.last >= from_ && e.first <= to_; }

  const Picos length_;
  const Trigger trigger_;
  Fan out_;
  std::deque<KeptRecord> anchored_, kept_;
  Values before_;  // of the records before the anchor's piece
  Values after_;   // of those behind it that are not kept any more
  Picos present_{0}, anchor_{0}, from_{0}, to_{0};
  bool software_seen_ = false, released_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_ring(Picos length, Trigger trigger, std::vector<std::unique_ptr<Sink>> sinks) {
  return std::make_unique<RingSink>(length, trigger, std::move(sinks));
}

}  // namespace sim::trace
