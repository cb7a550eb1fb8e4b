// Invalid input gets the right status and the name of the field, and changes nothing.
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Route, routes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { asProblem, type RawOptions, type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { exchange } from './fuzz/wire.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const call = (method: string, path: string, options: RawOptions = {}) =>
  send(service.url, method, path, { key: service.adminKey, ...options });
const key = { name: 'k', permission: 'read' };

test.each<[string, unknown, string[]]>([
  ['a missing field', { permission: 'read' }, ['name']],
  ['an unknown field', { ...key, extra: 1, another: 2 }, ['extra', 'another']],
  ['a wrong type, which is not converted', { ...key, name: 5 }, ['name']],
  ['an unknown choice', { ...key, permission: 'root' }, ['permission']],
  ['an empty name', { ...key, name: '' }, ['name']],
  ['a long name', { ...key, name: 'x'.repeat(201) }, ['name']],
  ['a time that is none', { ...key, expiresAt: 'tomorrow' }, ['expiresAt']],
  ['a leap second', { ...key, expiresAt: '2030-12-31T23:59:60Z' }, ['expiresAt']],
  ['a time with the name of a zone', { ...key, expiresAt: '2030-01-01T00:00:00Z[UTC]' }, ['expiresAt']],
  ['a year of five digits', { ...key, expiresAt: '9999-12-31T23:59:59-14:00' }, ['expiresAt']],
  ['a time in the past', { ...key, expiresAt: '2001-01-01T00:00:00Z' }, ['expiresAt']],
  ['metadata that is nested', { ...key, metadata: { a: { b: 1 } } }, ['metadata.a']],
  ['metadata with a long value', { ...key, metadata: { a: 'x'.repeat(513) } }, ['metadata.a']],
  ['a NUL character', { ...key, name: 'a\0b' }, ['name']],
  ['a lone surrogate', { ...key, name: 'a\ud800' }, ['name']],
  ['a NUL character in a field name', { ...key, metadata: { 'a\0': 1 } }, ['metadata']],
  ['no object', [], ['']],
  ['null', null, ['']],
])('%s is a 400 that names the field', async (_, body, paths) => {
  const problem = asProblem(await call('POST', '/api_keys', { body }));
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(problem.errors?.map(({ path }) => path).toSorted()).toEqual(paths.toSorted());
});

test.each([
  ['{"name": "k",\n "permission": hunter2}', 'is not JSON from line 2, column 16 on'],
  ['{"name": "k", "permission": "hunter2', 'is not JSON from line 1, column 29 on'],
  ['{"name": "k", "__proto__": "hunter2"}', 'has a field that is not allowed'],
])('a body that is not JSON is refused with the position of the error, not with its text: %s', async (raw, said) => {
  const problem = asProblem(await call('POST', '/api_keys', { raw }));
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request', detail: expect.stringContaining(said) });
  expect(problem.errors).toEqual([{ path: '', message: expect.stringContaining(said) }]);
  expect(JSON.stringify(problem)).not.toContain('hunter2');
});

test.each([
  ['a number beyond a double', '{"output":{"a":[0,-1e400]}}', 'output.a[1]', 'must be a number of at most 1.8e308'],
  [
    'a field that is there twice',
    '{"output":[{"a":{}},{"a":":\\"","\\u0061":1}]}',
    'output[1].a',
    'must be given once',
  ],
  ['a field of the body that is there twice', '{"output":1,"output":1}', 'output', 'must be given once'],
])('JSON with %s is a 400 that names it, also with an Idempotency-Key', async (_title, json, path, said) => {
  const message = expect.stringContaining(said);
  for (const headers of [{}, { 'idempotency-key': 'json' }]) {
    const results = '/sessions/ses_01k9xq3v7gf3pbt8zn5e6m2r4c/tool_results';
    const problem = asProblem(await call('POST', results, { raw: json, headers }));
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ path, message }] });
  }
});

