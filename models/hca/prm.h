// SPDX-License-Identifier: Apache-2.0
// Programmer's reference of the HCA: everything that the device shares with its drivers and nothing else. WQE, CQE and
// doorbell structures are those of <infiniband/mlx5dv.h>; this file adds what that header lacks: the BAR map, event queue
// entries, the command interface and the contexts that commands carry. Layouts follow the public mlx5 kernel headers
// (linux/mlx5/device.h, mlx5_ifc.h). All multi-byte fields are big endian.
#pragma once

#include <infiniband/mlx5dv.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hca::prm {

// Bytes ------------------------------------------------------------------------------------------------------------

constexpr std::uint16_t be16(std::uint16_t v) { return __builtin_bswap16(v); }
constexpr std::uint32_t be32(std::uint32_t v) { return __builtin_bswap32(v); }
constexpr std::uint64_t be64(std::uint64_t v) { return __builtin_bswap64(v); }
static_assert(std::endian::native == std::endian::little, "be*() assume a little-endian simulator host");

/// A bit field inside the big-endian dword at byte offset `dword`: bits lsb .. lsb+width-1, width <= 32.
struct Field {
  std::uint16_t dword;
  std::uint8_t lsb;
  std::uint8_t width;
};
inline std::uint32_t get(const std::byte* base, Field f) {
  std::uint32_t w;
  std::memcpy(&w, base + f.dword, 4);
  const std::uint64_t mask = (1ULL << f.width) - 1;
  return static_cast<std::uint32_t>(be32(w) >> f.lsb & mask);
}
inline void set(std::byte* base, Field f, std::uint32_t value) {
  std::uint32_t w;
  std::memcpy(&w, base + f.dword, 4);
  const auto mask = static_cast<std::uint32_t>(((1ULL << f.width) - 1) << f.lsb);
  w = be32((be32(w) & ~mask) | (value << f.lsb & mask));
  std::memcpy(base + f.dword, &w, 4);
}
inline std::uint64_t get64(const std::byte* base, std::size_t at) {
  std::uint64_t v;
  std::memcpy(&v, base + at, 8);
  return be64(v);
}
inline void set64(std::byte* base, std::size_t at, std::uint64_t value) {
  value = be64(value);
  std::memcpy(base + at, &value, 8);
}

// BAR 0 ------------------------------------------------------------------------------------------------------------

inline constexpr std::uint64_t kBarSize = 32ULL << 20;
inline constexpr std::uint64_t kUarPageSize = 4096;
/// Initialisation segment (page 0).
inline constexpr std::uint64_t kInitFwRev = 0x00;          ///< be32 minor<<16 | major
inline constexpr std::uint64_t kInitCmdIfRev = 0x04;       ///< be32 cmd_if_rev<<16 | fw_subminor
inline constexpr std::uint64_t kInitCmdqAddrHigh = 0x10;   ///< be32
inline constexpr std::uint64_t kInitCmdqAddrLow = 0x14;    ///< be32 address | log size<<4 | log stride
inline constexpr std::uint64_t kInitCmdDoorbell = 0x18;    ///< be32 bit vector of command slots
inline constexpr std::uint64_t kInitInitializing = 0x1fc;  ///< be32 bit 31: device is initialising
inline constexpr unsigned kLogCmdqSize = 5;                ///< 32 command slots
inline constexpr unsigned kLogCmdqStride = 6;              ///< 64 bytes each
/// MSI-X table: 16 bytes per vector {addr lo, addr hi, data, vector control (bit 0 = masked)}, little endian (PCI).
inline constexpr std::uint64_t kMsixTable = 0x2000;
inline constexpr unsigned kMsixVectors = 64;
/// UAR page i is at kUarPageSize * i, for i >= kFirstUar. The driver allocates them with ALLOC_UAR.
inline constexpr std::uint32_t kFirstUar = 16;
inline constexpr std::uint32_t kUarPages = static_cast<std::uint32_t>(kBarSize / kUarPageSize);
/// Inside a UAR page.
inline constexpr std::uint64_t kUarCqDoorbell = 0x20;     ///< be64: (sn<<28 | cmd<<24 | ci)<<32 | cqn
inline constexpr std::uint64_t kUarEqDoorbellArm = 0x40;  ///< be32: eqn<<24 | ci
inline constexpr std::uint64_t kUarEqDoorbell = 0x48;     ///< be32, without arming
inline constexpr std::uint64_t kUarBfBase = 0x800;        ///< BlueFlame registers, kBfRegSize each
inline constexpr std::uint64_t kBfRegSize = 512;          ///< two halves of kBfBufSize that alternate
inline constexpr std::uint64_t kBfBufSize = 256;
inline constexpr unsigned kBfRegsPerUar = 4;  ///< two for users, two for the kernel's fast path

