import { expect, test } from 'vitest';
import { capped, codePoint, counted, escapeUnseen, toolWords, unseenApart } from './words.ts';

test('the name of a tool is read as words, and what cannot be is left as it is', () => {
  expect(toolWords('refund_payment')).toBe('Refund payment');
  expect(toolWords('sendEmailNow')).toBe('Send email now');
  expect(toolWords('export-CSV')).toBe('Export CSV');
  expect(toolWords('shop__find_order')).toBe('Find order (shop)');
  expect(toolWords('__')).toBe('__');
});

test('characters that hide or turn a text are told apart; those that languages and emoji need are not', () => {
  expect(unseenApart('pay \u202e0001')).toEqual(['pay ', '\u202e', '0001']);
  expect(unseenApart('a\u200bb\u0000')).toEqual(['a', '\u200b', 'b', '\u0000', '']);
  expect(unseenApart('می\u200cخواهم 👩\u200d💻\n\tok\r\n')).toEqual(['می\u200cخواهم 👩\u200d💻\n\tok\r\n']);
  expect(codePoint('\u202e')).toBe('U+202E');
});

test('escaped, JSON shows them and stands for the same value', () => {
  const value = { 'a\u202eb': 'x\u{e0041}y', plain: 'ü\n' };
  const text = escapeUnseen(JSON.stringify(value, null, 2));
  expect(text).toContain('a\\u202eb');
  expect(text).toContain('x\\udb40\\udc41y');
  expect(JSON.parse(text)).toEqual(value);
});

test('numbers are said as the service counts them', () => {
  expect(counted(1, 'model call')).toBe('1 model call');
  expect(counted(1200, 'model call')).toBe('1,200 model calls');
  expect(capped(9_999)).toBe('9,999');
  expect(capped(10_000)).toBe('10,000+');
});