test('what JSON allows and a body may not have is refused before a sign-in reads it', async () => {
  const path = `${service.url}/console/api/sign_in`;
  const headers = { origin: service.url, 'sec-fetch-site': 'same-origin' };
  for (const fields of ['"email":"a@example.com","email":"b@example.com"', '"email":1e999', '"email":"\\ud800"']) {
    const problem = asProblem(await send(service.url, 'POST', path, { raw: `{${fields},"password":"p"}`, headers }));
    expect(problem.errors, fields).toEqual([{ path: 'email', message: expect.any(String) }]);
    expect(problem.errors![0]!.message, fields).not.toContain('must be a string');
  }
});

test.each<[string, object, string[]]>([
  ['two tools of one name', { tools: [tool('a'), tool('a')] }, ['tools[1].name']],
  [
    'a tool, and a server, by names that another server could give to its tools',
    {
      tools: [
        tool('crm__find'),
        { type: 'mcp', name: 'crm', url: 'https://crm.example.com/' },
        { type: 'mcp', name: 'crm__x', url: 'https://x.example.com/' },
        { type: 'mcp', name: 'crm_', url: 'https://y.example.com/' },
        tool('crm_find'),
        tool('crmx__find'),
      ],
    },
    ['tools[0].name', 'tools[2].name', 'tools[3].name'],
  ],
  ['two searches', { model: 'openai/x', tools: [search(), search()] }, ['tools[1]']],
  ['a tool by the name of the search', { model: 'openai/x', tools: [search(), tool('web_search')] }, ['tools[1].name']],
  [
    'a misspelt field of the search',
    { model: 'openai/x', tools: [search({ allowed_domains: ['a.com'] })] },
    ['tools[0].allowed_domains'],
  ],
  [
    'fields of other tools on the search',
    { model: 'openai/x', tools: [search({ name: 'a', approval: 'always' })] },
    ['tools[0].name', 'tools[0].approval'],
  ],
  [
    'a search without domains',
    { model: 'openai/x', tools: [search({ allowedDomains: [] })] },
    ['tools[0].allowedDomains'],
  ],
  ['a search that may never run', { model: 'openai/x', tools: [search({ maxUses: 0 })] }, ['tools[0].maxUses']],
  ...[
    'https://example.com',
    'example.com/docs',
    'example.com:443',
    '*.example.com',
    'example.com.',
    '.example.com',
    'com',
    'localhost',
    '127.0.0.1',
    'Example.com',
    'user@example.com',
    'exa mple.com',
    'bücher.de',
    '-a.com',
    '',
  ].map((domain): [string, object, string[]] => [
    `the domain ${JSON.stringify(domain)}`,
    { model: 'openai/x', tools: [search({ allowedDomains: ['example.com', domain] })] },
    ['tools[0].allowedDomains[1]'],
  ]),
  ['a tool of an unknown type', { tools: [{ ...tool('a'), type: 'magic' }] }, ['tools[0].type']],
  ['a client tool with a request', { tools: [{ ...tool('a'), type: 'client' }] }, ['tools[0].request']],
  ['a placeholder in the host', { tools: [tool('a', { url: 'https://{{input.host}}/' })] }, ['tools[0].request.url']],
  [
    'a schema that is not an object',
    { tools: [{ ...tool('a'), inputSchema: { type: 'string' } }] },
    ['tools[0].inputSchema'],
  ],
  [
    'a pattern that does not parse',
    {
      tools: [
        {
          ...tool('a'),
          inputSchema: {
            properties: { x: { pattern: '(' } },
            required: ['x'],
            type: 'object',
            patternProperties: { '(': {} },
          },
        },
      ],
    },
    ['tools[0].inputSchema'],
  ],
  [
    'a schema whose references double at every level',
    { tools: [{ ...tool('a'), inputSchema: { $ref: '#/$defs/d0', $defs: doubling(40) } }] },
    ['tools[0].inputSchema'],
  ],
  ['a queue in short that no program could name', { model: 'worker/ ' }, ['model']],
  [
    'a cloud without an address, and with a wrong one',
    {
      model: {
        provider: 'azure',
        model: 'm',
        baseUrl: 'https://acme.openai.azure.com/v1',
        compaction: { provider: 'azure', model: 'm' },
      },
    },
    ['model.baseUrl', 'model.compaction.baseUrl'],
  ],
  ['a server without its address', { model: { provider: 'openai-compatible', model: 'm' } }, ['model.baseUrl']],
])('an agent with %s is a 400 that names the field', async (_, change, paths) => {
  const problem = asProblem(await call('POST', '/agents', { body: { name: 'A', model: 'scripted/x', ...change } }));
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(problem.errors?.map(({ path }) => path)).toEqual(paths);
});

