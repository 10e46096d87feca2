// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/filter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "sim/trace/record.h"

namespace sim::trace {
namespace {

constexpr std::size_t kMostHeld = 1 << 16;  // messages

class FilterSink final : public Sink {
 public:
  FilterSink(const Filter& filter, std::vector<std::unique_ptr<Sink>> sinks)
      : filter_(filter), out_(std::move(sinks)) {}

  void open(const RunInfo& info) override {
    out_.each([&](Sink& s) { s.open(info); });
  }
  void on(const Track& t) override {
    if (t.id >= hosts_.size()) hosts_.resize(t.id + std::size_t{1});
    hosts_[t.id] = t.host;
    if (wanted_host(t.host)) out_.emit(t);
  }
  void on(const Span& s) override { record(s, s.args); }
  void on(const Instant& i) override { record(i, i.args); }
  void on(const PacketRecord& p) override { record(p, {}); }
  // Bytes go the way of their span.
  void on(const BytesRecord& b) override {
    const std::int32_t host = hosts_.at(b.track);
    const auto held = fates_.find(b.msg);
    if (b.span == passed_) out_.emit(b);
    else if (held != fates_.end() && held->second.verdict == Verdict::open && wanted_host(host) && in_window(b))
      held->second.held.push_back(keep(b));
  }
  void on(const Level& l) override { value(l, levels_); }
  void on(const State& s) override { value(s, states_); }
  void on(const Journey& j) override {
    Verdict v = decided(j.id);
    if (v == Verdict::open && wanted_qp(j.poster.qpn, j.poster.host)) v = admit(j.id);
    if (v == Verdict::in && in_window(j)) out_.emit(j);
    fates_.erase(j.id);
  }
  void close(Picos end) override {
    start_window();
    out_.each([&](Sink& s) { s.close(end); });
  }

 private:
  enum class Verdict : std::uint8_t { open, in, out };
  struct Fate {
    Verdict verdict = Verdict::open;
    std::vector<KeptRecord> held;
  };
  template <class R>
  using Last = std::map<std::pair<std::uint32_t, std::string_view>, R>;  // by track and point

  bool wanted_host(std::int32_t host) const {
    return filter_.hosts.empty() || std::ranges::find(filter_.hosts, host) != filter_.hosts.end();
  }
  template <class R>
  bool in_window(const R& r) const {
    const Extent e = extent(r);
    return e.last >= filter_.from && e.first <= filter_.to;
  }
  bool wanted_message(MsgId id) const {
    return filter_.messages.empty() ||
           std::ranges::any_of(filter_.messages, [&](const auto& m) { return id >= m.first && id <= m.last; });
  }
  bool names_a_wanted_qp(const Point& p, const std::array<std::uint64_t, 4>& args, std::int32_t host) const {
    for (std::size_t a = 0; a < args.size() && p.args[a] != nullptr; ++a) {
      if (std::strcmp(p.args[a], "qpn") != 0) continue;
      return wanted_qp(args[a], host);
    }
    return false;
  }
  bool wanted_qp(std::uint64_t qpn, std::int32_t host) const {
    return std::ranges::any_of(
        filter_.qps, [&](const Filter::QueuePair& q) { return q.qpn == qpn && (!q.host || *q.host == host); });
  }
  Verdict decided(MsgId id) const {
    if (!wanted_message(id)) return Verdict::out;
    if (filter_.qps.empty()) return Verdict::in;
    const auto it = fates_.find(id);
    return it == fates_.end() ? Verdict::open : it->second.verdict;
  }

  template <class R>
  void record(const R& r, const std::array<std::uint64_t, 4>& args) {
    const std::int32_t host = hosts_.at(r.track);
    const bool about_qp = !filter_.qps.empty() && names_a_wanted_qp(*r.point, args, host);
    if (r.msg == 0) {
      if (filter_.messages.empty() && (filter_.qps.empty() || about_qp)) pass(r, host);
      return;
    }
    Verdict v = decided(r.msg);
    if (v == Verdict::open && about_qp) v = admit(r.msg);
    if (v == Verdict::in) pass(r, host);
    else if (v == Verdict::open && wanted_host(host) && in_window(r)) hold(r.msg, keep(r));
  }
  void hold(MsgId id, KeptRecord r) {
    fates_[id].held.push_back(std::move(r));
    if (fates_.size() > kMostHeld) fates_.erase(fates_.begin());  // a message that was lost long ago
  }
  Verdict admit(MsgId id) {
    Fate& f = fates_[id];
    f.verdict = Verdict::in;
    for (const KeptRecord& k : std::exchange(f.held, {})) out_.each([&](Sink& s) { pass_on(k, s); });
    return Verdict::in;
  }
  template <class R>
  void pass(const R& r, std::int32_t host) {
    if (!wanted_host(host) || !in_window(r)) return;
    out_.emit(r);
    if constexpr (std::is_same_v<R, Span>) passed_ = r.id;
  }

  template <class R>
  void value(const R& r, Last<R>& last) {
    if (!wanted_host(hosts_.at(r.track)) || r.t > filter_.to) return;
    if (r.t < filter_.from) {
      last.insert_or_assign({r.track, r.point->name}, r);
      return;
    }
    start_window();
    out_.emit(r);
  }
  // What levels and states were when the window began.
  void start_window() {
    for (auto& [key, r] : std::exchange(levels_, {})) emit_at_start(r);
    for (auto& [key, r] : std::exchange(states_, {})) emit_at_start(r);
  }
  template <class R>
  void emit_at_start(R& r) {
    r.t = filter_.from;
    out_.emit(r);
  }

  const Filter filter_;
  Fan out_;
  std::vector<std::int32_t> hosts_;  // by track
  std::map<MsgId, Fate> fates_;
  std::uint64_t passed_ = 0;  // span that was handed on last
  Last<Level> levels_;
  Last<State> states_;
};

}  // namespace

std::unique_ptr<Sink> make_filter(const Filter& filter, std::vector<std::unique_ptr<Sink>> sinks) {
  return std::make_unique<FilterSink>(filter, std::move(sinks));
}

}  // namespace sim::trace
