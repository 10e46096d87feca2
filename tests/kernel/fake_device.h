// SPDX-License-Identifier: Apache-2.0
// A device that follows hca/prm.h without a data path: it executes commands by reading and writing the memory that the
// driver mapped for it, keeps the contexts, and posts event queue entries when a test asks for them.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "hca/prm.h"
#include "iommu/iommu_prm.h"
#include "memory/host_memory.h"
#include "pcie/root_complex.h"
#include "sim/context.h"

namespace test {

namespace prm = hca::prm;

inline constexpr std::uint64_t kBar0 = 0x8000'0000'0000ULL;

/// An IOMMU that walks the tables the kernel wrote, without a cache.
struct FakeIommu : iommu::IommuControl {
  explicit FakeIommu(sim::Context& c, memory::HostMemory& m) : context(c), memory(m) {}
  void set_root(std::uint16_t, memory::Phys r) override { root = r; }
  sim::Picos invalidate(std::uint16_t, memory::Iova, std::uint64_t pages) override {
    invalidated += pages;
    return context.now() + invalidation_time;
  }
  bool passthrough() const override { return pass; }
  std::optional<memory::Phys> translate(memory::Iova at) const {
    if (pass) return memory::Phys{at.v};
    if (!root) return std::nullopt;
    memory::Phys table = *root;
    for (unsigned level = iommu::kLevels; level-- > 0;) {
      std::uint64_t entry;
      memory.read(table + std::uint64_t{iommu::table_index(at, level)} * 8,
                  std::as_writable_bytes(std::span(&entry, 1)));
      if ((entry & iommu::kPteRead) == 0) return std::nullopt;
      table = {entry & iommu::kPteAddress};
    }
    return table + at.offset();
  }
  sim::Context& context;
  memory::HostMemory& memory;
  std::optional<memory::Phys> root;
  bool pass = false;
  sim::Picos invalidation_time{0};
  std::uint64_t invalidated = 0;
};

class FakeDevice : public pcie::MmioPort {
 public:
  FakeDevice(sim::Context& context, memory::HostMemory& memory, FakeIommu& iommu);

  void mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) override;
  void mmio_read(memory::Phys bus, unsigned size, void (*fn)(void*, std::uint64_t), void* ctx) override;

  struct Eq {
    std::uint32_t log_size = 0, vector = 0, producer = 0;
    std::uint64_t mask = 0;
    bool armed = false;
    std::uint32_t consumer = 0;
    std::vector<std::uint64_t> pages;
  };
  struct UarWrite {
    std::uint32_t page;
    std::uint64_t offset;
    std::vector<std::byte> bytes;
    sim::Picos t;
  };
  /// Writes an EQE into queue `eqn` and raises its vector if the queue is armed.
  void post_eqe(std::uint32_t eqn, prm::Eqe eqe, sim::trace::Cause cause = {});
  void post_completion(std::uint32_t cqn, sim::trace::Cause cause = {});
  void post_async(std::uint8_t type, std::uint32_t number);
  void dma_write(memory::Iova at, const void* data, std::size_t n, sim::trace::Cause cause = {});
  void dma_read(memory::Iova at, void* data, std::size_t n);

  pcie::InterruptSink* sink = nullptr;
  std::map<std::uint32_t, Eq> eqs;
  std::map<std::uint32_t, std::vector<std::byte>> cqs, qps, mkeys, srqs;  // contexts by number
  std::map<std::uint32_t, std::vector<std::uint64_t>> qp_pages, mkey_pages;
  std::map<std::uint32_t, std::uint32_t> qp_opt_mask;  // of the last state change
  std::set<std::uint32_t> pds, uars, xrcds;
  std::map<std::uint32_t, std::array<std::uint8_t, 16>> roce_addresses;
  std::vector<std::uint16_t> opcodes;          // in order of execution
  std::map<std::uint16_t, std::uint8_t> fail;  // next command with that opcode ends with that status
  std::vector<std::uint64_t> icm_pages;
  std::vector<UarWrite> uar_writes;
  std::vector<std::vector<std::byte>> last_input = {};  // inputs, in order of execution
  std::uint32_t icm_wanted = 600;
  std::uint32_t comp_vectors = 4;
  sim::Picos command_time{sim::Picos{5'000'000}};
  bool moderation = true;
  bool removed = false;  // pulled out: loads give all ones, nothing else happens
  bool initialised = false, enabled = false;
  std::uint32_t msix_mask(std::uint32_t vector) const { return msix_[vector * 4 + 3]; }
  std::uint64_t dma_faults = 0;
  unsigned in_flight = 0, most_in_flight = 0;

 private:
  void execute(std::uint64_t slot);
  std::uint8_t run(std::vector<std::byte>& in, std::vector<std::byte>& out);
  std::uint8_t query_caps(std::vector<std::byte>& out);
  std::uint8_t modify_qp(std::uint16_t opcode, const std::vector<std::byte>& in);
  void raise(Eq& eq, sim::trace::Cause cause);
  std::vector<std::uint64_t> page_list(const std::vector<std::byte>& in, std::size_t at);
  void uar_write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes);

  sim::Context& context_;
  memory::HostMemory& memory_;
  FakeIommu& iommu_;
  std::uint32_t queue_high_ = 0;
  memory::Iova queue_{};
  std::array<std::uint32_t, prm::kMsixVectors * 4> msix_{};
  std::uint32_t next_cqn_ = 0x40, next_qpn_ = 0x100, next_mkey_ = 0x10, next_pd_ = 1, next_uar_ = prm::kFirstUar,
                next_srqn_ = 0x80, next_xrcd_ = 1, next_eqn_ = 1;
};

}  // namespace test
