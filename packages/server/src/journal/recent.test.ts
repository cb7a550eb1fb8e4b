import { expect, test } from 'vitest';
import { createRecent, type Recent } from './recent.ts';
import type { Segment } from './segment.ts';

const KIB = 1024;

function segment(seq: number, characters: number): Segment {
  const body = JSON.stringify(['x'.repeat(characters)]);
  return { turn: 1, seqFrom: seq, seqTo: seq, body, createdAt: new Date(0) };
}

const after = (seq: number) => ({ turn: 1, seq: seq - 1 });

function put(recent: Recent, seq: number, characters = 100): void {
  recent.put('s', after(seq), segment(seq, characters));
}

const isThere = (recent: Recent, seq: number) => recent.get('s', after(seq)) !== undefined;

test('what is held is bounded, however much is put and however many texts are made of it', () => {
  const recent = createRecent(100 * KIB);
  for (let seq = 1; seq <= 200; seq += 1) {
    put(recent, seq, 5 * KIB);
    for (let name = 0; name < 10; name += 1) {
      const following = recent.get('s', after(seq))!;
      recent.text(following, String(name), () => ({ cursor: 'c', json: Buffer.alloc(5 * KIB) }));
    }
    expect(recent.bytes()).toBeLessThan(2 * 100 * KIB + 80 * KIB);
  }
  expect(isThere(recent, 200)).toBe(true);
  expect(isThere(recent, 1)).toBe(false);
});

test('a segment that is longer than all that may be held is there until the next one', () => {
  const recent = createRecent(10 * KIB);
  put(recent, 1, 100 * KIB);
  expect(isThere(recent, 1)).toBe(true);
  for (let seq = 2; seq <= 20; seq += 1) put(recent, seq, 100 * KIB);
  expect(isThere(recent, 20)).toBe(true);
  expect(recent.bytes()).toBeLessThan(500 * KIB);
});

test('what nobody used for two of its ages is gone, and what is used stays', () => {
  const recent = createRecent();
  put(recent, 1);
  put(recent, 2);
  for (let age = 0; age < 5; age += 1) {
    recent.age();
    expect(isThere(recent, 1)).toBe(true);
  }
  expect(isThere(recent, 2)).toBe(false);
  recent.age();
  recent.age();
  expect(isThere(recent, 1)).toBe(false);
  expect(recent.bytes()).toBe(0);
});

test('a text is made once for each name, also one that shows nothing', () => {
  const recent = createRecent();
  put(recent, 1);
  let made = 0;
  const textOf = (name: string, json: string | undefined) =>
    recent.text(recent.get('s', after(1))!, name, () => {
      made += 1;
      return json === undefined ? undefined : { cursor: 'c', json };
    })?.json;
  expect([textOf('a', '1'), textOf('a', '2'), textOf('b', '3'), textOf('none', undefined)]).toEqual([
    '1',
    '1',
    '3',
    undefined,
  ]);
  textOf('none', '4');
  expect(made).toBe(3);
});
