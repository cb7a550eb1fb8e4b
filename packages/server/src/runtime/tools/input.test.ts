import { expect, test } from 'vitest';
import { inputErrors } from './input.ts';

const schemaOf = (property: object) => ({ type: 'object', properties: { x: property }, required: ['x'] });

test('an input is judged by its schema', () => {
  expect(inputErrors(schemaOf({ type: 'string', pattern: '^a+$' }), { x: 'aa' })).toBeUndefined();
  expect(inputErrors(schemaOf({ type: 'string', pattern: '^a+$' }), { x: 'b' })).toContain('/x');
  expect(inputErrors(schemaOf({ type: 'integer' }), {})).toContain('x');
  expect(inputErrors({}, [])).toBe('it must be a JSON object');
});

test('what is wrong is said once, with the names and values that are meant', () => {
  const schema = { ...schemaOf({ enum: ['EUR', 'USD'] }), additionalProperties: false };
  expect(inputErrors(schema, { x: 'EUR', y: 1, z: 2 })).toBe('/ must not have additional properties: y, z');
  expect(inputErrors(schema, { x: 'GBP' })).toBe('/x must be one of "EUR", "USD"');
  const long = schemaOf({ enum: Array.from({ length: 100 }, (_, index) => index) });
  expect(inputErrors(long, { x: 'GBP' })!.length).toBeLessThan(100);
});

test('a schema that would be evaluated for hours is broken off', () => {
  const x = `${'a'.repeat(40)}!`;
  const refused = 'the schema cannot be evaluated for it';
  expect(inputErrors(schemaOf({ type: 'string', pattern: '^(a+)+$' }), { x })).toBe(refused);
  expect(inputErrors({ type: 'object', patternProperties: { '^(a+)+$': {} } }, { [x]: 1 })).toBe(refused);
  expect(inputErrors(schemaOf({ type: 'string' }), { x })).toBeUndefined();
  const many = Array.from({ length: 50_000 }, (_, index) => index);
  const last = many.map(() => many.length - 1);
  expect(inputErrors(schemaOf({ type: 'array', items: { enum: many } }), { x: last })).toBe(refused);
  expect(inputErrors(schemaOf({ type: 'array', items: { enum: many } }), { x: [1] })).toBeUndefined();
});