/** d0 → d1 twice → … : 2^levels evaluations. */
function doubling(levels: number) {
  const at = (level: number) => ({ $ref: `#/$defs/d${level + 1}` });
  const defs = Array.from({ length: levels }, (_, level) => [`d${level}`, { allOf: [at(level), at(level)] }]);
  return Object.fromEntries([...defs, [`d${levels}`, {}]]);
}

function tool(name: string, request: object = {}) {
  return {
    type: 'http',
    name,
    description: 'd',
    inputSchema: { type: 'object' },
    request: { method: 'POST', url: 'https://example.com/', ...request },
  };
}

function search(fields: object = {}) {
  return { type: 'web_search', ...fields };
}

const LIST = { allowedDomains: ['example.com'] };
const LIST_PATH = 'tools[0].allowedDomains';

function vertex(model: string) {
  const baseUrl =
    'https://europe-west4-aiplatform.googleapis.com/v1/projects/a/locations/europe-west4/publishers/google';
  return { provider: 'vertex', model, baseUrl };
}

function azure(fallbacks: object[] = []) {
  return { provider: 'azure', model: 'prod-chat', baseUrl: 'https://acme.openai.azure.com/openai/v1', fallbacks };
}

test.each<[string, object, string]>([
  ['a model without a search', { model: 'scripted/x', tools: [search()] }, 'tools[0]'],
  ['a worker', { model: 'worker/queue', tools: [tool('a'), search()] }, 'tools[1]'],
  [
    'a compatible server',
    { model: { provider: 'openai-compatible', model: 'x', baseUrl: 'https://example.com/v1' }, tools: [search()] },
    'tools[0]',
  ],
  [
    'a fallback without a search',
    {
      model: { provider: 'openai', model: 'x', fallbacks: [{ provider: 'scripted', model: 'x' }] },
      tools: [search()],
    },
    'tools[0]',
  ],
  [
    'a list that Google does not take',
    { model: 'google/gemini-3.8-flash', tools: [search({ allowedDomains: ['a.com'] })] },
    'tools[0].allowedDomains',
  ],
  [
    'a limit that Google does not take',
    { model: 'google/gemini-3.8-flash', tools: [search({ maxUses: 3 })] },
    'tools[0].maxUses',
  ],
  [
    'a list that a fallback does not take',
    {
      model: { provider: 'openai', model: 'x', fallbacks: [{ provider: 'google', model: 'gemini-3.8-flash' }] },
      tools: [search({ allowedDomains: ['a.com'] })],
    },
    'tools[0].allowedDomains',
  ],
  [
    'other tools beside the search of Gemini 2',
    { model: 'google/gemini-2.5-pro', tools: [search(), tool('a')] },
    'tools[0]',
  ],
  ['a Gemma', { model: 'google/gemma-3-27b-it', tools: [search()] }, 'tools[0]'],
  ['a list that Vertex does not take', { model: vertex('gemini-3.8-flash'), tools: [search(LIST)] }, LIST_PATH],
  ['a limit that Vertex does not take', { model: vertex('x'), tools: [search({ maxUses: 1 })] }, 'tools[0].maxUses'],
  [
    'other tools beside Gemini 2 at Vertex',
    { model: vertex('gemini-2.5-flash'), tools: [tool('a'), search()] },
    'tools[1]',
  ],
  ['a Claude at Vertex', { model: vertex('claude-sonnet-5-5'), tools: [search()] }, 'tools[0]'],
  [
    'a fallback of Vertex’s that takes no list',
    { model: azure([vertex('gemini-3.8-flash')]), tools: [search(LIST)] },
    LIST_PATH,
  ],
  [
    'a model of Bedrock’s',
    {
      model: { provider: 'bedrock', model: 'x', baseUrl: 'https://bedrock-runtime.eu-west-1.amazonaws.com' },
      tools: [search()],
    },
    'tools[0]',
  ],
])('a search with %s is refused, not weakened', async (_title, definition, path) => {
  const problem = asProblem(await call('POST', '/agents', { body: { name: 'A', ...definition } }));
  expect(problem).toMatchObject({ status: 422, code: 'tool_unsupported', errors: [{ path }] });
});

