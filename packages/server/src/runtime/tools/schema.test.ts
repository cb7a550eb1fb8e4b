import { describe, expect, test } from 'vitest';
import { checkInputSchema, checkSchema } from './schema.ts';

describe('a schema', () => {
  test.each<[string, Record<string, unknown>]>([
    ['that says nothing', {}],
    ['of an object', { type: 'object', properties: { a: { type: 'string' }, b: true }, required: ['a'] }],
    ['with words that nobody knows', { type: 'object', nullable: true, 'x-order': 7, deprecated: 'since 2' }],
    ['of an earlier draft', { definitions: { a: { type: 'string' } }, properties: { a: { $ref: '#/definitions/a' } } }],
    ['with tuples of an earlier draft', { properties: { a: { type: 'array', items: [{ type: 'string' }] } } }],
    ['of a tree', { $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' } } } } }],
    ['that refers to itself whole', { type: 'object', properties: { child: { $ref: '#' } } }],
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
  ])('%s is one', (_title, schema) => {
    expect(checkInputSchema(schema)).toBeUndefined();
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['properties that are none', { properties: 7 }, 'is not a JSON Schema: /properties must be object'],
    [
      'a type that is none',
      { properties: { a: { type: 'text' } } },
      'is not a JSON Schema: /properties/a/type must be one of string, number, integer, boolean, object, array, null',
    ],
    ['a required that is no list', { required: 'a' }, 'is not a JSON Schema: /required must be array'],
    ['an anyOf of nothing', { anyOf: [] }, 'is not a JSON Schema: /anyOf must not have fewer than 1 items'],
    [
      'a property that is text',
      { properties: { a: 'string' } },
      'is not a JSON Schema: /properties/a must be either object or boolean',
    ],
    [
      'a reference to nowhere',
      { properties: { a: { $ref: '#/nowhere' } } },
      'refers to "#/nowhere", which is not in it',
    ],
    [
      'a reference to elsewhere',
      { properties: { a: { $ref: 'https://a.example/b' } } },
      'refers to "https://a.example/b", which is not in it',
    ],
    ['a reference to a prototype', { $ref: '#/constructor' }, 'refers to "#/constructor", which is not in it'],
    ['a reference that is no text', { $ref: '#/%E0%A4%A' }, 'cannot be evaluated as a JSON Schema'],
    ['a reference to itself', { $ref: '#' }, 'cannot be evaluated as a JSON Schema'],
    ['a pattern that is none', { properties: { a: { pattern: '(' } } }, 'cannot be evaluated as a JSON Schema'],
    [
      'references that double at every level',
      {
        $ref: '#/$defs/d0',
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, level) => [
            `d${level}`,
            level === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] },
          ]),
        ),
      },
      'cannot be evaluated as a JSON Schema',
    ],
  ])('with %s is none', (_title, schema, problem) => {
    expect(checkSchema(schema)).toBe(problem);
  });

  test('of something else than an object is not of an input', () => {
    expect(checkInputSchema({ type: 'array' })).toBe('must be the schema of an object ("type": "object")');
    expect(checkSchema({ type: 'array' })).toBeUndefined();
  });
});
