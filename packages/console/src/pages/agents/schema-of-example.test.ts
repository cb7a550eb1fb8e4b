import { expect, test } from 'vitest';
import { schemaOfExample } from './schema-of-example.ts';

test('each field of an example is required and has its type', () => {
  expect(schemaOfExample({ order: '1042', cents: 4250, rate: 0.5, paid: true, note: null })).toEqual({
    type: 'object',
    properties: {
      order: { type: 'string' },
      cents: { type: 'integer' },
      rate: { type: 'number' },
      paid: { type: 'boolean' },
      note: { type: 'null' },
    },
    required: ['order', 'cents', 'rate', 'paid', 'note'],
  });
});

test('the elements of a list share a schema: their types are joined, and a field that one lacks is optional', () => {
  expect(
    schemaOfExample({
      lines: [
        { sku: 'a', price: 1 },
        { sku: 'b', price: 1.5, gift: true },
      ],
    }),
  ).toEqual({
    type: 'object',
    properties: {
      lines: {
        type: 'array',
        items: {
          type: 'object',
          properties: { sku: { type: 'string' }, price: { type: 'number' }, gift: { type: 'boolean' } },
          required: ['sku', 'price'],
        },
      },
    },
    required: ['lines'],
  });
  expect(schemaOfExample([1, 'a', null])).toEqual({ type: 'array', items: { type: ['integer', 'string', 'null'] } });
  expect(schemaOfExample([])).toEqual({ type: 'array', items: {} });
});

test('fields with the names of built-in properties are fields', () => {
  const example = JSON.parse('[{ "__proto__": 1, "constructor": "a" }, { "constructor": "b" }]') as unknown;
  const { items } = schemaOfExample(example) as { items: { properties: object; required: string[] } };
  expect(Object.entries(items.properties)).toEqual([
    ['__proto__', { type: 'integer' }],
    ['constructor', { type: 'string' }],
  ]);
  expect(items.required).toEqual(['constructor']);
});
