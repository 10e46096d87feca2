// SPDX-License-Identifier: Apache-2.0
// Plain text for a terminal. Times are in nanoseconds with all their picoseconds, because the stages of the breakdown
// have to add up in front of the reader.
#include "experiment/table.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace experiment {
namespace {

constexpr int kLabel = 18;
constexpr int kBar = 30;

[[gnu::format(printf, 1, 2)]] std::string format(const char* f, ...) {
  char buffer[512];
  va_list args;
  va_start(args, f);
  std::vsnprintf(buffer, sizeof buffer, f, args);
  va_end(args);
  return buffer;
}

std::string line(const std::string& label, const std::string& text) {
  return "  " + label +
         std::string(static_cast<std::size_t>(std::max(1, kLabel - static_cast<int>(label.size()))), ' ') + text + "\n";
}

/// 1234567 ps as "1234.567": exact, three decimals.
std::string exact_ns(sim::Picos t) {
  return format("%lld.%03lld", static_cast<long long>(t.n / 1000), static_cast<long long>(t.n % 1000));
}
std::string mean_ns(double ps) { return format("%.3f", ps / 1000.0); }

std::string latency_row(const char* label, const LatencyStats& s) {
  return format("  %-20s %13s %13s %13s %13s %13s %13s\n", label, exact_ns(s.min).c_str(), mean_ns(s.mean_ps).c_str(),
                exact_ns(s.p50).c_str(), exact_ns(s.p99).c_str(), exact_ns(s.p999).c_str(), exact_ns(s.max).c_str());
}

std::string breakdown_table(const Breakdown& b) {
  std::string out = format("\n  where the time of the median message (number %llu) goes, ns\n",
                           static_cast<unsigned long long>(b.median_id));
  out += format("  %-20s%13s%8s %13s\n", "stage", "median", "share", "mean of all");
  // Shown even when it is hidden behind the way of the EQE to memory, so that the chain of an event is whole.
  constexpr auto kMsix = static_cast<std::size_t>(sim::Stage::msix);
  static_assert(kMsix == static_cast<std::size_t>(sim::Stage::eqe_write) + 1);
  std::int64_t longest = 1;
  double mean_total = 0;
  for (const sim::Picos p : b.median) longest = std::max(longest, p.n);
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    mean_total += b.mean_ps[i];
    if (b.median[i].n == 0 && b.mean_ps[i] == 0 && !(i == kMsix && b.mean_ps[kMsix - 1] != 0)) continue;
    const double share =
        b.median_total.n > 0 ? 100.0 * static_cast<double>(b.median[i].n) / static_cast<double>(b.median_total.n) : 0;
    const auto bar =
        static_cast<std::size_t>(std::lround(kBar * static_cast<double>(b.median[i].n) / static_cast<double>(longest)));
    const std::string_view name = sim::name_of(static_cast<sim::Stage>(i));
    out += format("  %-20.*s%13s%7.1f%% %13s  ", static_cast<int>(name.size()), name.data(),
                  exact_ns(b.median[i]).c_str(), share, mean_ns(b.mean_ps[i]).c_str());
    out += std::string(bar, '#') + "\n";
  }
  out +=
      format("  %-20s%13s%7.1f%% %13s\n", "sum", exact_ns(b.median_total).c_str(), 100.0, mean_ns(mean_total).c_str());
  while (out.find(" \n") != std::string::npos) out.erase(out.find(" \n"), 1);
  return out;
}

/// "on the core 3.1 % of 1234.000 ns, asleep 96.0 %, interrupted 0.9 %; 61.7 ns on the core for each message".
std::string cpu_text(const sys::CpuTime& t, std::uint64_t messages) {
  const auto share = [&](sim::Picos part) {
    return 100.0 * static_cast<double>(part.n) / static_cast<double>(t.span.n);
  };
  std::string out = format("on the core %.1f %% of %s ns, asleep %.1f %%, interrupted %.1f %%", share(t.on_cpu),
                           exact_ns(t.span).c_str(), share(t.asleep), share(t.interrupted));
  if (messages > 0)
    out += format("; %.1f ns on the core per message",
                  static_cast<double>(t.on_cpu.n) / 1e3 / static_cast<double>(messages));
  return out;
}