// Doorbell records ---------------------------------------------------------------------------------------------------

inline constexpr std::size_t kRcvDbr = 0, kSndDbr = 4;  ///< byte offsets in a QP's record: be32 of a 16-bit counter
inline constexpr std::size_t kCqSetCi = 0, kCqArm = 4;  ///< byte offsets in a CQ's record
inline constexpr std::uint32_t kArmCmdAny = 0, kArmCmdSolicited = 1;

// Event queue entries ------------------------------------------------------------------------------------------------

struct Eqe {
  std::uint8_t rsvd0;
  std::uint8_t type;
  std::uint8_t rsvd1;
  std::uint8_t sub_type;
  std::uint8_t rsvd2[28];
  std::uint8_t data[28];
  std::uint8_t rsvd3[2];
  std::uint8_t signature;
  std::uint8_t owner;
};
static_assert(sizeof(Eqe) == 64 && offsetof(Eqe, type) == 1 && offsetof(Eqe, sub_type) == 3 &&
              offsetof(Eqe, data) == 32 && offsetof(Eqe, owner) == 63);
inline constexpr Field kEqeCompCqn{56, 0, 24};
inline constexpr Field kEqeQpType{52, 24, 8};  ///< 0 QP, 1 RQ, 2 SQ
inline constexpr Field kEqeQpn{56, 0, 24};     ///< also srqn
inline constexpr Field kEqeCqErrCqn{32, 0, 24};
inline constexpr Field kEqeCqErrSyndrome{40, 0, 8};  ///< byte 43
inline constexpr std::uint8_t kCqErrorOverrun = 1, kCqErrorAccess = 2;
inline constexpr Field kEqeCmdVector{32, 0, 32};
inline constexpr Field kEqePort{40, 28, 4};
/// Sub-types of a port change.
inline constexpr std::uint8_t kPortDown = 1, kPortActive = 4, kPortLid = 6, kPortPkey = 7, kPortGuid = 8,
                              kPortClientReregister = 9;

// clang-format off
enum EventType : std::uint8_t {
  kEventComp = 0x00, kEventPathMig = 0x01, kEventCommEst = 0x02, kEventSqDrained = 0x03, kEventCqError = 0x04,
  kEventWqCatas = 0x05, kEventPathMigFailed = 0x07, kEventInternalError = 0x08, kEventPortChange = 0x09, kEventCmd = 0x0a,
  kEventPageRequest = 0x0b, kEventPageFault = 0x0c, kEventWqInvalReq = 0x10, kEventWqAccess = 0x11,
  kEventSrqCatas = 0x12, kEventSrqLastWqe = 0x13, kEventSrqLimit = 0x14,
};
// clang-format on

// Command interface --------------------------------------------------------------------------------------------------

