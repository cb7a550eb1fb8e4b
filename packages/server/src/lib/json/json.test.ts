import { describe, expect, test } from 'vitest';
import { parseJson } from './json.ts';

describe('a number', () => {
  test.each([
    [
      'that is an integer which a double holds stays a number',
      '[9007199254740991,9007199254740992,-9007199254740991,0]',
    ],
    [
      'with a fraction or an exponent stays a number',
      '[0.12345678901234567,1e21,1234567890123456789e2,1e-1234567890123456]',
    ],
    ['in a string stays there', '["9007199254740993","a\\"9007199254740993\\\\",{"9007199254740993":1}]'],
  ])('%s', (_title, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  test('that is an integer which a double can’t represent becomes its digits', () => {
    expect(parseJson('{"id":9007199254740993,"ids":[-12345678901234567890, 18446744073709551615 ],"n":1}')).toEqual({
      id: '9007199254740993',
      ids: ['-12345678901234567890', '18446744073709551615'],
      n: 1,
    });
    expect(parseJson('9007199254740993')).toBe('9007199254740993');
  });

  test('that is too large for a double in any notation becomes its text', () => {
    const long = '9'.repeat(400);
    expect(parseJson(`{"a":[-1e400,1.5E+309,0,-0],"b":${long}.5,"1e400":1e-400}`)).toEqual({
      a: ['-1e400', '1.5E+309', 0, -0],
      b: `${long}.5`,
      '1e400': 0,
    });
  });

  test('among a megabyte of escapes is found, and invalid JSON is not searched', () => {
    const escapes = '\\"'.repeat(500_000);
    expect(parseJson(`["${escapes}",9007199254740993]`)).toEqual(['"'.repeat(500_000), '9007199254740993']);
    expect(parseJson(`["${escapes},9007199254740993]`)).toBeUndefined();
    expect(parseJson('{9007199254740993:1}')).toBeUndefined();
  });
});
