// SPDX-License-Identifier: Apache-2.0
// Chooses the decoder of a record's raw bytes.
import type { BytesKind } from '../model/types';
import type { Decoded } from './bytes';
import { fromHex } from './bytes';
import { decodeCqe, decodeEqe } from './completion';
import { decodePacket } from './packet';
import { decodeTlp } from './tlp';
import { decodeReceiveWqe, decodeWqe } from './wqe';

/** `length` is the true length of a frame of which the bytes may be the head. Null when the text is not hexadecimal. */
export function decodeBytes(kind: BytesKind, text: string, length = 0): { bytes: Uint8Array; decoded: Decoded } | null {
  const bytes = fromHex(text);
  if (!bytes) return null;
  switch (kind) {
    case 'frame':
      return { bytes, decoded: decodePacket(bytes, length) };
    case 'wqe':
      return { bytes, decoded: decodeWqe(bytes) };
    case 'rwqe':
      return { bytes, decoded: decodeReceiveWqe(bytes) };
    case 'cqe':
      return { bytes, decoded: decodeCqe(bytes) };
    case 'eqe':
      return { bytes, decoded: decodeEqe(bytes) };
    case 'tlp':
      return { bytes, decoded: decodeTlp(bytes) };
  }
}
