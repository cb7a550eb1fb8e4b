import { expect, test } from 'vitest';
import { addWords, MAX_WORDS, searchFor } from './words.ts';

const ORGANIZATION = { organizationId: 'one' };

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

// Normalizing sorts the marks after a letter, in quadratic time, and a ligature can become 18 letters.
test.each([
  ['marks that have to be sorted', `a${'\u0316\u0301'.repeat(100_000)}`],
  ['letters that are composed with them', '\u01d6\u0316\u0301'.repeat(66_000)],
  ['ligatures', '\ufdfa'.repeat(200_000)],
  ['ligatures with marks', '\ufdfa\u0316\u0301\u0316\u0301'.repeat(40_000)],
  ['marks alone', '\u0316\u0301'.repeat(100_000)],
])('a text of %s takes time in proportion to its length', (_, text) => {
  const before = process.cpuUsage();
  expect(wordsOf(text).size).toBeLessThan(MAX_WORDS);
  searchFor(text, ORGANIZATION);
  const { user } = process.cpuUsage(before);
  // Some took half a minute. The limit is far above what they take now, whatever else the machine does.
  expect(user / 1e6).toBeLessThan(3);
});
