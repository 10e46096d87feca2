// SPDX-License-Identifier: Apache-2.0
#include "experiment/trace_output.h"

#include <utility>

#include "sim/trace/cols_sink.h"
#include "sim/trace/pcapng_sink.h"
#include "sim/trace/perfetto_sink.h"
#include "sim/trace/ring.h"
#include "sim/trace/vcd_sink.h"

namespace experiment {

namespace fs = std::filesystem;
namespace trace = sim::trace;

const std::vector<TraceFormat>& trace_formats() {
  static const std::vector<TraceFormat> formats{
      {"json", "trace.jsonl", "native trace: columns as JSON lines, exact picoseconds",
       [](const fs::path& p, const TraceOptions& o) { return trace::make_cols_sink(p, o.bytes); }},
      {"perfetto", "trace.perfetto.json", "Chrome trace for ui.perfetto.dev",
       [](const fs::path& p, const TraceOptions&) { return trace::make_perfetto_sink(p); }},
      {"vcd", "trace.vcd", "value change dump for GTKWave and Surfer, with trace.gtkw",
       [](const fs::path& p, const TraceOptions&) { return trace::make_vcd_sink(p); }},
      {"pcap", "trace.pcapng", "frames on the wires for Wireshark, nanoseconds",
       [](const fs::path& p, const TraceOptions& o) { return trace::make_pcapng_sink(p, o.pcap_snaplen); }},
  };
  return formats;
}

fs::path trace_file(const TraceFormat& format, const TraceOptions& options, const fs::path& directory) {
  return directory / (std::string(format.file) + (options.compress ? ".gz" : ""));
}

std::vector<std::unique_ptr<trace::Sink>> make_sinks(const TraceOptions& options, const fs::path& directory) {
  std::vector<std::unique_ptr<trace::Sink>> sinks;
  for (const TraceFormat* f : options.formats) sinks.push_back(f->make(trace_file(*f, options, directory), options));
  const auto behind = [&](auto make) {
    auto front = make(std::exchange(sinks, {}));
    sinks.push_back(std::move(front));
  };
  if (sinks.empty()) return sinks;
  if (options.last > sim::Picos{0}) behind([&](auto s) { return trace::make_ring(options.last, std::move(s)); });
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
