// Values for fuzzing: those that a schema of the contract allows, and those that no client should send.
//
// Identifiers are unknown when values are generated, so values contain references (`@ses:own:3`) that are resolved when a request
// is sent (world.ts). A seed therefore repeats the same requests.
import type { SchemaObject } from '@signalbox/contract';
import fc, { type Arbitrary } from 'fast-check';
import { anyText } from '../../support/any-text.ts';

/** `own`: of the caller's organization; `foreign`: of another one; `unknown`: of none. */
const referenceKinds = ['own', 'foreign', 'unknown'] as const;

/** To a resource of this kind in the world, such as `ses`, `env`, `cursor`. */
export function referenceTo(kind: string): Arbitrary<string> {
  return fc
    .tuple(
      fc.oneof(
        { weight: 7, arbitrary: fc.constant(referenceKinds[0]) },
        { weight: 2, arbitrary: fc.constant(referenceKinds[1]) },
        { weight: 1, arbitrary: fc.constant(referenceKinds[2]) },
      ),
      fc.nat({ max: 99 }),
    )
    .map(([whose, index]) => `@${kind}:${whose}:${index}`);
}

const deep = (levels: number, wrap: (inner: unknown) => unknown) => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
};
/** Defines `__proto__` like any other name: in a literal it would set the prototype. */
const named = (name: string, value: unknown) => Object.fromEntries([[name, value]]);

export const hostileNames = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'then',
  'toJSON',
  '',
  ' ',
  '\0',
  'a\0',
  '\ud800',
  '\udfff',
  '0',
  '-1',
  'a.b',
  'a[b]',
  'a/b',
  'e\u0301',
  '\u202egnp.exe',
  '$ref',
  '../../..',
  'x'.repeat(5_000),
];

/** Text that means something in another format, language or protocol. */
export const hostileTexts = [
  ...hostileNames,
  '\ufeff',
  '\ufffe\uffff',
  'a\udc00b',
  '\u202e\u2066\u2069\u200f',
  'Z\u0351\u036b\u0343'.repeat(200),
  '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}',
  '\u0130\u0131\ufb03\u1e9e',
  '\u2028\u2029\u0085',
  '\x1b[2J\x07',
  "'; drop table sessions; --",
  '" or ""="',
  '\\u0000\\x00',
  '<script>alert(1)</script>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is the point
  '${7*7}{{7*7}}#{7*7}',
  '{{secrets.CANARY_TOKEN}}',
  '{{input.__proto__.x}}',
  '{{input}}{{lastToolResult}}',
  '\r\nX-Injected: yes\r\n\r\n',
  '%00%ff%ud800%zz%',
  '..%2f..%2fetc%2fpasswd',
  '1e309',
  'NaN',
  'null',
  '9'.repeat(400),
  '2026-02-30T25:61:61Z',
  '+275760-09-13T00:00:00.001Z',
  '2016-12-31T23:59:60Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  'http://169.254.169.254/latest/meta-data/',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'http://[::ffff:7f00:1]/',
  'http://0x7f.1:22/',
  'é'.repeat(20_000),
];

const hostileValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1.5,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  2 ** 63,
  1e308,
  -1e308,
  5e-324,
  [],
  {},
  [[]],
  [null],
  named('__proto__', { polluted: true }),
  { constructor: { prototype: { polluted: true } } },
  named('__proto__', null),
  { toString: 1, valueOf: null, toJSON: 'x', ...named('then', {}) },
  { length: 1_000_000, 0: 'x' },
  deep(63, (inner) => [inner]),
  deep(64, (inner) => ({ a: inner })),
  deep(65, (inner) => ({ a: inner })),
  // The deepest values are written as bytes (request.ts): fast-check could not print them.
  deep(200, (inner) => [inner]),
  Array.from({ length: 20_000 }, () => null),
  Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field${index}`, index])),
];

export const hostile: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.constantFrom(...hostileValues),
  anyText({ maxLength: 40 }),
  // Any code units, often half a surrogate pair.
  fc.array(fc.integer({ min: 0, max: 0xff_ff }), { maxLength: 20 }).map((units) => String.fromCharCode(...units)),
  fc.double(),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Schemas as data, for tools and results: valid ones, expensive ones, and ones that mean something else than they seem to. */
const jsonSchemas: readonly unknown[] = [
  { type: 'object' },
  { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] },
  { type: 'object', properties: named('__proto__', { type: 'string' }), required: ['__proto__'] },
  { type: 'object', $ref: '#' },
  { type: 'object', $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
  { type: 'object', $ref: 'https://example.com/schema.json' },
  { type: 'object', $id: 'https://example.com/a', $dynamicRef: '#meta' },
  { type: 'object', properties: { x: { pattern: '^(a+)+$' } } },
  { type: 'object', patternProperties: { '(': {} } },
  { type: 'object', minProperties: -1 },
  { type: 'object', properties: { x: { enum: [] } } },
  { type: 'object', not: {} },
  { type: 'object', allOf: [true, false], if: false },
  { type: 'object', properties: { x: { const: { a: [1e308] } } } },
  { type: 'object', properties: { x: { multipleOf: 0 } } },
  { type: ['object', 'null'] },
  { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object', id: 'x' },
  { properties: [] },
  {},
];

const words = fc.constantFrom('order', 'refund', 'A b', 'Ü', '日本', '{{input}}', '0', 'x'.repeat(200));

/** Values that match the schema. `name` is the name of the field, which says more about some than their schema does. */
export function valid(schema: SchemaObject, name = ''): Arbitrary<unknown> {
  const known = byName(name, schema) ?? byPattern(schema);
  if (known) return known;
  if (schema.title === 'JsonSchema') return fc.constantFrom(...jsonSchemas);
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...(schema.enum as unknown[]));
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return fc.oneof(...choices.map((choice) => valid(choice, name)));
  if (schema.type === undefined) return fc.jsonValue({ maxDepth: 3 });
  return fc.oneof(...[schema.type].flat().map((type) => ofType(type, schema)));
}

function ofType(type: string, schema: SchemaObject): Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return numbers(type, schema);
    case 'string':
      return texts(schema);
    case 'array':
      return arrays(schema);
    default:
      return objects(schema);
  }
}

/** The bounds of a value, as the contract's schemas state them. */
interface Bounds {
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  format?: string;
}

function arrays(schema: SchemaObject): Arbitrary<unknown[]> {
  const { minItems = 0, maxItems = 4, uniqueItems } = schema as Bounds;
  const lengths = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 3) };
  const item = valid(schema.items ?? {});
  return uniqueItems ? fc.uniqueArray(item, lengths) : fc.array(item, lengths);
}

function numbers(type: string, schema: SchemaObject): Arbitrary<number> {
  const { minimum, maximum, exclusiveMinimum } = schema as Bounds;
  const min = minimum ?? exclusiveMinimum ?? (type === 'integer' ? Number.MIN_SAFE_INTEGER : -1e6);
  const max = maximum ?? (type === 'integer' ? Number.MAX_SAFE_INTEGER : 1e6);
  if (type === 'integer') return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
  return fc.double({ min, max, noNaN: true, minExcluded: exclusiveMinimum !== undefined });
}

function texts(schema: SchemaObject): Arbitrary<string> {
  const { minLength = 0, maxLength = 100, format } = schema as Bounds;
  if (format === 'date-time') {
    return fc.oneof(
      fc
        .date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
        .map((date) => date.toISOString()),
      fc.constantFrom('2026-01-01T00:00:00+14:00', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z'),
    );
  }
  const fits = (text: string) => text.length >= minLength && text.length <= maxLength;
  const odd = hostileTexts.filter((text) => fits(text) && text.isWellFormed() && !text.includes('\0'));
  return fc.oneof(
    { weight: 3, arbitrary: words.filter(fits) },
    {
      weight: 2,
      arbitrary: fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 30) }).filter(fits),
    },
    { weight: 2, arbitrary: fc.constantFrom(...odd) },
    { weight: 1, arbitrary: fc.constant('x'.repeat(maxLength)) },
  );
}

function objects(schema: SchemaObject): Arbitrary<Record<string, unknown>> {
  const { properties = {}, required = [], additionalProperties: more, propertyNames } = schema;
  const fields = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, valid(inner, name)])),
    // `wait…` is always set: a request without it would wait for nothing.
    { requiredKeys: [...required, ...Object.keys(properties).filter((name) => name.startsWith('wait'))] as never[] },
  );
  if (more === undefined || more === false) return fields;
  const names = propertyNames
    ? valid({ ...propertyNames, type: 'string' }).map(String)
    : fc.oneof(fc.constantFrom('team', 'a b', 'ü'), fc.constantFrom('__proto__', 'constructor', 'toString'));
  const others = fc
    .array(fc.tuple(names, more === true ? fc.jsonValue({ maxDepth: 2 }) : valid(more)), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries));
  return fc.tuple(fields, others).map(([known, other]) => ({ ...other, ...known }));
}

const constants: Readonly<Record<string, readonly unknown[]>> = {
  wait: [0],
  waitSeconds: [0],
  tokenDelayMs: [0, 1],
  // With a smaller limit of models, the sessions of other cases would wait for a minute.
  requestsPerMinute: [100_000, 1_000_000],
  tokensPerMinute: [100_000_000, 1_000_000_000],
  queue: ['fuzz'],
  cron: ['0 9 * * 1-5', '* * * * *', '0 0 29 2 *', '61 * * * *', 'nonsense', '@daily'],
  timezone: ['UTC', 'Europe/Berlin', 'America/St_Johns', 'Mars/Olympus', '+14:00'],
  model: ['scripted/x', 'worker/ ', 'worker/fuzz', 'openai/gpt-5', 'anthropic/claude', 'openai-compatible/x'],
};

function byName(name: string, schema: SchemaObject): Arbitrary<unknown> | undefined {
  if (name === 'url' || name === 'baseUrl') return urls;
  if (name === 'cursor' && schema.pattern === undefined) return referenceTo('cursor');
  const values = constants[name];
  if (!values) return undefined;
  // A model may also be an object; `cron` and `timezone` may be null.
  return schema.anyOf
    ? fc.oneof(fc.constantFrom(...values), ...schema.anyOf.map((one) => valid(one)))
    : fc.constantFrom(...values);
}

const urls: Arbitrary<string> = fc.oneof(
  fc.constant('@url:own:0'),
  fc.constantFrom(
    'https://192.0.2.1/hook',
    'https://[2001:db8::1]/',
    'http://127.0.0.1:1/',
    'http://169.254.169.254/',
    'https://user:password@203.0.113.9/',
    'https://203.0.113.9/{{input.x}}?y={{secrets.CANARY_TOKEN}}',
    'https://{{input.host}}/',
    'https://nowhere.invalid/',
    'ftp://203.0.113.9/',
    'https://\u0130.example\u3002com/',
    'not a url',
  ),
);

/** Text that matches the contract's patterns. */
function byPattern({ pattern, examples }: SchemaObject): Arbitrary<unknown> | undefined {
  if (typeof pattern !== 'string') return undefined;
  const [, prefix] = /^\^([a-z]+)_\[0-7\]/.exec(pattern) ?? [];
  if (prefix) return referenceTo(prefix);
  if (pattern.startsWith('^turn_')) {
    return fc.oneof(referenceTo('position'), fc.constantFrom('turn_0:seq_0', 'turn_1:seq_1', 'turn_999999999:seq_1'));
  }
  if (examples?.[0] === 'production') return referenceTo('environment');
  if (examples?.[0] === 'PAYMENTS_TOKEN') return fc.constantFrom('CANARY_TOKEN', 'OTHER', 'A');
  return fc.stringMatching(new RegExp(pattern), { size: 'small' });
}
