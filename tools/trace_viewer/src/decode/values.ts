// SPDX-License-Identifier: Apache-2.0
// Names of the numbers that records carry, by point and argument. They only explain: a number without a name is shown as it is,
// and nothing else in the viewer depends on the names. Sources: <infiniband/verbs.h>, <infiniband/mlx5dv.h>, linux/mlx5/device.h,
// InfiniBand Architecture Specification volume 1 chapter 9, and the enums of the models.

import { kLost } from '../model/types';
import { errnoName, uverbsCommandName } from './system_calls';

type Names = Record<number, string>;

export const kWrOpcode: Names = {
  0: 'RDMA_WRITE',
  1: 'RDMA_WRITE_WITH_IMM',
  2: 'SEND',
  3: 'SEND_WITH_IMM',
  4: 'RDMA_READ',
  5: 'ATOMIC_CMP_AND_SWP',
  6: 'ATOMIC_FETCH_AND_ADD',
  7: 'LOCAL_INV',
  8: 'BIND_MW',
  9: 'SEND_WITH_INV',
  10: 'TSO',
  11: 'DRIVER1',
};

export const kMlx5Opcode: Names = {
  0x00: 'NOP',
  0x01: 'SEND_INVAL',
  0x08: 'RDMA_WRITE',
  0x09: 'RDMA_WRITE_IMM',
  0x0a: 'SEND',
  0x0b: 'SEND_IMM',
  0x0e: 'TSO',
  0x10: 'RDMA_READ',
  0x11: 'ATOMIC_CS',
  0x12: 'ATOMIC_FA',
  0x14: 'ATOMIC_MASKED_CS',
  0x15: 'ATOMIC_MASKED_FA',
  0x18: 'FMR',
  0x1b: 'LOCAL_INVAL',
  0x1f: 'CONFIG_CMD',
  0x25: 'UMR',
  0x0f: 'SET_PSV',
  0x23: 'DUMP',
};

export const kCqeOpcode: Names = {
  0: 'REQ',
  1: 'RESP_WR_IMM',
  2: 'RESP_SEND',
  3: 'RESP_SEND_IMM',
  4: 'RESP_SEND_INV',
  5: 'RESIZE_CQ',
  8: 'NO_PACKET',
  12: 'SIG_ERR',
  13: 'REQ_ERR',
  14: 'RESP_ERR',
  15: 'INVALID',
};

export const kCqeSyndrome: Names = {
  0x01: 'LOCAL_LENGTH_ERR',
  0x02: 'LOCAL_QP_OP_ERR',
  0x04: 'LOCAL_PROT_ERR',
  0x05: 'WR_FLUSH_ERR',
  0x06: 'MW_BIND_ERR',
  0x10: 'BAD_RESP_ERR',
  0x11: 'LOCAL_ACCESS_ERR',
  0x12: 'REMOTE_INVAL_REQ_ERR',
  0x13: 'REMOTE_ACCESS_ERR',
  0x14: 'REMOTE_OP_ERR',
  0x15: 'TRANSPORT_RETRY_EXC_ERR',
  0x16: 'RNR_RETRY_EXC_ERR',
  0x22: 'REMOTE_ABORTED_ERR',
};

/** enum ibv_wc_status, without its prefix. */
const kWcStatus = [
  'SUCCESS',
  'LOC_LEN_ERR',
  'LOC_QP_OP_ERR',
  'LOC_EEC_OP_ERR',
  'LOC_PROT_ERR',
  'WR_FLUSH_ERR',
  'MW_BIND_ERR',
  'BAD_RESP_ERR',
  'LOC_ACCESS_ERR',
  'REM_INV_REQ_ERR',
  'REM_ACCESS_ERR',
  'REM_OP_ERR',
  'RETRY_EXC_ERR',
  'RNR_RETRY_EXC_ERR',
  'LOC_RDD_VIOL_ERR',
  'REM_INV_RD_REQ_ERR',
  'REM_ABORT_ERR',
  'INV_EECN_ERR',
  'INV_EEC_STATE_ERR',
  'FATAL_ERR',
  'RESP_TIMEOUT_ERR',
  'GENERAL_ERR',
  'TM_ERR',
  'TM_RNDV_INCOMPLETE',
];
export function wcStatusName(status: number): string {
  return status === kLost ? 'lost' : (kWcStatus[status] ?? `status ${status}`);
}

