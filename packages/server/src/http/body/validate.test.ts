// A refusal names the field that is wrong and says what would be right, and nothing beside it.
import { providerFacts, type Route, routes, type SchemaObject } from '@signalbox/contract';
import { Compile } from 'typebox/compile';
import { Errors } from 'typebox/schema';
import { expect, test, vi } from 'vitest';
import type { ApiError } from '../../lib/api-error.ts';
import { validatorOf } from './validate.ts';

vi.mock('typebox/compile', { spy: true });
vi.mock('typebox/schema', { spy: true });

function refusal(operation: keyof typeof routes, body: unknown, query: object = {}, params: object = {}): unknown {
  try {
    validatorOf(routes[operation])({ params, query, body });
  } catch (error) {
    return (error as ApiError).errors;
  }
  throw new Error('It was not refused');
}

const agent = (more: object) => ({ name: 'Agent', model: 'scripted/test', ...more });
const mcp = (approval: unknown) =>
  agent({ tools: [{ type: 'mcp', name: 'crm', url: 'https://crm.example.com/mcp', approval }] });

const policies = '"always", "never", "once", { "when": <JSON Schema> } or { "policy": …, "by": … }';

test('a route’s schemas are compiled with its first request, and once', () => {
  const validate = Object.values<Route>(routes).map(validatorOf);
  expect(Compile).not.toHaveBeenCalled();
  const createAgent = validate[Object.keys(routes).indexOf('createAgent')]!;
  for (const name of ['First', 'Second']) createAgent({ params: {}, query: {}, body: agent({ name }) });
  // The query’s and the body’s.
  expect(Compile).toHaveBeenCalledTimes(2);
});

test.each([
  ['a policy of one tool that is none', { find: 'sometimes' }, 'find', 'must be one of "always", "never", "once"'],
  ['a policy of one tool without its fields', { find: {} }, 'find', `must be ${policies}`],
  [
    'a role that can’t decide',
    { policy: 'always', by: { roles: ['viewer'] } },
    'by.roles[0]',
    'must be one of "approver", "member", "admin", "owner"',
  ],
  ['an approver that is switched off', { policy: 'always', by: { keys: false } }, 'by.keys', 'must be true'],
  ['approvers without a policy', { find: { by: { keys: true } } }, 'find.policy', 'is required'],
  ['a policy that asks nobody', { policy: 'never', by: {} }, 'policy', 'must be one of "always", "once"'],
  ['too many approvers', { find: { policy: { when: {} }, by: { count: 6 } } }, 'find.by.count', 'must be at most 5'],
  [
    'an unknown field of the approvers',
    { policy: 'always', by: { anyone: true } },
    'by.anyone',
    'is not a known field; there are people, roles, keys, endUser, notRequester, count',
  ],
])('%s is named with its tool', (_, approval, field, message) => {
  expect(refusal('createAgent', mcp(approval))).toEqual([{ path: `tools[0].approval.${field}`, message }]);
});

test('a value of a wrong type is refused with all that is allowed', () => {
  expect(refusal('createAgent', mcp(5))).toEqual([
    { path: 'tools[0].approval', message: `must be ${policies}, or an object with one of these for each tool` },
  ]);
});

test('text of the wrong form is refused with a valid example', () => {
  const agentId = expect.stringMatching(/^must look like "agt_\w{26}"$/);
  expect(refusal('openSession', { agentId: '17', environment: 'production' })).toEqual([
    { path: 'agentId', message: agentId },
  ]);
});

/** The fields that have times, wherever an operation has them. */
const times = Object.entries(routes as Record<string, Route>).flatMap(([operation, { query, body }]) =>
  [query, body].flatMap((schema, isBody) =>
    timesIn(schema as SchemaObject | undefined).map((name) => ({ operation, name, isBody: isBody === 1 })),
  ),
);

function timesIn({ properties = {}, anyOf = [] }: SchemaObject = {}): string[] {
  const isTime = (schema: SchemaObject): boolean => schema.format === 'date-time' || (schema.anyOf ?? []).some(isTime);
  const own = Object.entries(properties).filter(([, schema]) => isTime(schema));
  return [...own.map(([name]) => name), ...anyOf.flatMap((part) => timesIn(part))];
}

