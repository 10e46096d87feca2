// SPDX-License-Identifier: Apache-2.0
#include "fake_device.h"

namespace test {

FakeDevice::FakeDevice(sim::Context& context, memory::HostMemory& memory, FakeIommu& iommu)
    : context_(context), memory_(memory), iommu_(iommu) {}

void FakeDevice::dma_write(memory::Iova at, const void* data, std::size_t n, sim::trace::Cause cause) {
  auto* from = static_cast<const std::byte*>(data);
  while (n > 0) {
    const std::size_t part = std::min<std::size_t>(n, memory::kPageSize - at.offset());
    if (const auto phys = iommu_.translate(at)) memory_.write(*phys, {from, part}, cause);
    else ++dma_faults;
    from += part;
    at = at + part;
    n -= part;
  }
}

void FakeDevice::dma_read(memory::Iova at, void* data, std::size_t n) {
  auto* to = static_cast<std::byte*>(data);
  while (n > 0) {
    const std::size_t part = std::min<std::size_t>(n, memory::kPageSize - at.offset());
    if (const auto phys = iommu_.translate(at)) memory_.read(*phys, {to, part});
    else ++dma_faults;
    to += part;
    at = at + part;
    n -= part;
  }
}

void FakeDevice::mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause) {
  const std::uint64_t offset = bus.v - kBar0;
  if (removed || offset >= prm::kBarSize) return;
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), std::min<std::size_t>(4, bytes.size()));
  if (offset >= prm::kMsixTable && offset < prm::kMsixTable + prm::kMsixVectors * 16) {
    msix_[(offset - prm::kMsixTable) / 4] = word;
    return;
  }
  switch (offset) {
    case prm::kInitCmdqAddrHigh:
      queue_high_ = prm::be32(word);
      return;
    case prm::kInitCmdqAddrLow:
      queue_ = {std::uint64_t{queue_high_} << 32 | (prm::be32(word) & 0xfffff000U)};
      return;
    case prm::kInitCmdDoorbell:
      for (unsigned slot = 0; slot < 32; ++slot)
        if ((prm::be32(word) >> slot & 1) != 0) {
          most_in_flight = std::max(most_in_flight, ++in_flight);
          context_.scheduler.after<&FakeDevice::execute>(command_time, this, slot);
        }
      return;
    default:
      break;
  }
  uar_write(static_cast<std::uint32_t>(offset / prm::kUarPageSize), offset % prm::kUarPageSize, bytes);
}

void FakeDevice::uar_write(std::uint32_t page, std::uint64_t offset, std::span<const std::byte> bytes) {
  uar_writes.push_back({page, offset, {bytes.begin(), bytes.end()}, context_.now()});
  if (offset != prm::kUarEqDoorbellArm && offset != prm::kUarEqDoorbell) return;
  std::uint32_t word;
  std::memcpy(&word, bytes.data(), 4);
  word = prm::be32(word);
  const auto it = eqs.find(word >> 24);
  if (it == eqs.end()) return;
  it->second.consumer = word & 0xffffff;
  if (offset != prm::kUarEqDoorbellArm) return;
  it->second.armed = true;
  if ((it->second.producer & 0xffffff) != it->second.consumer) raise(it->second, {});
}

