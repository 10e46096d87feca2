// SPDX-License-Identifier: Apache-2.0
// Calendar wheel: an event within kBuckets buckets of the current one is pushed on that bucket's list; a later one waits
// in a binary heap and moves in as the wheel turns. Only the current bucket is sorted. A two-level bitmap finds the next
// non-empty bucket, and the bucket width follows the mean gap between events.
#include "sim/scheduler.h"

#include <algorithm>

#include "sim/check.h"

namespace sim {
namespace {
constexpr auto kLater = [](const auto& a, const auto& b) { return b < a; };
constexpr std::uint64_t kTuneEvery = 1U << 16;
constexpr unsigned kMinShift = 6, kMaxShift = 24;
}  // namespace

Scheduler::Scheduler() {
  std::fill(std::begin(bucket_), std::end(bucket_), kNil);
  nodes_.reserve(4096);
  current_.reserve(256);
  far_.reserve(1024);
  retuned_.reserve(4096);
}

void Scheduler::insert(Picos t, std::uint64_t seq, EventFn fn, void* ctx, std::uint64_t arg, bool background) {
  SIM_CHECK(t >= now_, "event scheduled in the past");
  std::uint32_t n;
  if (free_ != kNil) {
    n = free_;
    free_ = nodes_[n].next;
  } else {
    n = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  }
  nodes_[n] = {t, seq, fn, ctx, arg, kNil, background};
  ++pending_;
  place(n);
}

void Scheduler::place(std::uint32_t n) {
  Node& node = nodes_[n];
  const std::uint64_t slot = slot_of(node.t);
  if (slot <= current_slot_) {
    const Key key{node.t, node.seq, n};
    current_.insert(std::upper_bound(current_.begin(), current_.end(), key, kLater), key);
  } else if (slot < current_slot_ + kBuckets) {
    const auto b = static_cast<unsigned>(slot % kBuckets);
    node.next = bucket_[b];
    bucket_[b] = n;
    bitmap_[b / 64] |= 1ULL << (b % 64);
    summary_ |= 1ULL << (b / 64);
    ++in_wheel_;
  } else {
    far_.push_back({node.t, node.seq, n});
    std::push_heap(far_.begin(), far_.end(), kLater);
  }
}

void Scheduler::pull_far_events() {
  while (!far_.empty() && slot_of(far_.front().t) < current_slot_ + kBuckets) {
    std::pop_heap(far_.begin(), far_.end(), kLater);
    const std::uint32_t n = far_.back().node;
    far_.pop_back();
    place(n);
  }
}

// The first non-empty bucket after the current one. The wheel must not be empty.
unsigned Scheduler::next_bucket() const {
  const auto from = static_cast<unsigned>((current_slot_ + 1) % kBuckets);
  unsigned word = from / 64;
  std::uint64_t bits = bitmap_[word] & (~0ULL << (from % 64));
  if (bits == 0) {
    const std::uint64_t later = word == 63 ? 0 : summary_ & (~0ULL << (word + 1));
    word = static_cast<unsigned>(std::countr_zero(later != 0 ? later : summary_));
    bits = bitmap_[word];
  }
  return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
}

Picos Scheduler::earliest_in(unsigned b) const {
  Picos earliest = kNever;
  for (std::uint32_t n = bucket_[b]; n != kNil; n = nodes_[n].next) earliest = min(earliest, nodes_[n].t);
  return earliest;
}

// Makes the next non-empty bucket the current one if its first event is due at or before `limit`; false otherwise. The
// current bucket never moves ahead of the event that runs next: a far timer that merely was looked at would otherwise
// turn every insertion before it into one into the sorted bucket.
bool Scheduler::load_due_bucket(Picos limit) {
  if (in_wheel_ == 0) {
    if (far_.empty() || far_.front().t > limit || far_.front().t == kNever) return false;
    current_slot_ = slot_of(far_.front().t);
    pull_far_events();
    return true;
  }
  const unsigned b = next_bucket();
  if (limit != kNever && earliest_in(b) > limit) return false;
  current_slot_ += 1 + (b + kBuckets - static_cast<unsigned>((current_slot_ + 1) % kBuckets)) % kBuckets;
  for (std::uint32_t n = bucket_[b]; n != kNil; n = nodes_[n].next) {
    current_.push_back({nodes_[n].t, nodes_[n].seq, n});
    --in_wheel_;
  }
  bucket_[b] = kNil;
  bitmap_[b / 64] &= ~(1ULL << (b % 64));
  if (bitmap_[b / 64] == 0) summary_ &= ~(1ULL << (b / 64));
  if (current_.size() > 1) std::sort(current_.begin(), current_.end(), kLater);
  pull_far_events();
  return true;
}

// Bucket width about the mean gap between events, re-chosen now and then; order never depends on it.
void Scheduler::retune() {
  const auto elapsed = static_cast<std::uint64_t>((now_ - tune_start_).n);
  const std::uint64_t gap = std::max<std::uint64_t>(1, elapsed / (executed_ - tune_executed_));
  tune_executed_ = executed_;
  tune_start_ = now_;
  const unsigned want = std::clamp(static_cast<unsigned>(std::bit_width(gap)), kMinShift, kMaxShift);
  if (want + 1 >= shift_ && want <= shift_ + 1) return;
  std::vector<std::uint32_t>& all = retuned_;
  all.clear();
  for (unsigned b = 0; b < kBuckets; ++b) {
    for (std::uint32_t n = bucket_[b]; n != kNil; n = nodes_[n].next) all.push_back(n);
    bucket_[b] = kNil;
  }
  for (const Key& k : current_) all.push_back(k.node);
  for (const Key& k : far_) all.push_back(k.node);
  current_.clear();
  far_.clear();
  std::fill(std::begin(bitmap_), std::end(bitmap_), 0);
  summary_ = 0;
  in_wheel_ = 0;
  shift_ = want;
  current_slot_ = slot_of(now_);
  for (const std::uint32_t n : all) place(n);
}

Picos Scheduler::next_time() const {
  if (!current_.empty()) return current_.back().t;
  if (in_wheel_ != 0) return earliest_in(next_bucket());
  return far_.empty() ? kNever : far_.front().t;
}

bool Scheduler::run_one(Picos limit) {
  if (current_.empty() && !load_due_bucket(limit)) return false;
  const Key key = current_.back();
  if (key.t > limit) return false;
  current_.pop_back();
  const Node node = nodes_[key.node];
  nodes_[key.node].next = free_;
  free_ = key.node;
  --pending_;
  ++executed_;
  now_ = node.t;
  mix(node.t, node.seq);
  background_ = node.background;
  if (!background_) count_work();
  node.fn(node.ctx, node.arg);
  background_ = false;
  if (executed_ - tune_executed_ >= kTuneEvery) retune();
  return true;
}

void Scheduler::advance_to(Picos t) {
  SIM_CHECK(t >= now_ && next_time() >= t, "the clock may not jump over an event");
  now_ = t;
}

void Scheduler::pass_thread(Picos t, std::uint32_t thread) {
  advance_to(t);
  mix(t, kThreadClass | thread);
  count_work();
}

void Scheduler::after_work(std::uint64_t seen, Picos d, EventFn fn, void* ctx, std::uint64_t arg) {
  if (seen == work_) sleepers_.push_back({d, fn, ctx, arg});
  else insert(now_ + d, next_seq_++, fn, ctx, arg, true);
}

void Scheduler::wake_sleepers() {
  for (const Sleeper& s : sleepers_) insert(now_ + s.d, next_seq_++, s.fn, s.ctx, s.arg, true);
  sleepers_.clear();
}

}  // namespace sim
