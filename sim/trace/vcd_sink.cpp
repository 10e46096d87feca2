// SPDX-License-Identifier: Apache-2.0
// VCD writer (IEEE 1800, 21.7, with GTKWave's string and event variables). Scopes are the parts of a track's path. A track of
// levels is a 64-bit vector, one of states a string, each kind of instant an event; a track of spans has the number of spans
// under way (`active`) and the one that started last (`current`).
// Declarations stand first in a VCD, but tracks appear while the run goes on: value changes go to a second file, which is
// appended to the declarations at the end. Changes are sorted through a window of bounded size; one that comes too late for it
// is moved to the time that has been reached, and a comment at the end of the file counts those.
#include "sim/trace/vcd_sink.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/trace/file_writer.h"
#include "sim/trace/sorting_window.h"

namespace sim::trace {
namespace {

constexpr std::size_t kWindow = 1 << 17;  // changes held back for sorting
constexpr std::uint32_t kNone = ~0U;

enum class Type : std::uint8_t { vector, string, event };

struct Variable {
  std::uint32_t track = 0;
  std::string name;
  Type type = Type::vector;
  std::string code;
};

enum class What : std::uint8_t { level, state, event, span_start, span_end };

struct Change {
  Picos t;
  std::int64_t value;  ///< level, number of the state, or message of the span
  const Point* point;
  std::uint32_t track, variable;
  What what;
};

// Names of scopes and variables: letters, digits and underscores.
std::string identifier(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  return out;
}

// Identifier codes are strings of printable characters, the shortest first.
std::string code_of(std::size_t n) {
  constexpr std::size_t kFirst = '!', kCharacters = 94;
  std::string out;
  for (++n; n > 0; n = (n - 1) / kCharacters) out += static_cast<char>(kFirst + (n - 1) % kCharacters);
  return out;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    out.push_back(identifier(path.substr(from, dot - from)));
    from = dot + 1;
  }
  return out;
}

// Text of a comment: one line, no keywords.
std::string plain(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '$') c = ' ';
  return text;
}

class VcdSink final : public Sink {
 public:
  VcdSink(const std::filesystem::path& path, SizeAlarm alarm)
      : path_(path), body_path_(path.string() + ".changes"), out_(path), body_(body_path_, std::move(alarm)) {}
  ~VcdSink() override {
    try {
      if (body_.is_open()) close(reached_);
    } catch (const std::exception&) {
      // close() is where errors are reported; here the run has failed already.
    }
  }
  using Sink::on;

  void open(const RunInfo& info) override { info_ = info; }
  void on(const Track& t) override {
    if (t.id >= lanes_.size()) lanes_.resize(t.id + std::size_t{1});
    lanes_[t.id].decl = t;
    for (std::string& name : lanes_[t.id].decl.states) std::ranges::replace(name, ' ', '_');
  }
  void on(const Span& s) override {
    Lane& lane = lanes_.at(s.track);
    if (lane.active == kNone) {
      lane.active = declare(s.track, "active", Type::vector);
      lane.current = declare(s.track, "current", Type::string);
    }
    add({s.start, static_cast<std::int64_t>(s.msg), s.point, s.track, lane.active, What::span_start});
    add({s.end, 0, s.point, s.track, lane.active, What::span_end});
  }
  void on(const Instant& i) override {
    add({i.t, 1, i.point, i.track, variable_of(i.track, *i.point, Type::event), What::event});
  }
  void on(const Level& l) override {
    add({l.t, l.value, l.point, l.track, variable_of(l.track, *l.point, Type::vector), What::level});
  }
  void on(const State& s) override {
    add({s.t, s.value, s.point, s.track, variable_of(s.track, *s.point, Type::string), What::state});
  }
  void on(const PacketRecord& p) override {
    add({p.t, 1, p.point, p.track, variable_of(p.track, *p.point, Type::event), What::event});
  }
  void close(Picos end) override {
    window_.drain([this](const Change& c) { release(c); });
    if (end > reached_) body_ << '#' << end.n << '\n';
    if (moved_ != 0) body_ << "$comment " << moved_ << " changes came too late to be sorted in $end\n";
    body_.close();
    write_declarations();
    append_body();
    out_.close();
    write_save_file();
  }

 private:
  struct Lane {
    Track decl{};
    std::uint32_t active = kNone, current = kNone;
    std::int64_t under_way = 0;
    std::vector<std::pair<const Point*, std::uint32_t>> variables;
  };

  std::uint32_t declare(std::uint32_t track, std::string name, Type type) {
    const auto n = static_cast<std::uint32_t>(variables_.size());
    variables_.push_back({track, std::move(name), type, code_of(n)});
    return n;
  }
  std::uint32_t variable_of(std::uint32_t track, const Point& p, Type type) {
    auto& known = lanes_.at(track).variables;
    for (const auto& [point, variable] : known)
      if (point == &p) return variable;
    const std::string_view name = p.name;
    known.emplace_back(&p, declare(track, identifier(name.substr(name.find('.') + 1)), type));
    return known.back().second;
  }