/** The work completion status that a CQE's syndrome becomes. */
const kWcStatusOfSyndrome: Record<number, number> = {
  0x01: 1,
  0x02: 2,
  0x04: 4,
  0x05: 5,
  0x06: 6,
  0x10: 7,
  0x11: 8,
  0x12: 9,
  0x13: 10,
  0x14: 11,
  0x15: 12,
  0x16: 13,
  0x22: 16,
};
export function wcStatusOf(syndrome: number): number {
  return kWcStatusOfSyndrome[syndrome] ?? 21;
}

export const kEventType: Names = {
  0x00: 'COMP',
  0x01: 'PATH_MIG',
  0x02: 'COMM_EST',
  0x03: 'SQ_DRAINED',
  0x04: 'CQ_ERROR',
  0x05: 'WQ_CATAS_ERROR',
  0x07: 'PATH_MIG_FAILED',
  0x08: 'INTERNAL_ERROR',
  0x09: 'PORT_CHANGE',
  0x0a: 'CMD',
  0x0b: 'PAGE_REQUEST',
  0x0c: 'PAGE_FAULT',
  0x10: 'WQ_INVAL_REQ_ERROR',
  0x11: 'WQ_ACCESS_ERROR',
  0x12: 'SRQ_CATAS_ERROR',
  0x13: 'SRQ_LAST_WQE',
  0x14: 'SRQ_RQ_LIMIT',
};

/** enum ibv_event_type. */
const kIbvEvent: Names = {
  0: 'CQ_ERR',
  1: 'QP_FATAL',
  2: 'QP_REQ_ERR',
  3: 'QP_ACCESS_ERR',
  4: 'COMM_EST',
  5: 'SQ_DRAINED',
  6: 'PATH_MIG',
  7: 'PATH_MIG_ERR',
  8: 'DEVICE_FATAL',
  9: 'PORT_ACTIVE',
  10: 'PORT_ERR',
  11: 'LID_CHANGE',
  12: 'PKEY_CHANGE',
  13: 'SM_CHANGE',
  14: 'SRQ_ERR',
  15: 'SRQ_LIMIT_REACHED',
  16: 'QP_LAST_WQE_REACHED',
  17: 'CLIENT_REREGISTER',
  18: 'GID_CHANGE',
};

const kOperation: Names = {
  0x00: 'SEND_FIRST',
  0x01: 'SEND_MIDDLE',
  0x02: 'SEND_LAST',
  0x03: 'SEND_LAST_WITH_IMM',
  0x04: 'SEND_ONLY',
  0x05: 'SEND_ONLY_WITH_IMM',
  0x06: 'RDMA_WRITE_FIRST',
  0x07: 'RDMA_WRITE_MIDDLE',
  0x08: 'RDMA_WRITE_LAST',
  0x09: 'RDMA_WRITE_LAST_WITH_IMM',
  0x0a: 'RDMA_WRITE_ONLY',
  0x0b: 'RDMA_WRITE_ONLY_WITH_IMM',
  0x0c: 'RDMA_READ_REQUEST',
  0x0d: 'RDMA_READ_RESPONSE_FIRST',
  0x0e: 'RDMA_READ_RESPONSE_MIDDLE',
  0x0f: 'RDMA_READ_RESPONSE_LAST',
  0x10: 'RDMA_READ_RESPONSE_ONLY',
  0x11: 'ACKNOWLEDGE',
  0x12: 'ATOMIC_ACKNOWLEDGE',
  0x13: 'CMP_SWAP',
  0x14: 'FETCH_ADD',
  0x16: 'SEND_LAST_WITH_INV',
  0x17: 'SEND_ONLY_WITH_INV',
};
const kTransport: Names = { 0: 'RC', 1: 'UC', 2: 'RD', 3: 'UD', 4: 'CNP', 5: 'XRC' };

/** "RC SEND_ONLY" of a BTH opcode. */
export function bthOpcodeName(opcode: number): string {
  if (opcode === 0x81) return 'CNP';
  const operation = kOperation[opcode & 0x1f];
  return operation ? `${kTransport[opcode >> 5] ?? `class ${opcode >> 5}`} ${operation}` : `0x${opcode.toString(16)}`;
}

