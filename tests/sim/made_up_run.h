// SPDX-License-Identifier: Apache-2.0
// A made-up run for the tests of trace sinks: messages with overlapping spans, spans that are emitted before they start, forks,
// instants, levels, states, packets; and a directory for what the sinks write.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/context.h"
#include "sim/trace/trace.h"

namespace sim::trace {

using namespace sim::literals;
namespace fs = std::filesystem;

inline constexpr Point kWork{"test.work", Category::hca, Kind::span, {"qpn", "bytes"}};
inline constexpr Point kSub{"test.sub", Category::pcie, Kind::span, {}};
inline constexpr Point kBell{"test.bell", Category::hca, Kind::instant, {"qpn"}};
inline constexpr Point kDepth{"test.depth", Category::hca, Kind::level, {"entries"}};
inline constexpr Point kMode{"test.mode", Category::hca, Kind::state, {}};
inline constexpr Point kFrame{"test.frame", Category::fabric, Kind::packet, {}};

struct TraceSinks : testing::Test {
  TraceSinks() : dir(fs::temp_directory_path() / ("rdmasim_trace_" + std::to_string(::getpid()))) {
    fs::create_directories(dir);
  }
  ~TraceSinks() override { fs::remove_all(dir); }
  static std::string text(const fs::path& p) {
    std::ifstream f(p, std::ios::binary);
    std::ostringstream s;
    s << f.rdbuf();
    return s.str();
  }
  static RunInfo info() {
    return {"ping \"pong\"\n", "1.2.3", 42, {"host0", "host1"}, "{ \"a\" : [1, 2],\n \"s\": \"x \\\" y\" }"};
  }
  fs::path dir;
};

struct MadeUpRun {
  explicit MadeUpRun(std::unique_ptr<Sink> sink) {
    context.tracer.add_sink(std::move(sink));
    app.emplace(context, 0, "host0.app", TrackKind::exclusive);
    dma.emplace(context, 0, "host0.dma", TrackKind::pipelined);
    wire.emplace(context, -1, "wire", TrackKind::pipelined);
    depth.emplace(context, 0, "host0.sq", TrackKind::counter);
    mode.emplace(context, 1, "host1.qp", TrackKind::state, std::vector<std::string>{"RESET", "RTS"});
    context.tracer.open(TraceSinks::info());
  }
  void messages(int n) {
    Rng rng(1, "test");
    for (int i = 0; i < n; ++i) {
      const Picos t{i * 1'000'333LL};
      const MsgId m = context.journeys.begin(t, 3, 2, 64);
      const auto post = app->span(kWork, {m, 0}, t, t, t + 64'499_ps, 7, 64);
      app->instant(kBell, {m, post}, t + 64'499_ps, 7);
      // Emitted in any order of start, and overlapping the neighbours'.
      const Picos d{rng.below(3'000'000)};
      const auto read = dma->span(kSub, {m, post}, t + 64'499_ps, t + 100'000_ps + d, t + 900'000_ps + 2 * d);
      dma->span(kSub, {m, post}, t + 64'499_ps, t + 70'500_ps, t + 70'501_ps);
      const auto sent =
          wire->span(kWork, {m, read}, t + 900'000_ps + 2 * d, t + 900'000_ps + 2 * d, t + 950'000_ps + 2 * d, 7, 64);
      wire->span(kWork, {m, sent}, t + 2'000'000_ps + 2 * d, t + 2'000'000_ps + 2 * d, t + 2'000'000_ps + 2 * d, 7, 0);
      depth->level(kDepth, t, i % 5);
      mode->state(kMode, t, static_cast<std::uint32_t>(i % 2));
      const std::byte frame[70]{};
      wire->packet(kFrame, m, t + 900'000_ps, t + 800'000_ps, true, m, frame);
      Journey j;
      j.id = m, j.flow = 3, j.opcode = 2, j.bytes = 64, j.poster = {0, 7, 1000 + m}, j.start = t,
      j.last = t + 10'000'000_ps;
      j.stage[static_cast<std::size_t>(Stage::wire)] = 9'000'000_ps;
      j.stage[static_cast<std::size_t>(Stage::poll)] = 1'000'000_ps;
      context.tracer.emit(j);
    }
  }
  void close(int n) { context.tracer.close(Picos{n * 1'000'333LL + 20'000'000}); }
  Context context;
  std::optional<Source> app, dma, wire, depth, mode;
};

}  // namespace sim::trace
