import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedaction } from './redact.ts';

describe('a secret is found', () => {
  const value = 'a/b+c "d" é\\%(x)';
  const redact = createRedaction({ TOKEN: value });
  test.each([
    ['as it is', value],
    ['in JSON', JSON.stringify(value).slice(1, -1)],
    ['in JSON of ASCII alone', 'a/b+c \\"d\\" \\u00e9\\\\%(x)'],
    ['in JSON with escaped slashes', 'a\\/b+c \\"d\\" é\\\\%(x)'],
    ['in a url', encodeURIComponent(value)],
    ['in a url as templates write it', 'a%2Fb%2Bc%20%22d%22%20%C3%A9%5C%25%28x%29'],
    ['in a url with small letters', 'a%2fb%2bc%20%22d%22%20%c3%a9%5c%25(x)'],
    ['in a form', new URLSearchParams({ v: value }).toString().slice(2)],
  ])('%s', (_title, form) => {
    expect(redact(`<${form}> and <${form}>`)).toBe('<[secret TOKEN]> and <[secret TOKEN]>');
  });
});

test('the white space around a secret does not hide it', () => {
  expect(createRedaction({ TOKEN: ' abc\n' })('got abc.')).toBe('got [secret TOKEN].');
});

test('a secret that begins like another is told from it', () => {
  expect(createRedaction({ A: 'key', B: 'key-long' })('key key-long')).toBe('[secret A] [secret B]');
});

test('the marks are not looked into', () => {
  expect(createRedaction({ A: 'x1', B: 'secret' })('x1')).toBe('[secret A]');
});

test('whatever a secret is, nothing of it is left', () => {
  const secret = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((text) => text.trim() !== '');
  fc.assert(
    fc.property(secret, fc.string(), (value, around) => {
      const shown = createRedaction({ T: value })(`${around}\n${value}\n${JSON.stringify(value)}`);
      expect(shown.split('[secret T]').filter((rest) => rest.includes(value))).toEqual([]);
    }),
  );
});

test('a secret of the greatest length is found', () => {
  const value = Array.from({ length: 16_384 }, (_, at) => String.fromCharCode(33 + (at % 94))).join('');
  expect(createRedaction({ T: value })(`a${value}b${encodeURIComponent(value)}c`)).toBe('a[secret T]b[secret T]c');
});

test('without secrets a text stays as it is', () => {
  expect(createRedaction({})('text')).toBe('text');
});
