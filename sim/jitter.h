// SPDX-License-Identifier: Apache-2.0
// Random extra delays, drawn anew at each occurrence of a place. A delay that is constant in a run meets a race of one
// iteration of a loop at one point only; jitter meets it everywhere. Off by default, and then free.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "sim/config.h"
#include "sim/rng.h"
#include "sim/units.h"

namespace sim {

/// Where a delay is drawn. Whoever owns a place adds the delay to what the place takes anyway, so that whatever follows it
/// there follows it still: order and causes stay, and stages of latency sum as ever.
enum class JitterPlace : std::uint8_t { step, mmio, dma_write, cqe_write, interrupt, tasklet, wake_up };
inline constexpr std::size_t kJitterPlaces = 7;

struct JitterConfig {
  Picos step{0}, mmio{0}, dma_write{0}, cqe_write{0}, interrupt{0}, tasklet{0}, wake_up{0};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto off = assumed("off");
    const Range range{0, 1e12};
    v("step", c.step, "before each step of a program, and each turn of a workload's loop, on the core", off, range);
    v("mmio", c.mmio, "of each store or load to a device in the root complex; they keep their order", off, range);
    v("dma_write", c.dma_write, "of each write of a device until it is visible; posted writes keep their order", off,
      range);
    v("cqe_write", c.cqe_write, "of building each CQE; those of a CQ keep their order", off, range);
    v("interrupt", c.interrupt, "of the entry of each interrupt handler, on its core", off, range);
    v("tasklet", c.tasklet, "from the end of an interrupt handler to the tasklet, or to irq_poll", off, range);
    v("wake_up", c.wake_up, "from the wake-up of a thread, or a kworker, to the scheduler picking it", off, range);
  }
};

class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : seed_(seed) {}
  void configure(const JitterConfig& c) {
    most_ = {c.step, c.mmio, c.dma_write, c.cqe_write, c.interrupt, c.tasklet, c.wake_up};
  }
  /// Uniform from 0 to what is configured. Each place has a random stream per `lane` (the host, or the number of the
  /// thread), so that what one draws does not move the others.
  Picos draw(JitterPlace p, std::int64_t lane) {
    if (most_[static_cast<std::size_t>(p)].n == 0) [[likely]]
      return {};
    return next(p, lane);
  }

 private:
  Picos next(JitterPlace p, std::int64_t lane);

  std::uint64_t seed_;
  std::array<Picos, kJitterPlaces> most_{};
  std::map<std::uint64_t, Rng> streams_;  // looked up, never iterated
};

}  // namespace sim
