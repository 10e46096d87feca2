// SPDX-License-Identifier: Apache-2.0
// Trace points of the PCIe models. `type` is a TlpType, `class` an FcClass.
#pragma once

#include "sim/trace/trace.h"

namespace pcie::trace_points {

using sim::trace::Category;
using sim::trace::Form;
using sim::trace::Kind;
using sim::trace::Mark;
using sim::trace::Point;

/// A TLP on one direction of a link: handed over, first byte sent, received. One point per type, so that lanes show names.
inline constexpr Point kMRd{
    "pcie.MRd", Category::pcie, Kind::span, {"tag", "length", "address", "wire_bytes"}, Mark::none, -1, Form::tlp};
inline constexpr Point kMWr{
    "pcie.MWr", Category::pcie, Kind::span, {"tag", "length", "address", "wire_bytes"}, Mark::none, -1, Form::tlp};
inline constexpr Point kCpl{
    "pcie.Cpl", Category::pcie, Kind::span, {"tag", "length", "address", "wire_bytes"}, Mark::none, -1, Form::tlp};
inline constexpr Point kCplD{
    "pcie.CplD", Category::pcie, Kind::span, {"tag", "length", "address", "wire_bytes"}, Mark::none, -1, Form::tlp};
inline constexpr Point kMsg{
    "pcie.Msg", Category::pcie, Kind::span, {"tag", "length", "address", "wire_bytes"}, Mark::none, -1, Form::tlp};
/// A TLP waited for flow-control credits or behind one that did.
inline constexpr Point kCreditStall{
    "pcie.credit_stall", Category::pcie, Kind::span, {"class", "length", "data_credits"}};
/// Flow-control credits that a transmitter has: headers, or data in units of 16 bytes.
inline constexpr Point kCredits{"pcie.credits", Category::pcie, Kind::level, {"credits"}};
/// TLPs that wait for credits, or behind one that does.
inline constexpr Point kWaiting{"pcie.waiting", Category::pcie, Kind::level, {"tlps"}};
/// Bytes that one direction of a link has carried so far, link layer included: its slope is the load.
inline constexpr Point kWireBytes{"pcie.wire_bytes", Category::pcie, Kind::level, {"bytes"}};
/// A DMA read in the root complex: arrived, memory access started, data read.
inline constexpr Point kDmaRead{"pcie.dma_read", Category::pcie, Kind::span, {"tag", "length", "address", "status"}};
/// A DMA write in the root complex: arrived, translated, visible in memory.
inline constexpr Point kDmaWrite{"pcie.dma_write", Category::pcie, Kind::span, {"length", "iova", "phys"}};
/// A DMA access that was refused: status is that of the completion (0 for a dropped write).
inline constexpr Point kDmaFault{
    "pcie.dma_fault", Category::pcie, Kind::instant, {"type", "length", "address", "status"}, Mark::error};
/// The root complex hands an interrupt message to the CPU side.
inline constexpr Point kInterrupt{"pcie.interrupt", Category::pcie, Kind::instant, {"address", "data"}};
/// The endpoint sends an MSI-X message, or (masked) sets the pending bit.
inline constexpr Point kMsix{"pcie.msix", Category::pcie, Kind::instant, {"vector", "data", "masked"}};

}  // namespace pcie::trace_points
