// SPDX-License-Identifier: Apache-2.0
// One direction of a PCIe link. Two of them make a link.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <systemc>

#include "pcie/credit_trace.h"
#include "pcie/credits.h"
#include "pcie/pcie_config.h"
#include "pcie/tlp.h"
#include "sim/context.h"

namespace pcie {

enum class Direction : std::uint8_t { up, down };  ///< up = towards the root complex

/// Takes TLPs, sends them one after another at tlp_rate() as far as the receiver's credits reach, and hands each to `out`
/// when it has arrived. TLPs of one flow-control class keep their order. A TLP that lacks credits waits in the queue of
/// its class; of the others a read never passes an earlier posted write, nor does a completion unless it is marked
/// relaxed ordering, and posted writes pass everything (PCI Express Base Specification, table 2-42).
class Link final : public sc_core::sc_module, public TlpSink {
 public:
  sc_core::sc_port<TlpSink> out;

  /// `receiver` are the credits that the far end advertises. Tracks are "<path>.up", utilisation is "<path>.link.up".
  Link(sc_core::sc_module_name name, sim::Context& context, const LinkConfig& config, const CreditConfig& receiver,
       std::uint32_t max_payload_size, Direction direction, std::int32_t host, const std::string& path);

  /// Sends a TLP; never refuses.
  void receive(TlpPtr tlp) override;

  sim::BitRate rate() const { return meter_.rate(); }
  /// TLPs that wait for credits now.
  std::size_t waiting() const { return waiting_count_; }

 private:
  struct InFlight {
    sim::Picos arrival{0};
    TlpPtr tlp;
  };
  struct Waiting {
    std::uint64_t order = 0;
    TlpPtr tlp;
  };
  static constexpr std::size_t kClasses = 3;

  void start_of_simulation() override;
  void transmit(TlpPtr tlp);
  void trace(Tlp& tlp, sim::Picos start, sim::Picos arrival, std::uint32_t bytes);
  void trace_bytes(const Tlp& tlp, std::uint64_t span, sim::Picos t);
  void deliver();
  void pump();
  void wake();
  void arm_wake();
  bool may_go(std::size_t c) const;
  sim::Picos start_time() const { return max(context_.now(), free_at_); }

  sim::Context& context_;
  const LinkConfig config_;
  sim::RateMeter meter_;
  sim::Picos free_at_{0};  // the wire is busy until then
  sim::Ring<InFlight> wire_;
  ReceiveBuffer buffer_;

  std::array<Credits, kClasses> credits_;
  std::array<sim::Ring<Waiting>, kClasses> queue_;
  std::size_t waiting_count_ = 0;
  std::uint64_t next_order_ = 0;
  sim::Picos wake_at_ = sim::kNever;

  sim::trace::Source trace_, stall_trace_, waiting_trace_, bytes_trace_;
  std::array<CreditTrace, kClasses> credit_trace_;
  sim::BusyTime& busy_;
  sim::Counter& wire_bytes_;
  sim::Counter& stalls_;
  std::array<sim::Counter*, kTlpTypes> tlps_{}, payload_{};
};

}  // namespace pcie
