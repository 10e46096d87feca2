// SPDX-License-Identifier: Apache-2.0
// User access region: decodes writes to UAR pages into send doorbells, BlueFlame WQEs, CQ arm and EQ doorbells
// (S-UAR-1…3, S-BF-1…7).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "hca/completion/completion_unit.h"
#include "hca/completion/event_unit.h"
#include "hca/hca_config.h"
#include "hca/uar/blueflame.h"
#include "sim/context.h"

namespace hca {

/// A send doorbell as the scheduler gets it.
struct Doorbell {
  std::uint32_t uar_page = 0;
  std::uint32_t qpn = 0;
  std::uint16_t wqe_index = 0;  ///< of the last posted WQE
  std::uint8_t ds = 0;
  bool blueflame = false;
  sim::Picos t_sent{0};  ///< when the store left the core
  sim::trace::Cause cause;
};
struct DoorbellSink {
  virtual ~DoorbellSink() = default;
  virtual void ring(const Doorbell& doorbell) = 0;
};

class Uar {
 public:
  Uar(sim::Context& context, const UarConfig& config, CompletionUnit& completions, EventUnit& events, std::int32_t host,
      const std::string& path);
  void bind(DoorbellSink& sink) { sink_ = &sink; }

  /// A page that ALLOC_UAR gave out; writes to other pages are counted and ignored.
  bool allocate(std::uint32_t& page);
  bool release(std::uint32_t page);
  void write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
             sim::Picos t_sent);
  BlueflameBuffers& blueflame() { return buffers_; }

 private:
  /// A BlueFlame copy in progress on one half of a register.
  struct Assembly {
    std::array<std::byte, prm::kBfBufSize> bytes{};
    std::uint32_t have = 0, need = 0, page = 0;
    std::uint64_t serial = 0;
    sim::Picos t_sent{0}, arrived{0};
    sim::trace::Cause cause;  ///< of the latest piece
  };
  void bf_write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                sim::Picos t_sent);
  void ring(const Assembly& a, bool blueflame);
  void finish(Assembly& a);
  void abandon(std::uint64_t key);

  sim::Context& context_;
  const UarConfig& config_;
  CompletionUnit& completions_;
  EventUnit& events_;
  DoorbellSink* sink_ = nullptr;
  std::vector<bool> allocated_;
  std::vector<Assembly> assemblies_;      // by half-register slot, see slot_of()
  std::vector<std::uint32_t> page_slot_;  // page → first slot, ~0 = none yet
  BlueflameBuffers buffers_;
  std::uint64_t next_serial_ = 1;
  sim::trace::Source trace_;
  sim::Counter& doorbells_;
  sim::Counter& blueflames_;
  sim::Counter& torn_;
  sim::Counter& unknown_;
  sim::Counter& foreign_;
};

}  // namespace hca