/// A command queue slot. Inputs and outputs beyond 16 bytes continue in a chain of mailboxes.
struct CmdEntry {
  std::uint8_t type;  ///< 7 = PCIe transport
  std::uint8_t rsvd0[3];
  std::uint32_t inlen;   ///< be32
  std::uint64_t in_ptr;  ///< be64, bus address of the first input mailbox
  std::uint8_t in[16];
  std::uint8_t out[16];
  std::uint64_t out_ptr;  ///< be64
  std::uint32_t outlen;   ///< be32
  std::uint8_t token;
  std::uint8_t sig;
  std::uint8_t rsvd1;
  std::uint8_t status_own;  ///< bit 0: owned by hardware; bits 7:1: delivery status
};
static_assert(sizeof(CmdEntry) == 64 && offsetof(CmdEntry, in) == 16 && offsetof(CmdEntry, out) == 32 &&
              offsetof(CmdEntry, out_ptr) == 48 && offsetof(CmdEntry, status_own) == 63);
inline constexpr std::uint8_t kCmdOwnerHw = 1;
inline constexpr std::uint8_t kCmdTypePci = 7;

inline constexpr std::size_t kMailboxData = 512;
struct Mailbox {
  std::uint8_t data[kMailboxData];
  std::uint8_t rsvd0[48];
  std::uint64_t next;       ///< be64, bus address of the next mailbox, 0 = last
  std::uint32_t block_num;  ///< be32
  std::uint8_t rsvd1;
  std::uint8_t token;
  std::uint8_t ctrl_sig;
  std::uint8_t sig;
};
static_assert(sizeof(Mailbox) == 576 && offsetof(Mailbox, next) == 560);
inline constexpr std::size_t kMailboxStride = 1024;  ///< mailboxes are aligned to 1 KiB

// clang-format off
enum Opcode : std::uint16_t {
  kQueryHcaCap = 0x100, kInitHca = 0x102, kTeardownHca = 0x103, kEnableHca = 0x104, kDisableHca = 0x105,
  kQueryPages = 0x107, kManagePages = 0x108, kQueryIssi = 0x10a, kSetIssi = 0x10b,
  kCreateMkey = 0x200, kQueryMkey = 0x201, kDestroyMkey = 0x202, kQuerySpecialContexts = 0x203,
  kCreateEq = 0x301, kDestroyEq = 0x302, kQueryEq = 0x303,
  kCreateCq = 0x400, kDestroyCq = 0x401, kQueryCq = 0x402, kModifyCq = 0x403,
  kCreateQp = 0x500, kDestroyQp = 0x501, kRst2Init = 0x502, kInit2Rtr = 0x503, kRtr2Rts = 0x504, kRts2Rts = 0x505,
  kSqerr2Rts = 0x506, kQp2Err = 0x507, kRts2Sqd = 0x508, kQp2Rst = 0x50a, kQueryQp = 0x50b, kSqd2Rts = 0x50c,
  kInit2Init = 0x50e, kSqd2Sqd = 0x511,
  kCreateSrq = 0x700, kDestroySrq = 0x701, kQuerySrq = 0x702, kArmRq = 0x703,
  kCreateXrcSrq = 0x705, kDestroyXrcSrq = 0x706, kQueryXrcSrq = 0x707, kArmXrcSrq = 0x708,
  kAllocPd = 0x800, kDeallocPd = 0x801, kAllocUar = 0x802, kDeallocUar = 0x803,
  kAccessReg = 0x805, kAttachToMcg = 0x806, kDetachFromMcg = 0x807, kAllocXrcd = 0x80e, kDeallocXrcd = 0x80f,
  kSetRoceAddress = 0x761,
};
// clang-format on

/// Common head of every input: opcode, op_mod; of every output: status, syndrome.
inline constexpr Field kInOpcode{0, 16, 16}, kInOpMod{4, 0, 16};
inline constexpr Field kOutStatus{0, 24, 8}, kOutSyndrome{4, 0, 32};
/// Object number in inputs (bytes 8..11) that name one, and in outputs that return one.
inline constexpr Field kInObject{8, 0, 24}, kOutObject{8, 0, 24};
inline constexpr Field kInEqn{8, 0, 8}, kOutEqn{8, 0, 8};

