// SPDX-License-Identifier: Apache-2.0
// Any bytes as a send WQE and as a receive WQE: the decoder and the cursors stay inside them, and agree with each other.
#include <algorithm>
#include <cstring>

#include "hca/transport/send_wqe.h"
#include "sim/check.h"

namespace {

void walk(const hca::SendWqe& wqe) {
  const auto step = static_cast<std::uint32_t>(wqe.length / 50 + 1);
  hca::GatherCursor cursor(wqe.bytes.data(), wqe.first_data_ds, wqe.ds);
  std::uint64_t sum = 0;
  while (const auto g = cursor.next(step)) {
    SIM_CHECK(g->length > 0 && g->length <= step, "a piece of no or too many bytes");
    if (g->inline_data)
      SIM_CHECK(g->va + g->length <= std::uint64_t{wqe.ds} * hca::prm::kDs, "inline data beyond the WQE");
    sum += g->length;
  }
  SIM_CHECK(sum == wqe.length, "the segments do not add up to the message");
  hca::GatherCursor skipping(wqe.bytes.data(), wqe.first_data_ds, wqe.ds);
  skipping.skip(wqe.length);
  SIM_CHECK(!skipping.next(1), "bytes are left behind the last");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static sim::BufferPool pool;
  if (size < hca::prm::kDs || size > 1024) return 0;
  const sim::BufferRef buffer = pool.make(size);
  std::memcpy(buffer.data(), data, size);
  const hca::SendWqe wqe = hca::parse_send_wqe({buffer, 0});
  if (!wqe.malformed) walk(wqe);

  hca::ReceiveCursor receive(buffer.data(), static_cast<std::uint32_t>(size / hca::prm::kDs));
  constexpr std::uint32_t kStep = 1U << 28;
  while (const auto g = receive.next(kStep)) SIM_CHECK(g->length > 0 && g->length <= kStep, "a piece of no bytes");
  return 0;
}
