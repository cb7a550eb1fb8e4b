import { expect, test } from 'vitest';
import { storableBody } from './response-body.ts';

const key = 'sk_very_secret_1234567890';
const shown = (text: string, headers: Record<string, string>) => storableBody(Buffer.from(text), headers);

test.each<[string, string, Record<string, string>, string | null]>([
  ['nothing', '', { a: key }, null],
  ['no headers', `got ${key}`, {}, `got ${key}`],
  ['a key', `got ${key}.`, { 'x-key': key }, 'got [secret x-key].'],
  ['a key without its scheme', `got ${key}`, { authorization: `Bearer ${key}` }, 'got [secret authorization, word 2]'],
  [
    'a key in JSON, in base64 and in a URL',
    `${JSON.stringify({ team: 'red "team/1"' })} ${Buffer.from('red "team/1"').toString('base64')} red%20%22team%2F1%22`,
    { 'x-team': 'red "team/1"' },
    '{"team":"[secret x-team]"} [secret x-team] [secret x-team]',
  ],
  ['the longer of two', 'abcdef abc', { a: 'abc', b: 'abcdef' }, '[secret b] [secret a]'],
  ['a part that what replaces it has too', 'e, s', { a: 'e', b: 's' }, '[secret a], [secret b]'],
])('of a response with %s, the values of own headers are not stored', (_what, text, headers, stored) => {
  expect(shown(text, headers)).toBe(stored);
});

test('what is stored has a limit, however short the values are and however often a receiver repeats them', () => {
  const headers = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-${index}`, 'e']));
  const stored = shown('e'.repeat(16 * 1024), headers)!;
  expect(stored).toHaveLength(4 * 1024);
  expect(stored).toMatch(/^(\[secret x-0\])+/);
});
