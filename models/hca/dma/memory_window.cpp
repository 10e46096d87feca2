// SPDX-License-Identifier: Apache-2.0
// Checks and effects of binding and freeing a window. The key's low byte changes with each, so keys that a peer still
// holds fail (S-MW-5). WQEs come from user space: each field that is not checked here may hold anything.
#include "hca/dma/memory_window.h"

namespace hca {
namespace {

constexpr std::uint32_t kAnyQp = 0xFFFFFF;

bool current(const Mkey* m, std::uint32_t key) { return m != nullptr && m->allocated && m->variant == (key & 0xFF); }

// The piece lies in a region of the PD that allows windows, and grants no write that the region itself does not.
bool may_show(const ObjectTable<Mkey>& keys, const Klm& klm, std::uint32_t pd, bool writes) {
  const Mkey* region = keys.find(klm.key >> 8);
  if (!current(region, klm.key) || region->free || region->mode != prm::kMkcModeMtt) return false;
  if (region->pd != pd || !region->umr || (writes && !region->lw)) return false;
  return klm.va >= region->start && klm.bytes <= region->length && klm.va - region->start <= region->length - klm.bytes;
}

void free_window(Mkey& window, std::uint8_t variant) {
  window.free = true;
  window.variant = variant;
  window.qpn = kAnyQp;
  window.start = window.length = 0;
  window.klms.clear();
  prm::set(window.image.data(), prm::kMkcFree, 1);
  prm::set(window.image.data(), prm::kMkcVariant, variant);
  prm::set(window.image.data(), prm::kMkcQpn, kAnyQp);
}

bool bind_window(ObjectTable<Mkey>& keys, Mkey& window, const UmrRequest& r, std::uint32_t qpn) {
  const std::uint32_t owner = prm::get(r.context, prm::kMkcQpn);
  const bool type_2 = window.remote_invalidate;
  if (type_2 ? owner != qpn : owner != kAnyQp) return false;
  if (type_2 && !window.free) return false;
  const bool rw = prm::get(r.context, prm::kMkcRw) != 0, atomic = prm::get(r.context, prm::kMkcAtomic) != 0;
  const std::uint64_t start = prm::get64(r.context, prm::kMkcStart), length = prm::get64(r.context, prm::kMkcLen);
  std::vector<Klm> klms;
  std::uint64_t shown = 0;
  for (std::uint32_t i = 0; i < r.klm_count; ++i) {
    const Klm klm = r.klm(i);
    if (klm.bytes == 0) continue;  // padding
    if (!may_show(keys, klm, window.pd, rw || atomic)) return false;
    shown += klm.bytes;
    klms.push_back(klm);
  }
  if (klms.empty() || klms.size() > window.klm_room || length == 0 || length > shown || start + length < start)
    return false;
  if (!type_2 && start != klms.front().va) return false;  // zero-based: type 2 only
  window.free = false;
  window.variant = static_cast<std::uint8_t>(prm::get(r.context, prm::kMkcVariant));
  window.qpn = owner;
  window.start = start;
  window.length = length;
  window.rw = rw;
  window.atomic = atomic;
  window.rr = prm::get(r.context, prm::kMkcRr) != 0;
  window.lw = prm::get(r.context, prm::kMkcLw) != 0;
  window.klms = std::move(klms);
  std::byte* image = window.image.data();
  for (const prm::Field f :
       {prm::kMkcFree, prm::kMkcQpn, prm::kMkcVariant, prm::kMkcRw, prm::kMkcAtomic, prm::kMkcRr, prm::kMkcLw})
    prm::set(image, f, prm::get(r.context, f));
  prm::set64(image, prm::kMkcStart, start);
  prm::set64(image, prm::kMkcLen, length);
  return true;
}

}  // namespace

Klm UmrRequest::klm(std::uint32_t i) const {
  const std::byte* p = klms + i * prm::kKlmSize;
  return {prm::get(p, prm::kKlmBytes), prm::get(p, prm::kKlmKey), prm::get64(p, prm::kKlmAddress)};
}

std::optional<UmrRequest> parse_umr(const SendWqe& wqe) {
  const std::size_t size = std::size_t{wqe.ds} * prm::kDs;
  if (size < prm::kUmrKlm) return std::nullopt;
  const std::byte* p = wqe.bytes.data();
  UmrRequest r;
  r.key = prm::be32(wqe.immediate_raw);
  r.flags = static_cast<std::uint8_t>(p[prm::kUmrCtrl]);
  r.mask = prm::get64(p, prm::kUmrMask);
  r.context = p + prm::kUmrContext;
  r.klms = p + prm::kUmrKlm;
  const std::uint64_t needed =
      prm::kUmrMaskKey | prm::kUmrMaskFree | (r.frees() ? 0 : prm::kUmrMaskLen | prm::kUmrMaskStart);
  if ((r.mask & needed) != needed || (r.flags & prm::kUmrInline) == 0) return std::nullopt;
  if (!r.frees()) r.klm_count = prm::get(p, prm::kUmrKlmOctowords);
  if (prm::kUmrKlm + r.klm_count * prm::kKlmSize > size) return std::nullopt;
  return r;
}

bool execute_umr(ObjectTable<Mkey>& keys, const UmrRequest& r, std::uint32_t pd, std::uint32_t qpn) {
  Mkey* window = keys.find(r.key >> 8);
  if (window == nullptr || !window->allocated || !window->umr || window->mode != prm::kMkcModeKlm) return false;
  // A free window answers to each of its keys: the program goes on from the last one that it knows.
  if (window->pd != pd || (!window->free && window->variant != (r.key & 0xFF))) return false;
  if ((r.flags & prm::kUmrCheckFree) != 0 && !window->free) return false;
  if ((r.flags & prm::kUmrCheckQpn) != 0 && window->qpn != qpn) return false;
  if (!r.frees()) return bind_window(keys, *window, r, qpn);
  free_window(*window, static_cast<std::uint8_t>(prm::get(r.context, prm::kMkcVariant)));
  return true;
}

bool remote_invalidate(ObjectTable<Mkey>& keys, std::uint32_t key, std::uint32_t pd, std::uint32_t qpn) {
  Mkey* window = keys.find(key >> 8);
  if (!current(window, key) || window->free || !window->remote_invalidate) return false;
  if (window->pd != pd || window->qpn != qpn) return false;
  free_window(*window, 0);
  return true;
}

bool has_windows(ObjectTable<Mkey>& keys, std::uint32_t index) {
  const Mkey* region = keys.find(index);
  if (region == nullptr || !region->umr) return false;
  const std::uint32_t key = index << 8 | region->variant;
  bool found = false;
  keys.for_each([&](const Mkey& m) {
    for (const Klm& klm : m.klms) found |= klm.key == key;
  });
  return found;
}

}  // namespace hca
