// SPDX-License-Identifier: Apache-2.0
// Trace points of the CPU model.
#pragma once

#include "sim/trace/trace.h"

namespace cpu::points {

using sim::trace::Category;
using sim::trace::Kind;
using sim::trace::Point;

/// Stores that others do not see yet.
inline constexpr Point store_buffer{"cpu.store_buffer", Category::cpu, Kind::level, {"entries"}};
/// A store that had to wait for an entry.
inline constexpr Point store_stall{"cpu.store_stall", Category::cpu, Kind::span, {}};
/// A write-combining line: opened, flushed, left the core. `reason` is a FlushReason.
inline constexpr Point wc_flush{"cpu.wc_flush", Category::cpu, Kind::span, {"bus", "bytes", "reason"}};
/// A store to uncached device memory, from its execution until it leaves the core.
inline constexpr Point uc_store{"cpu.uc_store", Category::cpu, Kind::span, {"bus", "bytes"}};
/// A load from device memory.
inline constexpr Point mmio_load{"cpu.mmio_load", Category::cpu, Kind::span, {"bus", "value"}};
/// A barrier macro: `barrier` is a Barrier, `instruction` the Instruction that was executed.
inline constexpr Point barrier{"cpu.barrier", Category::cpu, Kind::span, {"barrier", "instruction"}};
/// Empty polls of memory until a write came.
inline constexpr Point poll{"cpu.poll", Category::cpu, Kind::span, {"address"}};
/// What a thread does: compute, sleep in the kernel, poll memory. Kernel work that delays it is on its core's lane.
inline constexpr Point thread_state{"cpu.thread_state", Category::cpu, Kind::state, {}};
/// A core on its way out of its idle state.
inline constexpr Point cstate_exit{"cpu.cstate_exit", Category::cpu, Kind::span, {}};
/// Kernel work (interrupt, softirq) that took the core.
inline constexpr Point kernel_work{"cpu.kernel_work", Category::cpu, Kind::span, {}};

}  // namespace cpu::points