// clang-format off
enum CmdStatus : std::uint8_t {
  kCmdOk = 0x0, kCmdInternalErr = 0x1, kCmdBadOp = 0x2, kCmdBadParam = 0x3, kCmdBadSysState = 0x4, kCmdBadRes = 0x5,
  kCmdResBusy = 0x6, kCmdLimit = 0x8, kCmdBadResState = 0x9, kCmdIndex = 0xa, kCmdNoRes = 0xf, kCmdBadInLen = 0x50,
  kCmdBadOutLen = 0x51, kCmdBadQpState = 0x10, kCmdBadPkt = 0x30, kCmdBadSize = 0x40,
};
// clang-format on

// QUERY_HCA_CAP output: the general capabilities start at byte 16; fields below are relative to that.
inline constexpr std::size_t kCapOffset = 16, kCapSize = 256;
inline constexpr Field kCapLogMaxSrqSz{0x10, 16, 8}, kCapLogMaxQpSz{0x10, 8, 8}, kCapLogMaxQp{0x10, 0, 5};
inline constexpr Field kCapLogMaxSrq{0x14, 16, 5};
inline constexpr Field kCapLogMaxCqSz{0x18, 16, 8}, kCapLogMaxCq{0x18, 0, 5};
inline constexpr Field kCapLogMaxEqSz{0x1c, 24, 8}, kCapLogMaxMkey{0x1c, 16, 6}, kCapLogMaxEq{0x1c, 0, 4};
inline constexpr Field kCapLogMaxRaReq{0x24, 24, 6}, kCapLogMaxRaRes{0x24, 16, 6};
inline constexpr Field kCapPortType{0x34, 8, 2};  ///< 0 InfiniBand, 1 Ethernet
inline constexpr Field kCapLogMaxMsg{0x38, 24, 5};
inline constexpr Field kCapCqeVersion{0x40, 0, 4};
inline constexpr Field kCapLogBfRegSize{0x44, 16, 5}, kCapBf{0x44, 31, 1};
inline constexpr Field kCapMaxWqeSzSq{0x4c, 0, 16};  ///< bytes
inline constexpr Field kCapMaxWqeSzRq{0x50, 0, 16};
inline constexpr Field kCapLogMaxPd{0x60, 0, 5}, kCapLogMaxXrcd{0x60, 16, 5};  ///< no domains: no XRC
inline constexpr Field kCapNumPorts{0x64, 0, 8};
inline constexpr Field kCapAtomic{0x68, 0, 1}, kCapIgnoreOverrun{0x68, 1, 1}, kCapModeration{0x68, 2, 1};
inline constexpr Field kCapDumpFillMkey{0x68, 3, 1};
inline constexpr Field kCapVendorPartId{0x6c, 0, 16};
inline constexpr Field kCapFwRevMajor{0x70, 16, 16}, kCapFwRevMinor{0x70, 0, 16}, kCapFwRevSub{0x74, 0, 16};
inline constexpr std::size_t kCapNodeGuid = 0x78;         ///< be64
inline constexpr std::size_t kCapMac = 0x80;              ///< be64, low 48 bits
inline constexpr Field kCapNumCompVectors{0x88, 0, 16};   ///< MSI-X vectors for completion EQs
inline constexpr Field kCapDeviceFrequency{0x90, 0, 32};  ///< kHz, of the clock behind CQE time stamps
inline constexpr Field kCapMaxPortMtu{0x8c, 0, 8};        ///< enum ibv_mtu
inline constexpr Field kCapLogMaxMcg{0x8c, 8, 8}, kCapMaxQpMcg{0x8c, 16, 16};

// ATTACH_TO_MCG / DETACH_FROM_MCG: qpn @8, group GID of 16 bytes.
inline constexpr std::size_t kMcgGid = 16;

// QUERY_PAGES / MANAGE_PAGES: pages that the device needs from the host for its context memory (ICM).
inline constexpr Field kPagesOutCount{12, 0, 32};  ///< QUERY_PAGES output
inline constexpr Field kPagesInCount{12, 0, 32};   ///< MANAGE_PAGES input; bus addresses follow
inline constexpr std::size_t kPagesInPas = 16;     ///< be64 each
inline constexpr std::uint16_t kManagePagesGive = 1, kManagePagesTake = 2;  ///< op_mod

