// SPDX-License-Identifier: Apache-2.0
// Raw bytes of records: packed and found again, and the field that a byte belongs to.
import { describe, expect, test } from 'vitest';
import type { Field } from '../../src/decode/bytes';
import { ByteStore, bytesAt } from '../../src/model/byte_store';
import { fieldAt } from '../../src/ui/byte_view';

const add = (store: ByteStore, text: string) => {
  const bytes = new TextEncoder().encode(text);
  return store.addHex(bytes, 0, bytes.length);
};

describe('byte store', () => {
  test('keeps what it is given, over many pieces', () => {
    const store = new ByteStore();
    const texts = Array.from({ length: 3000 }, (_, i) =>
      (i % 256)
        .toString(16)
        .padStart(2, '0')
        .repeat(1 + ((i * 37) % 2000)),
    );
    const at = texts.map((t) => add(store, t));
    expect(store.pieces.length).toBeGreaterThan(2);
    expect(Math.min(...at)).toBeGreaterThan(0);
    for (const [i, t] of texts.entries()) expect(Buffer.from(bytesAt(store.pieces, at[i])!).toString('hex')).toBe(t);
  });
  test('upper and lower case, no bytes, no hexadecimal text', () => {
    const store = new ByteStore();
    expect([...bytesAt(store.pieces, add(store, '0aFfA0'))!]).toEqual([10, 255, 160]);
    expect(add(store, '')).toBe(0);
    expect(bytesAt(store.pieces, 0)).toBeNull();
    for (const bad of ['0', '0g', 'g0', '  ', '0x', '“”']) expect(add(store, bad)).toBe(-1);
    expect([...bytesAt(store.pieces, add(store, '01'))!]).toEqual([1]);
  });
  test('a record that repeats the one before it takes no room', () => {
    const store = new ByteStore();
    const first = add(store, 'abcdef');
    expect(add(store, 'abcdef')).toBe(first);
    expect(add(store, 'abcdee')).not.toBe(first);
    expect(add(store, 'abcd')).not.toBe(first);
  });
  test('more than a piece holds is refused', () => {
    expect(add(new ByteStore(), '00'.repeat(1 << 20))).toBe(-1);
  });
});

test('a byte belongs to the narrowest field that holds it', () => {
  const field = (name: string, at: number, length: number): Field => ({ group: 'g', name, value: '', at, length });
  const fields = [field('word', 0, 4), field('flags', 2, 1), field('other', 4, 2)];
  expect([0, 2, 3, 5].map((at) => fieldAt(fields, at)?.name)).toEqual(['word', 'flags', 'word', 'other']);
  expect(fieldAt(fields, 6)).toBeNull();
});
