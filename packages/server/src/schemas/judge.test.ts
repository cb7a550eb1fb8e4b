import { describe, expect, test } from 'vitest';
import type { Strictness } from './check.ts';
import { judge } from './judge.ts';

const problemsOf = (schema: object, strictness: Strictness = 'own') =>
  judge({ ask: 'schema', schema: JSON.stringify(schema), strictness });
/** The path, and what is wrong there. */
const problemOf = (schema: object, strictness?: Strictness) => {
  const problems = problemsOf(schema, strictness);
  return problems?.map(({ path, message }) => `${path} ${message}`.trim())[0] ?? (problems === null ? null : undefined);
};

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
    ['with keywords of editors, and of its own', { propertyOrdering: ['a'], 'x-ui': { minimun: 1 }, errorMessage: {} }],
    [
      'with formats that are only annotations',
      { properties: { a: { type: 'integer', format: 'int64' }, b: { format: 'ulid' } } },
    ],
    ['that requires what it does not describe', { type: 'object', required: ['id'] }],
    ['that requires one of other properties', { properties: { a: {} }, required: ['b'], additionalProperties: true }],
    [
      'that requires what another part declares',
      {
        allOf: [{ properties: { a: {} } }, { $ref: '#/$defs/b' }],
        $defs: { b: { properties: { b: {} } } },
        required: ['a', 'b'],
      },
    ],
    [
      'with alternatives that require different properties',
      {
        properties: { a: {}, b: {} },
        anyOf: [{ required: ['a'] }, { required: ['b'] }],
        dependentRequired: { a: ['b'] },
      },
    ],
    [
      'of a list of trees',
      {
        properties: { nodes: { type: 'array', items: { $ref: '#/$defs/n' } } },
        $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' } }, required: ['next'] } },
      },
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
      'properties.n.exclusiveMinimum is true or false only in draft-04: write "exclusiveMinimum": 5 instead of "minimum"',
    ],
    [
      'a nullable of OpenAPI 3.0',
      { properties: { a: { type: 'string', nullable: true } } },
      'properties.a.nullable is of OpenAPI 3.0: write "type": ["string","null"]',
    ],
    [
      'a misspelt keyword',
      { properties: { n: { type: 'integer', minimun: 5 } } },
      'properties.n.minimun is not a keyword of JSON Schema. Did you mean "minimum"?',
    ],
    [
      'a misspelt keyword deep inside',
      { $defs: { a: { allOf: [{ items: { not: { patern: '^a' } } }] } } },
      '$defs.a.allOf[0].items.not.patern is not a keyword of JSON Schema. Did you mean "pattern"?',
    ],
    [
      'properties that are not in "properties"',
      { order: 'string' },
      'order is not a keyword of JSON Schema. Properties belong in "properties"; keywords of your own start with "x-".',
    ],
    [
      'a keyword for another type',
      { properties: { n: { type: 'string', maximum: 5 } } },
      'properties.n.maximum has no effect on "string"',
    ],
    ['a consequence without its condition', JSON.parse('{"then":{"required":[]}}'), 'then has no effect without "if"'],
    [
      'a misspelt format',
      { properties: { a: { format: 'datetime' } } },
      'properties.a.format is not a format that is checked. Did you mean "date-time"?',
    ],
    [
      'a property that is required, but misspelt',
      { properties: { order: {} }, required: ['ordr'] },
      'required[0] "ordr" is not in "properties". Did you mean "order"?',
    ],
    [
      'a property of an item that is required, but misspelt',
      { properties: { a: { type: 'array', items: { properties: { sku: {} }, required: ['id'] } } } },
      'properties.a.items.required[0] "id" is not in "properties", which has "sku" here',
    ],
  ])('with %s is refused with what would be right, but accepted from an MCP server', (_title, schema, problem) => {
    expect(problemOf(schema)).toBe(problem);
    expect(problemOf(schema, 'foreign')).toBeUndefined();
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

  test('has all of its problems reported, up to 20', () => {
    expect(problemsOf({ minimun: 1, maximun: 2, properties: { a: {} }, required: ['b'] })).toMatchObject([
      { path: 'minimun' },
      { path: 'maximun' },
      { path: 'required[0]' },
    ]);
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`keyword${index}`, 1]));
    expect(problemsOf({ ...many, properties: { a: many } })).toHaveLength(20);
  });

  test('that is a rule may require properties of another schema, but only has keywords and formats that are checked', () => {
    expect(problemsOf({ properties: { a: {} }, required: ['b'] }, 'rule')).toEqual([]);
    expect(problemOf({ properties: { a: { patern: 'x' } } }, 'rule')).toContain('Did you mean "pattern"?');
    expect(problemOf({ properties: { a: { format: 'int32' } } }, 'rule')).toMatch(
      /^properties\.a\.format is not a format that is checked\. There are date-time, /,
    );
  });
});
