import { expect, test } from 'vitest';
import { fromDraft04 } from './draft-04.ts';
import { judge } from './judge.ts';

const $schema = 'http://json-schema.org/draft-04/schema#';
const above = { type: 'number', minimum: 5, exclusiveMinimum: true };
const upTo = { type: 'number', maximum: 5, exclusiveMaximum: false };

test('a schema of draft-04 has the same meaning in 2020-12, wherever its parts are', () => {
  const schema = fromDraft04({
    $schema,
    type: 'object',
    properties: {
      a: above,
      b: { items: [above, { anyOf: [upTo] }] },
      // Not a limit, but a property of this name, and a value.
      exclusiveMinimum: { enum: [true, above] },
    },
    definitions: { c: above },
  });
  const exact = { type: 'number', exclusiveMinimum: 5 };
  expect(schema).toEqual({
    type: 'object',
    properties: {
      a: exact,
      b: { items: [exact, { anyOf: [{ type: 'number', maximum: 5 }] }] },
      exclusiveMinimum: { enum: [true, above] },
    },
    definitions: { c: exact },
  });
  const text = JSON.stringify(schema);
  expect(judge({ ask: 'schema', schema: text, strictness: 'foreign' })).toEqual([]);
  const problemsOf = (value: unknown) => judge({ ask: 'value', schema: text, value: JSON.stringify(value) });
  expect(problemsOf({ a: 6, b: [6, 5] })).toEqual([]);
  expect(problemsOf({ a: 5 })).toHaveLength(1);
});

test('a schema of another draft stays as it is', () => {
  const schema = { $schema: 'http://json-schema.org/draft-07/schema#', properties: { a: above } };
  expect(fromDraft04(schema)).toBe(schema);
});