// SET_ROCE_ADDRESS: entry of the source address table that kAdsSrcAddrIndex selects. GID of 16 bytes, MAC of 48 bits.
inline constexpr Field kRoceAddressIndex{8, 16, 16};
inline constexpr std::size_t kRoceAddressGid = 16, kRoceAddressEnd = 48;
inline constexpr Field kRoceAddressMacHigh{32, 0, 16}, kRoceAddressMacLow{36, 0, 32};
inline constexpr Field kRoceAddressL3Type{40, 8, 4}, kRoceAddressVersion{40, 0, 8};
inline constexpr std::uint32_t kRoceL3Ipv4 = 0, kRoceL3Ipv6 = 1, kRoceVersion1 = 0, kRoceVersion2 = 2;

// Queue contexts. Fields are relative to the context.
// Event queue: context at byte 16 of CREATE_EQ, event bit mask (be64) at 88, page list at 272.
inline constexpr std::size_t kEqcOffset = 16, kEqcSize = 64, kCreateEqMask = 88, kCreateEqPas = 272;
inline constexpr Field kEqcStatus{0, 28, 4}, kEqcOi{0, 17, 1}, kEqcState{0, 8, 4};
inline constexpr Field kEqcLogSize{12, 24, 5}, kEqcUarPage{12, 0, 24};
inline constexpr Field kEqcIntr{20, 0, 8};  ///< MSI-X vector
inline constexpr Field kEqcLogPageSize{24, 24, 5};
inline constexpr Field kEqcConsumer{40, 0, 24}, kEqcProducer{44, 0, 24};
inline constexpr std::uint32_t kEqStateArmed = 0x9, kEqStateFired = 0xa;

// Completion queue: context at byte 16 of CREATE_CQ, page list at 272. MODIFY_CQ: cqn @8, field select @12, context @16, pages @272.
inline constexpr std::size_t kCqcOffset = 16, kCqcSize = 64, kCreateCqPas = 272;
inline constexpr Field kCqcStatus{0, 28, 4}, kCqcCqeSize{0, 21, 3}, kCqcSolicitedBreaks{0, 18, 1}, kCqcOi{0, 17, 1},
    kCqcPeriodMode{0, 15, 2}, kCqcState{0, 8, 4};
inline constexpr std::uint32_t kCqeSize64 = 0, kCqeSize128 = 1;
inline constexpr std::uint32_t kCqPeriodFromEqe = 0, kCqPeriodFromCqe = 1;
inline constexpr Field kCqcPageOffset{8, 6, 6};  ///< in units of 64 bytes
inline constexpr Field kCqcLogSize{12, 24, 5}, kCqcUarPage{12, 0, 24};
inline constexpr Field kCqcPeriod{16, 16, 12}, kCqcMaxCount{16, 0, 16};
inline constexpr Field kCqcEqn{20, 0, 8};
inline constexpr Field kCqcLogPageSize{24, 24, 5};
inline constexpr Field kCqcConsumer{40, 0, 24}, kCqcProducer{44, 0, 24};
inline constexpr std::size_t kCqcDbrAddr = 56;  ///< be64 bus address of the doorbell record
inline constexpr Field kModifyCqSelect{12, 0, 32};
inline constexpr std::uint32_t kModifyCqPeriod = 1U << 0, kModifyCqCount = 1U << 1;
inline constexpr std::uint16_t kModifyCqResize = 1;  ///< op_mod: a new buffer, of the context's size and page list
inline constexpr std::uint32_t kCqStatusOk = 0, kCqStatusOverflow = 9, kCqStatusWriteFail = 10;
inline constexpr std::uint32_t kCqStateSolicitedArmed = 0x6, kCqStateArmed = 0x9, kCqStateFired = 0xa;

