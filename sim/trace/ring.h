// SPDX-License-Identifier: Apache-2.0
// Keeps the last piece of a trace before something goes wrong.
#pragma once

#include <memory>
#include <vector>

#include "sim/trace/trace.h"

namespace sim::trace {

/// Holds the records of the last `length` back. At the first record that is marked as an error, or at the end of the run when
/// there is none (a deadlock, say), it hands them on, and nothing that comes later. Levels and states that held when the piece
/// begins are in it.
std::unique_ptr<Sink> make_ring(Picos length, std::vector<std::unique_ptr<Sink>> sinks);

}  // namespace sim::trace