test('an agent keeps its search at its place, also where nodes of the last release read its tools', async () => {
  const webSearch = search({ allowedDomains: ['example.com', 'docs.a-b.co.uk', 'xn--bcher-kva.de'], maxUses: 5 });
  const tools = [tool('a'), webSearch, tool('b')];
  const created = await call('POST', '/agents', { body: { name: 'A', model: 'anthropic/x', tools } });
  const { agent } = created.json as { agent: { agentId: string; tools: object[]; version: number } };
  expect(agent.tools).toEqual(tools);
  const read = await call('GET', `/agents/${agent.agentId}`);
  expect((read.json as { agent: object }).agent).toMatchObject({ tools });
  const same = await call('PATCH', `/agents/${agent.agentId}`, { body: { tools } });
  expect((same.json as { agent: object }).agent).toMatchObject({ version: 1 });
  // A model without a search needs an agent without it.
  const other = await call('PATCH', `/agents/${agent.agentId}`, { body: { model: 'scripted/x' } });
  expect(asProblem(other)).toMatchObject({ status: 422, code: 'tool_unsupported' });
  const found = await call('GET', '/agents?q=web_search');
  expect((found.json as { data: object[] }).data).toMatchObject([{ agentId: agent.agentId }]);
  const [row] = await service.db.query<{ names: string[] }>(sql`
    select array(select t->>'name' from json_array_elements(definition->'tools') t) as names from agent_versions
    where agent_id = ${uuidOf('agt', agent.agentId)}`);
  expect(row!.names).toEqual(['a', 'b']);
});

test.each<[string, object]>([
  ['Azure, with a list and a limit', { model: azure(), tools: [search({ ...LIST, maxUses: 2 }), tool('a')] }],
  ['Vertex', { model: vertex('gemini-2.5-flash'), tools: [search()] }],
  ['Gemini 3 at Vertex, beside other tools', { model: vertex('gemini-3.8-flash'), tools: [search(), tool('a')] }],
  ['a fallback at Vertex', { model: azure([vertex('gemini-3.8-flash')]), tools: [search()] }],
])('an agent can have the search of %s', async (_title, definition) => {
  const created = await call('POST', '/agents', { body: { name: 'A', ...definition } });
  expect(created.status).toBe(201);
  expect((created.json as { agent: object }).agent).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ type: 'web_search' })]),
  });
});

test('a tool at an address that is not public is refused without details about the address', async () => {
  const problem = asProblem(
    await call('POST', '/agents', {
      body: { name: 'A', model: 'scripted/x', tools: [tool('a', { url: 'http://10.0.0.1/x' })] },
    }),
  );
  expect(problem).toMatchObject({ status: 422, code: 'url_not_allowed', errors: [{ path: 'tools[0].request.url' }] });
  expect(JSON.stringify(problem)).not.toContain('10.0.0.1');
});

test.each([
  ['limit=0', 'limit'],
  ['limit=101', 'limit'],
  ['limit=x', 'limit'],
  ['limit=1&limit=2', 'limit'],
  ['limit=1.5', 'limit'],
  ['limit=0x10', 'limit'],
  ['limit=%205', 'limit'],
  ['unknown=1', 'unknown'],
])('the query ?%s is a 400 that names it', async (query, path) => {
  const problem = asProblem(await call('GET', `/agents?${query}`));
  expect(problem).toMatchObject({ status: 400, errors: [{ path }] });
});

test('a time that cannot be stored is a 400 that names it', async () => {
  for (const query of ['since=0000-01-01T00:00:00Z', 'until=2016-12-31T23:59:60Z']) {
    const problem = asProblem(await call('GET', `/events?${query}`));
    expect(problem, query).toMatchObject({ status: 400, errors: [{ path: query.split('=')[0] }] });
  }
});

