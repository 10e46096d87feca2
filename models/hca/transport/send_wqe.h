// SPDX-License-Identifier: Apache-2.0
// A send WQE as the requester reads it: control fields, remote address, and a cursor over its data segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "hca/prm.h"
#include "sim/buffer.h"

namespace hca {

/// Bytes of one WQE, contiguous.
struct WqeBytes {
  sim::BufferRef buffer;
  std::uint32_t offset = 0;
  const std::byte* data() const { return buffer.data() + offset; }
  std::size_t size() const { return buffer.size() - offset; }
};

/// A piece of the message as a data segment gives it.
struct Gather {
  bool inline_data = false;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
  std::uint64_t va = 0;  ///< address, or byte offset in the WQE when inline
};

struct SendWqe {
  WqeBytes bytes;
  std::uint8_t opcode = 0, opmod = 0, ds = 0, fence = 0;
  std::uint16_t index = 0;
  std::uint32_t qpn = 0;
  bool signaled = false, solicited = false;
  std::uint32_t immediate_raw = 0;  ///< ctrl bytes 12..15 as they lie in memory
  std::uint64_t remote_va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t xrc_srqn = 0;               ///< XRC: the SRQ that is to receive
  std::uint64_t swap_add = 0, compare = 0;  ///< atomics
  std::uint32_t first_data_ds = 1;          ///< where the data segments begin
  std::uint64_t length = 0;                 ///< sum of the data segments
  bool has_inline = false;
  bool malformed = false;  ///< a segment does not fit into DS
  /// Its own bytes, as far as they were read.
  std::span<const std::byte> image() const {
    return {bytes.data(), std::min<std::size_t>(std::size_t{ds} * prm::kDs, bytes.size())};
  }

  bool is_send() const {
    return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_SEND_INVAL;
  }
  bool is_write() const { return opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM; }
  bool is_read() const { return opcode == MLX5_OPCODE_RDMA_READ; }
  bool is_atomic() const { return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA; }
  bool is_umr() const { return opcode == MLX5_OPCODE_UMR; }
  bool has_immediate() const { return opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_RDMA_WRITE_IMM; }
};

/// DS of the control segment at `ctrl`, 0..63.
inline std::uint8_t wqe_ds(const std::byte* ctrl) { return static_cast<std::uint8_t>(ctrl[7]) & 0x3F; }
/// WQEBBs that a WQE of `ds` 16-byte units takes.
constexpr std::uint32_t wqe_basic_blocks(std::uint32_t ds) { return (ds + 3) / 4; }

/// Decodes a WQE of a QP of this service (prm::QpcService), of which at least the control segment is there. Never reads beyond
/// DS or the bytes that were read.
SendWqe parse_send_wqe(WqeBytes bytes, std::uint8_t service = prm::kStRc);

/// Whether the XOR of the WQE's bytes, its signature among them, is all ones.
bool signature_holds(const SendWqe& wqe);

/// Walks the data segments of a WQE.
class GatherCursor {
 public:
  GatherCursor(const std::byte* wqe, std::uint32_t first_data_ds, std::uint32_t ds);
  /// Up to `limit` bytes of the next segment; empty at the end.
  std::optional<Gather> next(std::uint32_t limit);
  void skip(std::uint64_t bytes);

 private:
  bool load();
  const std::byte* wqe_;
  std::uint32_t at_, end_;
  Gather segment_;
  std::uint32_t used_ = 0;
  bool loaded_ = false;
};

/// Walks the segments of a receive WQE; ends at the terminator or after `max_segments`.
class ReceiveCursor {
 public:
  ReceiveCursor(const std::byte* wqe, std::uint32_t max_segments) : wqe_(wqe), left_(max_segments) {}
  std::optional<Gather> next(std::uint32_t limit);
  void skip(std::uint32_t bytes);

 private:
  const std::byte* wqe_;
  std::uint32_t left_, used_ = 0;
};

}  // namespace hca
