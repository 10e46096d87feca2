// SPDX-License-Identifier: Apache-2.0
// Keeps all records of a run in memory, for tests that look at the trace itself.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/context.h"

namespace sys::test {

/// A frame at one end of a cable.
struct RecordedFrame {
  std::uint32_t track = 0;
  sim::Picos t{0};
  bool transmit = false;
  std::uint64_t frame = 0;
  std::size_t length = 0;
};

struct Records {
  std::map<std::uint32_t, sim::trace::Track> tracks;
  std::vector<sim::trace::Span> spans;
  std::vector<sim::trace::Instant> instants;
  std::vector<sim::trace::Level> levels;
  std::vector<RecordedFrame> frames;

  const std::string& path(std::uint32_t track) const { return tracks.at(track).path; }
  std::string text(const sim::trace::Span& s) const {
    std::ostringstream o;
    o << "span " << s.id << " up " << s.parent << " msg " << s.msg << " " << s.enqueued.n << "/" << s.start.n << ".."
      << s.end.n << " " << path(s.track) << " " << s.point->name;
    arguments(o, *s.point, s.args);
    return o.str();
  }
  std::string text(const sim::trace::Instant& i) const {
    std::ostringstream o;
    o << "instant up " << i.parent << " msg " << i.msg << " " << i.t.n << " " << path(i.track) << " " << i.point->name;
    arguments(o, *i.point, i.args);
    return o.str();
  }
  /// Number of spans or instants of that name, on tracks whose path starts with `where`.
  std::size_t count(std::string_view point, std::string_view where = "") const {
    const auto is = [&](const auto& r) { return r.point->name == point && path(r.track).starts_with(where); };
    return static_cast<std::size_t>(std::ranges::count_if(spans, is) + std::ranges::count_if(instants, is));
  }
  const sim::trace::Span* find(std::uint64_t id) const {
    if (by_id_.size() != spans.size()) {
      by_id_.clear();
      for (std::size_t i = 0; i < spans.size(); ++i) by_id_[spans[i].id] = i;
    }
    const auto at = by_id_.find(id);
    return at == by_id_.end() ? nullptr : &spans[at->second];
  }
  /// From the first cause to the span itself.
  std::vector<const sim::trace::Span*> chain(const sim::trace::Span& last) const {
    std::vector<const sim::trace::Span*> up{&last};
    while (const sim::trace::Span* s = find(up.back()->parent)) up.push_back(s);
    std::ranges::reverse(up);
    return up;
  }

 private:
  static void arguments(std::ostringstream& o, const sim::trace::Point& p, const std::array<std::uint64_t, 4>& args) {
    for (std::size_t i = 0; i < args.size() && p.args[i] != nullptr; ++i) o << " " << p.args[i] << "=" << args[i];
  }
  mutable std::map<std::uint64_t, std::size_t> by_id_;
};

class Recorder final : public sim::trace::Sink {
 public:
  explicit Recorder(Records& out) : out_(out) {}
  using Sink::on;
  void on(const sim::trace::Track& t) override { out_.tracks[t.id] = t; }
  void on(const sim::trace::Span& s) override { out_.spans.push_back(s); }
  void on(const sim::trace::Instant& i) override { out_.instants.push_back(i); }
  void on(const sim::trace::Level& l) override { out_.levels.push_back(l); }
  void on(const sim::trace::PacketRecord& p) override {
    out_.frames.push_back({p.track, p.t, p.transmit, p.frame, p.bytes.size()});
  }
  void close(sim::Picos) override {}

 private:
  Records& out_;
};

}  // namespace sys::test
