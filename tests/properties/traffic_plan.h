// SPDX-License-Identifier: Apache-2.0
// What the two programs of a traffic property test will do: drawn from the seed before the run, so that either side knows
// what has to arrive.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/rng.h"
#include "system/scenario.h"

namespace sys::test {

/// Sizes and modes of a run.
struct Shape {
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t qps = 1, send_depth = 4, recv_depth = 4, sges = 1, inline_bytes = 0, slots = 1;
  std::uint8_t rd_atomic = 1, timeout = 10, min_rnr_timer = 1;
  std::uint32_t start_psn = 0;
  std::size_t slot_bytes = 0;  ///< room for the longest message with its gaps
  bool events = false;         ///< completion channel instead of polling
  bool one_cq = false;         ///< all queues of a host share one CQ
  bool builders = false;       ///< ibv_wr_* instead of ibv_post_send
  bool signal_all = false;     ///< sq_sig_all
  double receiver_pause = 0;   ///< chance that a receiver does nothing for a while before it posts again
  std::uint32_t mtu_bytes() const { return 128U << mtu; }
  /// What the peer may read and write of a QP: the slots, then a counter for atomics.
  std::size_t counter_offset() const { return slots * slot_bytes; }
  std::size_t window_bytes() const { return counter_offset() + 64; }
};

/// A piece of a scatter or gather list: `skip` bytes of the slot stay unused in front of it.
struct Piece {
  std::uint32_t skip = 0, length = 0;
};

struct Message {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint32_t length = 0, immediate = 0;
  unsigned flags = 0;      ///< IBV_SEND_*
  std::uint32_t slot = 0;  ///< WRITE and READ: slot of the peer's window
  std::vector<Piece> gather;
  std::vector<Piece> scatter;               ///< of the receive that it takes
  std::uint64_t compare_add = 0, swap = 0;  ///< atomic: operands
  std::uint64_t original = 0, after = 0;    ///< atomic: the counter before and after it

  bool is_atomic() const { return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD; }
  /// READ or atomic: its buffer takes what comes back.
  bool returns_data() const { return is_read() || is_atomic(); }
  bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
  bool is_write() const { return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool has_immediate() const { return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool takes_receive() const { return opcode != IBV_WR_RDMA_WRITE && !returns_data(); }
};

/// What one host sends over one QP.
struct Stream {
  std::vector<Message> messages;
  std::vector<std::size_t> receiving;  ///< those that take a receive, in order
  std::size_t posted = 0;              ///< grows while the run goes on
};

struct Plan {
  /// About `messages` messages in all directions together.
  Plan(std::uint64_t seed, std::size_t messages);

  std::uint64_t seed;
  Shape shape;
  ScenarioConfig scenario;
  std::vector<Stream> streams[2];  ///< [sending host][QP]

  /// Byte `offset` of the payload of a message; of the window before anything was written if `message` is kInitial.
  static std::byte content(int host, std::size_t qp, std::size_t message, std::size_t offset) {
    const std::uint64_t id = (message * 8 + qp) * 2 + static_cast<std::uint64_t>(host);
    return static_cast<std::byte>(id * 131 + id / 251 + offset * 29 + offset / 128);
  }
  static constexpr std::size_t kInitial = 0xABCDEF;
};

}  // namespace sys::test