test('an error about the header `Last-Event-ID` names the header, and one about the cursor the cursor', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  for (const path of [`/sessions/${sessionId}/stream`, '/environments/production/stream']) {
    const refused = async (query: string, headers: Record<string, string>) => {
      const problem = asProblem(await call('GET', `${path}${query}`, { headers }));
      return [problem.code, problem.detail.split(':')[0], problem.errors?.[0]?.path];
    };
    const ofHeader = ['invalid_cursor', 'Last-Event-ID', 'Last-Event-ID'];
    expect(await refused('', { 'last-event-id': 'x' }), path).toEqual(ofHeader);
    expect((await refused('?cursor=x', {})).slice(1), path).toEqual(['cursor', 'cursor']);
  }
});

test('a missing body is a 400 if one of several shapes is required', async () => {
  await service.client.webhookSubscriptions.create({ environment: 'staging', url: 'http://127.0.0.1:1/' });
  for (const body of [{}, { raw: ' ' }]) {
    const problem = asProblem(await call('POST', '/webhook_subscriptions/staging/recover', body));
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request' });
  }
});

test.each([
  ['no shape', {}],
  ['a field that no shape has', { from: 'turn_1:seq_1' }],
  ['fields of two shapes', { since: '2026-01-31T09:30:00Z', cursor: 'turn_1:seq_1' }],
])('a body with %s is refused with all shapes', async (_title, body) => {
  expect(asProblem(await call('POST', '/webhook_subscriptions/production/recover', { body }))).toMatchObject({
    status: 400,
    detail: 'body: must be an object with "since", or with "sessionId" and "cursor"',
  });
});

describe('a PUT with the condition `If-None-Match`', () => {
  const put = (path: string, body: object, condition?: string) =>
    call('PUT', path, { body, headers: condition === undefined ? {} : { 'if-none-match': condition } });

  test.each([
    ['/budgets/conditional', { limitUsd: 1, period: 'day' }, 'budgetName: is taken by another budget'],
    [
      '/environments/production/secrets/CONDITIONAL',
      { value: 'v', allowedHosts: ['a.example'] },
      'name: is taken by another secret',
    ],
  ])('`*` only creates: %s', async (path, body, detail) => {
    expect((await put(path, body, '*')).status).toBe(200);
    const refused = asProblem(await put(path, body, ' * '));
    expect(refused).toMatchObject({ status: 412, code: 'precondition_failed', detail });
    expect((await put(path, body)).status).toBe(200);
  });

  test('of another value is a 400, because without it the request could replace', async () => {
    const refused = asProblem(await put('/budgets/etag', { limitUsd: 1, period: 'day' }, '"etag"'));
    expect(refused).toMatchObject({ status: 400, detail: 'If-None-Match: must be `*`, which only creates' });
    expect(await service.client.budgets.list()).not.toContainEqual(expect.objectContaining({ name: 'etag' }));
  });
});

test('an unknown Expect header is ignored', async () => {
  const answer = await exchange(Number(new URL(service.url).port), {
    method: 'GET',
    target: '/api/v1/me',
    headers: [
      ['Host', 'localhost'],
      ['Authorization', `Bearer ${service.adminKey}`],
      ['Expect', 'miracles'],
    ],
    isCut: false,
  });
  expect(answer).toMatchObject({ status: 200 });
});

