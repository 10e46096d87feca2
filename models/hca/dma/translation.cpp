// SPDX-License-Identifier: Apache-2.0
// MPT and MTT look-up. Translations are kept in runs of eight entries, the line that one ICM read brings. The address in a
// memory window leads to the keys of the regions that it shows, which are looked up in turn.
#include "hca/dma/translation.h"

#include <algorithm>

#include "hca/trace_points.h"

namespace hca {

Translation::Translation(sim::Context& context, const ContextConfig& config, DmaEngine& dma, Icm& icm,
                         ObjectTable<Mkey>& mkeys, std::int32_t host, const std::string& path)
    : context_(context),
      config_(config),
      icm_(icm),
      mkeys_(mkeys),
      mpt_(context, dma, icm, IcmTable::mpt, config.mpt_entries, 1, &encode_mpt, this, host, path + ".mpt"),
      mtt_(context, dma, icm, IcmTable::mtt, config.mtt_lines, 8, &encode_mtt, this, host, path + ".mtt"),
      trace_(context, host, path),
      faults_(context.stats.counter(path + ".faults")) {}

void Translation::encode_mpt(void* self, std::uint32_t index, std::byte* out) {
  if (const Mkey* m = static_cast<Translation*>(self)->mkeys_.find(index))
    std::copy(m->image.begin(), m->image.end(), out);
}

void Translation::encode_mtt(void* self, std::uint32_t index, std::byte* out) {
  const auto& table = static_cast<Translation*>(self)->mtt_table_;
  if (index < table.size()) prm::set64(out, 0, table[index].v);
}

Fault Translation::permitted(const Mkey* m, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                             MkeyAccess access, std::uint32_t pd, std::uint32_t qpn) {
  if (m == nullptr || !m->allocated || m->free || m->variant != (key & 0xFF)) return Fault::key;
  if (m->qpn != 0xFFFFFF && m->qpn != qpn) return Fault::key;
  if (m->pd != pd) return Fault::pd;
  const bool right = access == MkeyAccess::local_read     ? m->lr
                     : access == MkeyAccess::local_write  ? m->lw
                     : access == MkeyAccess::remote_read  ? m->rr
                     : access == MkeyAccess::remote_write ? m->rw
                     : access == MkeyAccess::window       ? m->mode == prm::kMkcModeMtt
                                                          : m->atomic;
  if (!right) return Fault::access;
  if (m->length64) return Fault::none;
  if (va < m->start || length > m->length || va - m->start > m->length - length) return Fault::bounds;
  return Fault::none;
}

sim::Task<bool> Translation::load(std::uint32_t index, sim::trace::Cause cause) {
  if (mkeys_.find(index) == nullptr) co_return false;
  DmaStatus status = DmaStatus::ok;
  if (!mpt_.hit(index)) status = co_await mpt_.fill(index, cause);  // not in one condition: GCC 12 miscompiles it
  if (status != DmaStatus::ok) co_return false;
  co_await context_.delay(config_.mpt_hit);
  co_return mkeys_.find(index) != nullptr;
}

// [va, va + length) of a window that permits it. Copies what it needs: the window may be freed while regions are looked up.
sim::Task<Fault> Translation::translate_window(std::uint32_t key, std::uint64_t va, std::uint32_t length,
                                               std::uint32_t pd, std::uint32_t qpn, sim::trace::Cause& cause,
                                               Extents& out) {
  const Mkey& window = *mkeys_.find(key >> 8);
  const std::vector<Klm> klms = window.klms;
  std::uint64_t skip = va - window.start;
  co_await context_.delay(config_.mpt_hit);
  for (const Klm& klm : klms) {
    if (skip >= klm.bytes) {
      skip -= klm.bytes;
      continue;
    }
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, klm.bytes - skip));
    const Fault f = co_await translate(klm.key, klm.va + skip, n, MkeyAccess::window, pd, qpn, cause, out);
    if (f != Fault::none) co_return f;
    length -= n;
    skip = 0;
    if (length == 0) break;
  }
  co_return Fault::none;
}

sim::Task<Fault> Translation::check(std::uint32_t key, std::uint64_t va, std::uint64_t length, MkeyAccess access,
                                    std::uint32_t pd, std::uint32_t qpn, sim::trace::Cause& cause) {
  const sim::Picos start = context_.now();
  const std::uint32_t index = key >> 8;
  if (mkeys_.find(index) != nullptr && !mpt_.hit(index)) {
    if (co_await mpt_.fill(index, cause) != DmaStatus::ok) co_return end(Fault::dma, key, va, length, start, cause);
  }
  co_await context_.delay(config_.mpt_hit);
  co_return end(permitted(mkeys_.find(index), key, va, length, access, pd, qpn), key, va, length, start, cause);
}

