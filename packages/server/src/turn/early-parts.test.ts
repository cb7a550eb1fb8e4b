import { expect, test } from 'vitest';
import { createEarlyParts, type EarlyPart } from './early-parts.ts';

const thought = (delta: string): EarlyPart => ({ type: 'reasoning', delta });
const input = (operationId: string, delta: string): EarlyPart => ({ type: 'toolInput', operationId, name: 't', delta });

test('the first piece is shown at once, and what follows in pieces of 64 characters or more', () => {
  const parts = createEarlyParts();
  expect(parts.add(thought('a'))).toEqual([thought('a')]);
  for (let n = 0; n < 31; n += 1) expect(parts.add(thought('bc'))).toEqual([]);
  expect(parts.add(thought('de'))).toEqual([thought(`${'bc'.repeat(31)}de`)]);
  expect(parts.add(thought('f'))).toEqual([]);
  expect(parts.rest()).toEqual([thought('f')]);
  expect(parts.rest()).toEqual([]);
});

test('inputs that alternate are gathered each by itself, and nothing of them is lost or mixed', () => {
  const parts = createEarlyParts();
  const shown: EarlyPart[] = [];
  for (let n = 0; n < 300; n += 1) shown.push(...parts.add(input('1', `${n},`)), ...parts.add(input('2', `${-n};`)));
  shown.push(...parts.rest());
  const textOf = (id: string) =>
    shown.map((part) => (part.type === 'toolInput' && part.operationId === id ? part.delta : '')).join('');
  const numbers = Array.from({ length: 300 }, (_, n) => n);
  expect(textOf('1')).toBe(numbers.map((n) => `${n},`).join(''));
  expect(textOf('2')).toBe(numbers.map((n) => `${-n};`).join(''));
  expect(shown.length).toBeLessThan(50);
});

test('a character is never split, and what can’t be stored is left out', () => {
  const parts = createEarlyParts();
  expect(parts.add(thought('\ud83d'))).toEqual([]);
  expect(parts.add(thought('\ude00'))).toEqual([thought('😀')]);
  expect(parts.add(thought('a\0'))).toEqual([]);
  parts.add(thought('\ud83d'));
  expect(parts.rest()).toEqual([thought('a\ufffd')]);
});