test('for a value of several possible shapes, only the errors of the shape that was sent are reported', async () => {
  const wrong = async (path: string, body: object) => asProblem(await call('POST', path, { body })).errors;
  expect(await wrong('/agents', { name: 'A', model: 'nobody/x' })).toMatchObject([
    { path: 'model', message: expect.stringMatching(/such as "anthropic\/claude-[\w-]+"$/) },
  ]);
  expect(await wrong('/agents', { name: 'A', model: { provider: 'scripted', model: 'x', extra: 1 } })).toEqual([
    {
      path: 'model.extra',
      message: expect.stringMatching(/^is not a known field; there are provider, model, /),
    },
  ]);
  const approval = `must be "always", "never", "once", { "when": <JSON Schema> } or { "policy": …, "by": … }`;
  const tools = (more: object) => ({ name: 'A', model: 'scripted/x', tools: [{ ...tool('a'), ...more }] });
  for (const one of [true, {}, { policy: 'once', when: {} }])
    expect(await wrong('/agents', tools({ approval: one }))).toEqual([
      { path: 'tools[0].approval', message: approval },
    ]);
  const server = { type: 'mcp', name: 'a', url: 'https://a.example', approval: { find: true } };
  expect(await wrong('/agents', { ...tools({}), tools: [server] })).toEqual([
    { path: 'tools[0].approval.find', message: approval },
  ]);
  const session = { agentId: 'agt_00000000000000000000000000', environment: 'production' };
  const part = '{ "type": "text", "text": "Hello" }';
  expect(await wrong('/sessions', { ...session, input: [{ role: 'user', content: 'Hello' }] })).toEqual([
    { path: 'input[0]', message: `must be a part of a user message, such as ${part}` },
  ]);
  expect(await wrong('/sessions', { ...session, input: { role: 'user', content: 'Hello' } })).toEqual([
    { path: 'input', message: `must be a text, or a list of parts such as [${part}]` },
  ]);
  expect(await wrong('/sessions', { ...session, input: [] })).toMatchObject([
    { path: 'input', message: expect.stringContaining('at least 1 item') },
  ]);
  expect(await wrong('/sessions', { ...session, input: 'x', agentVersion: 2 ** 31 })).toMatchObject([
    { path: 'agentVersion' },
  ]);
});

