// SPDX-License-Identifier: Apache-2.0
// Raw bytes of the records of a synthetic trace: TLPs, WQEs, CQEs and heads of frames with the numbers of their records in them. As in
// traces of the simulator, no record has more than 80 bytes.

/** What the bytes of a point are, by its name. */
export const kBytesOf = {
  'pcie.MWr': 'tlp',
  'pcie.MRd': 'tlp',
  'pcie.CplD': 'tlp',
  'hca.wqe': 'wqe',
  'hca.cqe': 'cqe',
};

const hex = (value, digits) => value.toString(16).padStart(digits, '0').slice(-digits);
/** `length` bytes that differ from record to record. */
const filling = (id, length) =>
  hex(Math.imul(id, 2654435761) >>> 0, 8)
    .repeat(Math.ceil(length / 4))
    .slice(0, 2 * length);

/** Hexadecimal text of the bytes of a span of the point `name`; '' if it has none. */
export function spanBytes(name, id, args) {
  switch (name) {
    case 'pcie.MWr':
      return `6000${hex(args[1] / 4, 4)}3b${hex(0xff, 6)}${hex(args[2], 16)}${filling(id, 64)}`;
    case 'pcie.MRd':
      return `2000${hex(args[1] / 4, 4)}3b00${hex(args[0], 2)}ff${hex(args[2], 16)}`;
    case 'pcie.CplD':
      return `4a00${hex(args[1] / 4, 4)}0000${hex(args[1], 4)}3b00${hex(args[0], 2)}00${filling(id, 68)}`;
    case 'hca.wqe':
      return `00${hex(args[1], 4)}0a${hex(args[0], 6)}0400000008${'0'.repeat(8)}${hex(args[3], 8)}${hex(4097, 8)}${hex(0x201000 + id, 16)}${'0'.repeat(64)}`.slice(
        0,
        128,
      );
    case 'hca.cqe':
      return `${'0'.repeat(88)}${hex(args[3], 8)}${hex(id, 16)}0a${hex(args[1], 6)}${hex(id, 4)}00${hex(args[2] << 4, 2)}`;
    default:
      return '';
  }
}

/** The first 80 bytes of the frame of a SEND. */
export function frameHead(qpn, psn, id) {
  const ip = `4500103c000040004011${'0'.repeat(4)}0a0000010a000002`;
  return `0200000000020200000000010800${ip}c00112b7102800000440ffff00${hex(qpn, 6)}80${hex(psn, 6)}${filling(id, 26)}`;
}
