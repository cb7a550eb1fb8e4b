// JSON Schemas of all drafts as people and their generators write them, each with a value that it allows.
import { createHash } from 'node:crypto';
import fc from 'fast-check';

type Fields = Record<string, unknown>;
export interface Sample {
  schema: Fields;
  value: unknown;
}
interface Part {
  schema: Fields | true;
  value: unknown;
  /** What it refers to. */
  definitions?: Fields;
}

/** Names that one server or another refuses, and some that they become. */
const NAMES = [
  'id',
  'top',
  '$top',
  'filter[id]',
  'filter_id',
  'a b',
  'größe',
  '',
  'x'.repeat(70),
  '2nd',
  'a.b',
  'x-y',
  'constructor',
];
const TREE = {
  type: 'object',
  properties: { $id: { type: 'string' }, children: { type: 'array', items: { $ref: '#/definitions/tree' } } },
  required: ['$id'],
};
const tree = (depth: number): Fields => ({ $id: `n${depth}`, ...(depth > 0 && { children: [tree(depth - 1)] }) });

const leaf: fc.Arbitrary<Part> = fc.oneof(
  fc.string().map((value): Part => ({ schema: { type: 'string' }, value })),
  fc.constantFrom<Part>(
    { schema: { type: 'string', enum: ['', 'a', 'b'], description: 'Which.' }, value: 'a' },
    { schema: { type: 'string', format: 'email', pattern: '^(?=a).*$' }, value: 'a@b.c' },
    { schema: { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false }, value: 5 },
    { schema: { type: 'number', exclusiveMinimum: 0, multipleOf: 0.5 }, value: 1.5 },
    { schema: { type: ['string', 'null'] }, value: null },
    { schema: { type: ['string', 'integer'], minLength: 1 }, value: 7 },
    { schema: { const: 5 }, value: 5 },
    { schema: { enum: ['a', 1, null, true] }, value: 1 },
    { schema: { type: 'integer', enum: [1, 2, 3] }, value: 2 },
    { schema: {}, value: 'anything' },
    { schema: true, value: true },
    { schema: { description: 'Any.', default: 1 }, value: 1 },
    { schema: { type: 'array' }, value: ['a'] },
    { schema: { type: 'object' }, value: { 'a b': 1, $top: 2 } },
    { schema: { type: 'null' }, value: null },
    { schema: { $ref: '#/definitions/tree' }, value: tree(4), definitions: { tree: TREE } },
    { schema: { allOf: [{ $ref: '#/definitions/tree' }], title: 'T' }, value: tree(1), definitions: { tree: TREE } },
    {
      schema: { type: 'object', patternProperties: { '^x': { type: 'string' } }, additionalProperties: false },
      value: { x1: 'a' },
    },
    {
      schema: { type: 'object', additionalProperties: { type: 'integer' }, propertyNames: { minLength: 1 } },
      value: { top: 1 },
    },
  ),
);

const object = (part: fc.Arbitrary<Part>): fc.Arbitrary<Part> =>
  fc
    .record({
      parts: fc.dictionary(fc.constantFrom(...NAMES), part, { maxKeys: 4, noNullPrototype: true }),
      requires: fc.boolean(),
      extra: fc.constantFrom<Fields>({}, { additionalProperties: false }, { $comment: 'x', title: 'T' }),
      dropsLast: fc.boolean(),
    })
    .map(({ parts, requires, extra, dropsLast }) => {
      const all = Object.entries(parts);
      const required = requires ? all.slice(1).map(([name]) => name) : [];
      const given = dropsLast ? all.slice(1) : all;
      return {
        schema: {
          type: 'object',
          ...(all.length > 0 && { properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])) }),
          ...(required.length > 0 && { required }),
          ...extra,
        },
        value: Object.fromEntries(given.map(([name, { value }]) => [name, value])),
        definitions: Object.assign({}, ...all.map(([, { definitions }]) => definitions)),
      };
    });