// Memory key: context at byte 16 of CREATE_MKEY, translations octword count (be32) @ 96, page list (be64 bus addresses) at 272.
// Output: mkey index @8. The caller chooses the low 8 bits of the key (kMkcVariant).
inline constexpr std::size_t kMkcOffset = 16, kMkcSize = 64, kCreateMkeyPas = 272;
inline constexpr Field kCreateMkeyTranslations{96, 0, 32};
inline constexpr Field kMkcFree{0, 30, 1}, kMkcRelaxedRead{0, 22, 1}, kMkcRelaxedWrite{0, 21, 1}, kMkcUmr{0, 15, 1},
    kMkcAtomic{0, 14, 1}, kMkcRw{0, 13, 1}, kMkcRr{0, 12, 1}, kMkcLw{0, 11, 1}, kMkcLr{0, 10, 1},
    kMkcAccessMode{0, 8, 2};
inline constexpr Field kMkcQpn{4, 8, 24}, kMkcVariant{4, 0, 8};
inline constexpr Field kMkcLength64{12, 31, 1}, kMkcRemoteInvalidate{12, 24, 1}, kMkcPd{12, 0, 24};
inline constexpr std::size_t kMkcStart = 16, kMkcLen = 24;  ///< be64
inline constexpr Field kMkcTranslations{52, 0, 32};
inline constexpr Field kMkcLogPageSize{60, 0, 5};
inline constexpr std::uint32_t kMkcModePa = 0, kMkcModeMtt = 1, kMkcModeKlm = 2;

// Queue pair: CREATE_QP has qpn-out @8; opt_param_mask @16; context @24; page list @272. State changes: qpn @8,
// opt_param_mask @16, context @24. QUERY_QP output: context @24.
inline constexpr std::size_t kQpcOffset = 24, kQpcSize = 232, kCreateQpPas = 272;
inline constexpr Field kQpOptMask{16, 0, 32};
inline constexpr Field kQpcState{0, 28, 4}, kQpcSt{0, 16, 8}, kQpcPmState{0, 11, 2};
inline constexpr Field kQpcWqSignature{4, 31, 1}, kQpcPd{4, 0, 24};
inline constexpr Field kQpcMtu{8, 29, 3}, kQpcLogMsgMax{8, 24, 5}, kQpcLogRqSize{8, 19, 4}, kQpcLogRqStride{8, 16, 3},
    kQpcNoSq{8, 15, 1}, kQpcLogSqSize{8, 11, 4};
inline constexpr Field kQpcUarPage{12, 0, 24};
inline constexpr Field kQpcUserIndex{16, 0, 24};
inline constexpr Field kQpcLogPageSize{20, 24, 5}, kQpcRemoteQpn{20, 0, 24};
/// Primary address path, 44 bytes at dword 6; fields relative to the path.
inline constexpr std::size_t kQpcPath = 24;
inline constexpr Field kAdsForceLoopback{0, 31, 1}, kAdsPkeyIndex{0, 0, 16}, kAdsGrh{4, 23, 1}, kAdsMlid{4, 16, 7},
    kAdsRlid{4, 0, 16};
inline constexpr Field kAdsAckTimeout{8, 27, 5}, kAdsSrcAddrIndex{8, 16, 8}, kAdsStatRate{8, 8, 4},
    kAdsHopLimit{8, 0, 8};
inline constexpr Field kAdsTclass{12, 20, 8}, kAdsFlowLabel{12, 0, 20};
inline constexpr std::size_t kAdsRgid = 16;  ///< 16 bytes
inline constexpr Field kAdsFlags{32, 24, 8}, kAdsUdpSport{32, 0, 16};
inline constexpr Field kAdsSl{36, 28, 4}, kAdsPort{36, 16, 8}, kAdsRmacHigh{36, 0, 16};
inline constexpr Field kAdsRmacLow{40, 0, 32};
inline constexpr Field kQpcLogAckReqFreq{112, 28, 4}, kQpcLogSraMax{112, 21, 3}, kQpcRetryCount{112, 16, 3},
    kQpcRnrRetry{112, 13, 3};
