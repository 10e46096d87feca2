// SPDX-License-Identifier: Apache-2.0
#include "experiment/trace_output.h"

#include "sim/trace/cols_sink.h"
#include "sim/trace/pcapng_sink.h"
#include "sim/trace/perfetto_sink.h"
#include "sim/trace/vcd_sink.h"

namespace experiment {

const std::vector<TraceFormat>& trace_formats() {
  static const std::vector<TraceFormat> formats{
      {"json", "trace.jsonl", "native trace: columns as JSON lines, exact picoseconds",
       [](const std::filesystem::path& p) { return sim::trace::make_cols_sink(p); }},
      {"perfetto", "trace.perfetto.json", "Chrome trace for ui.perfetto.dev",
       [](const std::filesystem::path& p) { return sim::trace::make_perfetto_sink(p); }},
      {"vcd", "trace.vcd", "value change dump for GTKWave and Surfer, with trace.gtkw",
       [](const std::filesystem::path& p) { return sim::trace::make_vcd_sink(p); }},
      {"pcap", "trace.pcapng", "frames on the wires for Wireshark, nanoseconds",
       [](const std::filesystem::path& p) { return sim::trace::make_pcapng_sink(p); }},
  };
  return formats;
}

const std::vector<TracePointInfo>& trace_points() {
  static const std::vector<TracePointInfo> points{
#include "trace_points.inc"
  };
  return points;
}

}  // namespace experiment
