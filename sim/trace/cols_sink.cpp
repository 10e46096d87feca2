// SPDX-License-Identifier: Apache-2.0
// Native trace writer. Records of one kind collect in a block of at most 4096 and leave as one JSON line of columns; a column
// of nothing but zeros is left out. Lanes and points that appear after the header get a line of their own before the first
// block that names them. Records keep their emission order; a reader that needs time order sorts.
#include "sim/trace/cols_sink.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "sim/trace/file_writer.h"

namespace sim::trace {
namespace {

constexpr std::size_t kBlock = 4096;

std::string_view name_of(TrackKind k) {
  constexpr std::string_view kNames[] = {"exclusive", "pipelined", "counter", "state", "instant"};
  return kNames[static_cast<std::size_t>(k)];
}
std::string_view name_of(Kind k) {
  constexpr std::string_view kNames[] = {"span", "instant", "counter", "state", "packet"};
  return kNames[static_cast<std::size_t>(k)];
}

struct Frame {
  std::uint32_t point, track, length;
  MsgId msg;
  std::uint64_t frame;
  Picos t;
  bool transmit;
};

// Bytes of the rows of a block, one piece of memory for all of them.
class Bytes {
 public:
  // Rows come in order; those left out have none.
  void put(std::size_t row, std::span<const std::byte> data) {
    ends_.resize(row, bytes_.size());
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    ends_.push_back(bytes_.size());
  }
  std::span<const std::byte> operator[](std::size_t row) const {
    if (row >= ends_.size()) return {};
    const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::span(bytes_).subspan(begin, ends_[row] - begin);
  }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(), ends_.clear(); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> ends_;  // by row
};

class ColsSink final : public Sink {
 public:
  ColsSink(const std::filesystem::path& path, std::uint32_t bytes, SizeAlarm alarm)
      : out_(path, std::move(alarm)), most_bytes_(bytes) {}

  void open(const RunInfo& info) override { info_ = info; }
  void on(const Track& t) override {
    if (header_done_) {
      out_ << R"({"k":"lane",)";
      lane(t);
      out_ << "}\n";
    } else {
      tracks_.push_back(t);
    }
  }
  void on(const Span& s) override { add(spans_, s); }
  void on(const Instant& i) override { add(instants_, i); }
  void on(const Level& l) override { add(levels_, l); }
  void on(const State& s) override { add(states_, s); }
  void on(const Journey& j) override {
    header();
    messages_.rows.push_back(j);
    if (messages_.rows.size() == kBlock) flush(messages_);
  }
  void on(const PacketRecord& p) override {
    header();
    packets_.rows.push_back(
        {point_id(p.point), p.track, static_cast<std::uint32_t>(p.bytes.size()), p.msg, p.frame, p.t, p.transmit});
    if (p.transmit) frame_bytes_.put(packets_.rows.size() - 1, head(p.bytes));
    if (packets_.rows.size() == kBlock) flush(packets_);
  }
  // They follow their span, which waits for them in its block.
  void on(const BytesRecord& b) override {
    if (most_bytes_ == 0 || spans_.rows.empty() || spans_.rows.back().id != b.span) return;
    span_bytes_.put(spans_.rows.size() - 1, head(b.bytes));
  }
  void close(Picos end) override {
    header();
    flush(spans_), flush(instants_), flush(levels_), flush(states_), flush(packets_), flush(messages_);
    out_ << R"({"k":"end","spans":)" << spans_.total << R"(,"instants":)" << instants_.total << R"(,"counters":)"
         << levels_.total << R"(,"states":)" << states_.total << R"(,"packets":)" << packets_.total << R"(,"messages":)"
         << messages_.total << R"(,"t_end":)" << end.n << "}\n";
    out_.close();
  }

 private:
  template <class R>
  struct Block {
    std::vector<R> rows;
    std::uint64_t total = 0;
  };

  template <class R>
  void add(Block<R>& block, const R& r) {
    header();
    point_id(r.point);
    if (block.rows.size() == kBlock) flush(block);
    block.rows.push_back(r);
  }

  void header() {
    if (header_done_) [[likely]]
      return;
    header_done_ = true;
    out_ << R"({"format":"rdmasim-cols/1","time":"ps","version":)";
    out_.quoted(info_.version) << R"(,"scenario":)";
    out_.quoted(info_.scenario) << R"(,"seed":)" << info_.seed << R"(,"hosts":[)";
    for (std::size_t i = 0; i < info_.hosts.size(); ++i) {
      if (i != 0) out_ << ',';
      out_.quoted(info_.hosts[i]);
    }
    out_ << R"(],"stages":[)";
    for (std::size_t i = 0; i < kStages; ++i) {
      if (i != 0) out_ << ',';
      out_.quoted(sim::name_of(static_cast<Stage>(i)));
    }
    out_ << R"(],"lanes":[)";
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      out_ << (i == 0 ? "{" : ",{");
      lane(tracks_[i]);
      out_ << '}';
    }
    out_ << R"(],"config":)";
    out_.compact(info_.config_json) << "}\n";
    tracks_ = {};
  }

