import { expect, test } from 'vitest';
import { matchOf } from './match.ts';

const best = (query: string, texts: string[]) =>
  texts
    .map((text) => ({ text, score: matchOf(query, text) }))
    .filter(({ score }) => score !== undefined)
    .sort((one, other) => other.score! - one.score!)
    .map(({ text }) => text);

test('the start of the text wins over the start of a word, and that over the middle of one', () => {
  expect(best('ses', ['Possessions', 'New session', 'Sessions', 'Agents'])).toEqual([
    'Sessions',
    'New session',
    'Possessions',
  ]);
});

test('words match in any order, and all of them have to', () => {
  expect(best('desk refund', ['Refund desk', 'Refunds', 'Front desk'])).toEqual(['Refund desk']);
});

test('letters in their order match from the start of a word, but not scattered over the text', () => {
  expect(best('nses', ['New session', 'Environments'])).toEqual(['New session']);
  expect(best('rd', ['Refund desk'])).toEqual(['Refund desk']);
  expect(best('aeo', ['A very long name of something else, or other'])).toEqual([]);
});

test('no text has a special meaning, and nothing typed matches everything', () => {
  expect(best('.*', ['Sessions'])).toEqual([]);
  expect(best('', ['Sessions', 'Agents'])).toEqual(['Agents', 'Sessions']);
  expect(best('SES', ['sessions'])).toEqual(['sessions']);
});
