// SPDX-License-Identifier: Apache-2.0
// Flow-control credits of one class as the transmitter counts them. Returns are kept with the time at which they arrive
// and looked at only when credits run short, so that credit traffic costs no events.
#pragma once

#include <cstdint>

#include "sim/pool.h"
#include "sim/units.h"

namespace pcie {

class Credits {
 public:
  /// Header credits and data credits (units of 16 B) that the receiver advertised; 0 = infinite.
  Credits(std::uint32_t headers, std::uint32_t data)
      : infinite_headers_(headers == 0), infinite_data_(data == 0), headers_(headers), data_(data) {}

  /// Takes one header credit and `data` data credits of those available at time `by`; false (and nothing taken) if short.
  bool take(std::uint32_t data, sim::Picos by) {
    while (!enough(headers_, data_, data)) {
      if (returns_.empty() || returns_.front().at > by) return false;
      const Return r = returns_.pop_front();
      headers_ += r.headers;
      data_ += r.data;
    }
    if (!infinite_headers_) --headers_;
    if (!infinite_data_) data_ -= data;
    return true;
  }
  /// One header credit and `data` data credits come back at `at`; never before an earlier return.
  void give(std::uint32_t data, sim::Picos at) {
    const std::uint32_t headers = infinite_headers_ ? 0 : 1;
    const std::uint32_t units = infinite_data_ ? 0 : data;
    if (headers == 0 && units == 0) return;
    if (!returns_.empty()) at = max(at, returns_.back().at);
    returns_.push_back({at, headers, units});
  }
  /// Whether take() would succeed.
  bool available_by(std::uint32_t data, sim::Picos by) const { return available_at(data) <= by; }
  /// When a TLP with `data` data credits may go, by the returns known now: 0 if it may go at once, kNever if they do
  /// not suffice.
  sim::Picos available_at(std::uint32_t data) const {
    if (enough(headers_, data_, data)) return {};
    std::uint64_t h = headers_, d = data_;
    for (std::size_t i = 0; i < returns_.size(); ++i) {
      h += returns_[i].headers;
      d += returns_[i].data;
      if (enough(h, d, data)) return returns_[i].at;
    }
    return sim::kNever;
  }

 private:
  struct Return {
    sim::Picos at{0};
    std::uint32_t headers = 0, data = 0;
  };
  bool enough(std::uint64_t h, std::uint64_t d, std::uint32_t data) const {
    return (infinite_headers_ || h > 0) && (infinite_data_ || d >= data);
  }

  bool infinite_headers_, infinite_data_;
  std::uint64_t headers_, data_;
  sim::Ring<Return> returns_;
};

}  // namespace pcie