  void lane(const Track& t) {
    out_ << R"("id":)" << t.id << R"(,"host":)" << t.host << R"(,"path":)";
    out_.quoted(t.path) << R"(,"kind":)";
    out_.quoted(name_of(t.kind));
    if (t.states.empty()) return;
    out_ << R"(,"states":[)";
    for (std::size_t i = 0; i < t.states.size(); ++i) {
      if (i != 0) out_ << ',';
      out_.quoted(t.states[i]);
    }
    out_ << ']';
  }

  // Number of the point, in the order of first use; declares it on that occasion.
  std::uint32_t point_id(const Point* p) {
    if (p == last_point_) return last_id_;
    const auto [it, fresh] = points_.try_emplace(p, static_cast<std::uint32_t>(points_.size()));
    last_point_ = p;
    last_id_ = it->second;
    if (!fresh) return last_id_;
    out_ << R"({"k":"point","id":)" << last_id_ << R"(,"name":)";
    out_.quoted(p->name) << R"(,"cat":)";
    out_.quoted(trace::name_of(p->category)) << R"(,"kind":)";
    out_.quoted(name_of(p->kind)) << R"(,"args":[)";
    for (std::size_t i = 0; i < p->args.size() && p->args[i] != nullptr; ++i) {
      if (i != 0) out_ << ',';
      out_.quoted(p->args[i]);
    }
    out_ << ']';
    if (p->mark != Mark::none) out_ << R"(,"mark":)" << (p->mark == Mark::error ? R"("error")" : R"("warning")");
    if (p->form != Form::none) {
      out_ << R"(,"bytes":)";
      out_.quoted(trace::name_of(p->form));
    }
    if (p->mark_if >= 0) out_ << R"(,"mark_if":)" << static_cast<int>(p->mark_if);
    out_ << "}\n";
    return last_id_;
  }

  template <class F>
  void column(std::string_view name, std::size_t n, F&& value) {
    std::size_t i = 0;
    while (i < n && value(i) == 0) ++i;
    if (i == n) return;
    out_ << ",\"" << name << "\":[";
    for (i = 0; i < n; ++i) {
      if (i != 0) out_ << ',';
      out_ << value(i);
    }
    out_ << ']';
  }
  // In hexadecimal; left out if there are none.
  void bytes_column(Bytes& bytes, std::size_t n) {
    if (bytes.empty()) return;
    out_ << R"(,"bytes":[)";
    for (std::size_t i = 0; i < n; ++i) {
      out_ << (i == 0 ? "\"" : ",\"");
      out_.hex(bytes[i]) << '"';
    }
    out_ << ']';
    bytes.clear();
  }
  std::span<const std::byte> head(std::span<const std::byte> bytes) const {
    return bytes.first(std::min<std::size_t>(bytes.size(), most_bytes_));
  }
  // Times as differences, the first one from t0.
  template <class F>
  void times(std::string_view name, std::size_t n, Picos t0, F&& time) {
    column(name, n, [&](std::size_t i) { return time(i).n - (i == 0 ? t0 : time(i - 1)).n; });
  }
  template <class R>
  void arguments(const std::vector<R>& rows) {
    constexpr std::string_view kNames[] = {"a0", "a1", "a2", "a3"};
    for (std::size_t a = 0; a < 4; ++a) column(kNames[a], rows.size(), [&](std::size_t i) { return rows[i].args[a]; });
  }
  template <class R, class First, class Last>
  Picos begin_block(std::string_view kind, const Block<R>& b, First&& first, Last&& last) {
    Picos t0 = first(b.rows[0]), t1 = last(b.rows[0]);
    for (const R& r : b.rows) {
      t0 = min(t0, first(r));
      t1 = max(t1, last(r));
    }
    out_ << R"({"k":")" << kind << R"(","n":)" << b.rows.size() << R"(,"t0":)" << t0.n << R"(,"t1":)" << t1.n;
    return t0;
  }
  template <class R>
  void end_block(Block<R>& b) {
    out_ << "}\n";
    b.total += b.rows.size();
    b.rows.clear();
  }
  template <class R>
  void lane_and_point(const std::vector<R>& rows) {
    column("lane", rows.size(), [&](std::size_t i) { return rows[i].track; });
    column("point", rows.size(), [&](std::size_t i) { return point_id(rows[i].point); });
  }