sim::Task<Fault> Translation::translate(std::uint32_t key, std::uint64_t va, std::uint32_t length, MkeyAccess access,
                                        std::uint32_t pd, std::uint32_t qpn, sim::trace::Cause& cause, Extents& out) {
  const sim::Picos start = context_.now();
  const std::uint32_t index = key >> 8;
  if (key == prm::kNullMkey) [[unlikely]] {
    co_await context_.delay(config_.mpt_hit);
    const bool local = access == MkeyAccess::local_read || access == MkeyAccess::local_write;
    if (local) out.add({kNullIova}, length);
    co_return end(local ? Fault::none : Fault::key, key, va, length, start, cause);
  }
  if (mkeys_.find(index) != nullptr && !mpt_.hit(index)) {
    if (co_await mpt_.fill(index, cause) != DmaStatus::ok) co_return end(Fault::dma, key, va, length, start, cause);
  }
  const Mkey* m = mkeys_.find(index);
  Fault f = permitted(m, key, va, length, access, pd, qpn);
  if (f != Fault::none) {
    co_await context_.delay(config_.mpt_hit);
    co_return end(f, key, va, length, start, cause);
  }
  if (m->mode == prm::kMkcModeKlm) co_return co_await translate_window(key, va, length, pd, qpn, cause, out);
  if (m->mode == prm::kMkcModePa) {
    co_await context_.delay(config_.mpt_hit);
    for (std::uint64_t a = va; a < va + length;) {
      const std::uint64_t n = std::min(va + length - a, memory::kPageSize - a % memory::kPageSize);
      out.add(memory::Iova{a}, static_cast<std::uint32_t>(n));
      a += n;
    }
    co_return end(Fault::none, key, va, length, start, cause);
  }
  const std::uint64_t page = 1ULL << m->log_page;
  const std::uint64_t base = m->start & ~(page - 1);
  const std::uint64_t first = (va - base) >> m->log_page, last = (va + length - 1 - base) >> m->log_page;
  for (std::uint64_t e = first; e <= last; ++e) {
    const auto entry = m->mtt_first + static_cast<std::uint32_t>(e);
    if (!mtt_.hit(entry)) {
      if (co_await mtt_.fill(entry, cause) != DmaStatus::ok) co_return end(Fault::dma, key, va, length, start, cause);
      m = mkeys_.find(index);  // the key may have gone while the line was read
      f = permitted(m, key, va, length, access, pd, qpn);
      if (f != Fault::none) co_return end(f, key, va, length, start, cause);
    }
  }
  co_await context_.delay(config_.mpt_hit + config_.mtt_hit);
  m = mkeys_.find(index);
  f = permitted(m, key, va, length, access, pd, qpn);
  if (f != Fault::none) co_return end(f, key, va, length, start, cause);
  const bool reads = access == MkeyAccess::local_read || access == MkeyAccess::remote_read;
  const bool relaxed = reads ? m->relaxed_read : m->relaxed_write;
  for (std::uint64_t a = va; a < va + length;) {
    const std::uint64_t off = a - base;
    const std::uint64_t n = std::min(va + length - a, page - (off & (page - 1)));
    out.add(mtt_table_[m->mtt_first + (off >> m->log_page)] + (off & (page - 1)), static_cast<std::uint32_t>(n),
            relaxed);
    a += n;
  }
  co_return end(Fault::none, key, va, length, start, cause);
}

Fault Translation::end(Fault f, std::uint32_t key, std::uint64_t va, std::uint64_t length, sim::Picos start,
                       sim::trace::Cause& cause) {
  if (f != Fault::none && f != Fault::dma) faults_.add();
  const std::uint64_t span = trace_.span(points::translate, cause, start, start, context_.now(), key, va, length,
                                         static_cast<std::uint64_t>(f));
  if (span != 0) cause.parent = span;
  return f;
}

bool Translation::add_translations(Mkey& key, std::vector<memory::Iova> pages) {
  const auto count = static_cast<std::uint32_t>((pages.size() + 7) / 8 * 8);
  std::uint32_t first = static_cast<std::uint32_t>(mtt_table_.size());
  const auto fit = std::find_if(mtt_free_.begin(), mtt_free_.end(), [&](const auto& r) { return r.second >= count; });
  if (fit != mtt_free_.end()) first = fit->first;
  for (std::uint32_t e = first; e < first + count; e += 8)
    if (!icm_.reserve(IcmTable::mtt, e)) return false;
  if (fit != mtt_free_.end()) {
    fit->first += count;
    fit->second -= count;
    if (fit->second == 0) mtt_free_.erase(fit);
  } else {
    mtt_table_.resize(first + count);
  }
  std::copy(pages.begin(), pages.end(), mtt_table_.begin() + first);
  key.mtt_first = first;
  key.mtt_count = count;
  for (std::uint32_t e = first; e < first + count; e += 8) mtt_.install(e);
  return true;
}

void Translation::remove_translations(Mkey& key) {
  for (std::uint32_t e = key.mtt_first; e < key.mtt_first + key.mtt_count; e += 8) mtt_.invalidate(e);
  if (key.mtt_count > 0) mtt_free_.emplace_back(key.mtt_first, key.mtt_count);
  key.mtt_count = 0;
}

}  // namespace hca
