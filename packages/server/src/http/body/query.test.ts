import { expect, test } from 'vitest';
import { parseQuery } from './query.ts';

test('names in brackets make a map', () => {
  expect(parseQuery('a=1&metadata[x]=2&metadata[y%20z]=3')).toEqual({ a: '1', metadata: { x: '2', 'y z': '3' } });
  expect(parseQuery('m[a]b]=1&m[a[b]=2&m[]=3&m[%0A]=4')).toEqual({ m: { 'a]b': '1', 'a[b': '2', '': '3', '\n': '4' } });
});

// Thrown from here, an error would end the process: Node's parser of requests asks for it, and nothing catches it.
test.each<[string, unknown]>([
  ['a=1&a=2', { a: ['1', '2'] }],
  ['a[b]=1&a[b]=2', { a: { b: ['1', '2'] } }],
  ['a=1&a[b]=2', { a: ['1', { b: '2' }] }],
  ['a[b]=2&a=1', { a: [{ b: '2' }, '1'] }],
  ['a=1&a=2&a[length]=x', { a: [['1', '2'], { length: 'x' }] }],
])('a name that comes twice is a list, in whichever ways: %s', (text, query) => {
  expect(parseQuery(text)).toEqual(query);
});

test('no name reaches a prototype', () => {
  const query = parseQuery('__proto__=1&a[__proto__]=2&__proto__[polluted]=3&constructor[prototype]=4');
  expect(Object.getPrototypeOf(query)).toBe(Object.prototype);
  expect(Object.keys(query)).toEqual(['__proto__', 'a', 'constructor']);
  expect({}).not.toHaveProperty('polluted');
});
