// SPDX-License-Identifier: Apache-2.0
// The native and the Perfetto sink, fed by a made-up run; what they write is read back with an independent JSON parser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "made_up_run.h"
#include "sim/trace/cols_sink.h"
#include "sim/trace/perfetto_sink.h"

namespace sim::trace {
namespace {

using nlohmann::json;

// Column of a block as numbers; columns of zeros are left out of the file.
std::vector<std::int64_t> column(const json& block, const char* name) {
  if (!block.contains(name)) return std::vector<std::int64_t>(block["n"].get<std::size_t>(), 0);
  return block[name].get<std::vector<std::int64_t>>();
}
std::vector<std::int64_t> absolute(const json& block, const char* name) {
  std::vector<std::int64_t> v = column(block, name);
  std::int64_t t = block["t0"];
  for (auto& x : v) x = t += x;
  return v;
}
std::vector<json> lines(const std::string& text) {
  std::vector<json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

TEST_F(TraceSinks, cols_header_names_the_run_and_its_lanes) {
  MadeUpRun run(make_cols_sink(dir / "t.jsonl"));
  run.messages(1);
  run.close(1);
  const json header = lines(text(dir / "t.jsonl")).at(0);
  EXPECT_EQ(header["format"], "rdmasim-cols/1");
  EXPECT_EQ(header["time"], "ps");
  EXPECT_EQ(header["scenario"], "ping \"pong\"\n");
  EXPECT_EQ(header["seed"], 42);
  EXPECT_EQ(header["hosts"], json({"host0", "host1"}));
  EXPECT_EQ(header["stages"].size(), kStages);
  EXPECT_EQ(header["config"], json::parse(info().config_json));
  EXPECT_EQ(header["lanes"].size(), 5U);
  EXPECT_EQ(header["lanes"][4],
            json::parse(R"({"id":4,"host":1,"path":"host1.qp","kind":"state","states":["RESET","RTS"]})"));
  EXPECT_EQ(header["lanes"][2]["host"], -1);
}

TEST_F(TraceSinks, cols_holds_every_record_to_the_picosecond) {
  MadeUpRun run(make_cols_sink(dir / "t.jsonl"));
  run.messages(1);
  run.close(1);
  const auto all = lines(text(dir / "t.jsonl"));
  std::map<std::string, json> block;
  std::map<int, json> point;
  for (const json& l : all) {
    if (!l.contains("k")) continue;
    if (l["k"] == "point") point[l["id"]] = l;
    else block[l["k"]] = l;
  }
  const json& span = block["span"];
  ASSERT_EQ(span["n"], 5);
  EXPECT_EQ(span["id0"], 1);
  EXPECT_EQ(absolute(span, "ts")[0], 0);
  EXPECT_EQ(column(span, "dur")[0], 64'499);
  EXPECT_EQ(absolute(span, "ts")[2], 70'500);
  EXPECT_EQ(column(span, "dur")[2], 1);
  EXPECT_EQ(column(span, "wait")[2], 70'500 - 64'499);
  EXPECT_EQ(column(span, "up"), (std::vector<std::int64_t>{0, 1, 2, 2, 1}));  // id - parent
  EXPECT_EQ(column(span, "msg"), (std::vector<std::int64_t>(5, 1)));
  EXPECT_EQ(column(span, "lane"), (std::vector<std::int64_t>{0, 1, 1, 2, 2}));
  EXPECT_EQ(column(span, "a0"), (std::vector<std::int64_t>{7, 0, 0, 7, 7}));
  EXPECT_EQ(column(span, "a1"), (std::vector<std::int64_t>{64, 0, 0, 64, 0}));
  EXPECT_EQ(point[static_cast<int>(column(span, "point")[0])]["name"], "test.work");
  EXPECT_EQ(point[static_cast<int>(column(span, "point")[0])]["args"], json({"qpn", "bytes"}));
  EXPECT_EQ(absolute(block["instant"], "t"), std::vector<std::int64_t>{64'499});
  EXPECT_EQ(column(block["packet"], "len"), std::vector<std::int64_t>{70});
  EXPECT_EQ(column(block["packet"], "tx"), std::vector<std::int64_t>{1});
  EXPECT_EQ(column(block["msg"], "total"), std::vector<std::int64_t>{10'000'000});
  EXPECT_EQ(column(block["msg"], "wire"), std::vector<std::int64_t>{9'000'000});
  EXPECT_EQ(column(block["msg"], "op"), std::vector<std::int64_t>{2});
  EXPECT_EQ(column(block["msg"], "wr_id"), std::vector<std::int64_t>{1001});
  EXPECT_EQ(column(block["msg"], "qpn"), std::vector<std::int64_t>{7});
  EXPECT_FALSE(block["msg"].contains("host")) << "all on host 0";
  EXPECT_FALSE(block["msg"].contains("status")) << "all well";
  EXPECT_EQ(
      block["end"],
      json::parse(
          R"({"k":"end","spans":5,"instants":1,"counters":1,"states":1,"packets":1,"messages":1,"t_end":21000333})"));
}

TEST_F(TraceSinks, messages_name_their_poster_and_status) {
  for (const bool native : {true, false}) {
    MadeUpRun run(native ? make_cols_sink(dir / "t.jsonl") : make_perfetto_sink(dir / "t.json"));
    Journey j;
    j.id = 1, j.poster = {1, 0x105, 0xffff'ffff'ffff'fff0}, j.status = 13;
    run.context.tracer.emit(j);
    run.close(0);
  }
  for (const json& l : lines(text(dir / "t.jsonl"))) {
    if (l.value("k", "") != "msg") continue;
    EXPECT_EQ(l["wr_id"], json({0xffff'ffff'ffff'fff0}));
    EXPECT_EQ(l["qpn"], json({0x105}));
    EXPECT_EQ(l["host"], json({1}));
    EXPECT_EQ(l["status"], json({13}));
  }
  const json chrome = json::parse(text(dir / "t.json"));
  int found = 0;
  for (const json& e : chrome["traceEvents"]) {
    if (e["ph"] != "b") continue;
    ++found;
    EXPECT_EQ(e["args"]["wr_id"], 0xffff'ffff'ffff'fff0);
    EXPECT_EQ(e["args"]["qpn"], 0x105);
    EXPECT_EQ(e["args"]["host"], 1);
    EXPECT_EQ(e["args"]["status"], 13);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(TraceSinks, cols_keeps_the_bytes_of_spans_and_frames_up_to_a_limit) {
  constexpr Point kWithBytes{"test.cqe", Category::hca, Kind::span, {"syndrome"}, Mark::error, 0, Form::cqe};
  {
    MadeUpRun run(make_cols_sink(dir / "t.jsonl", 4));
    const std::byte bytes[]{std::byte{0x12}, std::byte{0xab}, std::byte{3}, std::byte{4}, std::byte{5}};
    // A block boundary falls between a span and its bytes.
    for (int i = 0; i < 4095; ++i) run.dma->span(kSub, {}, 1_ps, 1_ps, 2_ps);
    for (const std::size_t n : {2, 5}) {
      const std::uint64_t span = run.dma->span(kWithBytes, {}, 1_ps, 1_ps, 2_ps, 1);
      run.dma->bytes(span, 0, 2_ps, std::span(bytes).first(n));
    }
    run.wire->packet(kFrame, 0, 5_ps, 5_ps, true, 1, bytes);
    run.wire->packet(kFrame, 0, 6_ps, 6_ps, false, 1, bytes);
    run.close(0);
  }
  std::vector<std::string> of_spans, of_frames;
  for (const json& line : lines(text(dir / "t.jsonl"))) {
    if (line.value("name", "") == "test.cqe") {
      EXPECT_EQ(line["mark"], "error");
      EXPECT_EQ(line["mark_if"], 0);
      EXPECT_EQ(line["bytes"], "cqe");
    }
    if (line.value("k", "") == "span")
      for (const json& b : line.value("bytes", json::array()))
        if (!b.get<std::string>().empty()) of_spans.push_back(b);
    if (line.value("k", "") == "packet") of_frames = line["bytes"];
  }
  EXPECT_THAT(of_spans, testing::ElementsAre("12ab", "12ab0304"));
  EXPECT_THAT(of_frames, testing::ElementsAre("12ab0304", ""));
}

TEST_F(TraceSinks, cols_blocks_are_bounded_and_add_up) {
  constexpr int n = 3000;
  MadeUpRun run(make_cols_sink(dir / "t.jsonl"));
  run.messages(n);
  run.close(n);
  std::map<std::string, std::uint64_t> count;
  std::vector<std::int64_t> ids;
  json end;
  for (const json& l : lines(text(dir / "t.jsonl"))) {
    if (!l.contains("k")) continue;
    if (l["k"] == "end") end = l;
    if (!l.contains("n")) continue;
    EXPECT_LE(l["n"], 4096);
    count[l["k"]] += l["n"].get<std::uint64_t>();
    if (l["k"] != "span") continue;
    const auto extra = column(l, "id"), start = absolute(l, "ts"), dur = column(l, "dur");
    for (std::size_t i = 0; i < extra.size(); ++i) {
      ids.push_back(l["id0"].get<std::int64_t>() + static_cast<std::int64_t>(i) + extra[i]);
      EXPECT_GE(start[i], l["t0"]);
      EXPECT_LE(start[i] + dur[i], l["t1"]);
    }
  }
  EXPECT_EQ(count["span"], 5U * n);
  EXPECT_EQ(end["spans"], 5 * n);
  EXPECT_EQ(count["msg"], n);
  EXPECT_EQ(count["counter"], n);
  for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<std::int64_t>(i) + 1);
}

TEST_F(TraceSinks, lanes_and_points_are_declared_before_their_first_use) {
  MadeUpRun run(make_cols_sink(dir / "t.jsonl"));
  run.messages(2);
  Source late(run.context, 1, "host1.late");
  late.span(kSub, {}, 1_ns, 2_ns, 3_ns);
  run.close(2);
  std::set<std::int64_t> lanes, points;
  bool late_line = false;
  for (const json& l : lines(text(dir / "t.jsonl"))) {
    if (l.contains("lanes")) {
      for (const json& lane : l["lanes"]) lanes.insert(lane["id"].get<std::int64_t>());
    } else if (l["k"] == "lane") {
      lanes.insert(l["id"].get<std::int64_t>());
      late_line = l["path"] == "host1.late";
    } else if (l["k"] == "point") {
      points.insert(l["id"].get<std::int64_t>());
    } else if (l.contains("n") && l["k"] != "msg") {
      for (const auto lane : column(l, "lane")) EXPECT_EQ(lanes.count(lane), 1U);
      for (const auto p : column(l, "point")) EXPECT_EQ(points.count(p), 1U);
    }
  }
  EXPECT_TRUE(late_line);
}

TEST_F(TraceSinks, an_empty_run_is_a_readable_file) {
  MadeUpRun a(make_cols_sink(dir / "t.jsonl"));
  a.close(0);
  EXPECT_EQ(lines(text(dir / "t.jsonl")).size(), 2U);
  MadeUpRun b(make_perfetto_sink(dir / "t.json"));
  b.close(0);
  EXPECT_TRUE(json::parse(text(dir / "t.json"))["traceEvents"].is_array());
}

struct Slice {
  std::int64_t ts, end;
};
std::int64_t ns(const json& us) { return std::llround(us.get<double>() * 1000); }

TEST_F(TraceSinks, perfetto_slices_nest_and_every_thread_has_a_name) {
  constexpr int n = 3000;
  MadeUpRun run(make_perfetto_sink(dir / "t.json"));
  run.messages(n);
  run.close(n);
  const json trace = json::parse(text(dir / "t.json"));
  EXPECT_EQ(trace["displayTimeUnit"], "ns");
  EXPECT_EQ(trace["metadata"]["seed"], 42);
  EXPECT_EQ(trace["metadata"]["config"], json::parse(info().config_json));
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::string, int> count;
  for (const json& e : trace["traceEvents"]) {
    const std::string ph = e["ph"];
    ++count[ph];
    if (ph == "M" && e["name"] == "thread_name") names[{e["pid"], e["tid"]}] = e["args"]["name"];
    if (ph == "X") tracks[{e["pid"], e["tid"]}].push_back({ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])});
    if (ph == "e") {
      EXPECT_EQ(e["args"]["stages"], json({{"wire", 9'000'000}, {"poll", 1'000'000}}));
    }
    if (ph == "X" || ph == "i") {
      EXPECT_EQ(names.count({e["pid"], e["tid"]}), 1U) << e;
    }
  }
  EXPECT_EQ(count["X"], 5 * n + n);  // spans and states
  EXPECT_EQ(count["i"], n);
  EXPECT_EQ(count["C"], n);
  EXPECT_EQ(count["b"], n);
  EXPECT_EQ(count["e"], n);
  for (auto& [key, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.ts < b.ts; });
    for (std::size_t i = 1; i < slices.size(); ++i) ASSERT_LE(slices[i - 1].end, slices[i].ts) << names[key];
  }
  std::set<std::string> all;
  for (const auto& [key, name] : names) all.insert(name);
  EXPECT_EQ(all.count("host0.app"), 1U);
  EXPECT_EQ(all.count("host0.dma #1"), 1U);
  EXPECT_EQ(all.count("host0.app #1"), 0U);  // exclusive: never overlaps
}

// Flow rules of the importer: one out-only carrier first, unique ids, time never goes back along a chain, arrows bind.
TEST_F(TraceSinks, perfetto_flows_follow_the_causes) {
  constexpr int n = 500;
  MadeUpRun run(make_perfetto_sink(dir / "t.json"));
  run.messages(n);
  run.close(n);
  const json trace = json::parse(text(dir / "t.json"));
  std::map<std::int64_t, std::int64_t> chain_ts, fork_open;
  std::map<std::int64_t, std::vector<std::int64_t>> chain_spans;
  std::int64_t spans = 0, arrows = 0;
  for (const json& e : trace["traceEvents"]) {
    if (e.contains("bind_id")) {
      ++spans;
      const std::int64_t id = e["bind_id"], ts = ns(e["ts"]);
      EXPECT_TRUE(e["flow_out"].get<bool>());
      if (e.value("flow_in", false)) {
        ASSERT_EQ(chain_ts.count(id), 1U) << "chain without a start";
        EXPECT_LE(chain_ts[id], ts);
        ++arrows;
      } else {
        ASSERT_EQ(chain_ts.count(id), 0U) << "chain started twice";
      }
      chain_ts[id] = ts;
      chain_spans[id].push_back(e["args"]["span"]);
    }
    if (e["ph"] == "s") {
      EXPECT_TRUE(fork_open.emplace(e["id"].get<std::int64_t>(), ns(e["ts"])).second);
    }
    if (e["ph"] == "f") {
      EXPECT_EQ(e["bp"], "e");
      ASSERT_EQ(fork_open.count(e["id"].get<std::int64_t>()), 1U);
      EXPECT_LE(fork_open[e["id"].get<std::int64_t>()], ns(e["ts"]));
      ++arrows;
    }
  }
  EXPECT_EQ(spans, 5 * n);
  EXPECT_EQ(arrows, 4 * n);  // every span but the post has a cause
  // First message: post → early sub-span by time; the read forks off and leads to the wire.
  EXPECT_EQ(chain_spans[1], (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(chain_spans[2], (std::vector<std::int64_t>{2, 4, 5}));
}

TEST_F(TraceSinks, perfetto_times_are_rounded_to_nanoseconds_at_each_end) {
  MadeUpRun run(make_perfetto_sink(dir / "t.json"));
  run.app->span(kSub, {}, 500_ps, 500_ps, 1'499_ps);
  run.app->span(kSub, {}, 1'500_ps, 1'500_ps, 1'234'567'500_ps);
  run.close(0);
  std::vector<std::string> found;
  std::istringstream in(text(dir / "t.json"));
  for (std::string l; std::getline(in, l);)
    if (l.find("\"X\"") != l.npos) found.push_back(l.substr(l.find("\"ts\""), l.find(",\"name\"") - l.find("\"ts\"")));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], R"("ts":0.001,"dur":0)");
  EXPECT_EQ(found[1], R"("ts":0.002,"dur":1234.566)");
}

TEST_F(TraceSinks, perfetto_survives_more_overlap_than_a_track_has_threads) {
  MadeUpRun run(make_perfetto_sink(dir / "t.json"));
  for (int i = 0; i < 1200; ++i) run.dma->span(kSub, {}, 0_ps, 0_ps, 1_us);
  run.close(0);
  std::set<std::int64_t> tids;
  const json trace = json::parse(text(dir / "t.json"));
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == "X") tids.insert(e["tid"].get<std::int64_t>());
  EXPECT_EQ(tids.size(), 1200U);
  EXPECT_EQ(tids.count(2998) + tids.count(2999), 0U);
}

TEST_F(TraceSinks, two_runs_give_the_same_bytes) {
  for (const bool cols : {true, false}) {
    std::string first;
    for (int i = 0; i < 2; ++i) {
      const fs::path file = dir / "t";
      MadeUpRun run(cols ? make_cols_sink(file) : make_perfetto_sink(file));
      run.messages(2000);
      run.close(2000);
      if (i == 0) first = text(file);
      else EXPECT_TRUE(first == text(file));
    }
    EXPECT_GT(first.size(), 10'000U);
  }
}

TEST_F(TraceSinks, perfetto_object_is_complete_even_without_close) {
  {
    MadeUpRun run(make_perfetto_sink(dir / "t.json"));
    run.messages(3);
  }
  EXPECT_GT(json::parse(text(dir / "t.json"))["traceEvents"].size(), 15U);
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(TraceSinks, files_that_cannot_be_written_are_reported_with_their_path) {
  const std::string missing = (dir / "none" / "t.json").string();
  EXPECT_THAT(error_of([&] { make_cols_sink(missing); }), testing::HasSubstr(missing));
  EXPECT_THAT(error_of([&] { make_perfetto_sink(missing); }), testing::HasSubstr(missing));
  EXPECT_THAT(error_of([&] { make_perfetto_sink(dir); }), testing::HasSubstr(dir.string()));
  for (const bool cols : {true, false}) {
    MadeUpRun run(cols ? make_cols_sink("/dev/full") : make_perfetto_sink("/dev/full"));
    EXPECT_THAT(error_of([&] {
                  run.messages(cols ? 100 : 10);
                  run.close(100);
                }),
                testing::AllOf(testing::HasSubstr("/dev/full"), testing::HasSubstr("No space left")));
  }
}

}  // namespace
}  // namespace sim::trace
