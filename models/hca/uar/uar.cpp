// SPDX-License-Identifier: Apache-2.0
// A write of eight bytes at the start of a BlueFlame half is a doorbell. A longer copy arrives as 64-byte lines (or the
// pieces of a line that was flushed early); it counts as BlueFlame when the bytes cover the WQE's DS in ascending order,
// and as a plain doorbell when something else touches the half first or it stays incomplete.
#include "hca/uar/uar.h"

#include <algorithm>

#include "hca/trace_points.h"

namespace hca {
namespace {
constexpr std::uint32_t kHalves = prm::kBfRegsPerUar * 2;
}

Uar::Uar(sim::Context& context, const UarConfig& config, CompletionUnit& completions, EventUnit& events,
         std::int32_t host, const std::string& path)
    : context_(context),
      config_(config),
      completions_(completions),
      events_(events),
      allocated_(prm::kUarPages),
      page_slot_(prm::kUarPages, ~0U),
      buffers_(config.bf_buffers),
      trace_(context, host, path),
      doorbells_(context.stats.counter(path + ".doorbells")),
      blueflames_(context.stats.counter(path + ".blueflame")),
      torn_(context.stats.counter(path + ".blueflame_torn")),
      unknown_(context.stats.counter(path + ".unknown_writes")),
      foreign_(context.stats.counter(path + ".foreign_doorbells")) {}

bool Uar::allocate(std::uint32_t& page) {
  for (page = prm::kFirstUar; page < prm::kUarPages; ++page) {
    if (allocated_[page]) continue;
    allocated_[page] = true;
    return true;
  }
  return false;
}

bool Uar::release(std::uint32_t page) {
  if (page >= prm::kUarPages || !allocated_[page]) return false;
  allocated_[page] = false;
  return true;
}

void Uar::write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                sim::Picos t_sent) {
  if (page >= prm::kUarPages || !allocated_[page]) {
    unknown_.add();
    return;
  }
  std::uint32_t word[2] = {0, 0};
  std::memcpy(word, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
  if (offset == prm::kUarCqDoorbell && bytes.size() == 8) {
    if (!completions_.arm(prm::be32(word[0]), prm::be32(word[1]), page)) foreign_.add();
  } else if ((offset == prm::kUarEqDoorbellArm || offset == prm::kUarEqDoorbell) && bytes.size() == 4) {
    if (!events_.doorbell(prm::be32(word[0]), offset == prm::kUarEqDoorbellArm, page)) foreign_.add();
  } else if (offset >= prm::kUarBfBase && offset < prm::kUarBfBase + prm::kBfRegsPerUar * prm::kBfRegSize) {
    bf_write(page, offset - prm::kUarBfBase, bytes, cause, t_sent);
  } else {
    unknown_.add();
  }
}

void Uar::bf_write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause cause,
                   sim::Picos t_sent) {
  if (page_slot_[page] == ~0U) {
    page_slot_[page] = static_cast<std::uint32_t>(assemblies_.size());
    assemblies_.resize(assemblies_.size() + kHalves);
  }
  const std::uint64_t slot = page_slot_[page] + offset / prm::kBfBufSize;
  Assembly& a = assemblies_[slot];
  const auto at = static_cast<std::uint32_t>(offset % prm::kBfBufSize);
  if (a.have > 0 && at != a.have) {  // something else interrupts the copy
    torn_.add();
    ring(a, false);
    a.have = 0;
  }
  if (at == 0) {
    if (bytes.size() < 8) {
      unknown_.add();
      return;
    }
    const auto ds = static_cast<std::uint32_t>(bytes[7]) & 0x3F;
    a.page = page;
    a.t_sent = t_sent;
    a.arrived = context_.now();
    a.cause = cause;
    if (bytes.size() == 8) {
      std::memcpy(a.bytes.data(), bytes.data(), 8);
      ring(a, false);
      return;
    }
    a.need = std::min<std::uint32_t>(ds * prm::kDs, prm::kBfBufSize);
    a.serial = next_serial_++;
    if (bytes.size() < a.need)
      context_.scheduler.after<&Uar::abandon>(config_.bf_assembly_timeout, this, a.serial << 16 | slot);
  } else if (a.have == 0) {
    unknown_.add();  // the tail of a copy that has already been given up
    return;
  }
  std::memcpy(a.bytes.data() + at, bytes.data(), std::min<std::size_t>(bytes.size(), prm::kBfBufSize - at));
  a.have = at + static_cast<std::uint32_t>(bytes.size());
  a.cause = cause;
  if (a.have >= a.need) finish(a);
}

void Uar::finish(Assembly& a) {
  std::uint32_t word[2];
  std::memcpy(word, a.bytes.data(), 8);
  const std::uint32_t qpn = prm::be32(word[1]) >> 8;
  const auto index = static_cast<std::uint16_t>(prm::be32(word[0]) >> 8);
  const std::uint32_t bytes = (prm::be32(word[1]) & 0x3F) * prm::kDs;  // a WQE longer than the register is fetched
  const bool kept = bytes > 0 && bytes <= prm::kBfBufSize && buffers_.keep(qpn, index, a.bytes);
  a.have = 0;
  ring(a, kept);
}

void Uar::abandon(std::uint64_t key) {
  Assembly& a = assemblies_[key & 0xFFFF];
  if (a.have == 0 || a.serial != key >> 16) return;
  torn_.add();
  a.have = 0;
  ring(a, false);
}

// The doorbell that the first eight bytes make.
void Uar::ring(const Assembly& a, bool blueflame) {
  std::uint32_t word[2];
  std::memcpy(word, a.bytes.data(), 8);
  Doorbell d;
  d.uar_page = a.page;
  d.qpn = prm::be32(word[1]) >> 8;
  d.ds = static_cast<std::uint8_t>(prm::be32(word[1]) & 0x3F);
  d.wqe_index = static_cast<std::uint16_t>(prm::be32(word[0]) >> 8);
  d.blueflame = blueflame;
  d.t_sent = a.t_sent;
  d.cause = a.cause;
  doorbells_.add();
  if (blueflame) blueflames_.add();
  const sim::Picos now = context_.now();
  const std::uint64_t span = trace_.span(points::doorbell, a.cause, a.arrived, now, now + config_.doorbell_decode,
                                         d.qpn, d.wqe_index, blueflame ? 1 : 0);
  if (span != 0) d.cause.parent = span;
  sink_->ring(d);
}

}  // namespace hca
