import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isSameJson } from './same-json.ts';

const small = fc.jsonValue({ maxDepth: 3, stringUnit: fc.constantFrom('a', 'b', '0') });
const reversed = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, reversed(inner)]),
  );
};

test('values are equal if and only if their canonical texts are', () => {
  fc.assert(
    fc.property(small, small, (one, other) => {
      expect(isSameJson(one, other)).toBe(canonicalize(one) === canonicalize(other));
      expect(isSameJson(one, reversed(one))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  [{ a: 1 }, { b: 1 }],
  [{ a: null }, {}],
  [[], {}],
  [[0], { 0: 0 }],
  [null, {}],
  ['1', 1],
  [{ toString: 1 }, { a: 1 }],
])('%j is not %j', (one, other) => {
  expect(isSameJson(one, other)).toBe(false);
  expect(isSameJson(other, one)).toBe(false);
});

test('0 equals -0, because JSON does not keep the sign', () => {
  expect(isSameJson(-0, 0)).toBe(true);
});
