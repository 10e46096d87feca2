// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/units.h"

namespace cli {
namespace {

namespace po = boost::program_options;
namespace trace = sim::trace;

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    out.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return out;
}

std::vector<std::string> list_of(const Options& o, const char* name) {
  return o.has(name) ? words(o.get<std::string>(name)) : std::vector<std::string>{};
}

std::string known_formats() {
  std::string out;
  for (const auto& f : experiment::trace_formats()) out += (out.empty() ? "" : ", ") + std::string(f.name);
  return out;
}

std::optional<std::uint64_t> number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v, hex ? 16 : 10);
  return r.ec == std::errc{} && r.ptr == text.data() + text.size() && !text.empty() ? std::optional(v) : std::nullopt;
}

std::vector<const experiment::TraceFormat*> formats_of(const Options& o) {
  std::vector<const experiment::TraceFormat*> out;
  std::vector<std::string> known;
  for (const auto& f : experiment::trace_formats()) known.emplace_back(f.name);
  for (const std::string& name : list_of(o, "trace")) {
    const auto f = std::ranges::find_if(experiment::trace_formats(), [&](const auto& t) { return t.name == name; });
    if (f == experiment::trace_formats().end()) throw UsageError(choose("--trace: unknown format", name, known));
    if (std::ranges::find(out, &*f) == out.end()) out.push_back(&*f);
  }
  return out;
}

std::uint32_t categories_of(const Options& o) {
  if (!o.has("trace-categories")) return ~0U;
  std::vector<std::string> known;
  for (std::size_t c = 0; c < trace::kCategories; ++c)
    known.emplace_back(trace::name_of(static_cast<trace::Category>(c)));
  std::uint32_t mask = 0;
  for (const std::string& name : list_of(o, "trace-categories")) {
    const auto at = std::ranges::find(known, name);
    if (at == known.end()) throw UsageError(choose("--trace-categories: unknown category", name, known));
    mask |= 1U << (at - known.begin());
  }
  return mask;
}

std::int32_t host_of(const char* option, const std::string& name, const std::vector<std::string>& hosts) {
  if (name == "fabric") return -1;
  const auto at = std::ranges::find(hosts, name);
  if (at != hosts.end()) return static_cast<std::int32_t>(at - hosts.begin());
  std::vector<std::string> known = hosts;
  known.emplace_back("fabric");
  throw UsageError(choose(std::string(option) + ": unknown host", name, known));
}

trace::Filter::QueuePair qp_of(const std::string& text, const std::vector<std::string>& hosts) {
  trace::Filter::QueuePair out;
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) out.host = host_of("--trace-qpn", text.substr(0, colon), hosts);
  const auto n = number(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!n || *n > 0xFFFFFF)
    throw UsageError("--trace-qpn: expected a QPN such as 0x100 or host0:0x100, got \"" + text + "\"");
  out.qpn = static_cast<std::uint32_t>(*n);
  return out;
}

trace::Filter::Messages messages_of(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *first == 0 || *last < *first)
    throw UsageError("--trace-msg: expected message numbers from 1 such as 7 or 10..19, got \"" + text + "\"");
  return {*first, *last};
}

sim::Picos time_of(const char* option, const std::string& text, const char* example) {
  const auto t = sim::parse_time(text);
  if (!t || t.value.n < 0) throw UsageError(std::string(option) + ": expected " + example + ", got \"" + text + "\"");
  return t.value;
}

void read_window(const Options& o, trace::Filter& f) {
  if (!o.has("trace-window")) return;
  constexpr const char* kExample = "a window such as 10us..20us, 10us.. or ..20us";
  const auto& text = o.get<std::string>("trace-window");
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos)
    throw UsageError(std::string("--trace-window: expected ") + kExample + ", got \"" + text + "\"");
  if (dots != 0) f.from = time_of("--trace-window", text.substr(0, dots), kExample);
  if (dots + 2 != text.size()) f.to = time_of("--trace-window", text.substr(dots + 2), kExample);
  if (f.to < f.from) throw UsageError("--trace-window: \"" + text + "\" ends before it begins");
}

