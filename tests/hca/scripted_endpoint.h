// SPDX-License-Identifier: Apache-2.0
// An endpoint that records what the device sends and completes reads when the test says so, from a small memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hca/context/context_cache.h"
#include "hca/dma/dma_engine.h"
#include "pcie/endpoint.h"
#include "sim/context.h"

namespace hca::test {

struct ScriptedEndpoint final : pcie::EndpointPort {
  struct Write {
    sim::Picos t{0};
    std::uint64_t address = 0;
    std::vector<std::byte> bytes;
    bool relaxed = false;
  };
  struct Request {
    sim::Picos t{0};
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint16_t tag = 0;
    sim::BufferRef buffer;
    std::uint32_t offset = 0;
  };

  explicit ScriptedEndpoint(sim::Context& c) : context(c) {}
  void send(pcie::TlpPtr tlp) override {
    if (tlp->type == pcie::TlpType::MWr) {
      const auto b = tlp->bytes();
      writes.push_back({context.now(), tlp->address, {b.begin(), b.end()}, tlp->relaxed_ordering});
      order.push_back('w');
      for (std::size_t i = 0; i < b.size(); ++i) memory[tlp->address + i] = b[i];
      return;
    }
    reads.push_back({context.now(), tlp->address, tlp->length, tlp->tag, tlp->buffer, tlp->buffer_offset});
    order.push_back('r');
    if (answer) {
      pending.push_back(reads.size() - 1);
      context.scheduler.after(
          latency,
          [](void* self, std::uint64_t) {
            auto* e = static_cast<ScriptedEndpoint*>(self);
            const std::size_t next = e->pending.front();
            e->pending.erase(e->pending.begin());
            e->complete(next);
          },
          this);
    }
  }
  pcie::TlpPtr make_tlp() override { return tlps.make(); }
  void raise_msix(std::uint16_t vector, sim::trace::Cause) override {
    interrupts.emplace_back(context.now(), vector);
    order.push_back('i');
  }
  std::uint32_t max_payload_size() const override { return mps; }
  std::uint32_t max_read_request_size() const override { return mrrs; }
  std::uint16_t requester_id() const override { return 0x3b00; }

  /// Completes bytes [from, from + n) of a read; all of it by default.
  void complete(std::size_t read, std::uint32_t from = 0, std::uint32_t n = ~0U,
                pcie::CplStatus status = pcie::CplStatus::SC) {
    const Request r = reads[read];
    n = std::min(n, r.length - from);
    pcie::TlpPtr tlp = tlps.make();
    tlp->type = status == pcie::CplStatus::SC ? pcie::TlpType::CplD : pcie::TlpType::Cpl;
    tlp->status = status;
    tlp->tag = r.tag;
    tlp->byte_offset = from;
    tlp->length = n;
    if (status == pcie::CplStatus::SC)
      for (std::uint32_t i = 0; i < n; ++i) r.buffer.data()[r.offset + from + i] = memory[r.address + from + i];
    dma->completion(std::move(tlp));
  }
  void set32(std::uint64_t at, std::uint32_t big_endian_value) {
    for (int i = 0; i < 4; ++i)
      memory[at + static_cast<std::uint64_t>(i)] = static_cast<std::byte>(big_endian_value >> (24 - 8 * i));
  }

  sim::Context& context;
  sim::Pool<pcie::Tlp> tlps{"TLP"};
  DmaEngine* dma = nullptr;
  std::map<std::uint64_t, std::byte> memory;
  std::vector<Write> writes;
  std::vector<Request> reads;
  std::vector<std::size_t> pending;
  std::vector<std::pair<sim::Picos, std::uint16_t>> interrupts;
  std::string order;  ///< w, r, i as sent
  std::uint32_t mps = 256, mrrs = 512;
  bool answer = false;
  sim::Picos latency{500'000};
};

/// A context, a scripted endpoint and a DMA engine on it.
struct DmaBench {
  explicit DmaBench(const DmaConfig& c = {}) : config(c) {
    dma.bind(endpoint);
    endpoint.dma = &dma;
  }
  ~DmaBench() { context.frames.destroy_flows(); }
  void run(sim::Picos until = sim::kNever) {
    while (context.scheduler.run_one(until)) {}
  }
  sim::Context context;
  const DmaConfig config;
  ScriptedEndpoint endpoint{context};
  DmaEngine dma{context, config, 0, "dma"};
};

}  // namespace hca::test