std::string workload_table(const WorkloadResult& w, std::size_t index) {
  std::string out = format("\nworkload %zu: %s (%s)\n", index, w.name.c_str(), w.op.c_str());
  out += line("messages", format("%llu, %llu bytes of payload", static_cast<unsigned long long>(w.messages),
                                 static_cast<unsigned long long>(w.bytes)));
  out += line("bandwidth", format("%.3f Gb/s", w.bandwidth_gbps()));
  out += line("message rate", format("%.6f M/s", w.message_rate_mpps()));
  std::string statuses;
  for (const auto& [name, count] : w.wc_status)
    statuses += (statuses.empty() ? "" : ", ") + name + " " + std::to_string(count);
  out += line("WC statuses", statuses.empty() ? "none" : statuses);
  if (w.client_cpu.span.n > 0) out += line("client", cpu_text(w.client_cpu, w.messages));
  if (w.server_cpu.span.n > 0) out += line("server", cpu_text(w.server_cpu, w.messages));
  if (w.corrupted > 0)
    out += line("CORRUPTED", std::to_string(w.corrupted) + " messages arrived with other bytes than were sent");
  if (!w.latency) return out;
  out +=
      format("\n  %-20s %13s %13s %13s %13s %13s %13s\n", "latency, ns", "min", "mean", "p50", "p99", "p99.9", "max");
  out += latency_row("one way", *w.latency);
  if (w.half_round_trip) out += latency_row("half round trip", *w.half_round_trip);
  if (!w.percentiles_exact) out += "  (percentiles from a uniform sample of the messages)\n";
  if (w.breakdown) out += breakdown_table(*w.breakdown);
  return out;
}

std::string program_table(const ProgramResult& p) {
  std::string out = "\nprogram " + p.name + " on " + p.host + "\n";
  if (p.plugin.empty()) {
    out += line("steps", std::to_string(p.steps) + " done" + (p.finished ? "" : ", waits at " + p.at));
    std::string statuses;
    for (const auto& [name, count] : p.wc_status)
      statuses += (statuses.empty() ? "" : ", ") + name + " " + std::to_string(count);
    out += line("WC statuses", statuses.empty() ? "none" : statuses);
  } else {
    out += line("main()", p.exit_code ? "ended with " + std::to_string(*p.exit_code) : "has not ended by itself");
    out += line("messages", std::to_string(p.messages) +
                                (p.latency ? ", one way p50 " + exact_ns(p.latency->p50) + " ns" : std::string()));
  }
  if (p.cpu.span.n > 0) out += line("cpu", cpu_text(p.cpu, 0));
  for (const auto& [name, t] : p.marks) out += line("mark " + name, exact_ns(t) + " ns");
  for (const ProgramResult::Failure& f : p.failures) out += line("FAILED", f.at + ": " + f.step + ": " + f.message);
  return out;
}

std::string bottleneck_text(const Result& r) {
  const Bottleneck b = bottleneck_of(r.utilisation);
  if (b.resource.empty()) return "no resource was busy";
  const std::string busy = b.resource + format(", busy %.1f %% of the time", 100 * b.utilisation);
  return b.saturated() ? busy : "none saturated; the busiest is " + busy;
}

}  // namespace

std::string to_table(const Result& r) {
  std::string out = "scenario " + r.scenario + (r.description.empty() ? "" : ": " + r.description) + "\n";
  for (const auto& [label, text] : r.summary) out += line(label, text);
  out += line("seed", std::to_string(r.seed));
  for (std::size_t i = 0; i < r.workloads.size(); ++i) out += workload_table(r.workloads[i], i);

  for (const ProgramResult& p : r.programs) out += program_table(p);

  out += "\nrun\n";
  out += line("verdict", std::string(name_of(r.verdict)));
  out += line("simulated time", format("%.6f ms", r.sim_time.s() * 1e3));
  out += line("bottleneck", bottleneck_text(r));
  std::string kernel;
  for (const auto& [core, t] : r.kernel_time)
    if (t.n > 0) kernel += (kernel.empty() ? "" : ", ") + core + " " + exact_ns(t) + " ns";
  if (!kernel.empty()) out += line("interrupts", kernel);
  for (const AsyncEvent& e : r.async_events)
    out += line("async event", e.type + " at " + sim::to_string(e.time) + " on " + e.host + ", " + e.object);
  for (std::size_t i = 0; i < r.outstanding.size(); ++i) out += line(i == 0 ? "waiting" : "", r.outstanding[i]);
  if (r.verdict == Verdict::interrupted) {
    out += line("expectations", "not checked: the run was interrupted");
  } else if (!r.expectations.empty()) {
    const auto met = std::ranges::count_if(r.expectations, &ExpectationResult::met);
    out += line("expectations", format("%td of %zu met", met, r.expectations.size()));
    for (const ExpectationResult& e : r.expectations)
      if (!e.met)
        out += line("NOT MET", e.at + ": expected " + e.expected + ", got " + e.actual +
                                   (e.because.empty() ? "" : " (" + e.because + ")"));
  }
  const double rate = r.simulator.cpu_s > 0 ? static_cast<double>(r.messages()) / r.simulator.cpu_s : 0;
  out += line("simulator",
              format("%.3f s wall, %.3f s CPU, %llu events, %.0f messages per CPU second, %llu MiB", r.simulator.wall_s,
                     r.simulator.cpu_s, static_cast<unsigned long long>(r.simulator.events), rate,
                     static_cast<unsigned long long>(r.simulator.peak_rss_bytes >> 20)));
  return out;
}

}  // namespace experiment
