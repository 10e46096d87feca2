// SPDX-License-Identifier: Apache-2.0
// Memory windows: indirect keys (KLM) that UMR WQEs bind to a piece of a region, and that LOCAL_INV or a SEND with
// invalidate free again (S-MW-1…7, S-WQE-12).
#pragma once

#include <cstdint>
#include <optional>

#include "hca/context/objects.h"
#include "hca/transport/send_wqe.h"

namespace hca {

/// What a UMR WQE asks for. Points into the WQE.
struct UmrRequest {
  std::uint32_t key = 0;  ///< the key to change
  std::uint8_t flags = 0;
  std::uint64_t mask = 0;
  const std::byte* context = nullptr;  ///< memory key context, of which `mask` selects fields
  const std::byte* klms = nullptr;
  std::uint32_t klm_count = 0;
  /// Frees the key; otherwise it is bound.
  bool frees() const { return prm::get(context, prm::kMkcFree) != 0; }
  /// Entry of the list.
  Klm klm(std::uint32_t i) const;
};
/// Empty if the WQE is not well formed, or is none of the two that verbs know.
std::optional<UmrRequest> parse_umr(const SendWqe& wqe);

/// Binds or frees a window on behalf of a QP. False, and nothing changed, when a check fails (S-MW-3).
bool execute_umr(ObjectTable<Mkey>& keys, const UmrRequest& request, std::uint32_t pd, std::uint32_t qpn);
/// SEND with invalidate: frees a window of type 2 that is bound to the QP. False when `key` names none (S-ERR-21).
bool remote_invalidate(ObjectTable<Mkey>& keys, std::uint32_t key, std::uint32_t pd, std::uint32_t qpn);
/// Whether a window is bound to the region with this key index.
bool has_windows(ObjectTable<Mkey>& keys, std::uint32_t index);

}  // namespace hca
