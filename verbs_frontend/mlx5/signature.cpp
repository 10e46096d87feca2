// SPDX-License-Identifier: Apache-2.0
#include "verbs_frontend/mlx5/signature.h"

namespace verbs::mlx5 {
namespace {

constexpr std::size_t kSendSignature = 8, kReceiveSignature = 4, kSegment = 16;

std::uint8_t folded(Machine& m, const std::byte* at, std::size_t n) {
  std::array<std::byte, kSegment> bytes{};
  m.load_bytes(at, bytes.data(), n);
  std::byte x{0};
  for (const std::byte b : bytes) x ^= b;
  return std::to_integer<std::uint8_t>(x);
}

}  // namespace

void sign_send(Machine& m, const WorkQueue& sq, std::byte* ctrl, std::uint32_t ds) {
  std::uint8_t x = 0;
  const std::byte* at = ctrl;
  for (std::uint32_t i = 0; i < ds; ++i, at += kSegment) {
    if (at == sq.end()) at = sq.buf;
    x ^= folded(m, at, kSegment);
  }
  m.store(ctrl + kSendSignature, static_cast<std::uint8_t>(~x));
}

void sign_receive(Machine& m, Qp& qp, std::byte* wqe, int segments, std::uint16_t number) {
  std::uint8_t x = 0;
  for (int i = 0; i <= segments; ++i) x ^= folded(m, wqe + static_cast<std::size_t>(i) * kSegment, kSegment);
  const std::uint32_t qpn = qp.qp().qp_num;
  for (int shift = 0; shift < 32; shift += 8) x ^= static_cast<std::uint8_t>(qpn >> shift);
  x ^= static_cast<std::uint8_t>(number) ^ static_cast<std::uint8_t>(number >> 8);
  m.store(wqe + kReceiveSignature, static_cast<std::uint8_t>(~x));  // three inversions: WQE, QPN, number
}

}  // namespace verbs::mlx5
