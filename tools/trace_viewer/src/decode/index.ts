// SPDX-License-Identifier: Apache-2.0
// Chooses the decoder of a record's raw bytes.
import type { BytesKind } from '../model/types';
import type { Decoded } from './bytes';
import { decodeCqe, decodeEqe } from './completion';
import { decodePacket } from './packet';
import { decodeTlp } from './tlp';
import { decodeReceiveWqe, decodeWqe } from './wqe';

/** `length` is the true length of a frame of which the bytes may be the head. */
export function decodeBytes(kind: BytesKind, bytes: Uint8Array, length = 0): Decoded {
  switch (kind) {
    case 'frame':
      return decodePacket(bytes, length);
    case 'wqe':
      return decodeWqe(bytes);
    case 'rwqe':
      return decodeReceiveWqe(bytes);
    case 'cqe':
      return decodeCqe(bytes);
    case 'eqe':
      return decodeEqe(bytes);
    case 'tlp':
      return decodeTlp(bytes);
  }
}
