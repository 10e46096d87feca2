// SPDX-License-Identifier: Apache-2.0
// The CPU's side of the root complex (stores and loads to device windows), routing of incoming TLPs, and the order of
// posted writes on their way to memory. DMA itself is in dma.cpp.
// Loads of an address that no device claims return all ones and stores to it vanish, as on x86; both are counted.
#include "pcie/root_complex.h"

#include "pcie/trace_points.h"

namespace pcie {
namespace {
constexpr std::uint16_t kRequester = 0;  // 00:00.0
}

RootComplex::RootComplex(sc_core::sc_module_name name, sim::Context& context, const RootComplexConfig& config,
                         memory::HostMemory& memory, std::int32_t host, const std::string& path)
    : sc_module(name),
      context_(context),
      config_(config),
      host_(host),
      memory_(memory),
      tlps_(context.pools.of<Tlp>("TLP")),
      trace_(context, host, path + ".root_complex"),
      read_busy_(context.stats.busy(path + ".root_complex.reads", config.max_reads)),
      malformed_(context.stats.counter(path + ".root_complex.malformed")),
      unexpected_(context.stats.counter(path + ".root_complex.unexpected")),
      unclaimed_(context.stats.counter(path + ".root_complex.unclaimed_mmio")),
      refused_reads_(context.stats.counter(path + ".root_complex.refused_reads")),
      dropped_writes_(context.stats.counter(path + ".root_complex.dropped_writes")),
      interrupts_count_(context.stats.counter(path + ".root_complex.interrupts")) {
  read_ends_.reserve(config.max_reads);
}

void RootComplex::connect(const PcieConfig& slot, memory::Phys bar0, sim::Bytes size) {
  for (const Device& d : devices_) {
    SIM_CHECK(d.bdf != slot.bdf, "two devices with one requester id");
    SIM_CHECK(bar0.v + size.n <= d.window || d.window + d.window_size <= bar0.v, "device windows overlap");
  }
  devices_.push_back(
      {slot.bdf, slot.max_payload_size, slot.max_read_request_size, slot.read_completion_boundary, bar0.v, size.n});
}

RootComplex::Device* RootComplex::device_of(std::uint16_t requester) {
  for (Device& d : devices_)
    if (d.bdf == requester) return &d;
  return nullptr;
}

int RootComplex::device_at(std::uint64_t bus) const {
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (bus - devices_[i].window < devices_[i].window_size) return static_cast<int>(i);
  return -1;
}

void RootComplex::mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) {
  SIM_CHECK(!bytes.empty() && (bus.v & 63) + bytes.size() <= 64, "MMIO store crosses a cache line");
  const int device = device_at(bus.v);
  if (device < 0) return unclaimed_.add();
  TlpPtr tlp = tlps_.make();
  tlp->type = TlpType::MWr;
  tlp->requester = kRequester;
  tlp->address = bus.v;
  tlp->cause = cause;
  tlp->set_inline(bytes);
  send_mmio(std::move(tlp), device);
}

void RootComplex::mmio_read(memory::Phys bus, unsigned size, void (*fn)(void* ctx, std::uint64_t value), void* ctx) {
  SIM_CHECK(size >= 1 && size <= 8 && (bus.v & 63) + size <= 64,
            "MMIO load of more than 8 bytes or across a cache line");
  const std::uint64_t ones = size == 8 ? ~0ULL : (1ULL << (8 * size)) - 1;
  const int device = device_at(bus.v);
  const std::uint32_t index = loads_.put({fn, ctx, ones, static_cast<std::uint32_t>(device < 0 ? 0 : device), false});
  if (device < 0) {
    unclaimed_.add();
    context_.scheduler.after<&RootComplex::finish_load>(config_.mmio_latency + config_.mmio_return_latency, this,
                                                        index);
    return;
  }
  SIM_CHECK(index <= 0xFFFF, "more MMIO loads in flight than tags");
  TlpPtr tlp = tlps_.make();
  tlp->type = TlpType::MRd;
  tlp->address = bus.v;
  tlp->length = size;
  tlp->requester = kRequester;
  tlp->tag = static_cast<std::uint16_t>(index);
  send_mmio(std::move(tlp), device);
}

