// SPDX-License-Identifier: Apache-2.0
// Traces of whole runs: where they end, the piece that --trace-last keeps, and the warning of large files.
#include "experiment/trace_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "experiment/run.h"
#include "experiment/scenario.h"

namespace {

namespace fs = std::filesystem;
using namespace sim::literals;
using experiment::Result;
using experiment::TraceOptions;
using nlohmann::json;
using sim::trace::Trigger;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

/// What a native trace says of its spans, and the events of the two programs' side.
struct Trace {
  struct Span {
    std::int64_t enqueued, end;
    bool error;
  };
  std::map<std::int64_t, Span> spans;  // by id
  std::int64_t last_software = 0, t_end = 0;
};

Trace read(const fs::path& file) {
  Trace out;
  std::map<std::int64_t, json> points;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const json b = json::parse(line);
    const std::string k = b.value("k", "");
    if (k == "point") points[b["id"]] = b;
    if (k == "end") out.t_end = b["t_end"];
    if (k == "msg" || !b.contains("n")) continue;
    const auto n = b["n"].get<std::size_t>();
    const auto column = [&](const char* name) {
      return b.contains(name) ? b[name].get<std::vector<std::int64_t>>() : std::vector<std::int64_t>(n, 0);
    };
    const auto ts = column(k == "span" ? "ts" : "t"), dur = column("dur"), wait = column("wait"), id = column("id"),
               point = column("point");
    std::int64_t t = b["t0"];
    for (std::size_t i = 0; i < n; ++i) {
      t += ts[i];
      const json& p = points[point[i]];
      if (std::set<std::string>{"cpu", "kernel", "verbs", "system"}.contains(p["cat"]))
        out.last_software = std::max(out.last_software, t - wait[i]);
      if (k != "span") continue;
      const std::string mark_if = p.contains("mark_if") ? "a" + std::to_string(p["mark_if"].get<int>()) : "";
      const bool error = p.value("mark", "") == "error" && (mark_if.empty() || column(mark_if.c_str())[i] != 0);
      out.spans[b["id0"].get<std::int64_t>() + static_cast<std::int64_t>(i) + id[i]] = {t - wait[i], t + dur[i], error};
    }
  }
  return out;
}

class TraceOutput : public testing::Test {
 protected:
  TraceOutput() : dir_(fs::temp_directory_path() / ("rdmasim_trace_output_" + std::to_string(getpid()))) {
    fs::create_directories(dir_ / "all");
    fs::create_directories(dir_ / "piece");
  }
  ~TraceOutput() override { fs::remove_all(dir_); }

  static TraceOptions formats(const std::vector<std::string>& names) {
    TraceOptions o;
    for (const auto& f : experiment::trace_formats())
      if (std::ranges::find(names, f.name) != names.end()) o.formats.push_back(&f);
    return o;
  }
  /// Runs a scenario and writes a trace to all/ and another one to piece/.
  Result run(const std::string& file, const TraceOptions& all, const TraceOptions& piece = {}) {
    const experiment::Scenario scenario = experiment::load_scenario(RDMASIM_SOURCE_DIR "/scenarios/" + file, {});
    experiment::RunOptions options = experiment::run_options(scenario);
    options.sinks = experiment::make_sinks(all, dir_ / "all");
    for (auto& s : experiment::make_sinks(piece, dir_ / "piece")) options.sinks.push_back(std::move(s));
    return experiment::run(std::move(options), experiment::machine_factory(scenario));
  }
  Result run_with_piece(const std::string& file, Trigger trigger) {
    TraceOptions piece = formats({"json"});
    piece.last = kLength, piece.trigger = trigger;
    const Result r = run(file, formats({"json"}), piece);
    all_ = read(dir_ / "all" / "trace.jsonl"), piece_ = read(dir_ / "piece" / "trace.jsonl");
    return r;
  }
  static std::set<std::int64_t> between(const Trace& t, std::int64_t from, std::int64_t to) {
    std::set<std::int64_t> out;
    for (const auto& [id, s] : t.spans)
      if (s.end >= from && s.enqueued <= to) out.insert(id);
    return out;
  }
  std::set<std::int64_t> piece_ids() const { return between(piece_, 0, std::numeric_limits<std::int64_t>::max()); }
  std::string text(const char* name) const {
    std::ostringstream s;
    s << std::ifstream(dir_ / "all" / name).rdbuf();
    return s.str();
  }

  static constexpr sim::Picos kLength = 10_us;
  fs::path dir_;
  Trace all_, piece_;
};

