// SPDX-License-Identifier: Apache-2.0
// The faults that a responder refuses, one per row of the fault table: what the NAK says, which asynchronous event tells
// it when no receive WQE can, and how the receive WQE in progress ends when there is one (S-ERR-1…11, S-AE-3).
#pragma once

#include <cstdint>

#include "hca/dma/translation.h"
#include "hca/prm.h"
#include "hca/transport/vendor_errors.h"
#include "hca/transport/wire.h"

namespace hca {

struct Refusal {
  wire::Nak nak;
  prm::EventType event;   ///< when no receive WQE is in progress
  std::uint8_t syndrome;  ///< of the receive WQE in progress
  std::uint8_t vendor;
};

namespace refusals {

/// S-ERR-1, 2, 3: key, range or rights of a remote region.
inline constexpr Refusal remote_access{wire::kNakRemoteAccess, prm::kEventWqAccess, prm::kSynRemoteAccess,
                                       kVendorRemoteAccess};
/// S-ERR-4: the QP's access flags forbid the operation.
inline constexpr Refusal forbidden{wire::kNakInvalidRequest, prm::kEventWqAccess, prm::kSynRemoteInvalReq,
                                   kVendorRemoteInvalid};
/// The same on devices that report it as an invalid request.
inline constexpr Refusal forbidden_request{wire::kNakInvalidRequest, prm::kEventWqInvalReq, prm::kSynRemoteInvalReq,
                                           kVendorRemoteInvalid};
/// S-ERR-5: an opcode out of place or unknown, or a payload that its opcode does not allow.
inline constexpr Refusal invalid_request = forbidden_request;
/// S-ERR-6: more or fewer bytes than the RETH announced, or more than a message may have.
inline constexpr Refusal wrong_length = forbidden;
/// S-ERR-7: an atomic whose address is no multiple of eight.
inline constexpr Refusal misaligned_atomic = forbidden;
/// S-ERR-8: more READs and atomics in progress than max_dest_rd_atomic.
inline constexpr Refusal too_many_reads = forbidden;
/// S-ERR-9: a SEND longer than its receive WQE.
inline constexpr Refusal receive_too_short{wire::kNakInvalidRequest, prm::kEventWqInvalReq, prm::kSynLocalLength,
                                           kVendorReceiveLength};
/// S-ERR-10: a segment of the receive WQE that cannot be written.
inline constexpr Refusal receive_segment{wire::kNakRemoteOperational, prm::kEventWqAccess, prm::kSynLocalProt,
                                         kVendorReceiveProt};
/// S-ERR-21: a SEND with invalidate whose key names no window of the QP.
inline constexpr Refusal bad_invalidate{wire::kNakRemoteAccess, prm::kEventWqAccess, prm::kSynRemoteInvalReq,
                                        kVendorRemoteInvalid};
/// S-ERR-11: the device could not reach host memory.
inline constexpr Refusal device_fault{wire::kNakRemoteOperational, prm::kEventWqCatas, prm::kSynLocalProt,
                                      kVendorReceiveProt};

/// Of a fault on the region that a RETH or AtomicETH names.
constexpr const Refusal& of_remote(Fault f) { return f == Fault::dma ? device_fault : remote_access; }
/// Of a fault on a segment of a receive WQE.
constexpr const Refusal& of_receive(Fault f) { return f == Fault::dma ? device_fault : receive_segment; }

}  // namespace refusals
}  // namespace hca