void FakeDevice::mmio_read(memory::Phys, unsigned, void (*fn)(void*, std::uint64_t), void* ctx) {
  struct Read {
    void (*fn)(void*, std::uint64_t);
    void* ctx;
  };
  auto* r = new Read{fn, ctx};
  context_.scheduler.after(
      sim::Picos{500'000},
      [](void* p, std::uint64_t) {
        auto* read = static_cast<Read*>(p);
        read->fn(read->ctx, 0);
        delete read;
      },
      r);
}

void FakeDevice::raise(Eq& eq, sim::trace::Cause cause) {
  if (!eq.armed) return;
  eq.armed = false;
  const std::uint32_t* entry = &msix_[eq.vector * 4];
  if ((entry[3] & 1) == 0 && sink != nullptr)
    sink->interrupt(entry[0] | std::uint64_t{entry[1]} << 32, entry[2], cause);
}

void FakeDevice::post_eqe(std::uint32_t eqn, prm::Eqe eqe, sim::trace::Cause cause) {
  Eq& eq = eqs.at(eqn);
  eqe.owner = static_cast<std::uint8_t>(eq.producer >> eq.log_size & 1);
  const std::uint64_t byte = std::uint64_t{eq.producer & ((1U << eq.log_size) - 1)} * sizeof eqe;
  dma_write({eq.pages.at(byte / memory::kPageSize) + byte % memory::kPageSize}, &eqe, sizeof eqe, cause);
  ++eq.producer;
  raise(eq, cause);
}

void FakeDevice::post_completion(std::uint32_t cqn, sim::trace::Cause cause) {
  prm::Eqe e{};
  e.type = prm::kEventComp;
  prm::set(reinterpret_cast<std::byte*>(&e), prm::kEqeCompCqn, cqn);
  post_eqe(prm::get(cqs.at(cqn).data(), prm::kCqcEqn), e, cause);
}

void FakeDevice::post_async(std::uint8_t type, std::uint32_t number) {
  prm::Eqe e{};
  e.type = type;
  prm::set(reinterpret_cast<std::byte*>(&e), type == prm::kEventCqError ? prm::kEqeCqErrCqn : prm::kEqeQpn, number);
  for (auto& [eqn, eq] : eqs)
    if ((eq.mask >> type & 1) != 0) return post_eqe(eqn, e);
}

void FakeDevice::execute(std::uint64_t slot) {
  --in_flight;
  if (removed) return;
  prm::CmdEntry entry;
  const memory::Iova at = queue_ + slot * sizeof entry;
  dma_read(at, &entry, sizeof entry);
  std::vector<std::byte> in(prm::be32(entry.inlen)), out(prm::be32(entry.outlen));
  std::memcpy(in.data(), entry.in, 16);
  bool sound = (entry.status_own & prm::kCmdOwnerHw) != 0 && entry.type == prm::kCmdTypePci;
  memory::Iova box{prm::be64(entry.in_ptr)};
  std::uint32_t block = 0;
  for (std::size_t done = 16; done < in.size(); done += prm::kMailboxData, ++block) {
    prm::Mailbox m;
    dma_read(box, &m, sizeof m);
    sound = sound && m.token == entry.token && prm::be32(m.block_num) == block && box.v % prm::kMailboxStride == 0;
    std::memcpy(in.data() + done, m.data, std::min(in.size() - done, prm::kMailboxData));
    box = {prm::be64(m.next)};
  }
  sound = sound && box.v == 0;
  const std::uint8_t status = sound ? run(in, out) : std::uint8_t{prm::kCmdBadInLen};
  prm::set(out.data(), prm::kOutStatus, status);
  box = {prm::be64(entry.out_ptr)};
  for (std::size_t done = 16; done < out.size(); done += prm::kMailboxData) {
    dma_write(box, out.data() + done, std::min(out.size() - done, prm::kMailboxData));
    prm::Mailbox m;
    dma_read(box, &m, sizeof m);
    box = {prm::be64(m.next)};
  }
  std::memcpy(entry.out, out.data(), 16);
  entry.status_own = 0;
  dma_write(at, &entry, sizeof entry);
  for (auto& [eqn, eq] : eqs) {
    if ((eq.mask >> prm::kEventCmd & 1) == 0) continue;
    prm::Eqe e{};
    e.type = prm::kEventCmd;
    prm::set(reinterpret_cast<std::byte*>(&e), prm::kEqeCmdVector, 1U << slot);
    post_eqe(eqn, e);
    break;
  }
}

std::vector<std::uint64_t> FakeDevice::page_list(const std::vector<std::byte>& in, std::size_t at) {
  std::vector<std::uint64_t> pages;
  for (; at + 8 <= in.size(); at += 8) pages.push_back(prm::get64(in.data(), at));
  return pages;
}

std::uint8_t FakeDevice::query_caps(std::vector<std::byte>& out) {
  std::byte* c = out.data() + prm::kCapOffset;
  prm::set(c, prm::kCapLogMaxSrqSz, 15);
  prm::set(c, prm::kCapLogMaxSrq, 16);
  prm::set(c, prm::kCapLogMaxXrcd, 16);
  prm::set(c, prm::kCapLogMaxQpSz, 15);
  prm::set(c, prm::kCapLogMaxQp, 18);
  prm::set(c, prm::kCapLogMaxCqSz, 16);
  prm::set(c, prm::kCapLogMaxCq, 16);
  prm::set(c, prm::kCapLogMaxMkey, 16);
  prm::set(c, prm::kCapLogMaxEq, 6);
  prm::set(c, prm::kCapLogMaxPd, 16);
  prm::set(c, prm::kCapLogMaxRaReq, 4);
  prm::set(c, prm::kCapLogMaxRaRes, 4);
  prm::set(c, prm::kCapLogMaxMsg, 30);
  prm::set(c, prm::kCapPortType, 1);
  prm::set(c, prm::kCapCqeVersion, 1);
  prm::set(c, prm::kCapBf, 1);
  prm::set(c, prm::kCapLogBfRegSize, 9);
  prm::set(c, prm::kCapMaxWqeSzSq, 1024);
  prm::set(c, prm::kCapMaxWqeSzRq, 512);
  prm::set(c, prm::kCapNumPorts, 1);
  prm::set(c, prm::kCapAtomic, 1);
  prm::set(c, prm::kCapIgnoreOverrun, 1);
  prm::set(c, prm::kCapModeration, moderation ? 1 : 0);
  prm::set(c, prm::kCapVendorPartId, 4119);
  prm::set(c, prm::kCapFwRevMajor, 16);
  prm::set(c, prm::kCapFwRevMinor, 35);
  prm::set(c, prm::kCapFwRevSub, 2000);
  prm::set64(c, prm::kCapNodeGuid, 0x0200'00ff'fe00'0001ULL);
  prm::set64(c, prm::kCapMac, 0x0200'0000'0001ULL);
  prm::set(c, prm::kCapNumCompVectors, comp_vectors);
  prm::set(c, prm::kCapMaxPortMtu, 5);
  return prm::kCmdOk;
}

std::uint8_t FakeDevice::modify_qp(std::uint16_t opcode, const std::vector<std::byte>& in) {
  const std::uint32_t qpn = prm::get(in.data(), prm::kInObject);
  const auto it = qps.find(qpn);
  if (it == qps.end()) return prm::kCmdBadRes;
  std::byte* qpc = it->second.data();
  const std::uint32_t state = prm::get(qpc, prm::kQpcState);
  struct Arc {
    std::uint16_t opcode;
    std::uint32_t from, to;
  };
  constexpr Arc kArcs[] = {{prm::kRst2Init, prm::kQpRst, prm::kQpInit}, {prm::kInit2Init, prm::kQpInit, prm::kQpInit},
                           {prm::kInit2Rtr, prm::kQpInit, prm::kQpRtr}, {prm::kRtr2Rts, prm::kQpRtr, prm::kQpRts},
                           {prm::kRts2Rts, prm::kQpRts, prm::kQpRts},   {prm::kSqerr2Rts, prm::kQpSqer, prm::kQpRts},
                           {prm::kSqd2Rts, prm::kQpSqd, prm::kQpRts},   {prm::kRts2Sqd, prm::kQpRts, prm::kQpSqd},
                           {prm::kSqd2Sqd, prm::kQpSqd, prm::kQpSqd}};
  std::uint32_t to = opcode == prm::kQp2Err ? prm::kQpErr : prm::kQpRst;
  if (opcode != prm::kQp2Err && opcode != prm::kQp2Rst) {
    bool legal = false;
    for (const Arc& a : kArcs)
      if (a.opcode == opcode && a.from == state) {
        legal = true;
        to = a.to;
      }
    if (!legal) return prm::kCmdBadQpState;
    qp_opt_mask[qpn] = prm::get(in.data(), prm::kQpOptMask);
    std::memcpy(qpc, in.data() + prm::kQpcOffset, prm::kQpcSize);
  }
  prm::set(qpc, prm::kQpcState, to);
  return prm::kCmdOk;
}

std::uint8_t FakeDevice::run(std::vector<std::byte>& in, std::vector<std::byte>& out) {
  const auto opcode = static_cast<std::uint16_t>(prm::get(in.data(), prm::kInOpcode));
  opcodes.push_back(opcode);
  last_input.push_back(in);
  if (const auto it = fail.find(opcode); it != fail.end()) {
    const std::uint8_t status = it->second;
    fail.erase(it);
    return status;
  }
  const std::uint32_t object = prm::get(in.data(), prm::kInObject);
  const auto give = [&](std::uint32_t n) {
    prm::set(out.data(), prm::kOutObject, n);
    return std::uint8_t{prm::kCmdOk};
  };
  const auto context_of = [&](std::size_t at, std::size_t n) {
    return std::vector<std::byte>(in.begin() + static_cast<std::ptrdiff_t>(at),
                                  in.begin() + static_cast<std::ptrdiff_t>(at + n));
  };
  const auto erased = [](std::size_t n) { return n != 0 ? std::uint8_t{prm::kCmdOk} : std::uint8_t{prm::kCmdBadRes}; };
  switch (opcode) {
    case prm::kEnableHca:
    case prm::kDisableHca:
      enabled = opcode == prm::kEnableHca;
      return prm::kCmdOk;
    case prm::kInitHca:
    case prm::kTeardownHca:
      initialised = opcode == prm::kInitHca;
      return prm::kCmdOk;
    case prm::kQueryIssi:
    case prm::kSetIssi:
    case prm::kModifyCq:
      return prm::kCmdOk;
    case prm::kQueryPages:
      prm::set(out.data(), prm::kPagesOutCount, icm_wanted);
      return prm::kCmdOk;
    case prm::kManagePages:
      if (prm::get(in.data(), prm::kInOpMod) == prm::kManagePagesTake) {
        std::uint32_t n = 0;
        for (; n < prm::get(in.data(), prm::kPagesInCount) && !icm_pages.empty(); ++n, icm_pages.pop_back())
          prm::set64(out.data(), prm::kPagesInPas + std::size_t{n} * 8, icm_pages.back());
        prm::set(out.data(), prm::kPagesOutCount, n);
        return prm::kCmdOk;
      }
      for (const std::uint64_t page : page_list(in, prm::kPagesInPas)) icm_pages.push_back(page);
      return prm::kCmdOk;
    case prm::kQueryHcaCap:
      return query_caps(out);
    case prm::kSetRoceAddress:
      std::memcpy(roce_addresses[prm::get(in.data(), prm::kRoceAddressIndex)].data(), in.data() + prm::kRoceAddressGid,
                  16);
      return prm::kCmdOk;
    case prm::kAllocUar:
      uars.insert(next_uar_);
      return give(next_uar_++);
    case prm::kDeallocUar:
      return erased(uars.erase(object));
    case prm::kAllocPd:
      pds.insert(next_pd_);
      return give(next_pd_++);
    case prm::kDeallocPd:
      return erased(pds.erase(object));
    case prm::kCreateMkey:
      mkeys[next_mkey_] = context_of(prm::kMkcOffset, prm::kMkcSize);
      mkey_pages[next_mkey_] = page_list(in, prm::kCreateMkeyPas);
      return give(next_mkey_++);
    case prm::kDestroyMkey:
      return erased(mkeys.erase(object));
    case prm::kCreateEq: {
      Eq& e = eqs[next_eqn_];
      e.log_size = prm::get(in.data() + prm::kEqcOffset, prm::kEqcLogSize);
      e.vector = prm::get(in.data() + prm::kEqcOffset, prm::kEqcIntr);
      e.mask = prm::get64(in.data(), prm::kCreateEqMask);
      e.pages = page_list(in, prm::kCreateEqPas);
      prm::set(out.data(), prm::kOutEqn, next_eqn_++);
      return prm::kCmdOk;
    }
    case prm::kDestroyEq:
      return erased(eqs.erase(prm::get(in.data(), prm::kInEqn)));
    case prm::kCreateCq:
      cqs[next_cqn_] = context_of(prm::kCqcOffset, prm::kCqcSize);
      return give(next_cqn_++);
    case prm::kDestroyCq:
      return erased(cqs.erase(object));
    case prm::kCreateSrq:
    case prm::kCreateXrcSrq:
      srqs[next_srqn_] = context_of(prm::kSrqcOffset, prm::kSrqcSize);
      return give(next_srqn_++);
    case prm::kDestroySrq:
    case prm::kDestroyXrcSrq:
      return erased(srqs.erase(object));
    case prm::kArmRq:
    case prm::kArmXrcSrq: {
      const auto it = srqs.find(object);
      if (it == srqs.end()) return prm::kCmdBadRes;
      prm::set(it->second.data(), prm::kSrqcLwm, prm::get(in.data(), prm::kArmSrqLimit));
      return prm::kCmdOk;
    }
    case prm::kQuerySrq:
    case prm::kQueryXrcSrq: {
      const auto it = srqs.find(object);
      if (it == srqs.end()) return prm::kCmdBadRes;
      std::memcpy(out.data() + prm::kSrqcOffset, it->second.data(), prm::kSrqcSize);
      return prm::kCmdOk;
    }
    case prm::kAllocXrcd:
      xrcds.insert(next_xrcd_);
      return give(next_xrcd_++);
    case prm::kDeallocXrcd:
      return erased(xrcds.erase(object));
    case prm::kCreateQp:
      qps[next_qpn_] = context_of(prm::kQpcOffset, prm::kQpcSize);
      qp_pages[next_qpn_] = page_list(in, prm::kCreateQpPas);
      return give(next_qpn_++);
    case prm::kDestroyQp:
      return erased(qps.erase(object));
    case prm::kQueryQp: {
      const auto it = qps.find(object);
      if (it == qps.end()) return prm::kCmdBadRes;
      std::memcpy(out.data() + prm::kQpcOffset, it->second.data(), prm::kQpcSize);
      return prm::kCmdOk;
    }
    case prm::kRst2Init:
    case prm::kInit2Init:
    case prm::kInit2Rtr:
    case prm::kRtr2Rts:
    case prm::kRts2Rts:
    case prm::kSqerr2Rts:
    case prm::kSqd2Rts:
    case prm::kRts2Sqd:
    case prm::kSqd2Sqd:
    case prm::kQp2Err:
    case prm::kQp2Rst:
      return modify_qp(opcode, in);
    default:
      return prm::kCmdBadOp;
  }
}

}  // namespace test
