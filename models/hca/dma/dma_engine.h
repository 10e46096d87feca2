// SPDX-License-Identifier: Apache-2.0
// DMA engine of the HCA: turns reads and writes of bus addresses into TLPs within MPS, MRRS and 4 KiB, with tags and one
// TLP per issue interval, and collects completions. Writes keep their order and so do reads; a write may pass a read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hca/hca_config.h"
#include "memory/address.h"
#include "pcie/endpoint.h"
#include "sim/context.h"
#include "sim/task.h"

namespace hca {

/// Addresses from here on stand for the null memory key: reads give zeros, writes go nowhere.
inline constexpr std::uint64_t kNullIova = 0xFFFF'0000'0000'0000ULL;

/// How a DMA read ended.
enum class DmaStatus : std::uint8_t { ok, failed };

class DmaEngine {
 public:
  using DoneFn = void (*)(void* ctx, std::uint64_t arg, DmaStatus status);

  DmaEngine(sim::Context& context, const DmaConfig& config, std::int32_t host, const std::string& path);
  void bind(pcie::EndpointPort& port) { port_ = &port; }
  sim::Context& context() { return context_; }

  /// Reads n bytes at `at` into dst + offset; fn(ctx, arg, status) when the last byte has arrived. n > 0. Returns its span
  /// as a cause of what waits for it, that of `cause` if it is not recorded.
  std::uint64_t read(memory::Iova at, std::uint32_t n, sim::BufferRef dst, std::uint32_t offset,
                     sim::trace::Cause cause, DoneFn fn, void* ctx, std::uint64_t arg = 0,
                     bool relaxed_ordering = false);
  /// Waits until every read that has been asked for before has ended.
  sim::Task<void> drain();
  /// Posted write of a slice of a shared buffer; the buffer is kept until the last TLP is gone.
  void write(memory::Iova at, std::uint32_t n, const sim::BufferRef& src, std::uint32_t offset, sim::trace::Cause cause,
             bool relaxed_ordering = false);
  /// Posted write of up to 64 bytes (CQE, EQE), copied.
  void write_inline(memory::Iova at, std::span<const std::byte> bytes, sim::trace::Cause cause);
  /// MSI-X message after everything handed over before.
  void raise_msix(std::uint16_t vector, sim::trace::Cause cause);

  /// `co_await dma.fetch(at, n, dst, offset, cause)` → DmaStatus.
  struct Fetch {
    DmaEngine& dma;
    memory::Iova at;
    std::uint32_t n;
    sim::BufferRef dst;
    std::uint32_t offset;
    sim::trace::Cause cause;
    DmaStatus status = DmaStatus::ok;
    std::coroutine_handle<> waiter{};
    bool await_ready() const noexcept { return n == 0; }
    void await_suspend(std::coroutine_handle<> h) {
      waiter = h;
      dma.read(
          at, n, dst, offset, cause,
          [](void* self, std::uint64_t, DmaStatus s) {
            auto* f = static_cast<Fetch*>(self);
            f->status = s;
            f->waiter.resume();
          },
          this);
    }
    DmaStatus await_resume() const noexcept { return status; }
  };
  Fetch fetch(memory::Iova at, std::uint32_t n, sim::BufferRef dst, std::uint32_t offset, sim::trace::Cause cause) {
    return {*this, at, n, std::move(dst), offset, cause};
  }

  /// Completions from the endpoint.
  void completion(pcie::TlpPtr tlp);
  /// Posted writes and interrupts handed over so far; the latest has this number.
  std::uint64_t posted() const { return posted_count_; }
  /// Of these, how many have left for the bus.
  std::uint64_t issued() const { return posted_count_ - posted_.size(); }
  std::uint32_t reads_in_flight() const { return in_flight_; }

 private:
  struct Read {
    DoneFn fn = nullptr;
    void* ctx = nullptr;
    std::uint64_t arg = 0;
    std::uint32_t remaining = 0;  // bytes of the request not yet completed
    bool failed = false;
    sim::trace::Cause cause;
    std::uint64_t span = 0;
    sim::Picos start{0};
    std::uint32_t next_free = 0;
    std::uint8_t epoch = 0;
  };
  struct Job {  // TLP waiting for its issue slot
    pcie::TlpPtr tlp;
    std::uint32_t read = 0;  // index of its Read, for MRd
    sim::Picos not_before{0};
    std::uint16_t vector = 0;  // MSI-X when tlp is empty
    sim::trace::Cause cause;
  };
  std::uint32_t take_read();
  void finish(std::uint32_t r);
  void null_read_done(std::uint64_t r);
  void pump();
  void issue(Job& job);

  sim::Context& context_;
  const DmaConfig& config_;
  pcie::EndpointPort* port_ = nullptr;
  std::vector<Read> reads_;
  std::uint32_t free_read_ = ~0U;
  std::vector<std::uint32_t> tag_read_;  // tag → read
  std::vector<std::uint16_t> free_tags_;
  std::vector<std::uint32_t> tag_bytes_;
  sim::Ring<Job> posted_, reads_waiting_;
  std::uint64_t posted_count_ = 0;
  sim::Picos next_issue_{0};
  sim::Picos pump_at_ = sim::kNever;  // earliest scheduled pump()
  std::uint32_t in_flight_ = 0;
  // Reads belong to the epoch in which they were asked for; draining ends one and waits for its reads.
  std::uint8_t epoch_ = 0;
  std::array<std::uint64_t, 2> epoch_reads_{};
  sim::Semaphore draining_{1};
  sim::Signal epoch_over_;
  sim::trace::Source trace_, tags_trace_;
  sim::Counter& reads_count_;
  sim::Counter& read_bytes_;
  sim::Counter& write_bytes_;
  sim::Counter& failures_;
  sim::BusyTime& busy_;
};

}  // namespace hca
