import { expect, test, vi } from 'vitest';
import { addWords, MAX_WORDS } from './words.ts';

function wordsOf(text: string): Set<string> {
  const words = new Set<string>();
  addWords(words, text);
  return words;
}

test('words are found without case, width and accents, and in scripts without spaces by their pairs', () => {
  expect([...wordsOf('Crème BRÛLÉE, refund_order A-1042 ＡＢＣ')]).toEqual(
    expect.arrayContaining(['creme', 'brulee', 'refund', 'order', 'a', '1042', 'abc']),
  );
  expect([...wordsOf('東京都')]).toEqual(['東京', '京都', '都']);
});

test('a long text is cut between words, so that none is lost', () => {
  const words = Array.from({ length: 4_000 }, (_, index) => `word${index}`);
  expect([...wordsOf(words.join(' '))].toSorted()).toEqual(words.toSorted());
});

// Normalizing sorts the marks after a letter, in quadratic time, and a ligature can become 18 letters. As one text, some of these took
// half a minute.
test.each([
  ['marks that have to be sorted', `a${'\u0316\u0301'.repeat(100_000)}`],
  ['letters that are composed with them', '\u01d6\u0316\u0301'.repeat(66_000)],
  ['ligatures', '\ufdfa'.repeat(200_000)],
  ['ligatures with marks', '\ufdfa\u0316\u0301\u0316\u0301'.repeat(40_000)],
  ['marks alone', '\u0316\u0301'.repeat(100_000)],
  ['words', 'word '.repeat(40_000)],
])('of %s, only short parts with few marks are normalized, and no more than there is room for', (_, text) => {
  const normalize = vi.spyOn(String.prototype, 'normalize');
  expect(wordsOf(text).size).toBeLessThan(MAX_WORDS);
  const normalized = normalize.mock.contexts.map(String);
  normalize.mockRestore();
  expect(normalized.length).toBeGreaterThan(0);
  expect(normalized.filter((part) => /\p{M}{9}/u.test(part))).toEqual([]);
  const lengths = normalized.map(({ length }) => length);
  // A part of 8,192 letters can become 18 times as long.
  expect(Math.max(...lengths)).toBeLessThan(20 * 8_192);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(3_000_000);
});
