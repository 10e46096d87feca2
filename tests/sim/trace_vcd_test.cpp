// SPDX-License-Identifier: Apache-2.0
// The VCD sink, read by a strict parser and by GTKWave's converter and back.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "made_up_run.h"
#include "sim/trace/vcd_sink.h"

namespace sim::trace {
namespace {

struct Vcd {
  struct Change {
    std::uint64_t t;
    std::string name, value;
    auto operator<=>(const Change&) const = default;
  };
  std::map<std::string, std::string> names, types;  // by code
  std::vector<Change> changes;                      // initial values are not among them
  std::vector<std::string> comments;

  std::vector<std::string> values(const std::string& name) const {
    std::vector<std::string> out;
    for (const Change& c : changes)
      if (c.name == name) out.push_back(c.value);
    return out;
  }
};

std::string without_leading_zeros(const std::string& bits) {
  const std::size_t one = bits.find('1');
  return one == std::string::npos ? "0" : bits.substr(one);
}

// Reads what IEEE 1800 and GTKWave allow and fails the test at anything else.
Vcd parse(const std::string& text) {
  Vcd vcd;
  std::istringstream in(text);
  std::vector<std::string> scope;
  bool body = false, initial = false;
  std::int64_t t = -1;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> w{std::istream_iterator<std::string>(words), {}};
    if (w.empty()) continue;
    if (w[0] == "$comment") vcd.comments.push_back(line);
    if (w[0] == "$comment" || w[0] == "$version" || w[0] == "$timescale" || w[0] == "$date") {
      while (!line.ends_with("$end") && std::getline(in, line)) {}
      continue;
    }
    if (w[0] == "$scope") scope.push_back(w.at(2));
    if (w[0] == "$upscope") {
      EXPECT_FALSE(scope.empty());
      scope.pop_back();
    }
    if (w[0] == "$var") {
      EXPECT_FALSE(body);
      std::string path;
      for (const auto& s : scope) path += s + ".";
      EXPECT_TRUE(vcd.names.emplace(w.at(3), path + w.at(4)).second) << line;
      vcd.types[w.at(3)] = w.at(1);
    }
    if (w[0] == "$enddefinitions") {
      EXPECT_TRUE(scope.empty());
      body = true;
    }
    if (w[0] == "$dumpvars") initial = true;
    if (w[0] == "$end") initial = false;
    if (w[0][0] == '$') continue;
    EXPECT_TRUE(body) << line;
    if (w[0][0] == '#') {
      const std::int64_t next = std::stoll(w[0].substr(1));
      EXPECT_GT(next, t);
      t = next;
      continue;
    }
    const bool event = w[0][0] == '1';
    const std::string code = event ? w[0].substr(1) : w.at(1);
    const std::string type = vcd.types[code];
    EXPECT_TRUE(vcd.names.contains(code)) << line;
    EXPECT_EQ(type, event ? "event" : w[0][0] == 's' ? "string" : "wire") << line;
    EXPECT_LE(w[0].size(), w[0][0] == 'b' ? 65u : 1000u);
    const std::string value = event ? "1" : w[0][0] == 'b' ? without_leading_zeros(w[0].substr(1)) : w[0].substr(1);
    if (initial) continue;
    EXPECT_GE(t, 0);
    vcd.changes.push_back({static_cast<std::uint64_t>(t), vcd.names[code], value});
  }
  return vcd;
}

TEST_F(TraceSinks, vcd_has_levels_states_events_and_spans) {
  constexpr int kMessages = 300;
  MadeUpRun run(make_vcd_sink(dir / "t.vcd"));
  run.messages(kMessages);
  run.close(kMessages);
  const Vcd vcd = parse(text(dir / "t.vcd"));
  EXPECT_EQ(vcd.values("host0.sq.depth").size(), static_cast<std::size_t>(kMessages));
  EXPECT_EQ(vcd.values("host0.sq.depth").at(3), "11");
  EXPECT_THAT(vcd.values("host1.qp.mode"), testing::Contains("RTS").Times(kMessages / 2));
  EXPECT_THAT(vcd.values("host0.app.bell"), testing::SizeIs(kMessages));
  EXPECT_THAT(vcd.values("wire.frame"), testing::SizeIs(kMessages));
  EXPECT_EQ(vcd.values("host0.app.current").front(), "test.work#1");
  EXPECT_EQ(vcd.values("host0.app.current").back(), "-");
  for (const char* lane : {"host0.app.active", "host0.dma.active", "wire.active"}) {
    const auto v = vcd.values(lane);
    EXPECT_EQ(v.back(), "0") << lane;
    EXPECT_LE(std::ranges::max(v, {}, &std::string::size).size(), 4u) << lane << " never falls below zero";
  }
  EXPECT_EQ(vcd.comments.size(), 1u) << "nothing came too late to be sorted";
  EXPECT_FALSE(fs::exists(dir / "t.vcd.changes"));
}

TEST_F(TraceSinks, vcd_counts_the_changes_that_came_too_late) {
  MadeUpRun run(make_vcd_sink(dir / "t.vcd"));
  run.messages(30'000);
  run.depth->level(kDepth, 5_ps, 4);
  run.close(30'000);
  const Vcd vcd = parse(text(dir / "t.vcd"));
  ASSERT_EQ(vcd.comments.size(), 2u);
  EXPECT_EQ(vcd.comments[1], "$comment 1 changes came too late to be sorted in $end");
}

TEST_F(TraceSinks, vcd_survives_the_converters_of_gtkwave) {
  MadeUpRun run(make_vcd_sink(dir / "t.vcd"));
  run.messages(200);
  run.close(200);
  const std::string d = dir.string();
  ASSERT_EQ(std::system(("cd " + d + " && vcd2fst t.vcd t.fst && fst2vcd t.fst > back.vcd").c_str()), 0);
  const auto set_of = [](const Vcd& v) {
    std::set<Vcd::Change> out;
    for (const Vcd::Change& c : v.changes) {
      if (c.t > 0) out.insert(c);  // at time 0 the format knows initial values only
    }
    return out;
  };
  const auto before = set_of(parse(text(dir / "t.vcd"))), after = set_of(parse(text(dir / "back.vcd")));
  std::vector<Vcd::Change> lost;
  std::ranges::set_difference(before, after, std::back_inserter(lost));
  EXPECT_TRUE(lost.empty()) << lost.size() << " of " << before.size() << ", first " << lost.at(0).name << " at "
                            << lost.at(0).t;
}

TEST_F(TraceSinks, vcd_save_file_names_signals_that_exist) {
  MadeUpRun run(make_vcd_sink(dir / "t.vcd"));
  run.messages(3);
  run.close(3);
  std::set<std::string> names;
  for (const auto& [code, name] : parse(text(dir / "t.vcd")).names) names.insert(name);
  std::istringstream save(text(dir / "t.gtkw"));
  std::size_t signals = 0;
  for (std::string line; std::getline(save, line);) {
    if (line.empty() || line[0] == '@' || line[0] == '[' || line[0] == '-') continue;
    ++signals;
    EXPECT_TRUE(names.contains(line.substr(0, line.find('[')))) << line;
  }
  EXPECT_EQ(signals, names.size());
}

}  // namespace
}  // namespace sim::trace
