// Generates requests for a route: valid by its schema, and then usually mutated.
import type { Route, SchemaObject } from '@signalbox/contract';
import fc, { type Arbitrary } from 'fast-check';
import { anyText } from '../../support/any-text.ts';
import { hostile, hostileNames, hostileTexts, referenceTo, valid } from './values.ts';

/** With references (values.ts) in place of values that only the world knows. */
export interface Case {
  method: string;
  path: string;
  params: Record<string, unknown>;
  query: [string, unknown][];
  headers: [string, string][];
  /** Undefined: no body. */
  body: unknown;
  mutations: Mutation[];
}

export type Mutation =
  | { at: 'body'; how: 'replace' | 'remove' | 'add' | 'wrap'; place: number; name: string; value: unknown }
  | { at: 'query'; how: 'set' | 'again' | 'nest' | 'verbatim'; name: string; value: string }
  | { at: 'param'; place: number; value: string; verbatim: boolean }
  | { at: 'header'; name: string; value: string }
  | { at: 'bytes'; how: (typeof waysWithBytes)[number] }
  | { at: 'path'; how: 'slash' | 'doubled' | 'capitals' | 'dots' | 'absolute' | 'fragment' }
  | { at: 'method'; value: string };

const waysWithBytes = [
  'half',
  'not UTF-8',
  'byte order mark',
  'name twice',
  'proto',
  'brackets',
  'braces',
  'number too large',
  'number too long',
  'too large',
  'empty',
  'spaces',
  'null',
  'a text',
  'comment',
  'NUL',
  'chunked',
  'wrongly chunked',
  'shorter than said',
  'longer than said',
  'said twice',
] as const;

export function casesOf(route: Route): Arbitrary<Case> {
  const { method, path, params, query, body, byPerson } = route;
  const part = (schema: unknown) => (schema ? valid(schema as SchemaObject) : fc.constant({}));
  return fc
    .record({
      params: part(params) as Arbitrary<Record<string, unknown>>,
      query: part(query) as Arbitrary<Record<string, unknown>>,
      body: body ? valid(body as SchemaObject) : fc.constant(undefined),
      caller: byPerson ? fc.oneof({ weight: 3, arbitrary: people }, { weight: 1, arbitrary: callers }) : callers,
      headers: headersOf(method),
      mutations: fc.oneof(
        { weight: 2, arbitrary: fc.constant<Mutation[]>([]) },
        { weight: 3, arbitrary: fc.array(mutations, { minLength: 1, maxLength: 3 }) },
      ),
    })
    .map(({ caller, headers, query: fields, ...rest }) => ({
      method,
      path,
      ...rest,
      query: Object.entries(fields).flatMap(([name, value]) => pairs(name, value)),
      headers: [...caller, ...headers],
    }));
}

/** An object is written as `metadata[key]=value`. */
function pairs(name: string, value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return [[name, value]];
  return Object.entries(value).map(([key, inner]) => [`${name}[${key}]`, inner]);
}

const text = fc.oneof(
  fc.constantFrom(...hostileTexts),
  anyText({ maxLength: 20 }).map((any) => any.toWellFormed()),
);
const name = fc.oneof(fc.constantFrom(...hostileNames), fc.constantFrom('name', 'limit', 'cursor', 'type', 'metadata'));
/** A secret in the wrong field: it must not be stored or logged. */
const misplaced = fc.nat({ max: 9 }).map((index) => `@secret:own:${index}`);

const mutations: Arbitrary<Mutation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      at: fc.constant('body' as const),
      how: fc.constantFrom('replace' as const, 'remove' as const, 'add' as const, 'wrap' as const),
      place: fc.nat({ max: 60 }),
      name,
      value: fc.oneof(hostile, referenceTo('ses'), referenceTo('agt')),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      at: fc.constant('query' as const),
      how: fc.constantFrom('set' as const, 'again' as const, 'nest' as const, 'verbatim' as const),
      name,
      value: fc.oneof({ weight: 5, arbitrary: text }, { weight: 1, arbitrary: misplaced }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      at: fc.constant('param' as const),
      place: fc.nat({ max: 3 }),
      value: fc.oneof({ weight: 5, arbitrary: text }, { weight: 1, arbitrary: misplaced }),
      verbatim: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ at: fc.constant('header' as const), name: headerNames(), value: headerValues() }),
  },
  { weight: 2, arbitrary: fc.record({ at: fc.constant('bytes' as const), how: fc.constantFrom(...waysWithBytes) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      at: fc.constant('path' as const),
      how: fc.constantFrom(
        'slash' as const,
        'doubled' as const,
        'capitals' as const,
        'dots' as const,
        'absolute' as const,
        'fragment' as const,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      at: fc.constant('method' as const),
      value: fc.constantFrom(
        'GET',
        'HEAD',
        'POST',
        'PUT',
        'PATCH',
        'DELETE',
        'OPTIONS',
        'TRACE',
        'PROPFIND',
        'get',
        'X',
      ),
    }),
  },
);