const kind = (name: string, schema: unknown) => ({
  properties: { kind: { const: name }, $of: schema },
  required: ['kind', '$of'],
});
const merged = (parts: readonly Part[]) => Object.assign({}, ...parts.map(({ definitions }) => definitions)) as Fields;

/** What contains others, as many levels as they have. */
const nested = (part: fc.Arbitrary<Part>): fc.Arbitrary<Part> =>
  fc.oneof(
    object(part),
    part.map(
      ({ schema, value, definitions = {} }): Part => ({
        schema: { type: 'array', items: schema, minItems: 1 },
        value: [value, value],
        definitions,
      }),
    ),
    fc.tuple(part, part, fc.boolean()).map(
      ([one, other, isClosed]): Part => ({
        schema: { type: 'array', items: [one.schema, other.schema], ...(isClosed && { additionalItems: false }) },
        value: [one.value, other.value],
        definitions: merged([one, other]),
      }),
    ),
    fc.tuple(part, part).map(
      ([one, other]): Part => ({
        schema: { type: 'array', prefixItems: [one.schema, other.schema], items: false },
        value: [one.value],
        definitions: merged([one, other]),
      }),
    ),
    fc.tuple(part, part, fc.boolean()).map(
      ([one, other, isSecond]): Part => ({
        schema: { description: 'One of two.', anyOf: [one.schema, other.schema] },
        value: isSecond ? other.value : one.value,
        definitions: merged([one, other]),
      }),
    ),
    fc.tuple(part, part, fc.boolean()).map(
      ([one, other, isSecond]): Part => ({
        schema: { type: 'object', oneOf: [kind('a', one.schema), kind('b', other.schema)] },
        value: isSecond ? { kind: 'b', $of: other.value } : { kind: 'a', $of: one.value },
        definitions: merged([one, other]),
      }),
    ),
    part.map(({ schema, value, definitions = {} }): Part => {
      const name = createHash('sha256').update(JSON.stringify(schema)).digest('hex').slice(0, 8);
      return {
        schema: { $ref: `#/definitions/${name}`, description: 'Shared.' },
        value,
        definitions: { ...definitions, [name]: schema },
      };
    }),
  );

/** What a root has besides properties: each allows the value of its object. */
const roots: ((object: Part) => Fields)[] = [
  ({ schema }) => schema as Fields,
  ({ schema }) => ({ $schema: 'http://json-schema.org/draft-07/schema#', $id: 'urn:x', ...(schema as Fields) }),
  ({ schema }) => ({ $ref: '#/definitions/Root', definitions: { Root: schema } }),
  ({ schema }) => ({ ...(schema as Fields), anyOf: [{ required: ['never'] }, {}] }),
  ({ schema }) => ({ ...(schema as Fields), not: { required: ['never'] } }),
  ({ schema }) => ({ type: 'object', allOf: [schema, { properties: { id: true, more: { type: 'string' } } }] }),
  ({ schema }) => ({
    type: 'object',
    oneOf: [schema, { type: 'object', properties: { kind: { const: 'b' }, id: { type: 'null' } }, required: ['kind'] }],
  }),
  ({ schema }) => ({ anyOf: [{ type: 'string' }, schema] }),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  ({ schema }) => ({ ...(schema as Fields), if: { required: ['never'] }, then: { required: ['id'] } }),
  ({ schema }) => ({ ...(schema as Fields), dependencies: { never: ['id'], ever: { required: ['id'] } } }),
];

export const anySchema: fc.Arbitrary<Sample> = fc
  .tuple(object(nested(nested(leaf))), object(nested(leaf)), fc.boolean(), fc.constantFrom(...roots))
  .map(([deep, shallow, isDeep, rootOf]) => {
    const chosen = isDeep ? deep : shallow;
    const { definitions = {}, value } = chosen;
    const root = rootOf(chosen);
    const all = { ...(root.definitions as Fields | undefined), ...definitions };
    return { schema: { ...root, ...(Object.keys(all).length > 0 && { definitions: all }) }, value };
  });
