import { expect, test } from 'vitest';
import {
  JsonText,
  jsonOf,
  jsonOfList,
  jsonWithTexts,
  shortOrText,
  shortOrTextOf,
  withoutTexts,
  withShortOutput,
} from './json-text.ts';

const long = { b: ['x"\\\n$&'.repeat(4000)], a: 'null}' };

test('only a long list or object is kept as its text', () => {
  const short = { a: [1, null, 'null}'] };
  expect(shortOrText(short)).toBe(short);
  for (const value of ['a'.repeat(100_000), 1, null, undefined, true]) expect(shortOrText(value)).toBe(value);
  expect(shortOrText(long)).toEqual(new JsonText(JSON.stringify(long)));
  expect(shortOrText(shortOrText(long))).toEqual(shortOrText(long));
});

test('the same for JSON that is stored, and for the output of a chunk', () => {
  const text = new JsonText(JSON.stringify(long));
  expect(shortOrTextOf(JSON.stringify(long))).toEqual(text);
  for (const value of ['a'.repeat(100_000), { a: [1] }, null, 1])
    expect(shortOrTextOf(JSON.stringify(value))).toEqual(value);
  expect(withShortOutput({ type: 'a', output: long })).toEqual({ type: 'a', output: text });
  for (const item of [{ output: null }, { type: 'a' }, { output: 'a' }]) expect(withShortOutput(item)).toEqual(item);
});

test('a text is written as the JSON of its value', () => {
  const text = shortOrText(long);
  const items = [
    'null}',
    { type: 'a', output: text, more: 'null}' },
    { output: text },
    { type: 'b', output: null },
    {},
  ];
  expect(JSON.parse(JSON.stringify({ text }))).toEqual({ text: long });
  expect(jsonOf(text)).toBe(JSON.stringify(long));
  expect(jsonOf(undefined)).toBe('null');
  expect(JSON.parse(jsonOfList(items))).toEqual(JSON.parse(JSON.stringify(items)));
});

test('a value with texts in it is written as JSON.stringify writes it, and may be looked at without them', () => {
  const text = new JsonText(JSON.stringify(long));
  const value = { a: [text, { b: text, c: 1 }], d: '$& "0"', e: undefined };
  expect(jsonWithTexts(value)).toBe(JSON.stringify(value));
  expect(jsonWithTexts({ a: 1 })).toBe('{"a":1}');
  expect(withoutTexts(value)).toEqual({ a: [expect.any(String), { b: expect.any(String), c: 1 }], d: '$& "0"' });
});
