import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { anyText } from '../../../test/support/any-text.ts';
import { createRedaction, createSearch, createStreamRedaction } from './redact.ts';

describe('a secret is found', () => {
  const value = 'a/b+c "d" é\\%(x)';
  const redact = createRedaction({ TOKEN: value });
  test.each([
    ['as it is', value],
    ['in JSON', JSON.stringify(value).slice(1, -1)],
    ['in ASCII-only JSON', 'a/b+c \\"d\\" \\u00e9\\\\%(x)'],
    ['in JSON with escaped slashes', 'a\\/b+c \\"d\\" é\\\\%(x)'],
    ['in a url', encodeURIComponent(value)],
    ['in a url as templates write it', 'a%2Fb%2Bc%20%22d%22%20%C3%A9%5C%25%28x%29'],
    ['in a url with lower-case hex digits', 'a%2fb%2bc%20%22d%22%20%c3%a9%5c%25(x)'],
    ['in a form', new URLSearchParams({ v: value }).toString().slice(2)],
  ])('%s', (_title, form) => {
    expect(redact(`<${form}> and <${form}>`)).toBe('<[secret TOKEN]> and <[secret TOKEN]>');
  });
});

test('white space around a secret does not hide it', () => {
  expect(createRedaction({ TOKEN: ' abc\n' })('got abc.')).toBe('got [secret TOKEN].');
});

test('a secret that begins like another is recognized as itself', () => {
  expect(createRedaction({ A: 'key', B: 'key-long' })('key key-long')).toBe('[secret A] [secret B]');
});

test('marks are not searched for secrets', () => {
  expect(createRedaction({ A: 'x1', B: 'secret' })('x1')).toBe('[secret A]');
});

test('no part of a secret is left, whatever the secret is', () => {
  const secret = anyText({ minLength: 1, maxLength: 20 }).filter((text) => text.trim() !== '');
  fc.assert(
    fc.property(secret, fc.string(), (value, around) => {
      const shown = createRedaction({ T: value })(`${around}\n${value}\n${JSON.stringify(value)}`);
      expect(shown.split('[secret T]').filter((rest) => rest.includes(value))).toEqual([]);
    }),
  );
});

test('a secret of the maximum length is found', () => {
  const value = Array.from({ length: 16_384 }, (_, at) => String.fromCharCode(33 + (at % 94))).join('');
  expect(createRedaction({ T: value })(`a${value}b${encodeURIComponent(value)}c`)).toBe('a[secret T]b[secret T]c');
});

test('a long secret that repeats itself is found, and not by a regular expression, which would take seconds', () => {
  const value = 'a'.repeat(16_384);
  const redact = createRedaction({ T: value, S: `b${'a'.repeat(100)}b` });
  const almost = `${'a'.repeat(16_383)}b`.repeat(64);
  const replace = vi.spyOn(String.prototype, 'replace');
  expect(redact(almost)).toBe(almost);
  const patterns = replace.mock.calls.map(([pattern]) => String(pattern));
  replace.mockRestore();
  expect(patterns.filter((pattern) => pattern.includes('a'.repeat(65)))).toEqual([]);
  expect(redact(`${almost}${value}b${'a'.repeat(100)}b${value}c`)).toBe(`${almost}[secret T][secret S][secret T]c`);
});

test('without secrets a text is not changed', () => {
  expect(createRedaction({})('text')).toBe('text');
});

test('a secret is found in bytes that arrive in chunks, however it is split, and nothing is searched without one', () => {
  const value = 'sk/4711-returned';
  const redact = createRedaction({ T: value });
  const utf16 = Buffer.from(value, 'utf16le');
  const forms = [value, encodeURIComponent(value), Buffer.from(value).toString('hex')].map((form) => Buffer.from(form));
  for (const form of [...forms, utf16.subarray(0, -1), Buffer.from(utf16).swap16()]) {
    const bytes = Buffer.concat([randomBytes(100), form, randomBytes(100)]);
    for (const size of [1, 7, 100, 1000]) {
      const contains = createSearch(redact);
      const found: number[] = [];
      for (let at = 0; at < bytes.length; at += size) if (contains(bytes.subarray(at, at + size))) found.push(at);
      const end = 100 + form.length - 1;
      expect(found[0], `${form.toString('latin1')} in chunks of ${size}`).toBe(end - (end % size));
    }
  }
  const contains = createSearch(redact);
  expect(contains(Buffer.from(value.slice(0, -1)))).toBe(false);
  expect(contains(Buffer.from(`.${value.slice(1)}`))).toBe(false);
  const text = vi.spyOn(Buffer.prototype, 'toString');
  createSearch(createRedaction({}))(Buffer.from(value));
  expect(text).not.toHaveBeenCalled();
  text.mockRestore();
});

describe('in a text that arrives in pieces', () => {
  const inPieces = (value: string, pieces: readonly string[]) => {
    const stream = createStreamRedaction('T', value);
    return pieces.map((piece) => stream.push(piece)).join('') + stream.end();
  };

  test('a secret is removed however it is split, and the rest is not changed', () => {
    const value = fc.string({ unit: fc.constantFrom('a', 'b', '/', '"'), minLength: 1, maxLength: 6 });
    const text = fc.array(fc.oneof(fc.constantFrom('a', 'b', '/', '"', ' '), fc.constant(null)), { maxLength: 30 });
    fc.assert(
      fc.property(value, text, fc.array(fc.nat(40), { maxLength: 8 }), (secret, parts, cuts) => {
        const whole = parts.map((part) => part ?? secret).join('');
        const places = [0, ...cuts.filter((cut) => cut < whole.length).toSorted((a, b) => a - b), whole.length];
        const pieces = places.slice(1).map((to, index) => whole.slice(places[index], to));
        const shown = inPieces(secret, pieces);
        expect(shown).toBe(inPieces(secret, [whole]));
        expect(shown.split('[secret T]').filter((rest) => rest.includes(secret))).toEqual([]);
        if (!whole.includes(secret) && secret.length > 1)
          expect(shown.replaceAll('[secret T]', '').length <= whole.length).toBe(true);
      }),
    );
  });

  test('text is kept back only as long as it may be the beginning of a secret', () => {
    const stream = createStreamRedaction('T', 'sk-1234');
    expect(['Your key is sk', '-1', '23', '4, so', ' sk', 'i'].map((piece) => stream.push(piece))).toEqual([
      'Your key is ',
      '',
      '',
      '[secret T], so',
      ' ',
      'ski',
    ]);
    expect(stream.push('sk-')).toBe('');
    expect(stream.end()).toBe('sk-');
  });

  test('a secret that repeats itself is found after a partial match', () => {
    expect(inPieces('aab', ['a', 'a', 'a', 'b', 'a'])).toBe('a[secret T]a');
  });

  test('without a secret the text is not changed', () => {
    expect(inPieces('', ['a', '', 'b'])).toBe('ab');
  });
});
