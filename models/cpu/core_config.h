// SPDX-License-Identifier: Apache-2.0
// Costs and sizes of a core.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/barriers.h"
#include "sim/config.h"
#include "sim/units.h"

namespace cpu {

/// How an empty poll passes simulated time; both give identical results.
enum class PollMode : std::uint8_t { fast_forward, spin };

}  // namespace cpu

template <>
struct sim::EnumNames<cpu::PollMode> {
  static constexpr std::array<std::pair<cpu::PollMode, std::string_view>, 2> values{
      {{cpu::PollMode::fast_forward, "fast_forward"}, {cpu::PollMode::spin, "spin"}}};
};

namespace cpu {

struct CoreConfig {
  Arch arch = Arch::x86_64;
  PollMode poll_mode = PollMode::fast_forward;

  sim::Picos store_cost{1'000};
  sim::Picos load_cost{1'000};
  sim::Picos copy_line_cost{4'000};
  sim::Picos lock_cost{6'000};

  std::uint32_t store_buffer_entries = 56;
  sim::Picos store_visible_after{5'000};
  sim::Picos store_drain_interval{350};
  sim::Picos weak_drain_spread{20'000};

  std::uint32_t wc_buffers = 12;
  sim::Picos wc_flush_latency{40'000};
  sim::Picos wc_line_interval{8'000};
  sim::Picos wc_timeout{1'000'000};

  sim::Picos mmio_store_cost{1'250};
  sim::Picos uc_store_cost{5'000};
  sim::Picos uc_store_latency{40'000};
  sim::Picos mmio_load_overhead{20'000};

  sim::Picos sfence_cost{1'700};
  sim::Picos lfence_cost{2'000};
  sim::Picos dmb_cost{17'330};
  sim::Picos dsb_cost{21'070};

  sim::Picos cstate_exit_latency{0};
  sim::Picos cstate_entry{20'000'000};
  sim::Picos noise_interval{0};
  sim::Picos noise_length{5'000'000};

  std::vector<Barrier> omit_barriers;
  std::vector<Barrier> weaken_barriers;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const sim::Range time{0, 1e12};
    v("arch", c.arch, "instruction set and memory model", sim::assumed("most RDMA hosts"));
    v("poll_mode", c.poll_mode, "skip empty polls, or perform each of them; results are identical",
      sim::assumed("fast"));
    v("store_cost", c.store_cost, "time a program spends on one store",
      sim::assumed("store and its address arithmetic"), time);
    v("load_cost", c.load_cost, "load that hits the core's private caches", sim::assumed("pipelined L1 hit"), time);
    v("copy_line_cost", c.copy_line_cost, "memcpy per 64-byte line", sim::assumed("16 GB/s on one core"), time);
    v("lock_cost", c.lock_cost, "uncontended locked instruction, and one turn of a spin loop",
      sim::assumed("about 20 cycles at 3.3 GHz"), time);
    v("store_buffer_entries", c.store_buffer_entries, "stores that may wait to become visible",
      sim::measured("Skylake; travisdowns.github.io, speed limits, 2019"), sim::Range{1, 4096});
    v("store_visible_after", c.store_visible_after,
      "from the execution of a store until others see it, if nothing is ahead",
      sim::assumed("retirement and L1 commit"), time);
    v("store_drain_interval", c.store_drain_interval, "least time between two stores becoming visible",
      sim::assumed("one per cycle at 2.9 GHz"), time);
    v("weak_drain_spread", c.weak_drain_spread,
      "arm64: a store drains up to this much later, at random, so that a later store may overtake it",
      sim::assumed("an LLC hit"), sim::Range{0, 4e9});
    v("wc_buffers", c.wc_buffers, "write-combining buffers of 64 bytes", sim::assumed("line fill buffers of Skylake"),
      sim::Range{1, 64});
    v("wc_flush_latency", c.wc_flush_latency, "from the flush of a write-combining line until it leaves the core",
      sim::assumed("SFENCE that drains one line on a Xeon"), time);
    v("wc_line_interval", c.wc_line_interval, "least time between two lines leaving the core",
      sim::measured("7.99 GB/s write-combining MMIO bandwidth of one core, PCIe 5.0 x16"), time);
    v("wc_timeout", c.wc_timeout, "a partial line leaves by itself this long after the last store to it",
      sim::assumed("unspecified by the architectures"), sim::Range{1, 1e12});
    v("mmio_store_cost", c.mmio_store_cost, "time a program spends on one store to write-combining memory",
      sim::measured("10 ns per 64 B of non-temporal stores, AMD EPYC"), time);
    v("uc_store_cost", c.uc_store_cost, "time a program spends on one store to uncached memory",
      sim::assumed("posted, but serialising"), time);
    v("uc_store_latency", c.uc_store_latency, "from the execution of an uncached store until it leaves the core",
      sim::assumed("as a write-combining line"), time);
    v("mmio_load_overhead", c.mmio_load_overhead, "part of a load from a device that the core itself takes",
      sim::assumed("little beside the PCIe round trip"), time);
    v("sfence_cost", c.sfence_cost, "SFENCE with nothing to wait for",
      sim::measured("5 cycles on Skylake; travisdowns.github.io, random writes, 2019"), time);
    v("lfence_cost", c.lfence_cost, "LFENCE", sim::assumed("about 6 cycles"), time);
    v("dmb_cost", c.dmb_cost, "DMB OSHST or DMB OSHLD",
      sim::measured("ThunderX2, barrier of the message descriptor; Breaking Band, ICPP 2019, table 1"), time);
    v("dsb_cost", c.dsb_cost, "DSB ST with nothing to wait for, or DSB LD",
      sim::measured("ThunderX2, barrier of the doorbell counter; Breaking Band, ICPP 2019, table 1"), time);
    v("cstate_exit_latency", c.cstate_exit_latency,
      "from the wake-up of an idle core to its first instruction, once it has entered its idle state; 0 = it never "
      "does",
      sim::assumed(
          "C-states off, as on hosts tuned for latency; intel_idle has 10 us for C1E and 133 us for C6 of Skylake-SP"),
      time);
    v("cstate_entry", c.cstate_entry, "a core that has had nothing to do for this long enters its idle state",
      sim::spec("intel_idle: target residency of C1E of Skylake-SP"), time);
    v("noise_interval", c.noise_interval,
      "mean time between two pieces of foreign kernel work on the core (interrupts and softirqs of other devices), at "
      "random "
      "from 0 to twice this; 0 = none",
      sim::assumed("nothing else runs on the host"), time);
    v("noise_length", c.noise_length, "length of one piece of foreign kernel work",
      sim::assumed("one network interrupt with its softirq"), sim::Range{1, 1e12});
    v("omit_barriers", c.omit_barriers, "barriers that programs leave out, to see what goes wrong",
      sim::assumed("none"));
    v("weaken_barriers", c.weaken_barriers,
      "barriers replaced by the next weaker instruction (dsb by dmb, others by nothing)", sim::assumed("none"));
  }
};

}  // namespace cpu