  void flush(Block<Span>& b) {
    const auto& r = b.rows;
    if (r.empty()) return;
    const Picos t0 = begin_block(
        "span", b, [](const Span& s) { return s.start; }, [](const Span& s) { return s.end; });
    out_ << R"(,"id0":)" << r[0].id;
    column("id", r.size(), [&](std::size_t i) { return static_cast<std::int64_t>(r[i].id - r[0].id - i); });
    times("ts", r.size(), t0, [&](std::size_t i) { return r[i].start; });
    column("dur", r.size(), [&](std::size_t i) { return (r[i].end - r[i].start).n; });
    column("wait", r.size(), [&](std::size_t i) { return (r[i].start - r[i].enqueued).n; });
    lane_and_point(r);
    column("msg", r.size(), [&](std::size_t i) { return r[i].msg; });
    column("up", r.size(),
           [&](std::size_t i) { return r[i].parent == 0 ? 0 : static_cast<std::int64_t>(r[i].id - r[i].parent); });
    arguments(r);
    bytes_column(span_bytes_, r.size());
    end_block(b);
  }
  void flush(Block<Instant>& b) {
    const auto& r = b.rows;
    if (r.empty()) return;
    const auto t = [](const Instant& i) { return i.t; };
    const Picos t0 = begin_block("instant", b, t, t);
    times("t", r.size(), t0, [&](std::size_t i) { return r[i].t; });
    lane_and_point(r);
    column("msg", r.size(), [&](std::size_t i) { return r[i].msg; });
    column("parent", r.size(), [&](std::size_t i) { return r[i].parent; });
    arguments(r);
    end_block(b);
  }
  template <class R>
  void flush_values(std::string_view kind, Block<R>& b) {
    const auto& r = b.rows;
    if (r.empty()) return;
    const auto t = [](const R& x) { return x.t; };
    const Picos t0 = begin_block(kind, b, t, t);
    times("t", r.size(), t0, [&](std::size_t i) { return r[i].t; });
    lane_and_point(r);
    column("v", r.size(), [&](std::size_t i) { return r[i].value; });
    end_block(b);
  }
  void flush(Block<Level>& b) { flush_values("counter", b); }
  void flush(Block<State>& b) { flush_values("state", b); }
  void flush(Block<Frame>& b) {
    const auto& r = b.rows;
    if (r.empty()) return;
    const auto t = [](const Frame& p) { return p.t; };
    const Picos t0 = begin_block("packet", b, t, t);
    times("t", r.size(), t0, [&](std::size_t i) { return r[i].t; });
    column("lane", r.size(), [&](std::size_t i) { return r[i].track; });
    column("point", r.size(), [&](std::size_t i) { return r[i].point; });
    column("msg", r.size(), [&](std::size_t i) { return r[i].msg; });
    column("len", r.size(), [&](std::size_t i) { return r[i].length; });
    column("tx", r.size(), [&](std::size_t i) { return r[i].transmit ? 1 : 0; });
    column("frame", r.size(), [&](std::size_t i) { return r[i].frame; });
    bytes_column(frame_bytes_, r.size());
    end_block(b);
  }
  void flush(Block<Journey>& b) {
    const auto& r = b.rows;
    if (r.empty()) return;
    const Picos t0 = begin_block(
        "msg", b, [](const Journey& j) { return j.start; }, [](const Journey& j) { return j.last; });
    column("id", r.size(), [&](std::size_t i) { return r[i].id; });
    times("t", r.size(), t0, [&](std::size_t i) { return r[i].start; });
    column("total", r.size(), [&](std::size_t i) { return r[i].total().n; });
    column("flow", r.size(), [&](std::size_t i) { return r[i].flow; });
    column("op", r.size(), [&](std::size_t i) { return static_cast<unsigned>(r[i].opcode); });
    column("bytes", r.size(), [&](std::size_t i) { return r[i].bytes; });
    column("wr_id", r.size(), [&](std::size_t i) { return r[i].poster.wr_id; });
    column("qpn", r.size(), [&](std::size_t i) { return r[i].poster.qpn; });
    column("host", r.size(), [&](std::size_t i) { return r[i].poster.host; });
    column("status", r.size(), [&](std::size_t i) { return static_cast<unsigned>(r[i].status); });
    for (std::size_t s = 0; s < kStages; ++s)
      column(sim::name_of(static_cast<Stage>(s)), r.size(), [&](std::size_t i) { return r[i].stage[s].n; });
    end_block(b);
  }

  FileWriter out_;
  const std::uint32_t most_bytes_;
  RunInfo info_;
  bool header_done_ = false;
  std::vector<Track> tracks_;                               ///< those declared before the first record
  std::unordered_map<const Point*, std::uint32_t> points_;  // looked up only, never walked
  const Point* last_point_ = nullptr;
  std::uint32_t last_id_ = 0;
  Block<Span> spans_;
  Bytes span_bytes_;
  Block<Instant> instants_;
  Block<Level> levels_;
  Block<State> states_;
  Block<Frame> packets_;
  Bytes frame_bytes_;
  Block<Journey> messages_;
};

}  // namespace

std::unique_ptr<Sink> make_cols_sink(const std::filesystem::path& path, std::uint32_t bytes, SizeAlarm alarm) {
  return std::make_unique<ColsSink>(path, bytes, std::move(alarm));
}

}  // namespace sim::trace