/** A user who is signed in to the console, or appears to be. */
const people: Arbitrary<[string, string][]> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(personOf({})) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      personOf({ 'X-Signalbox-Organization': '@org:foreign:0' }),
      personOf({ 'X-Signalbox-Organization': '__proto__' }),
      personOf({ 'X-Signalbox-CSRF': '' }),
      personOf({ 'X-Signalbox-CSRF': '\u00e9'.repeat(50) }),
      personOf({ Origin: 'https://example.com' }),
      personOf({ Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }),
      personOf({ Cookie: '@cookie:own:0x' }),
      personOf({ Cookie: '@cookie:own:0; @cookie:own:0' }),
      personOf({ Authorization: 'Bearer @admin:own:0' }),
    ),
  },
);

/** The headers of a signed-in user. */
export function personOf(changed: Record<string, string>): [string, string][] {
  return Object.entries({
    Cookie: '@cookie:own:0',
    'X-Signalbox-Organization': '@org:own:0',
    'X-Signalbox-CSRF': '@csrf:own:0',
    Origin: '@origin:own:0',
    ...changed,
  });
}

/** The credentials: usually a key with permission. */
const callers: Arbitrary<[string, string][]> = fc.oneof(
  { weight: 12, arbitrary: fc.constant([['Authorization', 'Bearer @admin:own:0']] as [string, string][]) },
  { weight: 3, arbitrary: people },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('read', 'write', 'staging', 'scoped', 'agent', 'rotated', 'deleted', 'expired')
      .map((kind) => [['Authorization', `Bearer @${kind}:own:0`]] as [string, string][]),
  },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('sessiontoken', 'usertoken', 'cuttoken', 'revokedtoken')
      .map((kind) => [['Authorization', `Bearer @${kind}:own:0`]] as [string, string][]),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('https://app.example.com', 'https://evil.example', 'null', '').map(
      (origin) =>
        [
          ['Authorization', 'Bearer @usertoken:own:0'],
          ['Origin', origin],
        ] as [string, string][],
    ),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom<[string, string][][]>(
        [],
        [['Authorization', '']],
        [['Authorization', 'Bearer']],
        [['Authorization', 'bearer   @admin:own:0  ']],
        [['authorization', 'Basic @admin:own:0']],
        [['Authorization', '@admin:own:0']],
        [['Authorization', 'Bearer @admin:own:0x']],
        [['Authorization', 'Bearer @admin:own:0, Bearer @admin:own:0']],
        [
          ['Authorization', 'Bearer @read:own:0'],
          ['Authorization', 'Bearer @admin:own:0'],
        ],
        [['Authorization', 'Bearer @halved:own:0']],
        [['Authorization', 'Bearer @forged:foreign:0']],
        [['Authorization', `Bearer sbk_${'z'.repeat(83)}`]],
        [['Authorization', `Bearer sbt_${'z'.repeat(200)}.${'z'.repeat(43)}`]],
        [['Authorization', 'Bearer sbt_']],
        [['Authorization', `Bearer sbt_${'z'.repeat(9_000)}.${'z'.repeat(43)}`]],
        [['Authorization', `Bearer ${'\u00e9'.repeat(90)}`]],
        [['Authorization', `Bearer ${'a'.repeat(12_000)}`]],
        [['Cookie', 'session=@admin:own:0']],
      )
      .map((headers) => headers),
  },
);

function headersOf(method: string): Arbitrary<[string, string][]> {
  const keys = fc.oneof(
    fc.nat({ max: 30 }).map((index) => `key ${index}`.replace(' ', '-')),
    fc.constantFrom('', ' ', 'x'.repeat(255), 'x'.repeat(256), '__proto__', 'a\tb', '\u00e9', '"quoted"'),
  );
  const idempotency = keys.map((key) => [['Idempotency-Key', key]] as [string, string][]);
  const none = fc.constant([] as [string, string][]);
  return method === 'POST'
    ? fc.oneof(none, idempotency)
    : fc.oneof({ weight: 9, arbitrary: none }, { weight: 1, arbitrary: idempotency });
}

function headerNames(): Arbitrary<string> {
  return fc.constantFrom(
    'Content-Type',
    'Content-Type',
    'Last-Event-ID',
    'Last-Event-ID',
    'Accept',
    'Content-Encoding',
    'Expect',
    'X-Forwarded-For',
    'X-Request-Id',
    'X-HTTP-Method-Override',
    'X-Signalbox-Organization',
    'User-Agent',
    'Origin',
    'Host',
    'Connection',
    'Upgrade',
    'Range',
    'If-None-Match',
    'constructor',
    '__proto__',
  );
}

function headerValues(): Arbitrary<string> {
  return fc
    .oneof(
      fc.constantFrom(
        'application/json',
        'application/json; charset=utf-16',
        'application/json;;;',
        'APPLICATION/JSON',
        'application/vnd.api+json',
        'text/plain',
        'multipart/form-data; boundary=x',
        'application/x-www-form-urlencoded',
        'turn_1:seq_1',
        'turn_1:seq_999999999999999',
        'turn_-1:seq_1',
        'gzip',
        '100-continue',
        '127.0.0.1',
        '::1, 10.0.0.1',
        'bytes=0-1',
        'websocket',
        'DELETE',
        '__proto__',
        '',
        'x'.repeat(4_000),
        'x'.repeat(20_000),
        '\u00e9\u00ff',
        '\x01\x7f',
      ),
      referenceTo('org'),
      referenceTo('position'),
      fc.string({ unit: 'binary-ascii', maxLength: 30 }),
    )
    .map((value) => value.replaceAll(/[\r\n]/g, ''));
}
