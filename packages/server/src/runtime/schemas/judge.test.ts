import { describe, expect, test } from 'vitest';
import { judge } from './judge.ts';

const problemOf = (schema: object, strict = true) => judge({ schema: JSON.stringify(schema), strict });

describe('a schema', () => {
  test.each<[string, Record<string, unknown>]>([
    ['that is empty', {}],
    ['of an object', { type: 'object', properties: { a: { type: 'string' }, b: true }, required: ['a'] }],
    ['with unknown keywords', { type: 'object', nullable: false, 'x-order': 7, deprecated: 'since 2' }],
    ['of an earlier draft', { definitions: { a: { type: 'string' } }, properties: { a: { $ref: '#/definitions/a' } } }],
    ['with tuples of an earlier draft', { properties: { a: { type: 'array', items: [{ type: 'string' }] } } }],
    ['of a tree', { $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' } } } } }],
    ['that refers to its root', { type: 'object', properties: { child: { $ref: '#' } } }],
    ['that refers by an anchor', { properties: { a: { $ref: '#q' } }, $defs: { a: { $anchor: 'q', type: 'string' } } }],
    ['that refers by an escaped path', { properties: { a: { $ref: '#/$defs/x~1y%20z' } }, $defs: { 'x/y z': {} } }],
    [
      'with properties named like keywords',
      { properties: { type: { type: 'string' }, required: { type: 'boolean' } } },
    ],
    [
      'with data that looks like a schema',
      { properties: { a: { const: { $ref: '#/nowhere' }, default: { type: 7 } } } },
    ],
    ['with several types', { properties: { a: { type: ['string', 'null'], enum: ['x', null] } } }],
  ])('%s is accepted', (_title, schema) => {
    expect(problemOf(schema)).toBeUndefined();
  });

  test.each<[string, Record<string, unknown>, string | null]>([
    ['invalid properties', { properties: 7 }, 'is not a JSON Schema: /properties must be object'],
    [
      'an unknown type',
      { properties: { a: { type: 'text' } } },
      'is not a JSON Schema: /properties/a/type must be one of string, number, integer, boolean, object, array, null',
    ],
    ['a required that is not a list', { required: 'a' }, 'is not a JSON Schema: /required must be array'],
    ['an empty anyOf', { anyOf: [] }, 'is not a JSON Schema: /anyOf must not have fewer than 1 items'],
    [
      'a property that is text',
      { properties: { a: 'string' } },
      'is not a JSON Schema: /properties/a must be either object or boolean',
    ],
    [
      'a reference to a missing part',
      { properties: { a: { $ref: '#/nowhere' } } },
      'refers to "#/nowhere", which is not in it',
    ],
    [
      'a reference to another document',
      { properties: { a: { $ref: 'https://a.example/b' } } },
      'refers to "https://a.example/b", which is not in it',
    ],
    ['a reference to a prototype', { $ref: '#/constructor' }, 'refers to "#/constructor", which is not in it'],
    ['a reference that can’t be decoded', { $ref: '#/%E0%A4%A' }, null],
    ['a reference to itself', { $ref: '#' }, null],
    [
      'an invalid pattern',
      { properties: { a: { pattern: '(' } } },
      'has a pattern at /properties/a/pattern that is not a regular expression: Unterminated group',
    ],
    [
      'an invalid name pattern',
      { patternProperties: { '[': {} } },
      'has a pattern at /patternProperties that is not a regular expression: Unterminated character class',
    ],
    [
      'patterns that are long in total',
      { properties: { a: { pattern: 'a'.repeat(6000) }, b: { pattern: 'b'.repeat(6000) } } },
      'has patterns of more than 10000 characters in total',
    ],
  ])('with %s is refused', (_title, schema, problem) => {
    expect(problemOf(schema)).toBe(problem);
  });

  const draft4 = { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' };
  test.each<[string, Record<string, unknown>, string]>([
    [
      'a $schema that is not supported',
      draft4,
      'has the $schema "http://json-schema.org/draft-04/schema#", which is not supported: write it for https://json-schema.org/draft/2020-12/schema',
    ],
    [
      'an exclusiveMinimum of draft-04',
      { properties: { n: { type: 'integer', minimum: 5, exclusiveMinimum: true } } },
      'has "exclusiveMinimum": true at /properties/n, which draft-04 wrote so: write "exclusiveMinimum": 5 instead of "minimum"',
    ],
    [
      'a nullable of OpenAPI 3.0',
      { properties: { a: { type: 'string', nullable: true } } },
      'has "nullable": true at /properties/a, which OpenAPI 3.0 wrote so: write "type": ["string","null"]',
    ],
  ])('with %s is refused with what to write instead, but accepted from an MCP server', (_title, schema, problem) => {
    expect(problemOf(schema)).toBe(problem);
    expect(problemOf(schema, false)).toBeUndefined();
  });

  test('with properties that are named like keywords of other dialects is accepted', () => {
    expect(problemOf({ properties: { nullable: true, exclusiveMinimum: true } })).toBeUndefined();
    expect(problemOf({ properties: { a: { default: { nullable: true } } } })).toBeUndefined();
  });

  test.each(['2020-12', '2019-09'])('of draft %s is accepted', (draft) => {
    expect(problemOf({ $schema: `https://json-schema.org/draft/${draft}/schema` })).toBeUndefined();
  });

  test.each(['draft-07', 'draft-06'])('of %s is accepted', (draft) => {
    expect(problemOf({ $schema: `http://json-schema.org/${draft}/schema#` })).toBeUndefined();
  });
});
