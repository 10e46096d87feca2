// SPDX-License-Identifier: Apache-2.0
// Endpoint: decodes BAR0, answers register reads, steers completions to the device function and owns the MSI-X table.
// TLPs that are not for this function are counted and dropped; reads of that kind complete as UR.
// Not modelled: configuration space beyond the MSI-X control word, further BARs, functions beyond the first.
#include "pcie/endpoint.h"

#include "pcie/trace_points.h"

namespace pcie {

namespace {
constexpr sim::Picos kRefusal{100'000};  // inside a device that is gone: nobody sees when
}

Endpoint::Endpoint(sc_core::sc_module_name name, sim::Context& context, const PcieConfig& config,
                   const BarLayout& layout, std::int32_t host, const std::string& path)
    : sc_module(name),
      context_(context),
      config_(config),
      layout_(layout),
      tlps_(context.pools.of<Tlp>("TLP")),
      msix_(layout.msix_vectors),
      trace_(context, host, path + ".msix", sim::trace::TrackKind::instant),
      unexpected_(context.stats.counter(path + ".endpoint.unexpected")),
      unsupported_(context.stats.counter(path + ".endpoint.unsupported")),
      msix_sent_(context.stats.counter(path + ".endpoint.msix")),
      msix_held_(context.stats.counter(path + ".endpoint.msix_masked")),
      lost_(context.stats.counter(path + ".endpoint.lost")) {}

void Endpoint::send(TlpPtr tlp) {
  tlp->requester = config_.bdf;
  if (removed_) return lose(std::move(tlp));
  up->receive(std::move(tlp));
}

// Nothing of a removed device reaches the host. Its reads come back as unsupported, so that no unit of it waits for ever.
void Endpoint::lose(TlpPtr tlp) {
  lost_.add();
  if (tlp->type != TlpType::MRd) return;
  tlp->type = TlpType::Cpl;
  tlp->status = CplStatus::UR;
  tlp->length = 0;
  tlp->last_completion = true;
  refused_.push_back(std::move(tlp));
  context_.scheduler.after<&Endpoint::return_refused>(kRefusal, this);
}

void Endpoint::return_refused() { function->completion(refused_.pop_front()); }

void Endpoint::raise_msix(std::uint16_t vector, sim::trace::Cause cause) {
  const auto message = msix_.raise(vector);
  trace_.instant(trace_points::kMsix, cause, context_.now(), vector, message ? message->data : 0U, message ? 0U : 1U);
  if (!message) return msix_held_.add();
  msix_sent_.add();
  TlpPtr tlp = tlps_.make();
  tlp->type = TlpType::MWr;
  tlp->address = message->address;
  tlp->cause = cause;
  tlp->set_inline(std::as_bytes(std::span(&message->data, 1)));
  send(std::move(tlp));
}

void Endpoint::receive(TlpPtr tlp) {
  if (removed_ && tlp->type == TlpType::MWr) return lost_.add();
  if (tlp->type == TlpType::Cpl || tlp->type == TlpType::CplD) {
    if (tlp->requester != config_.bdf) return unexpected_.add();
    function->completion(std::move(tlp));
    return;
  }
  const std::uint64_t offset = tlp->address - layout_.bar0.v;
  const bool mine = !removed_ && offset < layout_.size.n && tlp->length <= layout_.size.n - offset;
  if (tlp->type == TlpType::MWr && mine) return register_write(offset, std::move(tlp));
  if (tlp->type == TlpType::MRd && mine && tlp->length >= 1 && tlp->length <= 8)
    return register_read(offset, std::move(tlp));
  if (tlp->type != TlpType::MRd) return unexpected_.add();
  unsupported_.add();
  tlp->type = TlpType::Cpl;
  tlp->status = CplStatus::UR;
  tlp->length = 0;
  tlp->last_completion = true;
  answer(std::move(tlp));
}

void Endpoint::register_write(std::uint64_t offset, TlpPtr tlp) {
  if (tlp->cause.critical) context_.journeys.mark(tlp->cause.msg, sim::Stage::pcie_down, context_.now());
  if (!in_table(offset)) {
    function->bar_write(offset, tlp->bytes(), tlp->cause, tlp->t_enqueued);
    return;
  }
  msix_.write(offset - layout_.msix_table, tlp->bytes());
  send_unmasked(tlp->cause);
}

void Endpoint::set_msix_control(std::uint16_t value) {
  msix_.set_control(value);
  send_unmasked({});
}

void Endpoint::send_unmasked(sim::trace::Cause cause) {
  while (const auto vector = msix_.take_unmasked_pending()) raise_msix(*vector, cause);
}

std::uint64_t Endpoint::register_value(std::uint64_t offset, unsigned size) {
  if (in_table(offset)) return msix_.read(offset - layout_.msix_table, size);
  if (in_pba(offset)) return msix_.read_pending(offset - layout_.msix_pba, size);
  return function->bar_read(offset, size);
}

void Endpoint::register_read(std::uint64_t offset, TlpPtr tlp) {
  const std::uint64_t value = register_value(offset, tlp->length);
  std::memcpy(tlp->inline_bytes.data(), &value, tlp->length);
  tlp->type = TlpType::CplD;
  tlp->byte_count = tlp->length;
  tlp->last_completion = true;
  answer(std::move(tlp));
}

void Endpoint::answer(TlpPtr tlp) {
  if (config_.register_read_latency.n == 0) {
    up->receive(std::move(tlp));
    return;
  }
  const sim::Picos at = context_.now() + config_.register_read_latency;
  if (answers_.empty()) context_.scheduler.at<&Endpoint::send_answer>(at, this);
  answers_.push_back({at, std::move(tlp)});
}

void Endpoint::send_answer() {
  Answer a = answers_.pop_front();
  if (!answers_.empty()) context_.scheduler.at<&Endpoint::send_answer>(answers_.front().at, this);
  up->receive(std::move(a.tlp));
}

}  // namespace pcie