/** "ACK", "RNR NAK, timer 13", "NAK PSN sequence error" of an AETH syndrome. */
export function aethName(syndrome: number): string {
  const value = syndrome & 0x1f;
  switch (syndrome >> 5) {
    case 0:
      return value === 31 ? 'ACK' : `ACK, credit code ${value}`;
    case 1:
      return `RNR NAK, timer code ${value}`;
    case 3:
      return `NAK ${['PSN sequence error', 'invalid request', 'remote access error', 'remote operational error', 'invalid RD request'][value] ?? value}`;
    default:
      return `reserved 0x${syndrome.toString(16)}`;
  }
}

const kDropReason: Names = {
  0: 'malformed',
  1: 'ICRC',
  2: 'unknown QP',
  3: 'QP state',
  4: 'transport',
  5: 'P_Key',
  6: 'source',
  7: 'congestion notification',
  8: 'address',
  9: 'Q_Key',
  10: 'multicast group',
};
export const kQpState: Names = { 0: 'RESET', 1: 'INIT', 2: 'RTR', 3: 'RTS', 4: 'SQE', 5: 'SQD', 6: 'ERR', 7: 'SQ_DRAINING' };
/** enum ibv_qp_state. */
const kIbvQpState: Names = { 0: 'RESET', 1: 'INIT', 2: 'RTR', 3: 'RTS', 4: 'SQD', 5: 'SQE', 6: 'ERR' };
const kRetransmitCause: Names = { 0: 'ACK timeout', 1: 'sequence NAK', 2: 'gap in READ responses' };
const kBarrier: Names = {
  0: 'udma_to_device',
  1: 'udma_from_device',
  2: 'mmio_flush_writes',
  3: 'mmio_wc_start',
  4: 'mmio_wc_spinlock',
  5: 'dma_rmb',
  6: 'wmb',
};
const kInstruction: Names = { 0: 'none', 1: 'lfence', 2: 'sfence', 3: 'dmb oshst', 4: 'dmb oshld', 5: 'dsb st' };
const kFlushReason: Names = { 0: 'full', 1: 'fence', 2: 'eviction', 3: 'timeout' };
const kCplStatus: Names = { 0: 'SC', 1: 'UR', 2: 'CRS', 4: 'CA' };
const kFcClass: Names = { 0: 'posted', 1: 'non-posted', 2: 'completion' };
const kFaultReason: Names = {
  0: 'none',
  1: 'no page table',
  2: 'not present',
  3: 'read denied',
  4: 'write denied',
  5: 'large page',
  6: 'bad table',
  7: 'address width',
};
const kCommand: Names = {
  0x100: 'QUERY_HCA_CAP',
  0x102: 'INIT_HCA',
  0x103: 'TEARDOWN_HCA',
  0x104: 'ENABLE_HCA',
  0x105: 'DISABLE_HCA',
  0x107: 'QUERY_PAGES',
  0x108: 'MANAGE_PAGES',
  0x10a: 'QUERY_ISSI',
  0x10b: 'SET_ISSI',
  0x200: 'CREATE_MKEY',
  0x201: 'QUERY_MKEY',
  0x202: 'DESTROY_MKEY',
  0x203: 'QUERY_SPECIAL_CONTEXTS',
  0x301: 'CREATE_EQ',
  0x302: 'DESTROY_EQ',
  0x303: 'QUERY_EQ',
  0x400: 'CREATE_CQ',
  0x401: 'DESTROY_CQ',
  0x402: 'QUERY_CQ',
  0x403: 'MODIFY_CQ',
  0x500: 'CREATE_QP',
  0x501: 'DESTROY_QP',
  0x502: 'RST2INIT_QP',
  0x503: 'INIT2RTR_QP',
  0x504: 'RTR2RTS_QP',
  0x505: 'RTS2RTS_QP',
  0x506: 'SQERR2RTS_QP',
  0x507: '2ERR_QP',
  0x508: 'RTS2SQD_QP',
  0x50a: '2RST_QP',
  0x50b: 'QUERY_QP',
  0x50c: 'SQD2RTS_QP',
  0x50e: 'INIT2INIT_QP',
  0x511: 'SQD2SQD_QP',
  0x700: 'CREATE_SRQ',
  0x701: 'DESTROY_SRQ',
  0x702: 'QUERY_SRQ',
  0x703: 'ARM_RQ',
  0x705: 'CREATE_XRC_SRQ',
  0x706: 'DESTROY_XRC_SRQ',
  0x707: 'QUERY_XRC_SRQ',
  0x708: 'ARM_XRC_SRQ',
  0x761: 'SET_ROCE_ADDRESS',
  0x800: 'ALLOC_PD',
  0x801: 'DEALLOC_PD',
  0x802: 'ALLOC_UAR',
  0x803: 'DEALLOC_UAR',
  0x805: 'ACCESS_REG',
  0x806: 'ATTACH_TO_MCG',
  0x807: 'DETACH_FROM_MCG',
  0x80e: 'ALLOC_XRCD',
  0x80f: 'DEALLOC_XRCD',
};

