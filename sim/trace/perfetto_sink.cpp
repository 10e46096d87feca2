// SPDX-License-Identifier: Apache-2.0
// Chrome JSON writer. Three rules of the importer shape it: slices of one thread must nest, so spans that overlap on a track go to
// numbered slots; start and end are rounded to nanoseconds separately, so neighbours never overlap by rounding; arrows follow
// time and file order, so spans leave sorted by (start, id) through a window of bounded size. An arrow goes from a span's
// parent to the span: along a bind_id chain while there is one child, as a pair of flow events where the path forks.
#include "sim/trace/perfetto_sink.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/file_writer.h"
#include "sim/trace/sorting_window.h"

namespace sim::trace {
namespace {

constexpr std::size_t kWindow = 1 << 15;  // spans held back for sorting
constexpr std::size_t kMemory = 1 << 16;  // recent spans and messages that an arrow can start from
// Thread ids of a track: (track + 1) * 1000 + slot, with the last two for its states and instants. The rare slots from 1000 on
// live in a range of their own; beyond kMaxSlots overlapping slices share the last one.
constexpr std::int64_t kStateSlot = 998, kInstantSlot = 999, kFarSlots = 10'000, kMaxSlots = 1000 + kFarSlots,
                       kFarTid = 1'000'000'000;
constexpr std::int64_t kFabricPid = 1, kFirstHostPid = 2, kMessagesPid = 1'000'000;

constexpr std::int64_t to_ns(Picos t) { return (t.n + 500) / 1000; }
constexpr std::int64_t pid_of(std::int32_t host) { return host < 0 ? kFabricPid : kFirstHostPid + host; }

class PerfettoSink final : public Sink {
 public:
  PerfettoSink(const std::filesystem::path& path, SizeAlarm alarm)
      : out_(path, std::move(alarm)), recent_(kMemory), last_of_(kMemory) {
    out_
        << R"({"displayTimeUnit":"ns","otherData":{"format":"rdmasim-chrome/1","time_resolution":"1ns"},"traceEvents":[)";
  }
  ~PerfettoSink() override {
    try {
      if (out_.is_open()) finish(last_time_);
    } catch (const std::exception&) {
      // close() is where errors are reported; here the run has failed already.
    }
  }

  void open(const RunInfo& info) override {
    info_ = info;
    process(kFabricPid, "fabric", static_cast<std::int64_t>(info.hosts.size()));
    for (std::size_t h = 0; h < info.hosts.size(); ++h)
      process(kFirstHostPid + static_cast<std::int64_t>(h), info.hosts[h], static_cast<std::int64_t>(h));
    process(kMessagesPid, "messages", kMessagesPid);
  }
  void on(const Track& t) override {
    if (t.id >= tracks_.size()) tracks_.resize(t.id + 1);
    tracks_[t.id].decl = t;
  }
  void on(const Span& s) override {
    window_.add(s.start, s.id, s, [this](const Span& earliest) { write(earliest); });
  }
  void on(const Instant& i) override {
    const std::int64_t slot = tracks_[i.track].decl.kind == TrackKind::instant ? 0 : kInstantSlot;
    name_thread(i.track, slot);
    begin("i");
    thread(i.track, slot);
    time("ts", to_ns(i.t));
    out_ << R"(,"s":"t","name":)";
    out_.quoted(i.point->name) << R"(,"args":{"msg":)" << i.msg;
    arguments(*i.point, i.args);
    out_ << "}}";
    note(i.t);
  }
  void on(const Level& l) override {
    const Lane& t = tracks_[l.track];
    begin("C");
    out_ << R"(,"pid":)" << pid_of(t.decl.host);
    time("ts", to_ns(l.t));
    out_ << R"(,"name":)";
    out_.quoted(t.decl.path) << R"(,"args":{)";
    out_.quoted(l.point->args[0] != nullptr ? l.point->args[0] : "value") << ':' << l.value << "}}";
    note(l.t);
  }
  void on(const State& s) override {
    Lane& t = tracks_[s.track];
    end_state(s.track, s.t);
    t.state_open = true;
    t.state = s.value;
    t.state_since = s.t;
    note(s.t);
  }
  void on(const Journey& j) override {
    message("b", j, j.start);
    out_ << R"(,"args":{"op":)" << static_cast<unsigned>(j.opcode) << R"(,"bytes":)" << j.bytes << R"(,"flow":)"
         << j.flow << R"(,"wr_id":)" << j.poster.wr_id << R"(,"qpn":)" << j.poster.qpn << R"(,"host":)" << j.poster.host
         << R"(,"status":)" << static_cast<unsigned>(j.status) << "}}";
    message("e", j, j.last);
    out_ << R"(,"args":{"stages":{)";
    stages(j);
    out_ << "}}}";
  }
  void close(Picos end) override { finish(end); }
  using Sink::on;