test.each(times)('$operation refuses a $name that cannot be stored', ({ operation, name, isBody }) => {
  for (const time of [
    '2016-12-31T23:59:60Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59-23:59',
    '2026-02-30T00:00:00Z',
  ]) {
    const { params: _, ...route } = routes[operation as keyof typeof routes] as Route;
    const input = { [name]: time };
    const raw = { params: {}, query: isBody ? {} : input, body: isBody ? input : undefined };
    let errors: unknown;
    try {
      validatorOf(route as Route)(raw);
    } catch (error) {
      errors = (error as ApiError).errors;
    }
    const message = expect.stringContaining('in the years 1 to 9999');
    expect(errors, time).toContainEqual({ path: name, message });
  }
});

test('there are times in operations', () => {
  expect(times.map(({ operation, name }) => `${operation} ${name}`)).toEqual(
    expect.arrayContaining([
      'recoverDeliveries since',
      'exportSessions until',
      'createKey expiresAt',
      'cancelSessions since',
    ]),
  );
});

test.each(['gpt-5', 'nope/x', 'worker/'])('the model %s is refused with what is allowed', (model) => {
  const allowed =
    '"provider/model", its provider one of scripted, openai, anthropic, google, azure, vertex, bedrock, openai-compatible, or "worker/queue"';
  const message = `must be ${allowed}, such as "anthropic/${providerFacts.anthropic.own.exampleModel}"`;
  expect(refusal('createAgent', agent({ model }))).toEqual([{ path: 'model', message }]);
});

test('an unknown field is refused with the known ones, a number with its bound, a value with its type', () => {
  const limits = { maxSteps: 3, maxStepsPerTurn: 0, turnTimeoutSeconds: '60' };
  expect(refusal('createAgent', agent({ limits, tools: {} }))).toEqual([
    { path: 'limits.maxSteps', message: 'is not a known field. Did you mean "maxStepsPerTurn"?' },
    { path: 'tools', message: 'must be an array' },
    { path: 'limits.maxStepsPerTurn', message: 'must be at least 1' },
    { path: 'limits.turnTimeoutSeconds', message: 'must be an integer' },
  ]);
  expect(refusal('listAgents', undefined, { archived: 'yes' })).toEqual([
    { path: 'archived', message: 'must be true or false' },
  ]);
});