const kLink: Names = { 0: 'down', 1: 'up' };

/** Of an RNR NAK, in 10 µs by its code: InfiniBand Architecture Specification volume 1, table 45. */
const kRnrTimer = [
  65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
  12288, 16384, 24576, 32768, 49152,
];
function rnrTimerName(code: number): string | undefined {
  return kRnrTimer[code] === undefined ? undefined : `${kRnrTimer[code] / 100} ms`;
}

const named = (names: Names) => (v: number) => names[v];

// Functions that name a value, by "point/argument" or, for all points of a category, "category.*/argument".
const kNamers: Record<string, (v: number) => string | undefined> = {
  'hca.tx/opcode': bthOpcodeName,
  'hca.rx/opcode': bthOpcodeName,
  'fabric.*/opcode': bthOpcodeName,
  'fabric.link/up': named(kLink),
  'hca.wqe/opcode': named(kMlx5Opcode),
  'hca.cqe/opcode': named(kCqeOpcode),
  'hca.command/opcode': named(kCommand),
  'kernel.command/opcode': named(kCommand),
  'hca.eqe/type': named(kEventType),
  'kernel.eqe/type': named(kEventType),
  'kernel.async_event/type': named(kIbvEvent),
  'kernel.uverbs_command/command': uverbsCommandName,
  'kernel.uverbs_command/result': errnoName,
  'hca.rx_drop/reason': named(kDropReason),
  'hca.nak/syndrome': aethName,
  'hca.rnr_nak/timer': rnrTimerName,
  'hca.rnr_wait/timer': rnrTimerName,
  'hca.qp_state/state': named(kQpState),
  'verbs.modify_qp/state': named(kIbvQpState),
  'verbs.get_async_event/type': named(kIbvEvent),
  'verbs.ack_async_event/type': named(kIbvEvent),
  'hca.retransmit/cause': named(kRetransmitCause),
  'cpu.barrier/barrier': named(kBarrier),
  'cpu.barrier/instruction': named(kInstruction),
  'cpu.wc_flush/reason': named(kFlushReason),
  'pcie.dma_read/status': named(kCplStatus),
  'pcie.dma_fault/status': named(kCplStatus),
  'pcie.credit_stall/class': named(kFcClass),
  'iommu.fault/reason': named(kFaultReason),
};

/** Name of the value of an argument of a point, or undefined. `opcode` of hca.cqe tells whether its syndrome means anything. */
export function valueName(point: string, arg: string, value: number): string | undefined {
  if (arg === 'errno') return errnoName(value);
  const namer = kNamers[`${point}/${arg}`] ?? kNamers[`${point.split('.')[0]}.*/${arg}`];
  return namer?.(value);
}

const kHexArguments = /^(address|bus|va|iova|phys|key|value|data|lkey|rkey)$/;

/** A number as it is best read: addresses and keys in hexadecimal; those beyond 2^53 are not exact in a file of doubles. */
export function formatArgument(arg: string, value: number): string {
  if (kHexArguments.test(arg) && Number.isInteger(value) && value >= 0) return `0x${value.toString(16)}`;
  return Math.abs(value) > Number.MAX_SAFE_INTEGER ? `≈ ${value.toExponential(6)}` : String(value);
}

/** Whether a completion's opcode says that it reports an error (its syndrome is valid then only). */
export function isErrorCompletion(point: string, opcode: number): boolean {
  return point.endsWith('.cqe') && (opcode === 13 || opcode === 14);
}
export function syndromeName(syndrome: number): string {
  return kCqeSyndrome[syndrome] ?? `syndrome 0x${syndrome.toString(16)}`;
}
