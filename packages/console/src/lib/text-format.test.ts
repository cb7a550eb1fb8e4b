import { expect, test } from 'vitest';
import { capped, codePoint, counted, escapeInvisible, percent, splitInvisible, toolTitle } from './text-format.ts';

test('a tool name is shown as words, or unchanged if it has none', () => {
  expect(toolTitle('refund_payment')).toBe('Refund payment');
  expect(toolTitle('sendEmailNow')).toBe('Send email now');
  expect(toolTitle('export-CSV')).toBe('Export CSV');
  expect(toolTitle('shop__find_order')).toBe('Find order (shop)');
  expect(toolTitle('__')).toBe('__');
});

test('invisible and bidirectional control characters are split out; those that languages and emoji need are kept', () => {
  expect(splitInvisible('pay \u202e0001')).toEqual(['pay ', '\u202e', '0001']);
  expect(splitInvisible('a\u200bb\u0000')).toEqual(['a', '\u200b', 'b', '\u0000', '']);
  expect(splitInvisible('می\u200cخواهم 👩\u200d💻\n\tok\r\n')).toEqual(['می\u200cخواهم 👩\u200d💻\n\tok\r\n']);
  expect(codePoint('\u202e')).toBe('U+202E');
});

test('escaped JSON shows invisible characters and parses to the same value', () => {
  const value = { 'a\u202eb': 'x\u{e0041}y', plain: 'ü\n' };
  const text = escapeInvisible(JSON.stringify(value, null, 2));
  expect(text).toContain('a\\u202eb');
  expect(text).toContain('x\\udb40\\udc41y');
  expect(JSON.parse(text)).toEqual(value);
});

test('counts are formatted, and capped where the service stops counting', () => {
  expect(counted(1, 'model call')).toBe('1 model call');
  expect(counted(1200, 'model call')).toBe('1,200 model calls');
  expect(capped(9_999)).toBe('9,999');
  expect(capped(10_000)).toBe('10,000+');
});

test('a share is a percentage without a space, with a digit where it matters', () => {
  expect([0, 0.0004, 0.025, 0.5, 0.995, 0.9999, 1, 12.34].map(percent)).toEqual([
    ...['0%', '<0.1%', '2.5%', '50%', '99.5%', '>99.9%', '100%', '1,234%'],
  ]);
});
