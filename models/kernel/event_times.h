// SPDX-License-Identifier: Apache-2.0
// When the event that announces a completion passed each point on its way to the program (S-CE-13).
#pragma once

#include "sim/journey.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace kernel {

/// Absolute times. The journey of the message is charged only when the program reads the event: a message that a poll
/// finds before did not wait for it.
struct EventTimes {
  sim::Picos eqe{0};            ///< the EQE is in memory
  sim::Picos interrupt{0};      ///< the interrupt that leads to its handling has reached the core
  sim::Picos handler_begin{0};  ///< first instruction of the handler
  sim::Picos handler_end{0};    ///< end of the hard interrupt
  sim::Picos queued{0};         ///< the record is in the channel

  /// Charges the message of `cause` for an event that its reader found at `found` and had at `returned`.
  void charge(sim::Journeys& journeys, const sim::trace::Cause& cause, sim::Picos found, sim::Picos returned) const {
    if (!cause.event) return;
    charge_interrupt(journeys, cause);
    journeys.mark(cause.msg, sim::Stage::tasklet, queued);
    journeys.mark(cause.msg, sim::Stage::wake_up, found);
    journeys.mark(cause.msg, sim::Stage::syscall_return, returned);
  }
  /// The same for a kernel consumer's CQ, whose poll begins at `polled`; `last` is the stage before it.
  void charge_poll(sim::Journeys& journeys, const sim::trace::Cause& cause, sim::Stage last, sim::Picos polled) const {
    if (!cause.event) return;
    charge_interrupt(journeys, cause);
    journeys.mark(cause.msg, last, polled);
  }

 private:
  void charge_interrupt(sim::Journeys& journeys, const sim::trace::Cause& cause) const {
    journeys.mark(cause.msg, sim::Stage::eqe_write, eqe);
    journeys.mark(cause.msg, sim::Stage::msix, interrupt);
    journeys.mark(cause.msg, sim::Stage::irq_entry, handler_begin);
    journeys.mark(cause.msg, sim::Stage::irq_handler, handler_end);
  }
};

}  // namespace kernel
