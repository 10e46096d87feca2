// SPDX-License-Identifier: Apache-2.0
// WQE decoding after S-WQE-1…11. Software writes the ring, so nothing in a WQE is trusted: segments that run past DS make
// it malformed.
#include "hca/transport/send_wqe.h"

#include <algorithm>

namespace hca {
namespace {
std::uint32_t word(const std::byte* p) {
  std::uint32_t w;
  std::memcpy(&w, p, 4);
  return prm::be32(w);
}
}  // namespace

SendWqe parse_send_wqe(WqeBytes bytes, std::uint8_t service) {
  SendWqe w;
  const std::byte* p = bytes.data();
  w.opmod = static_cast<std::uint8_t>(p[0]);
  w.index = static_cast<std::uint16_t>(word(p) >> 8);
  w.opcode = static_cast<std::uint8_t>(p[3]);
  w.qpn = word(p + 4) >> 8;
  w.ds = wqe_ds(p);
  const auto flags = static_cast<std::uint8_t>(p[11]);
  w.fence = flags >> 5;
  w.signaled = (flags & 0x0C) == MLX5_WQE_CTRL_CQ_UPDATE;
  w.solicited = (flags & MLX5_WQE_CTRL_SOLICITED) != 0;
  std::memcpy(&w.immediate_raw, p + 12, 4);
  if (std::size_t{w.ds} * prm::kDs > bytes.size()) {  // software has changed it since its length was read
    w.malformed = true;
    w.bytes = std::move(bytes);
    return w;
  }
  if (service == prm::kStUd) {
    w.first_data_ds = 4;  // a datagram segment of 48 bytes
  } else {
    std::uint32_t at = 1;  // DS of the next segment
    if (service == prm::kStXrc) {
      if (w.ds > at) w.xrc_srqn = word(p + at * prm::kDs) & 0xFFFFFF;
      ++at;
    }
    if (w.is_write() || w.is_read() || w.is_atomic()) {
      if (w.ds > at) {
        w.remote_va = prm::get64(p, at * prm::kDs);
        w.rkey = word(p + at * prm::kDs + 8);
      }
      ++at;
    }
    if (w.is_atomic()) {
      if (w.ds > at) {
        w.swap_add = prm::get64(p, at * prm::kDs);
        w.compare = prm::get64(p, at * prm::kDs + 8);
      }
      ++at;
    }
    w.first_data_ds = at;
  }
  if (w.is_umr()) w.first_data_ds = w.ds;  // operation segments only
  w.malformed = w.ds < w.first_data_ds;
  for (std::uint32_t at = w.first_data_ds * prm::kDs, end = w.ds * prm::kDs; at < end && !w.malformed;) {
    const std::uint32_t count = word(p + at);
    if ((count & prm::kInlineFlag) != 0) {
      const std::uint32_t n = count & ~prm::kInlineFlag;
      w.malformed = n > end - at - 4;
      w.has_inline = true;
      w.length += n;
      at += (4 + n + prm::kDs - 1) / prm::kDs * prm::kDs;
    } else {
      w.length += count;
      at += prm::kDs;
    }
  }
  w.bytes = std::move(bytes);
  return w;
}

bool signature_holds(const SendWqe& wqe) {
  std::byte x{0};
  for (std::uint32_t i = 0; i < wqe.ds * prm::kDs; ++i) x ^= wqe.bytes.data()[i];
  return x == std::byte{0xFF};
}

GatherCursor::GatherCursor(const std::byte* wqe, std::uint32_t first_data_ds, std::uint32_t ds)
    : wqe_(wqe), at_(first_data_ds * prm::kDs), end_(ds * prm::kDs) {}

bool GatherCursor::load() {
  while (!loaded_ && at_ < end_) {
    const std::uint32_t count = word(wqe_ + at_);
    used_ = 0;
    if ((count & prm::kInlineFlag) != 0) {
      segment_ = {true, count & ~prm::kInlineFlag, 0, at_ + 4};
      at_ += (4 + segment_.length + prm::kDs - 1) / prm::kDs * prm::kDs;
    } else {
      segment_ = {false, count, word(wqe_ + at_ + 4), prm::get64(wqe_, at_ + 8)};
      at_ += prm::kDs;
    }
    loaded_ = segment_.length > 0;
  }
  return loaded_;
}

std::optional<Gather> GatherCursor::next(std::uint32_t limit) {
  if (limit == 0 || !load()) return std::nullopt;
  Gather g = segment_;
  g.va += used_;
  g.length = std::min(limit, segment_.length - used_);
  used_ += g.length;
  loaded_ = used_ < segment_.length;
  return g;
}

void GatherCursor::skip(std::uint64_t bytes) {
  while (bytes > 0) {
    const auto g = next(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 1U << 30)));
    if (!g) return;
    bytes -= g->length;
  }
}

std::optional<Gather> ReceiveCursor::next(std::uint32_t limit) {
  while (left_ > 0 && limit > 0) {
    const std::uint32_t count = word(wqe_), lkey = word(wqe_ + 4);
    if (count == 0 && lkey == prm::kInvalidLkey) return std::nullopt;
    if (used_ < count) {
      const std::uint32_t n = std::min(limit, count - used_);
      const Gather g{false, n, lkey, prm::get64(wqe_, 8) + used_};
      used_ += n;
      return g;
    }
    wqe_ += prm::kDs;
    --left_;
    used_ = 0;
  }
  return std::nullopt;
}

void ReceiveCursor::skip(std::uint32_t bytes) {
  while (bytes > 0) {
    const auto g = next(bytes);
    if (!g) return;
    bytes -= g->length;
  }
}

}  // namespace hca