void read_last(const Options& o, experiment::TraceOptions& t) {
  if (o.has("trace-last")) {
    const auto& text = o.get<std::string>("trace-last");
    t.last = time_of("--trace-last", text, "a time such as 50us");
    if (t.last == sim::Picos{0}) throw UsageError("--trace-last: expected more than no time, got \"" + text + "\"");
  }
  if (!o.has("trace-trigger")) return;
  if (!o.has("trace-last")) throw UsageError("--trace-trigger needs --trace-last, how much to keep");
  const std::vector<std::string> known{"error", "deadlock", "end"};
  const auto at = std::ranges::find(known, o.get<std::string>("trace-trigger"));
  if (at == known.end())
    throw UsageError(choose("--trace-trigger: unknown trigger", o.get<std::string>("trace-trigger"), known));
  t.trigger = static_cast<trace::Trigger>(at - known.begin());
}

std::uint32_t bytes_of(const Options& o, const char* option, std::uint32_t otherwise) {
  if (!o.has(option)) return otherwise;
  const auto& text = o.get<std::string>(option);
  const auto n = number(text);
  if (!n || *n > 1'000'000)
    throw UsageError(std::string("--") + option + ": expected bytes from 0 to 1000000, got \"" + text + "\"");
  return static_cast<std::uint32_t>(*n);
}

constexpr const char* kNeedTrace[] = {"trace-categories", "trace-hosts", "trace-qpn",     "trace-msg",
                                      "trace-window",     "trace-last",  "trace-trigger", "trace-compress",
                                      "trace-bytes",      "pcap-snaplen"};

}  // namespace

void add_trace_options(Options& o) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  o.add()("trace", text("LIST"), ("trace formats, comma separated: " + known_formats()).c_str());
  o.add()("trace-categories", text("LIST"), "record only these categories: cpu, pcie, hca, kernel, …");
  o.add()("trace-hosts", text("LIST"), "record only these hosts; \"fabric\" is the network between them");
  o.add()("trace-qpn", text("LIST"), "record only messages and events of these queue pairs: [HOST:]QPN");
  o.add()("trace-msg", text("LIST"), "record only these messages, by number of their post: 7, 10..19");
  o.add()("trace-window", text("FROM..TO"), "record only this window of simulated time: 10us..20us");
  o.add()("trace-last", text("TIME"), "record only this much before the trigger");
  o.add()("trace-trigger", text("error|deadlock|end"),
          "of --trace-last: the first error, or else the deadlock (the default); the last thing that a program or its "
          "kernel did, with TIME after it; the last record of all");
  o.add()("trace-compress", "gzip the trace files");
  o.add()("trace-bytes", text("BYTES"),
          "keep this much of each WQE, CQE, EQE, TLP and frame in the native trace (default 80; 0 = none)");
  o.add()("pcap-snaplen", text("BYTES"), "keep at most this much of each frame; 0 = all (the default)");
}

experiment::TraceOptions trace_options(const Options& o, const std::vector<std::string>& hosts) {
  experiment::TraceOptions t;
  if (!o.has("trace")) {
    for (const char* name : kNeedTrace)
      if (o.has(name)) throw UsageError(std::string("--") + name + " needs --trace, the formats to write");
    return t;
  }
#ifdef RDMASIM_NO_TRACE
  throw UsageError("--trace: this build has no trace points (it was configured with RDMASIM_TRACE=OFF)");
#endif
  t.formats = formats_of(o);
  if (!o.has("out")) throw UsageError("--trace needs --out DIR, the directory for the trace files");
  t.compress = o.has("trace-compress");
  t.categories = categories_of(o);
  for (const std::string& h : list_of(o, "trace-hosts")) t.filter.hosts.push_back(host_of("--trace-hosts", h, hosts));
  for (const std::string& q : list_of(o, "trace-qpn")) t.filter.qps.push_back(qp_of(q, hosts));
  for (const std::string& m : list_of(o, "trace-msg")) t.filter.messages.push_back(messages_of(m));
  read_window(o, t.filter);
  read_last(o, t);
  t.bytes = bytes_of(o, "trace-bytes", 80);
  t.pcap_snaplen = bytes_of(o, "pcap-snaplen", 0);
  return t;
}

}  // namespace cli
