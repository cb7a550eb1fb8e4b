import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonErrorIndex, placeOf } from './json-error.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('finds an error where the parser of the engine does, and nowhere else', () => {
  const pieces = fc.constantFrom(
    ...'{}[],:"\\- \n01.5eE+tnu'.split(''),
    ...['"a"', '"\\u00e9"', 'true', 'null', '12', '"\\', '\u0001', '\ufeff', '{"a":', '[1,', '\\u12g4', 'é'],
  );
  const texts = fc.oneof(
    fc.array(pieces, { maxLength: 12 }).map((all) => all.join('')),
    fc.json(),
    fc.tuple(fc.json(), fc.nat(), pieces).map(([json, n, piece]) => {
      const at = n % (json.length + 1);
      return json.slice(0, at) + piece + json.slice(at);
    }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      // Passed over by the parser of bodies, not by the engine's.
      if (text.startsWith('\ufeff')) return;
      const at = jsonErrorIndex(text);
      expect(at === undefined, text).toBe(isJson(text));
      if (at !== undefined) expect(at).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 3_000 },
  );
});

test.each([
  ['', 0],
  ['{', 1],
  ['{"a": 1,}', 8],
  ['[1 2]', 3],
  ['{"a" 1}', 5],
  ["{'a': 1}", 1],
  ['{"a": "unfinished}', 6],
  ['[1]]', 3],
  ['[}', 1],
  ['[01]', 2],
  ['\ufeff{x', 2],
  ['['.repeat(100_000), 100_000],
])('%s: what comes at %d can’t stand there', (text, at) => {
  expect(jsonErrorIndex(text)).toBe(at);
});

test('a position is a line and a column, counted from 1', () => {
  const text = '{\r\n  "é😀": tru\n}';
  expect(placeOf(text, text.indexOf('tru'))).toBe('line 2, column 9');
});
