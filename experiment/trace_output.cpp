// SPDX-License-Identifier: Apache-2.0
#include "experiment/trace_output.h"

#include <utility>

#include "sim/trace/cols_sink.h"
#include "sim/trace/pcapng_sink.h"
#include "sim/trace/perfetto_sink.h"
#include "sim/trace/vcd_sink.h"

namespace experiment {

namespace fs = std::filesystem;
namespace trace = sim::trace;

namespace {

constexpr std::uint64_t kMB = 1'000'000;

std::string how_to_view(const fs::path& p) { return "rdmasim view " + p.parent_path().string(); }
std::string how_perfetto(const fs::path&) { return "open it in https://ui.perfetto.dev"; }
std::string how_gtkwave(const fs::path& p) { return "gtkwave " + (p.parent_path() / "trace.gtkw").string(); }
std::string how_wireshark(const fs::path& p) { return "wireshark " + p.string(); }

trace::SizeAlarm alarm_of(const TraceFormat& f, const TraceOptions& options, const fs::path& file) {
  if (!options.warn) return {};
  const std::uint64_t limit = options.size_limit.value_or(f.limit);
  const std::string text = file.string() + " grows beyond " + std::to_string(limit / kMB) + " MB" +
                           (options.compress ? " (unpacked)" : "") + ", and " + f.reader +
                           " may become slow or run out of memory. Less of the run: --trace-last, --trace-window, "
                           "--trace-qpn, --trace-msg, --trace-hosts, --trace-categories" +
                           f.smaller;
  return {limit, [warn = options.warn, text] { warn(text); }};
}

}  // namespace

const std::vector<TraceFormat>& trace_formats() {
  using trace::SizeAlarm;
  static const std::vector<TraceFormat> formats{
      {"json", "trace.jsonl", "native trace: columns as JSON lines, exact picoseconds", "the viewer", 500 * kMB,
       ", --trace-bytes 0", &how_to_view,
       [](const fs::path& p, const TraceOptions& o, SizeAlarm a) {
         return trace::make_cols_sink(p, o.bytes, std::move(a));
       }},
      {"perfetto", "trace.perfetto.json", "Chrome trace for ui.perfetto.dev", "ui.perfetto.dev", 300 * kMB, "",
       &how_perfetto,
       [](const fs::path& p, const TraceOptions&, SizeAlarm a) { return trace::make_perfetto_sink(p, std::move(a)); }},
      {"vcd", "trace.vcd", "value change dump for GTKWave and Surfer, with trace.gtkw", "GTKWave", 256 * kMB, "",
       &how_gtkwave,
       [](const fs::path& p, const TraceOptions&, SizeAlarm a) { return trace::make_vcd_sink(p, std::move(a)); }},
      {"pcap", "trace.pcapng", "frames on the wires for Wireshark, nanoseconds", "Wireshark", 500 * kMB,
       ", --pcap-snaplen 128", &how_wireshark,
       [](const fs::path& p, const TraceOptions& o, SizeAlarm a) {
         return trace::make_pcapng_sink(p, o.pcap_snaplen, std::move(a));
       }},
  };
  return formats;
}

fs::path trace_file(const TraceFormat& format, const TraceOptions& options, const fs::path& directory) {
  return directory / (std::string(format.file) + (options.compress ? ".gz" : ""));
}

std::vector<std::unique_ptr<trace::Sink>> make_sinks(const TraceOptions& options, const fs::path& directory) {
  std::vector<std::unique_ptr<trace::Sink>> sinks;
  for (const TraceFormat* f : options.formats) {
    const fs::path file = trace_file(*f, options, directory);
    sinks.push_back(f->make(file, options, alarm_of(*f, options, file)));
  }
  const auto behind = [&](auto make) {
    auto front = make(std::exchange(sinks, {}));
    sinks.push_back(std::move(front));
  };
  if (sinks.empty()) return sinks;
  if (options.last > sim::Picos{0})
    behind([&](auto s) { return trace::make_ring(options.last, options.trigger, std::move(s)); });
  if (!options.filter.empty()) behind([&](auto s) { return trace::make_filter(options.filter, std::move(s)); });
  return sinks;
}

const std::vector<TracePointInfo>& trace_points() {
  static const std::vector<TracePointInfo> points{
#include "trace_points.inc"
  };
  return points;
}

}  // namespace experiment
