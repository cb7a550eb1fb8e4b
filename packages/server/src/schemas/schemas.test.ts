import { expect, test, vi } from 'vitest';
import { inputErrors, mayMatch, schemaProblems, valueErrors } from './schemas.ts';
import { runInThread } from './threads.ts';

vi.mock('./threads.ts', { spy: true });

const ORGANIZATION = 'one';
const schemaOf = (property: object) => ({ type: 'object', properties: { x: property }, required: ['x'] });
const errorOf = async (schema: Record<string, unknown>, value: unknown) =>
  (await inputErrors(ORGANIZATION, [{ schema, value }]))[0];
const messagesOf = async (...schemas: Record<string, unknown>[]) => {
  const all = schemas.map((schema) => ({ schema, strictness: 'own' as const }));
  return (await schemaProblems(ORGANIZATION, all)).map(([first]) => first?.message);
};

/** Matching it would take longer than the age of the universe. */
const BACKTRACKS = schemaOf({ type: 'string', pattern: '^(a+)+$' });
const VICTIM = { x: `${'a'.repeat(40)}!` };
const REFUSED = 'the schema cannot be evaluated for it';
const DOUBLES = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, level) => [
      `d${level}`,
      level === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] },
    ]),
  ),
};

test('an input is validated against its schema', async () => {
  expect(await errorOf(schemaOf({ type: 'string', pattern: '^a+$' }), { x: 'aa' })).toBeUndefined();
  expect(await errorOf(schemaOf({ type: 'string', pattern: '^a+$' }), { x: 'b' })).toContain('/x');
  expect(await errorOf(schemaOf({ type: 'integer' }), {})).toContain('x');
  expect(await errorOf({}, [])).toBe('it must be a JSON object');
});

test('several values are validated together, each against its own schema and in order', async () => {
  const plain = { schema: schemaOf({ type: 'integer' }), value: { x: 1 } };
  const letters = { schema: schemaOf({ pattern: '^\\p{L}+$' }), value: { x: 'ä' } };
  const evaluations = [letters, plain, { ...letters, value: { x: '1' } }, { ...plain, value: { x: 'a' } }, plain];
  const errors = await valueErrors(ORGANIZATION, evaluations);
  expect(errors.map((error) => error?.slice(0, 14))).toEqual([
    undefined,
    undefined,
    '/x must match ',
    '/x must be int',
    undefined,
  ]);
  expect(await mayMatch(ORGANIZATION, evaluations)).toEqual([true, true, false, false, true]);
});

test('each problem is reported once, with the names and values it is about', async () => {
  const schema = { ...schemaOf({ enum: ['EUR', 'USD'] }), additionalProperties: false };
  expect(await errorOf(schema, { x: 'EUR', y: 1, z: 2 })).toBe('/ must not have additional properties: y, z');
  expect(await errorOf(schema, { x: 'GBP' })).toBe('/x must be one of "EUR", "USD"');
  const long = schemaOf({ enum: Array.from({ length: 100 }, (_, index) => index) });
  expect((await errorOf(long, { x: 'GBP' }))!.length).toBeLessThan(100);
});

const many = Array.from({ length: 20_000 }, (_, index) => index);
const last = many.map(() => many.length - 1);
test.each<[string, Record<string, unknown>, unknown]>([
  ['a pattern that backtracks', BACKTRACKS, VICTIM],
  ['a pattern of names that backtracks', { patternProperties: { '^(a+)+$': {} } }, { [VICTIM.x]: 1 }],
  ['a long enum for each item of a long list', schemaOf({ type: 'array', items: { enum: many } }), { x: last }],
  ['references that double', DOUBLES, {}],
])('%s is stopped, and does not block the event loop', async (_title, schema, value) => {
  const evaluation = { schema, value };
  let turns = 0;
  const count = setInterval(() => (turns += 1), 10);
  expect(await valueErrors(ORGANIZATION, [evaluation])).toEqual([REFUSED]);
  clearInterval(count);
  expect(turns).toBeGreaterThan(10);
});

test('a rule that can’t be evaluated in time matches, so that an approval is requested', async () => {
  expect(await mayMatch(ORGANIZATION, [{ schema: BACKTRACKS, value: VICTIM }])).toEqual([true]);
});

test('a rule that fails while it is evaluated matches, so that an approval is requested', async () => {
  // The engine of regular expressions throws within milliseconds when it has too much to remember.
  const words = Array.from({ length: 80 }, (_, index) => `(w${index}x)`).join('|');
  const rule = schemaOf({ type: 'string', pattern: `^(?:${words}|(.)|(\\n))*(?:drop|delete)` });
  const value = { x: `${'-'.repeat(300_000)}\ndrop table customers` };
  expect(await mayMatch(ORGANIZATION, [{ schema: rule, value }])).toEqual([true]);
  expect(await valueErrors(ORGANIZATION, [{ schema: rule, value }])).toEqual([REFUSED]);
  expect(await mayMatch(ORGANIZATION, [{ schema: rule, value: { x: 'select 1' } }])).toEqual([false]);
});

test('a reference that leads nowhere from the part of the schema that it is in is refused', async () => {
  const nested = (reference: string) => ({
    properties: { x: { $id: 'part', $ref: reference, $defs: { own: { type: 'string' } } } },
    $defs: { a: { type: 'string' } },
  });
  expect(await messagesOf(nested('#/$defs/a'), nested('#/$defs/own'))).toEqual([
    'refers to "#/$defs/a", which is not in it',
    undefined,
  ]);
  expect(await errorOf({ ...nested('#/$defs/own'), type: 'object' }, { x: 'text' })).toBeUndefined();
});

test('a schema that can’t be evaluated in time is refused, and so are those after it, because they share a time limit', async () => {
  const letters = schemaOf({ pattern: '^\\p{L}+$' });
  const wrong = 'cannot be evaluated as a JSON Schema';
  expect(await messagesOf(letters, DOUBLES, letters, DOUBLES)).toEqual([undefined, wrong, wrong, wrong]);
});

test('a schema of more than 128 KiB is refused without being parsed', async () => {
  const long = { description: 'ä'.repeat(70_000) };
  expect(await messagesOf({}, long)).toEqual([undefined, 'has more than 131072 bytes']);
});

test('an organization whose schemas are stopped one after another does not delay other organizations', async () => {
  const order: string[] = [];
  const bombs = Array.from({ length: 4 }, async () => {
    await valueErrors('hostile', [{ schema: BACKTRACKS, value: VICTIM }]);
    order.push('hostile');
  });
  const honest = Array.from({ length: 20 }, async () => {
    await valueErrors('honest', [{ schema: schemaOf({ pattern: '^a+$' }), value: { x: 'aa' } }]);
    order.push('honest');
  });
  await Promise.all([...bombs, ...honest]);
  expect(order.at(-1)).toBe('hostile');
});

test('plain schemas are evaluated at once, without a thread', async () => {
  vi.mocked(runInThread).mockClear();
  await valueErrors(ORGANIZATION, Array(50).fill({ schema: schemaOf({ type: 'string' }), value: { x: 'a' } }));
  expect(runInThread).not.toHaveBeenCalled();
});