// Stores and loads keep the order in which they left the cores.
void RootComplex::send_mmio(TlpPtr tlp, int device) {
  sim::Picos at = context_.now() + config_.mmio_latency + context_.jitter.draw(sim::JitterPlace::mmio, host_);
  if (!mmio_.empty()) at = max(at, mmio_.back().at);
  if (at == context_.now() && mmio_.empty()) {
    down[device]->receive(std::move(tlp));
    return;
  }
  if (mmio_.empty()) context_.scheduler.at<&RootComplex::forward_mmio>(at, this);
  mmio_.push_back({at, std::move(tlp), device});
}

void RootComplex::forward_mmio() {
  Mmio m = mmio_.pop_front();
  if (!mmio_.empty()) context_.scheduler.at<&RootComplex::forward_mmio>(mmio_.front().at, this);
  down[m.device]->receive(std::move(m.tlp));
}

void RootComplex::receive(TlpPtr tlp) {
  if (tlp->type == TlpType::Cpl || tlp->type == TlpType::CplD) return return_load(std::move(tlp));
  Device* device = device_of(tlp->requester);
  if (device == nullptr || tlp->type == TlpType::Msg) return unexpected_.add();
  if (tlp->type == TlpType::MRd) return dma_read(*device, std::move(tlp));
  if (tlp->address - kInterruptWindow < kInterruptWindowSize) return interrupt(*device, std::move(tlp));
  dma_write(*device, std::move(tlp));
}

// A load returns after all that the device wrote before its completion is visible.
void RootComplex::return_load(TlpPtr tlp) {
  if (tlp->requester != kRequester || !loads_.holds(tlp->tag) || loads_[tlp->tag].answered) return unexpected_.add();
  Load& load = loads_[tlp->tag];
  load.answered = true;
  if (tlp->status == CplStatus::SC && tlp->length <= sizeof load.value) {
    load.value = 0;
    std::memcpy(&load.value, tlp->bytes().data(), tlp->length);
  }
  const sim::Picos at = max(context_.now() + config_.mmio_return_latency, devices_[load.device].last_write);
  if (at == context_.now()) finish_load(tlp->tag);
  else context_.scheduler.at<&RootComplex::finish_load>(at, this, tlp->tag);
}

void RootComplex::finish_load(std::uint64_t index) {
  commit_due();
  const Load load = loads_.take(index);
  load.fn(load.ctx, load.value);
}

// Writes are sorted by the time at which they become visible; one that overtakes (relaxed ordering) is rare and moves few
// places.
void RootComplex::post(Write w) {
  writes_.push_back(std::move(w));
  for (std::size_t i = writes_.size() - 1; i > 0 && writes_[i].visible < writes_[i - 1].visible; --i)
    std::swap(writes_[i], writes_[i - 1]);
  arm_commit();
}

void RootComplex::arm_commit() {
  if (writes_.empty() || writes_.front().visible >= commit_at_) return;
  commit_at_ = writes_.front().visible;
  context_.scheduler.at<&RootComplex::on_commit>(commit_at_, this);
}

void RootComplex::on_commit() {
  if (context_.now() == commit_at_) commit_at_ = sim::kNever;
  commit_due();
  arm_commit();
}

// Everything that looks at memory on behalf of a device calls this first, so that of two things at one instant the write
// comes first.
void RootComplex::commit_due() {
  const sim::Picos now = context_.now();
  while (!writes_.empty() && writes_.front().visible <= now) {
    const Write w = writes_.pop_front();
    const Tlp& tlp = *w.tlp;
    if (w.interrupt) {
      std::uint32_t data = 0;
      std::memcpy(&data, tlp.bytes().data(), sizeof data);
      trace_.instant(trace_points::kInterrupt, tlp.cause, now, tlp.address, data);
      interrupts_count_.add();
      interrupts->interrupt(tlp.address, data, tlp.cause);
    } else if (memory_.contains(w.phys, tlp.length)) {
      memory_.write(w.phys, tlp.bytes(), tlp.cause);
      if (tlp.cause.critical) context_.journeys.mark(tlp.cause.msg, sim::Stage::visible, now);
    } else {
      drop(tlp);
    }
  }
}

sim::Picos RootComplex::drained(std::uint16_t requester) const {
  for (const Device& d : devices_)
    if (d.bdf == requester) return max(d.last_write, d.last_read);
  return {};
}

}  // namespace pcie