  void add(const Change& c) {
    window_.add(c.t, order_++, c, [this](const Change& earliest) { release(earliest); });
  }
  void release(const Change& c) {
    if (c.t < reached_) ++moved_;
    if (c.t > reached_ || !any_) body_ << '#' << max(c.t, reached_).n << '\n';
    any_ = true;
    reached_ = max(reached_, c.t);
    write(c);
  }
  void write(const Change& c) {
    Lane& lane = lanes_[c.track];
    switch (c.what) {
      case What::level:
        return vector(c.variable, c.value);
      case What::state: {
        const auto& names = lane.decl.states;
        const auto i = static_cast<std::size_t>(c.value);
        return string(c.variable, i < names.size() ? names[i] : "state_" + std::to_string(i));
      }
      case What::event:
        body_ << '1' << variables_[c.variable].code << '\n';
        return;
      case What::span_start:
        vector(lane.active, ++lane.under_way);
        body_ << 's' << c.point->name;
        if (c.value != 0) body_ << '#' << c.value;
        body_ << ' ' << variables_[lane.current].code << '\n';
        return;
      case What::span_end:
        vector(lane.active, --lane.under_way);
        if (lane.under_way == 0) string(lane.current, "-");
        return;
    }
  }
  void vector(std::uint32_t variable, std::int64_t v) {
    std::array<char, 64> bits;
    const char* const end = std::to_chars(bits.begin(), bits.end(), static_cast<std::uint64_t>(v), 2).ptr;
    body_ << 'b' << std::string_view(bits.data(), end) << ' ' << variables_[variable].code << '\n';
  }
  void string(std::uint32_t variable, std::string_view text) {
    body_ << 's' << text << ' ' << variables_[variable].code << '\n';
  }

  void write_declarations() {
    out_ << "$version rdmasim " << plain(info_.version) << " $end\n$comment scenario " << plain(info_.scenario)
         << ", seed " << info_.seed << " $end\n$timescale 1 ps $end\n";
    std::map<std::vector<std::string>, std::vector<std::uint32_t>> scopes;
    for (std::uint32_t i = 0; i < variables_.size(); ++i)
      scopes[parts_of(lanes_[variables_[i].track].decl.path)].push_back(i);
    std::vector<std::string> at;
    for (const auto& [scope, members] : scopes) {
      const auto common = static_cast<std::size_t>(std::ranges::mismatch(at, scope).in1 - at.begin());
      for (std::size_t n = at.size(); n > common; --n) out_ << "$upscope $end\n";
      for (std::size_t n = common; n < scope.size(); ++n) out_ << "$scope module " << scope[n] << " $end\n";
      for (const std::uint32_t i : members) declaration(variables_[i]);
      at = scope;
    }
    for (std::size_t n = at.size(); n > 0; --n) out_ << "$upscope $end\n";
    out_ << "$enddefinitions $end\n$dumpvars\n";
    for (const Variable& v : variables_) {
      if (v.type == Type::vector) out_ << "b0 " << v.code << '\n';
      if (v.type == Type::string) out_ << "s- " << v.code << '\n';
    }
    out_ << "$end\n";
  }
  void declaration(const Variable& v) {
    switch (v.type) {
      case Type::vector:
        out_ << "$var wire 64 " << v.code << ' ' << v.name << " [63:0] $end\n";
        return;
      case Type::string:
        out_ << "$var string 1 " << v.code << ' ' << v.name << " $end\n";
        return;
      case Type::event:
        out_ << "$var event 1 " << v.code << ' ' << v.name << " $end\n";
        return;
    }
  }
  void append_body() {
    std::ifstream body(body_path_, std::ios::binary);
    std::string piece(1 << 16, '\0');
    do {
      body.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      out_ << std::string_view(piece.data(), static_cast<std::size_t>(body.gcount()));
    } while (body);
    if (!body.eof()) throw std::runtime_error("cannot read trace file " + body_path_.string());
    body.close();
    std::filesystem::remove(body_path_);
  }

  // One group per host and for the fabric; levels as analog steps, states and current spans as text.
  void write_save_file() const {
    std::filesystem::path path = path_;
    if (path.extension() == ".gz") path.replace_extension();
    path.replace_extension(".gtkw");
    FileWriter save(path);
    save << "[dumpfile] ";
    save.quoted(path_.filename().string()) << "\n[timestart] 0\n";
    std::map<std::int32_t, std::vector<const Variable*>> groups;
    for (const Variable& v : variables_) groups[lanes_[v.track].decl.host].push_back(&v);
    for (const auto& [host, members] : groups) {
      const auto h = static_cast<std::size_t>(host);
      save << "@200\n-" << (host < 0 ? "fabric" : h < info_.hosts.size() ? info_.hosts[h] : "host") << '\n';
      for (const Variable* v : members) save_signal(save, *v);
    }
    save.close();
  }
  void save_signal(FileWriter& save, const Variable& v) const {
    constexpr std::string_view kAnalogStep = "@88020\n", kText = "@820\n", kEvent = "@28\n";
    save << (v.type == Type::vector ? kAnalogStep : v.type == Type::string ? kText : kEvent);
    for (const std::string& part : parts_of(lanes_[v.track].decl.path)) save << part << '.';
    save << v.name << (v.type == Type::vector ? "[63:0]\n" : "\n");
  }

  const std::filesystem::path path_, body_path_;
  FileWriter out_, body_;
  RunInfo info_;
  std::vector<Lane> lanes_;  // by track
  std::vector<Variable> variables_;
  SortingWindow<Change> window_{kWindow};
  std::uint64_t order_ = 0, moved_ = 0;
  Picos reached_{0};
  bool any_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_vcd_sink(const std::filesystem::path& path, SizeAlarm alarm) {
  return std::make_unique<VcdSink>(path, std::move(alarm));
}

}  // namespace sim::trace