TEST_F(TraceOutput, EveryFormatEndsWhenTheRunDoesAndNotWithLeftOverTimers) {
  const Result r = run("rc_send_pingpong.json", formats({"json", "perfetto", "vcd"}));
  ASSERT_LT(r.sim_time, 10'000_us);
  EXPECT_EQ(read(dir_ / "all" / "trace.jsonl").t_end, r.sim_time.n);
  EXPECT_EQ(json::parse(text("trace.perfetto.json"))["metadata"]["t_end_ps"], r.sim_time.n);
  const std::string vcd = text("trace.vcd");
  EXPECT_EQ(std::stoll(vcd.substr(vcd.rfind("\n#") + 2)), r.sim_time.n);
}

TEST_F(TraceOutput, OfADeadlockTheRingKeepsWhatCameBeforeTheLastActivity) {
  const Result r = run_with_piece("cases/all_unsignaled_and_a_poll_for_ever.json", Trigger::error);
  ASSERT_EQ(r.verdict, experiment::Verdict::deadlock);
  EXPECT_LT(all_.last_software, r.sim_time.n / 50) << "timers go on long after the last activity";
  EXPECT_EQ(piece_ids(), between(all_, all_.last_software - kLength.n, all_.last_software + kLength.n));
  EXPECT_TRUE(piece_.spans.contains(all_.spans.rbegin()->first)) << "the last span of the run";
  EXPECT_GT(piece_.spans.size(), 50u);
}

TEST_F(TraceOutput, RetriesWithoutEndAreNoActivity) {
  const Result r = run_with_piece("cases/rnr_retry_7_waits_for_ever.json", Trigger::error);
  ASSERT_EQ(r.verdict, experiment::Verdict::deadlock);
  EXPECT_GT(all_.spans.rbegin()->second.end, 1'000 * all_.last_software)
      << "hardware retries till the watchdog ends it";
  EXPECT_EQ(piece_ids(), between(all_, all_.last_software - kLength.n, all_.last_software + kLength.n));
  EXPECT_GT(piece_.spans.size(), 20u);
}

TEST_F(TraceOutput, TheEndAsTriggerKeepsTheLastRetry) {
  run_with_piece("cases/rnr_retry_7_waits_for_ever.json", Trigger::end);
  EXPECT_TRUE(piece_.spans.contains(all_.spans.rbegin()->first));
  for (const auto& [id, s] : piece_.spans) EXPECT_GT(s.end, 1'000 * all_.last_software);
}

TEST_F(TraceOutput, AnErrorComesBeforeEverythingElse) {
  const Result r = run_with_piece("cases/bad_rkey_fails_one_and_flushes_all.json", Trigger::error);
  ASSERT_EQ(r.verdict, experiment::Verdict::ok);
  const auto first = std::ranges::find_if(all_.spans, [](const auto& s) { return s.second.error; });
  ASSERT_NE(first, all_.spans.end());
  ASSERT_LT(first->second.end, all_.last_software / 2);
  EXPECT_EQ(piece_.spans.rbegin()->first, first->first) << "nothing after it";
  for (const auto& [id, s] : piece_.spans) EXPECT_GE(s.end, first->second.enqueued - kLength.n);
  EXPECT_GT(piece_.spans.size(), 50u);
}

TEST_F(TraceOutput, TheDeadlockAsTriggerDoesNotCareAboutErrors) {
  run_with_piece("cases/bad_rkey_fails_one_and_flushes_all.json", Trigger::deadlock);
  EXPECT_EQ(piece_ids(), between(all_, all_.last_software - kLength.n, all_.last_software + kLength.n));
  for (const auto& [id, s] : piece_.spans) EXPECT_FALSE(s.error);
}

TEST_F(TraceOutput, AFileThatGrowsTooLargeIsToldOnceWithWhatHelps) {
  std::vector<std::string> warnings;
  TraceOptions o = formats({"json", "perfetto", "vcd", "pcap"});
  o.size_limit = 2'000'000;
  o.warn = [&](const std::string& text) { warnings.push_back(text); };
  run("rc_send_pingpong.json", o);
  ASSERT_EQ(warnings.size(), 4u) << testing::PrintToString(warnings);
  for (const auto& f : experiment::trace_formats()) {
    const std::string file = (dir_ / "all" / f.file).string();
    ASSERT_GT(fs::file_size(file), 2'000'000u);
    EXPECT_THAT(warnings, Contains(AllOf(HasSubstr(file + " grows beyond 2 MB, and " + f.reader),
                                         HasSubstr("--trace-last"), HasSubstr(f.smaller))));
  }
}

TEST_F(TraceOutput, OfAPackedFileTheUnpackedSizeCountsAndSmallOnesAreFine) {
  std::vector<std::string> warnings;
  TraceOptions o = formats({"json", "pcap"});
  o.compress = true, o.bytes = 80;
  o.warn = [&](const std::string& text) { warnings.push_back(text); };
  TraceOptions small = o;
  o.size_limit = 20'000'000;  // more than the frames, less than the native trace
  run("rc_send_pingpong.json", o, small);
  ASSERT_EQ(warnings.size(), 1u) << testing::PrintToString(warnings);
  EXPECT_LT(fs::file_size(dir_ / "all" / "trace.jsonl.gz"), 20'000'000u);
  EXPECT_THAT(warnings[0], HasSubstr("trace.jsonl.gz grows beyond 20 MB (unpacked)"));
}

}  // namespace