 private:
  struct Lane {
    Track decl{};
    std::vector<std::int64_t> slot_end;  ///< ns at which the last slice of each slot ends
    std::vector<bool> named;             ///< thread ids whose name is written
    bool state_open = false;
    std::uint32_t state = 0;
    Picos state_since{0};
  };
  struct Recent {
    std::uint64_t id = 0, chain = 0;
    std::int64_t pid = 0, tid = 0, ts = 0;
    bool continued = false;  ///< a later span has taken the chain on
  };
  struct LastOf {
    MsgId msg = 0;
    std::uint64_t span = 0;
  };

  void begin(std::string_view ph) {
    out_ << (first_ ? "\n" : ",\n") << R"({"ph":")" << ph << '"';
    first_ = false;
  }
  // Microseconds with at most three decimals.
  void time(std::string_view key, std::int64_t ns) {
    out_ << ",\"" << key << "\":" << ns / 1000;
    const auto rest = static_cast<unsigned>(ns % 1000);
    if (rest == 0) return;
    out_ << '.' << static_cast<char>('0' + rest / 100);
    if (rest % 100 != 0) out_ << static_cast<char>('0' + rest / 10 % 10);
    if (rest % 10 != 0) out_ << static_cast<char>('0' + rest % 10);
  }
  void note(Picos t) { last_time_ = max(last_time_, t); }

  void process(std::int64_t pid, std::string_view name, std::int64_t sort) {
    begin("M");
    out_ << R"(,"pid":)" << pid << R"(,"name":"process_name","args":{"name":)";
    out_.quoted(name) << "}}";
    begin("M");
    out_ << R"(,"pid":)" << pid << R"(,"name":"process_sort_index","args":{"sort_index":)" << sort << "}}";
  }

  static std::int64_t tid_of(std::uint32_t track, std::int64_t slot) {
    return slot < 1000 ? (track + 1LL) * 1000 + slot : kFarTid + track * kFarSlots + slot - 1000;
  }
  // Writes pid and tid into the event under way. The thread's name must have been written: name_thread().
  void thread(std::uint32_t track, std::int64_t slot) {
    out_ << R"(,"pid":)" << pid_of(tracks_[track].decl.host) << R"(,"tid":)" << tid_of(track, slot);
  }
  void name_thread(std::uint32_t track, std::int64_t slot) {
    Lane& t = tracks_[track];
    const auto s = static_cast<std::size_t>(slot);
    if (s >= t.named.size()) t.named.resize(s + 1);
    if (t.named[s]) return;
    t.named[s] = true;
    begin("M");
    thread(track, slot);
    out_ << R"(,"name":"thread_name","args":{"name":)";
    std::string name = t.decl.path;
    if (slot == kInstantSlot) name += " events";
    else if (slot == kStateSlot) name += " state";
    else if (slot > 0) name += " #" + std::to_string(slot);
    out_.quoted(name) << "}}";
    begin("M");
    thread(track, slot);
    out_ << R"(,"name":"thread_sort_index","args":{"sort_index":)" << tid_of(track, slot) << "}}";
  }

  void arguments(const Point& p, const std::array<std::uint64_t, 4>& values) {
    for (std::size_t i = 0; i < values.size() && p.args[i] != nullptr; ++i) {
      out_ << ',';
      out_.quoted(p.args[i]) << ':' << values[i];
    }
  }

  // Lowest slot of the track whose slices have all ended.
  std::int64_t take_slot(Lane& t, std::int64_t start, std::int64_t end) {
    constexpr std::size_t kLast = kMaxSlots - 3;  // two numbers are taken by states and instants
    std::size_t s = 0;
    while (s < t.slot_end.size() && t.slot_end[s] > start) ++s;
    s = std::min(s, kLast);
    if (s == t.slot_end.size()) t.slot_end.push_back(0);
    t.slot_end[s] = end;
    return static_cast<std::int64_t>(s < static_cast<std::size_t>(kStateSlot) ? s : s + 2);
  }

  Recent* recall(std::uint64_t id) {
    if (id == 0) return nullptr;
    Recent& r = recent_[id % kMemory];
    return r.id == id ? &r : nullptr;
  }

