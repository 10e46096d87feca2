// SPDX-License-Identifier: Apache-2.0
// `rdmasim view`: one HTML file with the viewer and a trace, or two traces side by side.
#include <spdlog/spdlog.h>

#include <charconv>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/page_server.h"
#include "cli/trace_page.h"

namespace cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMB = 1'000'000;
/// Unpacked size from which on a browser needs gigabytes of memory (docs/trace_format.md, "Sizes").
constexpr std::uint64_t kLarge = 500 * kMB;

Options view_options() {
  Options o("rdmasim view DIR|FILE [DIR2|FILE2] [OPTIONS]",
            "Writes one HTML file that shows a trace in a browser, from disk and without a network; with a second "
            "trace, both\n"
            "side by side. DIR is the --out of a run with --trace json (or perfetto), FILE such a trace, plain or .gz.",
            "DIR|FILE, the trace", 2);
  o.add()("out", po::value<std::string>()->value_name("FILE"),
          "the file to write; trace.html beside the trace by default");
  o.add()("serve", po::value<std::string>()->implicit_value("0")->value_name("PORT"),
          "then serve it on 127.0.0.1 until Ctrl-C, on a free port or on --serve=PORT");
  o.add()("page", po::value<std::string>()->value_name("FILE"),
          "the viewer's page; by default the installed one or that of the source tree");
  return o;
}

std::uint16_t port_of(const Options& o) {
  const auto& text = o.get<std::string>("serve");
  std::uint16_t port = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), port);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size())
    throw UsageError("--serve: expected a port from 0 (a free one) to 65535, got \"" + text + "\"");
  return port;
}

fs::path output_of(const Options& o, const std::vector<TraceFile>& traces) {
  fs::path out = o.has("out") ? fs::path(o.get<std::string>("out")) : traces.front().path.parent_path() / "trace.html";
  std::error_code ignore;
  if (fs::is_directory(out, ignore)) throw UsageError(out.string() + ": is a directory; --out names the file to write");
  if (fs::exists(out, ignore) && !fs::is_regular_file(out, ignore)) throw UsageError(out.string() + ": is not a file");
  for (const TraceFile& t : traces)
    if (fs::equivalent(out, t.path, ignore)) throw UsageError(out.string() + ": is the trace itself");
  return out;
}

void warn_of(const std::vector<TraceFile>& traces) {
  for (const TraceFile& t : traces) {
    if (t.damaged)
      spdlog::warn("{} is damaged or cut short after {} unpacked bytes; the page shows what comes before",
                   t.path.string(), t.unpacked);
    if (t.unpacked > kLarge)
      spdlog::warn(
          "{} holds {} MB: a browser may run out of memory; --trace-last, --trace-window, --trace-qpn and other "
          "options of `rdmasim run` record less",
          t.path.string(), t.unpacked / kMB);
  }
}

}  // namespace

int view_command(const Arguments& arguments) {
  Options o = view_options();
  if (!o.parse(arguments)) return kOk;
  const std::uint16_t port = o.has("serve") ? port_of(o) : 0;
  std::vector<TraceFile> traces;
  for (const std::string& p : o.needed_positional()) traces.push_back(find_trace(p));
  const fs::path page = o.has("page") ? fs::path(o.get<std::string>("page")) : find_viewer_page();
  const fs::path out = output_of(o, traces);
  warn_of(traces);
  write_trace_page(page, traces, out);
  std::cout << "wrote " << out.string() << ", " << (fs::file_size(out) + 999) / 1000 << " kB\n" << std::flush;
  if (o.has("serve")) serve_page(out, port);
  return kOk;
}

}  // namespace cli