test('a body that is not JSON, not UTF-8, too large or of another type is refused with its own code', async () => {
  expect(asProblem(await call('POST', '/api_keys', { raw: '{"name":' })).code).toBe('invalid_request');
  expect(asProblem(await call('POST', '/api_keys', { raw: new Uint8Array([0x22, 0xff, 0x22]) })).code).toBe(
    'invalid_request',
  );
  expect(asProblem(await call('POST', '/api_keys', { raw: '{"__proto__":{"x":1}}' })).code).toBe('invalid_request');
  expect(asProblem(await call('POST', '/api_keys', { raw: `"${'x'.repeat(1024 * 1024)}"` })).status).toBe(413);
  const form = await call('POST', '/api_keys', {
    raw: 'a=1',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  expect(asProblem(form)).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  expect(asProblem(await call('POST', '/api_keys', { raw: '['.repeat(100_000) })).status).toBe(400);
});

test.each([
  ['JSON', '/api_keys', { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
  ['JSON in several steps', '/api_keys', { 'content-type': 'application/json', 'content-encoding': 'identity, br' }],
  ['a file', '/files?environment=production', { 'content-type': 'text/plain', 'content-encoding': 'GZIP' }],
  ['a body of the console', '', { 'content-type': 'application/json', 'content-encoding': 'deflate' }],
])('a compressed body is refused before it is read: %s', async (_title, path, headers) => {
  const target = path || `${service.url}/console/api/sign_in`;
  const raw = gzipSync(JSON.stringify(key));
  const response = await call('POST', target, { raw, headers: { ...headers, origin: service.url } });
  expect(asProblem(response)).toMatchObject({
    status: 415,
    code: 'unsupported_media_type',
    detail: 'Send the body as it is, without `Content-Encoding`.',
  });
  expect(response.headers.get('accept-encoding')).toBe('identity');
});

test('the coding `identity`, and a coding of no body, are no reason to refuse', async () => {
  const identity = await call('POST', '/api_keys', { body: key, headers: { 'content-encoding': 'Identity' } });
  expect(identity.status).toBe(201);
  expect((await call('GET', '/me', { headers: { 'content-encoding': 'gzip' } })).status).toBe(200);
});

describe('a client that waits for `100 Continue`', () => {
  /** The status, and whether the client was asked for its body before. */
  async function expecting(path: string, headers: Record<string, string | number>, body = ''): Promise<unknown[]> {
    const request = httpRequest(`${service.url}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.adminKey}`, expect: '100-continue', ...headers },
    });
    let isAsked = false;
    request.on('continue', () => {
      isAsked = true;
      request.end(body);
    });
    request.flushHeaders();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    for await (const _ of response);
    request.destroy();
    return [response.statusCode, isAsked];
  }
  const json = { 'content-type': 'application/json' };
  const body = JSON.stringify(key);

  test.each<[string, number, string, Record<string, string | number>]>([
    ['a body that is too large', 413, '/api_keys', { ...json, 'content-length': 1024 * 1024 + 1 }],
    ['a file that is too large', 413, '/files?environment=production', { 'content-length': 32 * 1024 * 1024 + 1 }],
    ['a file of an unknown environment', 400, '/files?environment=Nowhere', { 'content-length': 9 }],
    ['another content type', 415, '/api_keys', { 'content-type': 'text/plain', 'content-length': 9 }],
    ['a compressed body', 415, '/api_keys', { ...json, 'content-length': 9, 'content-encoding': 'gzip' }],
    ['an unknown caller', 401, '/api_keys', { ...json, 'content-length': 9, authorization: 'Bearer x' }],
    ['a path that does not exist', 404, '/nowhere', { ...json, 'content-length': 9 }],
  ])('is refused at once for %s', async (_title, status, path, headers) => {
    expect(await expecting(path, headers)).toEqual([status, false]);
  });

  test('is asked for the body otherwise', async () => {
    const length = { 'content-length': body.length };
    expect(await expecting('/api_keys', { ...json, ...length }, body)).toEqual([201, true]);
    expect(await expecting('/files?environment=production', length, body)).toEqual([201, true]);
  });

  test('gets no `100 Continue` after a response', async () => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    socket.write('POST /api/v1/nowhere HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n');
    await once(socket, 'close');
    expect(received).toMatch(/^HTTP\/1\.1 404 /);
    expect(received).not.toContain('100 Continue');
  });
});

test('an empty body with a JSON content type counts as no body', async () => {
  const created = await call('POST', '/api_keys', { body: key });
  const rotated = await call('POST', `/api_keys/${created.json.apiKey.keyId}/rotate`, {
    raw: '',
    headers: { 'content-type': 'application/json' },
  });
  expect(rotated.status).toBe(200);
  expect(asProblem(await call('POST', '/api_keys', { raw: '' })).code).toBe('invalid_request');
});

test('checks run in an order that reveals nothing to strangers', async () => {
  const nowhere = await send(service.url, 'GET', '/nowhere');
  expect(asProblem(nowhere).code).toBe('not_found');
  expect(asProblem(await send(service.url, 'PUT', '/api_keys')).code).toBe('method_not_allowed');
  const unknown = await send(service.url, 'POST', '/api_keys', { raw: 'x', headers: { 'content-type': 'text/plain' } });
  expect(asProblem(unknown).code).toBe('missing_token');
  const reader = (await call('POST', '/api_keys', { body: key })).json.apiKey.secret;
  const forbidden = await send(service.url, 'POST', '/api_keys', {
    key: reader,
    raw: 'x',
    headers: { 'content-type': 'text/plain' },
  });
  expect(asProblem(forbidden).code).toBe('insufficient_permission');
});

test('an unknown path is a 404, whatever its form; a malformed URL is a 400', async () => {
  for (const path of [
    '/api_keys/key_00000000000000000000000000',
    '/api_keys/nonsense',
    '/agents/ses_x',
    `/agents/agt_${'x'.repeat(1000)}`,
    '/sessions/%00',
    '/environments/NOT/secrets',
  ]) {
    expect(asProblem(await call('GET', path)).code, path).toBe('not_found');
  }
  expect(asProblem(await call('GET', '/agents/%zz')).status).toBe(400);
  const put = await call('PUT', '/environments/production/secrets/lower', {
    body: { value: 'x', allowedHosts: ['a.example'] },
  });
  expect(asProblem(put)).toMatchObject({ status: 400, errors: [{ path: 'name' }] });
});

test('the refusal of a request that no route takes says what is wrong with its path or method', async () => {
  const detailOf = async (method: string, path: string) => {
    const response = await call(method, path);
    const { status, detail } = asProblem(response);
    return [status, detail, response.headers.get('allow')];
  };
  expect(await detailOf('PUT', '/sessions')).toEqual([
    405,
    'There is no route PUT /api/v1/sessions: this path takes GET, HEAD, POST.',
    'GET, HEAD, POST',
  ]);
  expect(await detailOf('GET', '/sessions/ses_x/cancel')).toEqual([405, expect.anything(), 'POST']);
  expect(await detailOf('GET', '/agents/')).toEqual([404, expect.stringMatching(/slash at its end/), null]);
  expect(await detailOf('GET', '/nowhere/')).toEqual([404, expect.stringMatching(/slash at its end/), null]);
  expect(await detailOf('GET', `${service.url}/api/v2/agents`)).toEqual([
    404,
    expect.stringContaining('begin with /api/v1/'),
    null,
  ]);
  expect(await detailOf('GET', '/sessions/agt_x')).toEqual([
    404,
    expect.stringContaining('Not found: sessionId must look like "ses_'),
    null,
  ]);
  expect(await detailOf('GET', '/agents/Greeter')).toEqual([
    404,
    expect.stringContaining('Not found: agentId must look like "agt_'),
    null,
  ]);
});

test('only the webhook paths work without the prefix as well', async () => {
  const prefixed = await call('GET', '/webhook_subscriptions');
  const bare = await call('GET', `${service.url}/webhook_subscriptions`);
  expect(bare.json).toEqual(prefixed.json);
  expect(bare.status).toBe(200);
  expect((await call('GET', `${service.url}/agents`)).status).toBe(404);
});

test('the pages next to the API need no key', async () => {
  for (const path of ['/healthz', '/readyz', '/api/v1/openapi.json', '/openapi.json', '/llms.txt']) {
    expect((await send(service.url, 'GET', `${service.url}${path}`)).status, path).toBe(200);
  }
});

test('HEAD responds to every path as GET does, without a body; for a stream with the headers only', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const { fileId } = await service.client.files.upload(new TextEncoder().encode('text'), { environment: 'production' });
  const ids: Record<string, string> = { agentId, sessionId, fileId, env: 'production' };
  const gets = Object.values<Route>(routes).filter(({ method }) => method === 'GET');
  const paths = gets.map(({ path, stream }) => ({
    path: `/api/v1${path.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name] ?? 'none')}`,
    stream,
  }));
  const beside = [
    '/healthz',
    '/readyz',
    '/metrics',
    '/docs',
    '/api/v1/openapi.json',
    '/llms.txt',
    '/console',
    '/console/api/account',
  ];
  const kinds = (answer: RawResponse) =>
    ['content-type', 'content-length', 'cache-control'].map((name) => answer.headers.get(name));
  for (const { path, stream } of [...paths, ...beside.map((path) => ({ path, stream: undefined }))]) {
    const head = await call('HEAD', service.url + path);
    expect(head.text, path).toBe('');
    if (stream) {
      expect(head.status, path).toBe(200);
      expect(head.headers.get('content-type'), path).toMatch(/event-stream|jsonl|text\/plain/);
      continue;
    }
    const get = await call('GET', service.url + path);
    expect([head.status, path === '/metrics' || kinds(head)], path).toEqual([
      get.status,
      path === '/metrics' || kinds(get),
    ]);
  }
  expect((await send(service.url, 'HEAD', '/agents')).status).toBe(401);
  expect((await call('HEAD', `/sessions/${sessionId}/close`)).status).toBe(405);
});

test('an impossible asset path of the console is a 404, and no error is logged', async () => {
  const consoleDir = await mkdtemp(join(tmpdir(), 'signalbox-console-'));
  await mkdir(join(consoleDir, 'assets'));
  await writeFile(join(consoleDir, 'index.html'), '<!doctype html>');
  const own = await startTestService({ consoleDir });
  const names = ['..%5c..%5cx', '..%2f..%2fx', '%2e%2e%2fx', '.env', 'a%00b', '%00', 'x/', '%5c', '~', 'a%0ab'];
  const answers = await Promise.all(names.map((name) => send(own.url, 'GET', `${own.url}/console/assets/${name}`)));
  const statuses = answers.map(({ status }, index) => [names[index], status]);
  expect(statuses.filter(([, status]) => status !== 404)).toEqual([]);
  const errors = own.logLines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
  expect(errors).toEqual([]);
  await own.stop();
  await rm(consoleDir, { recursive: true });
});
