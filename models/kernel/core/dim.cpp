// SPDX-License-Identifier: Apache-2.0
// More completions in the same time are better, else more completions per event; a difference of up to a tenth is none. What
// got better goes on, what got worse turns round, and when nothing changes although events hardly collect, the shallowest
// profile is taken again. Rounding is that of Linux.
#include "kernel/core/dim.h"

namespace kernel {

namespace {

std::int64_t round_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool significant(std::int64_t value, std::int64_t reference) {
  constexpr std::int64_t kPercent = 10;
  const std::int64_t difference = value > reference ? value - reference : reference - value;
  return reference != 0 && 100 * difference / reference > kPercent;
}

}  // namespace

bool Dim::event(sim::Picos now, std::uint64_t completions) {
  now_ = {now, now_.events + 1, now_.completions + completions};
  if (state_ == State::apply_new_profile) return false;
  if (state_ == State::measure_in_progress) {
    if (now_.events - start_.events < kDimEvents) return false;
    constexpr std::int64_t kMicro = 1'000'000, kMicrosPerMilli = 1000;
    if (const std::int64_t us = (now_.time - start_.time).n / kMicro; us > 0) {
      Stats s;
      const std::int64_t epms = round_up(static_cast<std::int64_t>(kDimEvents) * kMicrosPerMilli, us);
      s.cpms = round_up(static_cast<std::int64_t>(now_.completions - start_.completions) * kMicrosPerMilli, us);
      s.cpe_ratio = s.cpms * 100 / epms;
      if (decide(s)) {
        state_ = State::apply_new_profile;
        return true;
      }
    }
  }
  state_ = State::measure_in_progress;
  start_ = now_;
  return false;
}

bool Dim::decide(const Stats& current) {
  const std::size_t before = index_;
  constexpr std::int64_t kFewPerStep = 50;
  const Compared result = compare(current, previous_);
  if (result == Compared::same) {
    if (current.cpe_ratio <= kFewPerStep * static_cast<std::int64_t>(before)) index_ = 0;
  } else {
    if (result == Compared::worse) turn();
    if (!step()) turn();
  }
  previous_ = current;
  return index_ != before;
}

Dim::Compared Dim::compare(const Stats& current, const Stats& previous) {
  if (previous.cpms == 0) return Compared::same;  // the first measurement
  if (significant(current.cpms, previous.cpms))
    return current.cpms > previous.cpms ? Compared::better : Compared::worse;
  if (significant(current.cpe_ratio, previous.cpe_ratio))
    return current.cpe_ratio > previous.cpe_ratio ? Compared::better : Compared::worse;
  return Compared::same;
}

/// False at the end of the profiles.
bool Dim::step() {
  if (tune_ == Tune::going_right) {
    if (index_ + 1 == kDimProfiles.size()) return false;
    ++index_;
  } else {
    if (index_ == 0) return false;
    --index_;
  }
  return true;
}

void Dim::turn() { tune_ = tune_ == Tune::going_right ? Tune::going_left : Tune::going_right; }

}  // namespace kernel
