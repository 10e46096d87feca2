// SPDX-License-Identifier: Apache-2.0
// Invariant CRC of RoCEv2 (InfiniBand Architecture annex A17): CRC-32 of Ethernet over eight bytes of ones, then the packet from
// its IP header to the pad, with the fields that may change on the way read as ones.

const kTable = (() => {
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; ++i) {
    let c = i;
    for (let k = 0; k < 8; ++k) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    table[i] = c >>> 0;
  }
  return table;
})();

export function crc32(bytes: Iterable<number>): number {
  let c = 0xffffffff;
  for (const b of bytes) c = (c >>> 8) ^ kTable[(c ^ b) & 0xff];
  return (c ^ 0xffffffff) >>> 0;
}

/** `packet`: from the IP header to the pad. */
export function icrc(packet: Uint8Array): number {
  const masked = new Uint8Array(8 + packet.length).fill(0xff, 0, 8);
  masked.set(packet, 8);
  const v4 = packet[0] >> 4 === 4;
  const l3 = 8 + (v4 ? 20 : 40);
  if (v4) {
    masked[9] = 0xff; // DSCP, ECN
    masked[16] = 0xff; // TTL
    masked[18] = masked[19] = 0xff; // header checksum
  } else {
    masked[8] |= 0x0f; // traffic class, flow label
    masked[9] = masked[10] = masked[11] = 0xff;
    masked[15] = 0xff; // hop limit
  }
  masked[l3 + 6] = masked[l3 + 7] = 0xff; // UDP checksum
  masked[l3 + 8 + 4] = 0xff; // FECN, BECN, reserved
  return crc32(masked);
}
