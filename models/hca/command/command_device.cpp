// SPDX-License-Identifier: Apache-2.0
// Commands about the device itself: capabilities, host pages for the ICM, UAR pages, protection domains.
#include <cstdio>

#include "hca/command/command_unit.h"

namespace hca {

CommandUnit::Status CommandUnit::query_hca_cap(Command& c) {
  if (c.out.size() < prm::kCapOffset + prm::kCapSize) return prm::kCmdBadOutLen;
  const CapabilityConfig& caps = device_.config.caps;
  std::byte* cap = c.out.data() + prm::kCapOffset;
  prm::set(cap, prm::kCapLogMaxSrqSz, caps.log_max_srq_sz);
  prm::set(cap, prm::kCapLogMaxSrq, caps.log_max_srq);
  prm::set(cap, prm::kCapLogMaxXrcd, caps.log_max_xrcd);
  prm::set(cap, prm::kCapLogMaxQpSz, caps.log_max_qp_sz);
  prm::set(cap, prm::kCapLogMaxQp, caps.log_max_qp);
  prm::set(cap, prm::kCapLogMaxCqSz, caps.log_max_cq_sz);
  prm::set(cap, prm::kCapLogMaxCq, caps.log_max_cq);
  prm::set(cap, prm::kCapLogMaxEqSz, 22);
  prm::set(cap, prm::kCapLogMaxMkey, caps.log_max_mkey);
  prm::set(cap, prm::kCapLogMaxEq, caps.log_max_eq);
  prm::set(cap, prm::kCapLogMaxRaReq, caps.log_max_ra_req);
  prm::set(cap, prm::kCapLogMaxRaRes, caps.log_max_ra_res);
  prm::set(cap, prm::kCapPortType, 1);
  prm::set(cap, prm::kCapLogMaxMsg, caps.log_max_msg);
  prm::set(cap, prm::kCapCqeVersion, 1);
  prm::set(cap, prm::kCapBf, 1);
  prm::set(cap, prm::kCapLogBfRegSize, 9);
  prm::set(cap, prm::kCapMaxWqeSzSq, caps.max_wqe_sz_sq);
  prm::set(cap, prm::kCapMaxWqeSzRq, caps.max_wqe_sz_rq);
  prm::set(cap, prm::kCapLogMaxPd, caps.log_max_pd);
  prm::set(cap, prm::kCapNumPorts, 1);
  prm::set(cap, prm::kCapAtomic, caps.atomic ? 1 : 0);
  prm::set(cap, prm::kCapIgnoreOverrun, 1);
  prm::set(cap, prm::kCapModeration, 1);
  prm::set(cap, prm::kCapDumpFillMkey, 1);
  prm::set(cap, prm::kCapVendorPartId, caps.vendor_part_id);
  unsigned major = 0, minor = 0, sub = 0;
  std::sscanf(caps.fw_version.c_str(), "%u.%u.%u", &major, &minor, &sub);
  prm::set(cap, prm::kCapFwRevMajor, major);
  prm::set(cap, prm::kCapFwRevMinor, minor);
  prm::set(cap, prm::kCapFwRevSub, sub);
  std::uint64_t mac = 0;
  for (const std::uint8_t b : device_.mac) mac = mac << 8 | b;
  const std::uint64_t guid =
      caps.node_guid != 0 ? caps.node_guid : (mac >> 24 << 40) | 0xFFFE000000ULL | (mac & 0xFFFFFF);
  prm::set64(cap, prm::kCapNodeGuid, guid);
  prm::set64(cap, prm::kCapMac, mac);
  prm::set(cap, prm::kCapNumCompVectors, caps.comp_vectors);
  constexpr std::int64_t kPicosTimesKhz = 1'000'000'000;
  prm::set(cap, prm::kCapDeviceFrequency,
           static_cast<std::uint32_t>(kPicosTimesKhz / device_.config.completion.clock_period.n));
  prm::set(cap, prm::kCapMaxPortMtu, device_.max_mtu_code);
  prm::set(cap, prm::kCapLogMaxMcg, kLogMaxMulticastGroups);
  prm::set(cap, prm::kCapMaxQpMcg, kMaxMulticastQps);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_special_contexts(Command& c) {
  if (c.out.size() < 32) return prm::kCmdBadOutLen;
  prm::set(c.out.data(), prm::kSpecialDumpFillMkey, prm::kNullMkey);
  prm::set(c.out.data(), prm::kSpecialNullMkey, prm::kNullMkey);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_pages(Command& c) {
  const std::size_t want = device_.config.command.icm_pages, have = device_.icm.pages();
  prm::set(c.out.data(), prm::kPagesOutCount, static_cast<std::uint32_t>(want > have ? want - have : 0));
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::manage_pages(Command& c) {
  const std::uint32_t count = prm::get(c.in.data(), prm::kPagesInCount);
  const auto mode = prm::get(c.in.data(), prm::kInOpMod);
  if (mode == prm::kManagePagesGive) {
    if (prm::kPagesInPas + std::uint64_t{count} * 8 > prm::be32(c.entry.inlen)) return prm::kCmdBadInLen;
    for (std::uint32_t i = 0; i < count; ++i) {
      const memory::Iova page{prm::get64(c.in.data(), prm::kPagesInPas + std::size_t{i} * 8)};
      if (page.offset() != 0) return prm::kCmdBadParam;
      device_.icm.give(page);
    }
    return prm::kCmdOk;
  }
  if (mode != prm::kManagePagesTake) return prm::kCmdBadParam;
  if (prm::kPagesInPas + std::uint64_t{count} * 8 > c.out.size()) return prm::kCmdBadOutLen;
  std::uint32_t given = 0;
  for (; given < count; ++given) {
    const auto page = device_.icm.take_back();
    if (!page) break;
    prm::set64(c.out.data(), prm::kPagesInPas + std::size_t{given} * 8, page->v);
  }
  prm::set(c.out.data(), prm::kPagesOutCount, given);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::alloc_uar(Command& c) {
  std::uint32_t page = 0;
  if (!uar_.allocate(page)) return prm::kCmdNoRes;
  prm::set(c.out.data(), prm::kOutObject, page);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::set_roce_address(Command& c) {
  const std::uint32_t index = prm::get(c.in.data(), prm::kRoceAddressIndex);
  if (index > 255 || prm::be32(c.entry.inlen) < prm::kRoceAddressEnd) return prm::kCmdBadParam;
  if (device_.roce_addresses.size() <= index) device_.roce_addresses.resize(index + 1);
  RoceAddress& a = device_.roce_addresses[index];
  std::memcpy(a.gid.data(), c.in.data() + prm::kRoceAddressGid, a.gid.size());
  const std::uint32_t high = prm::get(c.in.data(), prm::kRoceAddressMacHigh),
                      low = prm::get(c.in.data(), prm::kRoceAddressMacLow);
  a.mac = {static_cast<std::uint8_t>(high >> 8), static_cast<std::uint8_t>(high),
           static_cast<std::uint8_t>(low >> 24), static_cast<std::uint8_t>(low >> 16),
           static_cast<std::uint8_t>(low >> 8),  static_cast<std::uint8_t>(low)};
  a.version = static_cast<std::uint8_t>(prm::get(c.in.data(), prm::kRoceAddressVersion));
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::alloc_pd(Command& c) {
  std::uint32_t pdn = 0;
  if (device_.pds.create(pdn) == nullptr) return prm::kCmdNoRes;
  prm::set(c.out.data(), prm::kOutObject, pdn);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::dealloc_pd(Command& c) {
  const std::uint32_t pdn = object(c);
  if (device_.pds.find(pdn) == nullptr) return prm::kCmdBadRes;
  bool used = false;
  device_.mkeys.for_each([&](const Mkey& m) { used |= m.pd == pdn; });
  // An XRC target borrows the PD of the SRQ that its last message named.
  device_.qps.for_each([&](const Qp& q) { used |= q.pd == pdn && !q.xrc_target(); });
  device_.srqs.for_each([&](const Srq& s) { used |= s.pd == pdn; });
  if (used) return prm::kCmdResBusy;
  device_.pds.destroy(pdn);
  return prm::kCmdOk;
}

}  // namespace hca
