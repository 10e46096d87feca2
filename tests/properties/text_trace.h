// SPDX-License-Identifier: Apache-2.0
// The adapter's trace records as lines of text, to look into one failing seed (RDMASIM_TRACE=FILE).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "sim/context.h"

namespace sys::test {

class TextTrace final : public sim::trace::Sink {
 public:
  explicit TextTrace(const char* file) : out_(std::fopen(file, "w")) {}
  ~TextTrace() override {
    if (out_ != nullptr) std::fclose(out_);
  }
  using Sink::on;
  void on(const sim::trace::Track& t) override { tracks_[t.id] = t.path; }
  void on(const sim::trace::Span& s) override { line(s.start, s.track, *s.point, s.args); }
  void on(const sim::trace::Instant& i) override { line(i.t, i.track, *i.point, i.args); }
  void close(sim::Picos) override {}

 private:
  void line(sim::Picos t, std::uint32_t track, const sim::trace::Point& p, const std::array<std::uint64_t, 4>& args) {
    if (out_ == nullptr) return;
    std::fprintf(out_, "%12.3f %-22s %-16s", static_cast<double>(t.n) / 1e3, tracks_[track].c_str(), p.name);
    for (std::size_t i = 0; i < 4 && p.args[i] != nullptr; ++i)
      std::fprintf(out_, " %s=%llx", p.args[i], static_cast<unsigned long long>(args[i]));
    std::fputc('\n', out_);
  }
  std::FILE* out_;
  std::map<std::uint32_t, std::string> tracks_;
};

/// Traces adapters and fabric to $RDMASIM_TRACE, if that is set.
inline void trace_to_file(sim::Context& context) {
  const char* file = std::getenv("RDMASIM_TRACE");
  if (file == nullptr) return;
  constexpr auto kHca = static_cast<unsigned>(sim::trace::Category::hca);
  constexpr auto kFabric = static_cast<unsigned>(sim::trace::Category::fabric);
  context.tracer.add_sink(std::make_unique<TextTrace>(file));
  context.tracer.open({}, 1U << kHca | 1U << kFabric);
}

}  // namespace sys::test
