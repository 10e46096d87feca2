// SPDX-License-Identifier: Apache-2.0
// vendor_err_synd of error CQEs. Those named "seen" are what ConnectX devices report (S-CQE-10); the others are numbers
// of this model.
#pragma once

#include <cstdint>

namespace hca {

inline constexpr std::uint8_t kVendorLocalProt = 0x52;      ///< send WQE: gather or result segment; seen
inline constexpr std::uint8_t kVendorReceiveProt = 0x51;    ///< receive WQE: scatter segment; seen
inline constexpr std::uint8_t kVendorLocalQpOp = 0x61;      ///< seen
inline constexpr std::uint8_t kVendorLocalLength = 0x62;    ///< send WQE
inline constexpr std::uint8_t kVendorReceiveLength = 0x63;  ///< receive WQE shorter than its message
inline constexpr std::uint8_t kVendorBind = 0x67;           ///< UMR WQE
inline constexpr std::uint8_t kVendorBadResponse = 0x70;
inline constexpr std::uint8_t kVendorRetryExceeded = 0x81;  ///< seen
inline constexpr std::uint8_t kVendorRnrExceeded = 0x87;    ///< seen
inline constexpr std::uint8_t kVendorRemoteAccess = 0x88;   ///< seen
inline constexpr std::uint8_t kVendorRemoteOp = 0x89;
inline constexpr std::uint8_t kVendorRemoteInvalid = 0x8a;  ///< seen
inline constexpr std::uint8_t kVendorFlush = 0xf5;          ///< send WQE; seen
inline constexpr std::uint8_t kVendorReceiveFlush = 0xf9;   ///< receive WQE; seen

}  // namespace hca
