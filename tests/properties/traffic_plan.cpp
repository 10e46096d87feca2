// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/traffic_plan.h"

#include <algorithm>
#include <initializer_list>

namespace sys::test {
namespace {

template <class T>
T pick(sim::Rng& rng, std::initializer_list<T> from) {
  return from.begin()[rng.below(static_cast<std::uint32_t>(from.size()))];
}

constexpr std::uint32_t kLongest = 100'000;
constexpr std::uint32_t kMostGap = 48;

Shape draw_shape(sim::Rng& rng) {
  Shape s;
  s.mtu = pick(rng, {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096});
  s.qps = 1 + rng.below(4);
  s.send_depth = pick(rng, {1U, 2U, 4U, 8U, 16U});
  s.recv_depth = pick(rng, {1U, 2U, 4U, 8U, 16U});
  s.sges = 1 + rng.below(4);
  s.inline_bytes = pick(rng, {0U, 28U, 60U, 220U, 500U});
  s.slots = 1 + rng.below(4);
  s.rd_atomic = pick<std::uint8_t>(rng, {1, 1, 2, 4, 16});
  s.timeout = static_cast<std::uint8_t>(9 + rng.below(4));
  s.min_rnr_timer = static_cast<std::uint8_t>(1 + rng.below(12));
  s.start_psn = rng.chance(0.3) ? 0xFFFFFF - rng.below(100) : rng.below(1U << 24);
  s.slot_bytes = (kLongest + (s.sges + 1) * kMostGap + 63) / 64 * 64;
  s.events = rng.chance(0.4);
  s.one_cq = rng.chance(0.4);
  s.builders = rng.chance(0.3);
  s.signal_all = rng.chance(0.2);
  s.receiver_pause = rng.chance(0.5) ? 0 : 0.02;
  return s;
}

// Machines whose caches, buffers and prefetches are small half of the time: what hits always cannot go wrong.
ScenarioConfig draw_scenario(sim::Rng& rng, std::uint64_t seed) {
  ScenarioConfig s;
  s.seed = seed;
  for (HostConfig& h : s.hosts) {
    h.kernel.netdev.mtu = sim::Bytes{9000};
    h.core.arch = rng.chance(0.3) ? cpu::Arch::arm64 : cpu::Arch::x86_64;
    h.iommu.mode = pick(rng, {iommu::Mode::off, iommu::Mode::passthrough, iommu::Mode::translated});
    h.pcie.max_payload_size = pick(rng, {128U, 256U, 512U});
    h.pcie.max_read_request_size = pick(rng, {128U, 512U, 4096U});
    h.hca.send.engines = pick(rng, {1U, 4U});
    if (rng.chance(0.5)) {
      h.hca.context.qpc_entries = pick(rng, {1U, 2U});
      h.hca.context.cqc_entries = pick(rng, {1U, 2U});
      h.hca.context.mpt_entries = pick(rng, {1U, 3U});
      h.hca.context.mtt_lines = pick(rng, {1U, 16U});
    }
    if (rng.chance(0.5)) {
      h.hca.uar.bf_buffers = rng.below(2);
      h.hca.send.wqe_prefetch = pick(rng, {1U, 3U, 16U});
      h.hca.send.tx_buffer = sim::Bytes{pick(rng, {4096ULL, 16384ULL})};
      h.hca.receive.rq_prefetch = pick(rng, {1U, 3U});
      h.hca.dma.tags = pick(rng, {1U, 4U});
      h.hca.send.max_outstanding_psn = pick(rng, {2U, 64U});
    }
    if (rng.chance(0.2)) h.env["MLX5_SHUT_UP_BF"] = "1";
  }
  if (rng.chance(0.8)) {  // otherwise an undisturbed link
    fabric::ImpairmentConfig& i = s.fabric.link.impairment;
    const auto rate = [&] { return rng.chance(0.6) ? 0.02 * rng.uniform() : 0; };
    i.drop = rate();
    i.corrupt = rate();
    i.duplicate = rate();
    i.delay = rate();
    i.reorder = rate();
    i.delay_max = pick(rng, {sim::Picos{1'000'000}, sim::Picos{10'000'000}, sim::Picos{100'000'000}});
  }
  return s;
}

std::uint32_t draw_length(sim::Rng& rng, const Shape& s) {
  const std::uint32_t mtu = s.mtu_bytes();
  switch (rng.below(20)) {
    case 0:
      return 0;
    case 1:
      return 1 + rng.below(kLongest);
    case 2:
    case 3:
      return s.inline_bytes == 0 ? 1 : s.inline_bytes - rng.below(2);
    case 4:
    case 5:
    case 6:
    case 7:
      return (1 + rng.below(4)) * mtu - 1 + rng.below(3);
    case 8:
    case 9:
    case 10:
      return 1 + rng.below(4 * mtu);
    default:
      return 1 + rng.below(64);
  }
}

// Cuts `length` bytes into at most `most` pieces; some are empty, and gaps lie between them.
std::vector<Piece> draw_pieces(sim::Rng& rng, std::uint32_t length, std::uint32_t most) {
  if (length == 0 && rng.chance(0.5)) return {};
  std::vector<Piece> pieces;
  const std::uint32_t n = 1 + rng.below(most);
  for (std::uint32_t i = 0, left = length; i < n; ++i) {
    const std::uint32_t take = i + 1 == n ? left : rng.chance(0.2) ? 0 : rng.below(left + 1);
    pieces.push_back({rng.chance(0.5) ? 0 : rng.below(kMostGap), take});
    left -= take;
  }
  return pieces;
}

Message draw_message(sim::Rng& rng, const Shape& s) {
  Message m;
  m.opcode = pick(rng, {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP});
  m.length = m.is_atomic() ? 8 : draw_length(rng, s);
  m.immediate = rng.next();
  m.slot = rng.below(s.slots);
  if (m.is_atomic()) m.gather = {{rng.below(kMostGap), 8}};
  else m.gather = draw_pieces(rng, m.length, s.sges);
  if (rng.chance(0.3)) m.flags |= IBV_SEND_SIGNALED;
  if (rng.chance(0.2)) m.flags |= IBV_SEND_SOLICITED;
  if (rng.chance(0.1)) m.flags |= IBV_SEND_FENCE;
  if (!m.returns_data() && m.length <= s.inline_bytes && rng.chance(0.6)) m.flags |= IBV_SEND_INLINE;
  if (m.takes_receive()) {
    const std::uint32_t spare = rng.chance(0.5) ? 0 : rng.below(kLongest - m.length + 1);
    const std::uint32_t room = m.is_write() ? rng.below(64) : m.length + spare;
    m.scatter = draw_pieces(rng, room, s.sges);
  }
  return m;
}

// What the atomic does to the stream's counter; one compare-and-swap in two finds what it expects (S-ATM-1).
void count(sim::Rng& rng, Message& m, std::uint64_t& counter) {
  const auto draw = [&] { return std::uint64_t{rng.next()} << 32 | rng.next(); };
  m.original = counter;
  m.compare_add = draw();
  m.swap = draw();
  if (m.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    counter += m.compare_add;
  } else if (rng.chance(0.5)) {
    m.compare_add = counter;
    counter = m.swap;
  }
  m.after = counter;
}

}  // namespace

Plan::Plan(std::uint64_t run_seed, std::size_t messages) : seed(run_seed) {
  sim::Rng rng(seed, "traffic plan");
  shape = draw_shape(rng);
  scenario = draw_scenario(rng, seed);
  for (std::vector<Stream>& direction : streams) {
    direction.resize(shape.qps);
    for (Stream& s : direction) {
      const std::size_t n = std::max<std::size_t>(1, messages / (2 * shape.qps));
      std::uint32_t unsignaled = 0;
      std::uint64_t counter = 0;
      for (std::size_t i = 0; i < n; ++i) {
        Message m = draw_message(rng, shape);
        if (m.is_atomic()) count(rng, m, counter);
        // A full queue of unsignaled requests never drains (S-PS-42).
        if (++unsignaled >= shape.send_depth || i + 1 == n) m.flags |= IBV_SEND_SIGNALED;
        if ((m.flags & IBV_SEND_SIGNALED) != 0) unsignaled = 0;
        if (m.takes_receive()) s.receiving.push_back(i);
        s.messages.push_back(std::move(m));
      }
    }
  }
}

}  // namespace sys::test
