import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstUuidOf, formatId, newUuid, parseId } from './ids.ts';

test('an identifier says the same as its UUID, in both directions', () => {
  fc.assert(fc.property(fc.uuid(), (uuid) => parseId('ses', formatId('ses', uuid)) === uuid));
});

test('identifiers sort as their UUIDs do', () => {
  fc.assert(fc.property(fc.uuid(), fc.uuid(), (a, b) => formatId('ses', a) < formatId('ses', b) === a < b));
});

test('identifiers of one process sort in the order of their creation', () => {
  const made = Array.from({ length: 10_000 }, () => formatId('evt', newUuid()));
  expect(made.toSorted()).toEqual(made);
  expect(new Set(made).size).toBe(made.length);
});

test('UUIDs created at a time or later sort after the first UUID of that time', () => {
  const before = new Date();
  const made = newUuid();
  expect(firstUuidOf(before) < made).toBe(true);
  expect(made < firstUuidOf(new Date(Date.now() + 1))).toBe(true);
});

test('an identifier with another prefix is refused', () => {
  const id = formatId('ses', newUuid());
  for (const wrong of [
    '',
    'ses_',
    id.slice(0, -1),
    `${id}0`,
    id.replace('ses_', 'key_'),
    'ses_80000000000000000000000000',
    id.toUpperCase(),
  ]) {
    expect(parseId('ses', wrong), wrong).toBeUndefined();
  }
});
