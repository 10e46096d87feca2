// SPDX-License-Identifier: Apache-2.0
// What every block may reach: clock and events, trace, statistics, journeys, pools, random streams. First constructor
// argument of each module after its name. There are no globals beside it.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/buffer.h"
#include "sim/jitter.h"
#include "sim/journey.h"
#include "sim/pool.h"
#include "sim/rng.h"
#include "sim/scheduler.h"
#include "sim/stats.h"
#include "sim/task.h"
#include "sim/trace/trace.h"
#include "sim/wqe_tags.h"

namespace sim {

struct Context {
  explicit Context(std::uint64_t run_seed = 1) : seed(run_seed), jitter(run_seed) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Picos now() const { return scheduler.now(); }
  /// `co_await ctx.delay(d)`.
  Delay delay(Picos d) { return {scheduler, d}; }
  /// The random stream of that name; see Rng.
  Rng rng(std::string_view name) const { return {seed, name}; }

  std::uint64_t seed;
  Scheduler scheduler;
  Jitter jitter;
  trace::Tracer tracer;
  Stats stats;
  Journeys journeys;
  WqeTags wqe_tags;
  Pools pools;
  BufferPool buffers;
  FramePool frames;  // last: its destructor ends the flows that still run, which may hold pooled objects
};

inline FramePool& frames_of(Context& context) { return context.frames; }

}  // namespace sim