  void write(const Span& s) {
    const std::int64_t start = to_ns(s.start), end = to_ns(s.end);
    const std::int64_t slot = take_slot(tracks_[s.track], start, end);
    name_thread(s.track, slot);
    const bool linked = s.msg != 0 || s.parent != 0;
    Recent self{s.id, linked ? s.id : 0, pid_of(tracks_[s.track].decl.host), tid_of(s.track, slot), start, false};
    Recent* from = recall(s.parent);
    if (from == nullptr && s.msg != 0) {
      const LastOf& last = last_of_[s.msg % kMemory];
      if (last.msg == s.msg) from = recall(last.span);
    }
    if (from != nullptr && from->ts > start) from = nullptr;  // an arrow cannot point back in time
    const bool chained = from != nullptr && from->chain != 0 && !from->continued;
    if (chained) {
      self.chain = from->chain;
      from->continued = true;
    } else if (from != nullptr) {
      fork("s", s.id, from->pid, from->tid, from->ts, "");
    }
    begin("X");
    thread(s.track, slot);
    time("ts", start);
    time("dur", end - start);
    out_ << R"(,"name":)";
    out_.quoted(s.point->name);
    if (linked) {
      out_ << R"(,"bind_id":)" << self.chain;
      if (chained) out_ << R"(,"flow_in":true)";
      out_ << R"(,"flow_out":true)";
    }
    out_ << R"(,"args":{"msg":)" << s.msg << R"(,"span":)" << s.id << R"(,"wait_ps":)" << (s.start - s.enqueued).n;
    arguments(*s.point, s.args);
    out_ << "}}";
    if (from != nullptr && !chained) fork("f", s.id, self.pid, self.tid, start, R"(,"bp":"e")");
    recent_[s.id % kMemory] = self;
    if (s.msg != 0) last_of_[s.msg % kMemory] = {s.msg, s.id};
    note(s.end);
  }

  void fork(std::string_view ph, std::uint64_t id, std::int64_t pid, std::int64_t tid, std::int64_t ts,
            std::string_view extra) {
    begin(ph);
    out_ << R"(,"pid":)" << pid << R"(,"tid":)" << tid;
    time("ts", ts);
    out_ << R"(,"id":)" << id << R"(,"cat":"cause","name":"cause")" << extra << '}';
  }

  void end_state(std::uint32_t track, Picos t) {
    Lane& lane = tracks_[track];
    if (!lane.state_open) return;
    const std::int64_t slot = lane.decl.kind == TrackKind::state ? 0 : kStateSlot;
    name_thread(track, slot);
    begin("X");
    thread(track, slot);
    time("ts", to_ns(lane.state_since));
    time("dur", std::max<std::int64_t>(to_ns(t) - to_ns(lane.state_since), 0));
    out_ << R"(,"name":)";
    if (lane.state < lane.decl.states.size()) out_.quoted(lane.decl.states[lane.state]);
    else out_ << '"' << lane.state << '"';
    out_ << '}';
    lane.state_open = false;
  }

  void message(std::string_view ph, const Journey& j, Picos t) {
    begin(ph);
    out_ << R"(,"pid":)" << kMessagesPid << R"(,"cat":"message","name":"WR","id":)" << j.id;
    time("ts", to_ns(t));
    note(t);
  }

  // Picoseconds by name, of those that took time.
  void stages(const Journey& j) {
    bool first = true;
    for (std::size_t s = 0; s < kStages; ++s) {
      if (j.stage[s].n == 0) continue;
      if (!std::exchange(first, false)) out_ << ',';
      out_.quoted(sim::name_of(static_cast<Stage>(s))) << ':' << j.stage[s].n;
    }
  }

  void finish(Picos end) {
    window_.drain([this](const Span& s) { write(s); });
    for (std::uint32_t i = 0; i < tracks_.size(); ++i) end_state(i, max(end, tracks_[i].state_since));
    out_ << "\n],\"metadata\":{\"scenario\":";
    out_.quoted(info_.scenario) << R"(,"version":)";
    out_.quoted(info_.version) << R"(,"seed":)" << info_.seed << R"(,"t_end_ps":)" << end.n << R"(,"config":)";
    out_.compact(info_.config_json) << "}}\n";
    out_.close();
  }

  FileWriter out_;
  RunInfo info_;
  bool first_ = true;
  Picos last_time_{0};
  std::vector<Lane> tracks_;  ///< by track id
  SortingWindow<Span> window_{kWindow};
  std::vector<Recent> recent_;   ///< by span id
  std::vector<LastOf> last_of_;  ///< by message
};

}  // namespace

std::unique_ptr<Sink> make_perfetto_sink(const std::filesystem::path& path, SizeAlarm alarm) {
  return std::make_unique<PerfettoSink>(path, std::move(alarm));
}

}  // namespace sim::trace