/// max_rd_atomic is 0, which log_sra_max cannot say: READs and atomics are refused. A reserved bit of real devices.
inline constexpr Field kQpcNoReads{112, 19, 1};
inline constexpr Field kQpcNextSendPsn{120, 0, 24}, kQpcCqnSnd{124, 0, 24}, kQpcLastAckedPsn{136, 0, 24};
inline constexpr Field kQpcLogRraMax{144, 21, 3}, kQpcAtomicMode{144, 16, 4}, kQpcRre{144, 15, 1}, kQpcRwe{144, 14, 1},
    kQpcRae{144, 13, 1}, kQpcPageOffset{144, 6, 6};
inline constexpr Field kQpcMinRnrNak{148, 24, 5}, kQpcNextRcvPsn{148, 0, 24};
inline constexpr Field kQpcXrcd{152, 0, 24}, kQpcCqnRcv{156, 0, 24};
inline constexpr std::size_t kQpcDbrAddr = 160;  ///< be64 bus address of the doorbell record
inline constexpr Field kQpcQkey{168, 0, 32};
inline constexpr Field kQpcRqType{172, 24, 3}, kQpcSrqn{172, 0, 24};
inline constexpr Field kQpcRmsn{176, 0, 24}, kQpcHwSqCounter{180, 16, 16}, kQpcSwSqCounter{180, 0, 16};
inline constexpr Field kQpcHwRqCounter{184, 0, 32}, kQpcSwRqCounter{188, 0, 32};
/// Scatter-to-CQE of READ and atomic results, and of received messages.
inline constexpr Field kQpcCsReq{196, 8, 8}, kQpcCsRes{196, 0, 8};
inline constexpr std::uint32_t kCsReqData32 = 0x11, kCsReqData64 = 0x22, kCsResData32 = 0x1, kCsResData64 = 0x2;

// clang-format off
enum QpcState : std::uint32_t {
  kQpRst = 0, kQpInit = 1, kQpRtr = 2, kQpRts = 3, kQpSqer = 4, kQpSqd = 5, kQpErr = 6, kQpSqDraining = 7,
};
// clang-format on
/// op_mod of RTS2SQD: raise an event when the send queue is drained. RTS2SQD and SQD2SQD are in the first public driver's
/// list of commands; today's driver never sends them.
inline constexpr std::uint32_t kSqdNotify = 1;
enum QpcService : std::uint32_t { kStRc = 0, kStUc = 1, kStUd = 2, kStXrc = 3 };
enum QpcRqType : std::uint32_t { kRqRegular = 0, kRqSrq = 1, kRqZero = 3 };
/// opt_param_mask bits: which optional attributes of a state change are valid.
// clang-format off
enum QpOpt : std::uint32_t {
  kOptAltPath = 1U << 0, kOptRre = 1U << 1, kOptRae = 1U << 2, kOptRwe = 1U << 3, kOptPkeyIndex = 1U << 4,
  kOptQkey = 1U << 5, kOptRnrTimeout = 1U << 6, kOptPrimaryPath = 1U << 7, kOptSraMax = 1U << 8, kOptRraMax = 1U << 9,
  kOptPmState = 1U << 10, kOptRetryCount = 1U << 12, kOptRnrRetry = 1U << 13, kOptAckTimeout = 1U << 14,
  kOptPrimaryPort = 1U << 16,
};
// clang-format on

