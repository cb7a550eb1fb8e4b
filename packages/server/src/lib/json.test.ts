import { describe, expect, test } from 'vitest';
import { parseJson } from './json.ts';

describe('an integer', () => {
  test.each([
    ['that a double holds is a number', '[9007199254740991,9007199254740992,-9007199254740991,0]'],
    [
      'with a fraction or an exponent is a number',
      '[0.12345678901234567,1e21,1234567890123456789e2,1e-1234567890123456]',
    ],
    ['in a string stays there', '["9007199254740993","a\\"9007199254740993\\\\",{"9007199254740993":1}]'],
  ])('%s', (_title, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  test('that a double can’t represent becomes its digits', () => {
    expect(parseJson('{"id":9007199254740993,"ids":[-12345678901234567890, 18446744073709551615 ],"n":1}')).toEqual({
      id: '9007199254740993',
      ids: ['-12345678901234567890', '18446744073709551615'],
      n: 1,
    });
    expect(parseJson('9007199254740993')).toBe('9007199254740993');
  });

  test('among a megabyte of escapes is found, and invalid JSON is not searched', () => {
    const escapes = '\\"'.repeat(500_000);
    expect(parseJson(`["${escapes}",9007199254740993]`)).toEqual(['"'.repeat(500_000), '9007199254740993']);
    expect(parseJson(`["${escapes},9007199254740993]`)).toBeUndefined();
    expect(parseJson('{9007199254740993:1}')).toBeUndefined();
  });
});
