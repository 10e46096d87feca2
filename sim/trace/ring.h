// SPDX-License-Identifier: Apache-2.0
// Keeps the last piece of a trace before something goes wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/trace/trace.h"

namespace sim::trace {

/// What the kept piece is about.
enum class Trigger : std::uint8_t {
  error,     ///< the first record that is marked as an error; when there is none, as `deadlock`
  deadlock,  ///< the last thing that a program or its kernel did: what hardware retries for ever afterwards does not count
  end,       ///< the last record of the run
};

/// Holds records back and hands on those of one piece: of an error the `length` before it, of a deadlock or the end `length` before
/// and as much after. Levels and states that held when the piece begins are in it, and messages that lived in it, whenever they
/// end.
std::unique_ptr<Sink> make_ring(Picos length, Trigger trigger, std::vector<std::unique_ptr<Sink>> sinks);

}  // namespace sim::trace