// Shared receive queue, basic and XRC: context at byte 16 of CREATE_SRQ, CREATE_XRC_SRQ and of the output of the queries,
// page list at 272. ARM_RQ (op_mod 1) and ARM_XRC_SRQ (op_mod 1): srqn @8, limit in the low half of dword 12.
inline constexpr std::size_t kSrqcOffset = 16, kSrqcSize = 64, kCreateSrqPas = 272;
inline constexpr Field kSrqcState{0, 28, 4}, kSrqcLogSize{0, 24, 4};
inline constexpr Field kSrqcWqSignature{4, 31, 1}, kSrqcLogStride{4, 24, 3}, kSrqcXrcd{4, 0, 24};
inline constexpr Field kSrqcPageOffset{8, 26, 6}, kSrqcCqn{8, 0, 24};  ///< offset in units of 64 bytes
inline constexpr Field kSrqcLogPageSize{16, 24, 6}, kSrqcUserIndex{16, 0, 24};
inline constexpr Field kSrqcPd{24, 0, 24};
inline constexpr Field kSrqcLwm{28, 16, 16}, kSrqcWqeCount{28, 0, 16};
inline constexpr std::size_t kSrqcDbrAddr = 40;  ///< be64 bus address of the doorbell record
inline constexpr Field kArmSrqLimit{12, 0, 16};
inline constexpr std::uint16_t kArmSrq = 1;  ///< op_mod
inline constexpr std::uint32_t kSrqStateGood = 0, kSrqStateError = 1;
/// Head of an SRQ WQE; its data segments follow (S-RQ-2).
inline constexpr std::uint32_t kSrqHeadSize = 16, kSrqNextIndex = 2;

// Keys and WQEs --------------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kInvalidLkey = 0x100;  ///< ends a receive WQE's segment list
inline constexpr std::uint32_t kNullMkey = 0x200;  ///< reads as zeros, drops what is written (QUERY_SPECIAL_CONTEXTS)
inline constexpr Field kSpecialDumpFillMkey{8, 0, 32}, kSpecialNullMkey{16, 0, 32};
inline constexpr std::uint32_t kWqebb = 64, kDs = 16;
inline constexpr std::uint32_t kInlineFlag = 0x80000000;

// UMR WQE: control, UMR control (48 bytes), memory key context (64), KLM entries (S-WQE-12). Bits of UMR control byte 0 and
// of the mask of context fields that the WQE changes.
inline constexpr std::size_t kUmrCtrl = 16, kUmrContext = 64, kUmrKlm = 128;
inline constexpr std::uint8_t kUmrInline = 0x80, kUmrCheckFree = 0x20, kUmrTranslationOffset = 0x10,
                              kUmrCheckQpn = 0x08;
inline constexpr Field kUmrKlmOctowords{kUmrCtrl + 4, 16, 16};
inline constexpr std::size_t kUmrMask = kUmrCtrl + 8;  ///< be64
inline constexpr std::uint64_t kUmrMaskLen = 1ULL << 0, kUmrMaskStart = 1ULL << 6, kUmrMaskKey = 1ULL << 13,
                               kUmrMaskQpn = 1ULL << 14, kUmrMaskLocalWrite = 1ULL << 18,
                               kUmrMaskRemoteRead = 1ULL << 19, kUmrMaskRemoteWrite = 1ULL << 20,
                               kUmrMaskAtomic = 1ULL << 21, kUmrMaskFree = 1ULL << 29;
/// KLM entry: a piece of another key. 16 bytes.
inline constexpr std::size_t kKlmSize = 16, kKlmAddress = 8;  ///< be64 address at 8
inline constexpr Field kKlmBytes{0, 0, 32}, kKlmKey{4, 0, 32};

/// Error syndromes of CQEs (byte 55).
// clang-format off
enum Syndrome : std::uint8_t {
  kSynLocalLength = 0x01, kSynLocalQpOp = 0x02, kSynLocalProt = 0x04, kSynFlush = 0x05, kSynMwBind = 0x06,
  kSynBadResp = 0x10, kSynLocalAccess = 0x11, kSynRemoteInvalReq = 0x12, kSynRemoteAccess = 0x13, kSynRemoteOp = 0x14,
  kSynTransportRetry = 0x15, kSynRnrRetry = 0x16, kSynRemoteAborted = 0x22,
};
// clang-format on

}  // namespace hca::prm