const session = { agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c', environment: 'production' };
const inSession = { sessionId: 'ses_01k9xq3v7gf3pbt8zn5e6m2r4c' };
test.each<[keyof typeof routes, string, object, string]>([
  ['openSession', 'agent_id', { environment: 'production', agent_id: session.agentId }, 'agentId'],
  ['openSession', 'Environment', { agentId: session.agentId, Environment: 'production' }, 'environment'],
  ['openSession', 'messages', { ...session, messages: [{ role: 'user', content: 'Hello' }] }, 'input'],
  ['openSession', 'content', { ...session, content: 'Hello' }, 'input'],
  ['sendMessage', 'input', { input: 'Hello' }, 'content'],
  ['forkSession', 'turn', { turn: 2 }, 'atTurn'],
  ['resolveApproval', 'approved', { approved: true }, 'decision'],
  ['createAgent', 'system', { name: 'A', model: 'scripted/x', system: 'Be kind.' }, 'instructions'],
  ['createKey', 'permissions', { name: 'k', permissions: 'read' }, 'permission'],
])('%s: the field %s is refused with the one that was meant, before anything else', (operation, field, body, meant) => {
  const params = operation === 'resolveApproval' ? { operationId: session.agentId.replace('agt', 'op') } : inSession;
  const [first] = refusal(operation, body, {}, 'params' in routes[operation] ? params : {}) as {
    path: string;
    message: string;
  }[];
  expect(first).toEqual({ path: field, message: `is not a known field. Did you mean "${meant}"?` });
});

test('messages do not show how a value is checked: an email, an empty field', () => {
  const message = 'must be an email address, such as "mara@example.com"';
  expect(refusal('createInvitation', { role: 'member', email: 'mara' })).toEqual([{ path: 'email', message }]);
  expect(refusal('createInvitation', { role: 'member', email: '' })).toEqual([{ path: 'email', message }]);
  expect(refusal('createKey', { name: '', permission: 'read' })).toEqual([
    { path: 'name', message: 'must not be empty' },
  ]);
});

test('an unknown chunk type is refused with the known ones', () => {
  const sessionId = 'ses_01k9xq3v7gf3pbt8zn5e6m2r4c';
  expect(refusal('listChunks', undefined, { types: 'text' }, { sessionId })).toEqual([
    { path: 'types', message: expect.stringMatching(/^must be one or more of .*tool\.result.*, such as "message\./) },
  ]);
});

test('the values that the type of a part can have are named', () => {
  const session = { agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c', environment: 'production' };
  expect(refusal('openSession', { ...session, input: [{ type: 'image', text: 'a cat' }] })).toEqual([
    { path: 'input[0].type', message: 'must be one of "text", "file"' },
  ]);
});

test('an invalid header name is refused once', () => {
  const request = { method: 'GET', url: 'https://example.com/', headers: { 'A B': 'x' } };
  const tool = { type: 'http', name: 'get', description: '', inputSchema: { type: 'object' }, request };
  expect(refusal('createAgent', agent({ tools: [tool] }))).toEqual([
    { path: 'tools[0].request.headers.A B', message: 'must be the name of a header' },
  ]);
});

const many = <T>(count: number, item: (index: number) => T) => Array.from({ length: count }, (_, index) => item(index));
const fields = (count: number) => Object.fromEntries(many(count, (index) => [`k${index}`, 'v']));
const http = (request: object) => ({ type: 'http', name: 'x', description: '', inputSchema: {}, request });
const script = (steps: unknown[]) =>
  agent({ model: { provider: 'scripted', model: 'x', settings: { script: steps } } });

test.each<[string, unknown, string, string]>([
  ['metadata', agent({ metadata: fields(60_000) }), 'metadata', 'must have at most 50 fields'],
  ['tools that are none', agent({ tools: many(60_000, () => 0) }), 'tools', 'must have at most 100 items'],
  ['tools without a type', agent({ tools: many(60_000, () => ({})) }), 'tools', 'must have at most 100 items'],
  ['steps', script(many(60_000, () => ({}))), 'model.settings.script', 'must have at most 100 items'],
  [
    'calls of a step',
    script([{ toolCalls: many(60_000, () => ({})) }]),
    'model.settings.script[0].toolCalls',
    'must have at most 20 items',
  ],
  [
    'headers',
    agent({ tools: [http({ method: 'GET', url: 'https://e.com', headers: fields(20_000) })] }),
    'tools[0].request.headers',
    'must have at most 50 fields',
  ],
])('of too many %s nothing is judged but that they are too many', (_, body, path, message) => {
  vi.mocked(Errors).mockClear();
  expect(refusal('createAgent', body)).toEqual([{ path, message }]);
  expect(Errors).not.toHaveBeenCalled();
});

test('20 of many unknown fields are named, and nothing else is checked', () => {
  vi.mocked(Errors).mockClear();
  const errors = refusal('createAgent', fields(60_000)) as { path: string; message: string }[];
  expect(errors.map(({ path }) => path)).toEqual(many(20, (index) => `k${index}`));
  expect(errors[0]!.message).toMatch(/^is not a known field; there are name, model, /);
  expect(Errors).not.toHaveBeenCalled();
});

test('a few unknown fields are named along with other errors', () => {
  expect(refusal('createAgent', { nam: 'x', modell: 'x' })).toHaveLength(4);
});

test('every list and every map that a request can hold has a limit', () => {
  const unlimited: string[] = [];
  const visit = (schema: SchemaObject, path: string): void => {
    if ([schema.type].flat().includes('array') && schema.maxItems === undefined) unlimited.push(path);
    const { additionalProperties: others } = schema;
    if (typeof others === 'object' && schema.maxProperties === undefined) unlimited.push(path);
    if (typeof others === 'object') visit(others, `${path}.*`);
    if (schema.items) visit(schema.items, `${path}[]`);
    for (const [name, inner] of Object.entries(schema.properties ?? {})) visit(inner, `${path}.${name}`);
    for (const inner of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) visit(inner, path);
  };
  const given = Object.entries<Route>(routes).flatMap(([name, { body, query }]) => [
    [`${name} body`, body],
    [`${name} query`, query],
  ]) as [string, SchemaObject | undefined][];
  for (const [name, schema] of given) if (schema) visit(schema, name);
  expect(unlimited).toEqual([]);
});

test('fields of a part that may not have so many are not read', () => {
  const get = vi.fn(() => 'v');
  const fields = Array.from({ length: 51 }, (_, n) => [`k${n}`, { enumerable: true, get }] as const);
  const metadata = Object.defineProperties({}, Object.fromEntries(fields));
  expect(refusal('createAgent', agent({ metadata }))).toEqual([
    { path: 'metadata', message: 'must have at most 50 fields' },
  ]);
  expect(get).not.toHaveBeenCalled();
});
