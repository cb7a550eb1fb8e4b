import { once } from 'node:events';
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { McpTool, ToolApproval } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { setSecret } from '../../src/environments/secrets.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createMcpTools, type McpTools } from '../../src/tools/mcp/mcp-tools.ts';
import type { ToolOutcome, ToolOwner, ToolRun, TurnTool } from '../../src/tools/tool/tool.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const SECRET = 'sk/4711 "x"';
/** The outcome of a call that was sent and has an unknown effect. */
const unknown = (words: string) => ({ error: `${words} The request may have taken effect.`, outcomeUnknown: true });
const clock = createManualClock();
const never = new AbortController().signal;

let base: TestPlatform;
let server: McpTestServer;
let tools: McpTools;
let owner: ToolOwner;

beforeAll(async () => {
  base = await createTestPlatform({ clock });
});
afterAll(() => base.close());

let warned: object[];

beforeEach(async () => {
  server = await startMcpServer({ tools: [look] });
  warned = [];
  const log = { warn: (fields: object) => warned.push(fields) } as unknown as TestPlatform['platform']['log'];
  tools = createMcpTools({ ...base.platform, log });
  owner = { organizationId: base.organizationId, environment: 'production', endUser: null };
});
afterEach(async () => {
  await tools.close();
  await server.close();
});

const look = { name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: { at: {} } } };
const mcp = (more: Partial<McpTool> = {}): McpTool => ({ type: 'mcp', name: 'crm', url: server.url, ...more });
const withToken = (): Partial<McpTool> => ({ headers: { Authorization: 'Bearer {{secrets.TOKEN}}' } });

function setToken(allowedHosts = [server.host], value = SECRET) {
  return setSecret(base.ctx, { env: 'production', name: 'TOKEN', value, allowedHosts });
}

const list = (more: Partial<McpTool> = {}, signal = never) => tools.list(owner, mcp(more), signal);

/** The tools; fails the test if they can't be listed. */
async function listed(more: Partial<McpTool> = {}): Promise<TurnTool[]> {
  const found = await list(more);
  return typeof found === 'string' ? expect.unreachable(found) : found;
}

function runOf(more: Partial<McpTool> = {}, run: Partial<ToolRun> = {}): ToolRun {
  const tool: TurnTool = {
    name: 'crm__look',
    description: '',
    inputSchema: { type: 'object' },
    approval: 'never',
    by: null,
    repeatable: true,
    runsAs: 'here',
    source: mcp(more),
    remoteName: 'look',
  };
  return { ...owner, tool, input: { at: 1 }, operationId: 'op_1', ...run };
}

const call = (more: Partial<McpTool> = {}, run: Partial<ToolRun> = {}, signal = never): Promise<ToolOutcome> =>
  tools.run(runOf(more, run), signal);

describe('the list', () => {
  test('has each tool with its server’s name as prefix, and requires approval by default unless it only reads', async () => {
    server.tools = [
      { ...look, annotations: { readOnlyHint: true } },
      { name: 'book', inputSchema: { type: 'object' }, annotations: { idempotentHint: true } },
      { name: 'pay', title: 'Pays.', inputSchema: { type: 'object' }, annotations: { readOnlyHint: 'yes' } },
    ];
    expect(await list()).toEqual([
      expect.objectContaining({ name: 'crm__book', approval: 'always', repeatable: true }),
      {
        name: 'crm__look',
        description: 'Looks.',
        inputSchema: look.inputSchema,
        approval: 'never',
        by: null,
        repeatable: true,
        runsAs: 'here',
        source: mcp(),
        remoteName: 'look',
      },
      expect.objectContaining({ name: 'crm__pay', description: 'Pays.', approval: 'always', repeatable: false }),
    ]);
  });

  test('is in the order of the tools’ names, whatever the server’s order is', async () => {
    const names = ['b', 'a', 'B', 'a2', 'a1'];
    server.tools = names.map((name) => ({ ...look, name }));
    const expected = ['crm__B', 'crm__a', 'crm__a1', 'crm__a2', 'crm__b'];
    expect((await listed()).map(({ name }) => name)).toEqual(expected);
    server.tools.reverse();
    expect((await listed()).map(({ name }) => name)).toEqual(expected);
  });

  test('has one approval policy for all tools, or one for each by the server’s own name', async () => {
    server.tools = ['look', 'constructor', '__proto__'].map((name) => ({ ...look, name }));
    const policies = async (approval: McpTool['approval']) =>
      (await listed(approval === undefined ? {} : { approval })).map((tool) => tool.approval);
    // In the order of the names: __proto__, constructor, look.
    expect(await policies('once')).toEqual(['once', 'once', 'once']);
    expect(await policies({ when: { required: ['at'] } })).toEqual(Array(3).fill({ when: { required: ['at'] } }));
    expect(await policies({ look: 'never' })).toEqual(['always', 'always', 'never']);
    expect(await policies(JSON.parse('{"__proto__":"never"}'))).toEqual(['never', 'always', 'always']);
  });

  describe('of a server without a tool that the agent names', () => {
    const reader = { ...look, name: 'delete_user', annotations: { readOnlyHint: true } };
    const problem = (wrong: string, existing: string) =>
      `The agent’s approval names tools that the server does not have: ${wrong}. It has: ${existing}.`;

    test.each<[string, Record<string, ToolApproval>]>([
      ['a policy', { delete_users: 'always' }],
      ['a rule', { delete_users: { when: { required: ['at'] } } }],
      ['approvers', { delete_users: { policy: 'once', by: { roles: ['admin'] } } }],
    ])('is refused if the name has %s, even if the name is not allowed', async (_title, approval) => {
      server.tools = [reader, look];
      const expected = problem('"delete_users"', '"delete_user", "look"');
      expect(await list({ approval: { look: 'never', ...approval } })).toBe(expected);
      expect(await list({ approval, allowedTools: ['look'] })).toBe(expected);
    });

    test('is offered again once the server has the tool, and no more after it was removed', async () => {
      const approval = { delete_user: 'always' } as const;
      server.tools = [];
      expect(await list({ approval })).toBe(problem('"delete_user"', 'no tools'));
      server.tools = [reader];
      expect(await list({ approval })).toMatchObject([{ approval: 'always' }]);
      server.tools = [{ ...reader, name: 'remove_user' }];
      await clock.advance(60_000);
      expect(await list({ approval })).toBe(problem('"delete_user"', '"remove_user"'));
    });

    test('is offered if the name is only allowed, or needs no approval; the log names it', async () => {
      server.tools = [look];
      const harmless: Partial<McpTool> = {
        allowedTools: ['look', 'hook'],
        approval: { look: 'once', hook: 'never', book: 'never' },
      };
      expect(await list(harmless)).toMatchObject([{ remoteName: 'look', approval: 'once' }]);
      const why = 'is not a tool of the server';
      expect(warned).toMatchObject([{ count: 2, tools: [`"hook" ${why}`, `"book" ${why}`] }]);
    });

    test('is offered if the tool is left out: a call of it is not possible', async () => {
      server.tools = [look, { ...reader, inputSchema: { type: 'array' } }];
      expect(await list({ approval: { delete_user: 'always' } })).toMatchObject([{ remoteName: 'look' }]);
    });

    test('is described in a limited text without secrets', async () => {
      await setToken();
      server.tools = Array.from({ length: 100 }, (_, at) => ({ ...look, name: `${SECRET}${'x'.repeat(150)}${at}` }));
      const names = Array.from({ length: 100 }, (_, at) => `${'y'.repeat(190)}${at}`);
      const reason = await list({ ...withToken(), approval: Object.fromEntries(names.map((one) => [one, 'always'])) });
      expect(reason).toMatch(/^The agent’s .* and 80 more\. It has: "\[secret TOKEN\]x+", .* and 80 more\.$/);
      expect(reason.length).toBeLessThan(3000);
      expect(reason).not.toContain('4711');
    });
  });

  describe('of a server whose tools do not fit the rules of the agent', () => {
    const pay = {
      name: 'pay',
      inputSchema: { type: 'object', properties: { cents: { type: 'integer' }, to: { type: 'string' } } },
      annotations: { readOnlyHint: true },
    };
    const above = (property: string) => ({ when: { properties: { [property]: { minimum: 5000 } } } });
    const misfit = (tool: string, what: string) => `The agent’s approval of "${tool}" does not fit the tool: ${what}`;

    test.each<[string, ToolApproval, string]>([
      ['a property', above('cent'), 'properties.cent is not in the inputSchema. Did you mean "cents"?'],
      [
        'a value',
        { policy: above('to'), by: { roles: ['admin'] } },
        'properties.to.minimum has no effect: the inputSchema says "string" here',
      ],
    ])('is refused if a rule is about %s that its tool does not have', async (_title, approval, what) => {
      server.tools = [look, pay];
      expect(await list({ approval: { pay: approval } })).toBe(misfit('pay', what));
      expect(await list({ approval: { pay: approval }, allowedTools: ['look'] })).toMatchObject([
        { remoteName: 'look' },
      ]);
    });

    test('is offered until the server renames the property', async () => {
      server.tools = [pay];
      expect(await list({ approval: { pay: above('cents') } })).toMatchObject([{ approval: above('cents') }]);
      server.tools = [{ ...pay, inputSchema: { type: 'object', properties: { euros: { type: 'number' } } } }];
      await clock.advance(60_000);
      const what = 'properties.cents is not in the inputSchema, which has "euros" here';
      expect(await list({ approval: { pay: above('cents') } })).toBe(misfit('pay', what));
    });

    test('is offered if the server does not describe what the rule is about', async () => {
      server.tools = [
        { ...pay, inputSchema: { type: 'object', properties: { order: { type: 'object' } } } },
        { ...look, inputSchema: { type: 'object' } },
      ];
      const inOrder = { when: { properties: { order: { required: ['cents'] } } } };
      expect(await list({ approval: { pay: inOrder, look: above('cents') } })).toHaveLength(2);
    });

    test('is offered if each part of a rule for all tools fits one of them', async () => {
      server.tools = [pay, look, { name: 'ping', inputSchema: { type: 'object' } }];
      expect(await list({ approval: { when: { anyOf: [above('cents').when, { required: ['at'] }] } } })).toHaveLength(
        3,
      );
      expect(await list({ approval: above('cent') })).toBe(
        'The agent’s approval fits none of the server’s tools. For "pay": properties.cent is not in the inputSchema. Did you mean "cents"?',
      );
    });

    test('is described in a limited text without secrets', async () => {
      await setToken();
      const names = Array.from({ length: 50 }, (_, at) => [`${SECRET}${'x'.repeat(150)}${at}`, {}]);
      server.tools = [{ ...pay, inputSchema: { type: 'object', properties: Object.fromEntries(names) } }];
      const reason = await list({ ...withToken(), approval: { pay: above('cents') } });
      expect(reason).toContain('"[secret TOKEN]xxx');
      expect(reason.length).toBeLessThan(1200);
      expect(reason).not.toContain('4711');
    });
  });

  test('contains the tools of all pages', async () => {
    server.on('tools/list', ({ message, result }) => {
      const page = Number(message.params?.cursor ?? 0);
      result({ tools: [{ ...look, name: `t${page}` }], ...(page < 2 && { nextCursor: String(page + 1) }) });
    });
    expect((await listed()).map(({ name }) => name)).toEqual(['crm__t0', 'crm__t1', 'crm__t2']);
  });

  test('contains only the tools that the agent allows, by the server’s own names', async () => {
    server.tools = ['a.b', 'c', 'd'].map((name) => ({ ...look, name }));
    expect((await listed({ allowedTools: ['c', 'a.b', 'e'] })).map(({ remoteName }) => remoteName)).toEqual([
      'a.b',
      'c',
    ]);
  });

  test('changes names that are not allowed for models, independently of the order', async () => {
    const names = ['a.b', 'a_b', 'a/b', 'größe', 'x'.repeat(100), `${'x'.repeat(99)}y`];
    const nameOf = async (remote: string[]) => {
      server.tools = remote.map((name) => ({ ...look, name }));
      await clock.advance(60_000);
      return Object.fromEntries((await listed()).map((tool) => [tool.remoteName, tool.name]));
    };
    const fitted = await nameOf(names);
    expect(fitted).toEqual({
      a_b: 'crm__a_b',
      'a.b': expect.stringMatching(/^crm__a_b_[0-9a-f]{8}$/),
      'a/b': expect.stringMatching(/^crm__a_b_[0-9a-f]{8}$/),
      größe: 'crm__gr__e',
      ['x'.repeat(100)]: expect.stringMatching(/^crm__x{50}_[0-9a-f]{8}$/),
      [`${'x'.repeat(99)}y`]: expect.stringMatching(/^crm__x{50}_[0-9a-f]{8}$/),
    });
    expect(new Set(Object.values(fitted)).size).toBe(names.length);
    expect(await nameOf(names.toReversed())).toEqual(fitted);
  });

  test('has no name twice, even if the server names a tool like the digest of another', async () => {
    server.tools = ['a.b', 'a_b', 'a_b_2e7336dc'].map((name) => ({ ...look, name }));
    expect((await listed()).map(({ name, remoteName }) => [name, remoteName])).toEqual([
      ['crm__a_b_2e7336dc', 'a.b'],
      ['crm__a_b', 'a_b'],
    ]);
  });

  test('leaves out tools that can’t be offered, and keeps the rest', async () => {
    const cyclic = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' };
    server.tools = [
      { ...look, description: 'the first' },
      { ...look, description: 'the second' },
      { ...look, name: 'a\u0000b' },
      { ...look, name: 'a\nb' },
      { ...look, name: '\ud800' },
      { ...look, name: '' },
      { ...look, name: 'x'.repeat(201) },
      { ...look, name: 7 },
      null,
      'look',
      { ...look, name: 'cyclic', inputSchema: cyclic },
      { ...look, name: 'nowhere', inputSchema: { type: 'object', properties: { a: { $ref: '#/nowhere' } } } },
      { ...look, name: 'broken', inputSchema: { type: 'object', properties: { a: { type: 7 } } } },
      { ...look, name: 'pattern', inputSchema: { type: 'object', properties: { a: { pattern: '(' } } } },
      { ...look, name: 'array', inputSchema: { type: 'array' } },
      { ...look, name: 'huge', inputSchema: { type: 'object', description: 'x'.repeat(200_000) } },
      { ...look, name: 'task', execution: { taskSupport: 'required' } },
      { name: 'bare' },
    ];
    expect((await listed()).map(({ name, description }) => [name, description])).toEqual([
      ['crm__bare', ''],
      ['crm__look', 'the first'],
    ]);
  });

  test('cuts descriptions to the limit for the agent’s own tools', async () => {
    server.tools = [{ ...look, description: 'x'.repeat(500_000) }];
    const [tool] = await listed();
    expect(tool?.description).toBe(`${'x'.repeat(3999)}…`);
  });

  test('is empty if the server has no tools', async () => {
    server.on('initialize', ({ result }) =>
      result({ protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'test', version: '1' } }),
    );
    expect(await list()).toEqual([]);
  });

  test('is requested once a minute, by a client that then ends its session', async () => {
    const gone = server.next('DELETE');
    await Promise.all([list(), list(), list()]);
    await gone;
    await clock.advance(59_999);
    await list();
    expect(server.of('tools/list')).toHaveLength(1);
    await clock.advance(1);
    await list();
    expect(server.of('tools/list')).toHaveLength(2);
    expect(server.of('server/discover')).toHaveLength(2);
  });

  test('and the connection are not shared with another end user, if the requests name the end user', async () => {
    const headers = { 'X-User': '{{session.endUser.id}}' };
    const users = ['a', 'b', 'a'].map((id) => ({ ...owner, endUser: { id } }));
    for (const user of users) {
      expect(await tools.list(user, mcp({ headers }), never)).toHaveLength(1);
      await call({ headers }, { ...user, sessionId: 'ses_1' });
    }
    const seen = (method: string) => server.of(method).map((received) => received.headers['x-user']);
    expect(seen('tools/list')).toEqual(['a', 'b']);
    expect(seen('tools/call')).toEqual(['a', 'b', 'a']);
    expect(seen('initialize').toSorted()).toEqual(['a', 'a', 'b', 'b']);
    expect(await tools.list(owner, mcp({ headers }), never)).toContain('the session has no end user');
  });

  test('is not shared with another environment, other settings of an agent or another secret', async () => {
    await setToken();
    await list(withToken());
    await list({ ...withToken(), allowedTools: ['look'] });
    await setToken([server.host], 'another');
    await list(withToken());
    owner = { ...owner, environment: 'staging' };
    await list();
    expect(server.of('tools/list').map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${SECRET}`,
      `Bearer ${SECRET}`,
      'Bearer another',
      undefined,
    ]);
  });

  test('is requested again after a failure', async () => {
    server.on('tools/list', ({ error }) => error(-32603, 'not now'));
    expect(await list()).toBe('The server refused the request: not now (-32603).');
    server.on('tools/list', ({ result }) => result({ tools: [look] }));
    expect(await list()).toHaveLength(1);
  });

  test('of a server that hangs delays one turn per minute, and no others', async () => {
    const words = 'The response did not arrive in time.';
    const arrived = server.next('tools/list');
    server.on('tools/list', () => {});
    const first = list();
    await arrived;
    await clock.advance(14_000);
    const second = list();
    await clock.advance(1_000);
    expect([await first, await second]).toEqual([words, words]);
    await clock.advance(59_999);
    expect(await list()).toBe(words);
    expect(server.of('tools/list')).toHaveLength(1);
    server.on('tools/list', ({ result }) => result({ tools: [look] }));
    await clock.advance(1);
    expect(await list()).toHaveLength(1);
  });

  test.each<[string, Parameters<McpTestServer['on']>[1], string]>([
    ['not a list', ({ result }) => result({ tools: 'all' }), 'the list of tools is not a list'],
    ['no result', ({ result }) => result({}), 'the list of tools is not a list'],
    [
      'an endless number of pages',
      ({ message, result }) => result({ tools: [], nextCursor: `${message.params?.cursor ?? ''}x` }),
      'the list of tools has more than 32 pages',
    ],
    [
      'too many tools',
      ({ result }) => result({ tools: Array.from({ length: 2001 }, (_, index) => ({ name: `t${index}` })) }),
      'it lists more than 2000 tools',
    ],
    [
      'more tools than a model can choose among',
      ({ result }) => result({ tools: Array.from({ length: 201 }, (_, index) => ({ name: `t${index}` })) }),
      'it offers more than 200 tools; use allowedTools to select some',
    ],
    [
      'a page that is too long',
      ({ result }) => result({ tools: [{ ...look, description: 'x'.repeat(1024 * 1024) }] }),
      'it is longer than 1048576 bytes, so it was not read',
    ],
    [
      'schemas that together are too long',
      ({ message, result }) => {
        const page = Number(message.params?.cursor ?? 0);
        const inputSchema = { type: 'object', description: 'x'.repeat(120_000) };
        const tools = Array.from({ length: 5 }, (_, index) => ({ name: `t${page}-${index}`, inputSchema }));
        result({ tools, ...(page < 2 && { nextCursor: String(page + 1) }) });
      },
      'the descriptions and schemas of the tools have more than 1048576 bytes; use allowedTools to select some',
    ],
    [
      'one schema after another that can’t be evaluated',
      ({ result }) => {
        const properties = { a: { $ref: '#/nowhere' } };
        result({
          tools: Array.from({ length: 50 }, (_, index) => ({ name: `t${index}`, inputSchema: { properties } })),
        });
      },
      'more than 10 tools have schemas that can’t be evaluated',
    ],
    [
      'JSON that is nested too deeply',
      ({ response }) => {
        const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
        response.setHeader('content-type', 'application/json');
        response.end(`{"jsonrpc":"2.0","id":1,"result":{"tools":${deep}}}`);
      },
      'it is not JSON, or nested too deeply',
    ],
    ['an HTML page', ({ response }) => html(response), 'it is neither JSON nor an event stream (HTTP 200)'],
    ['nothing', ({ response }) => response.writeHead(202).end(), 'it is neither JSON nor an event stream (HTTP 202)'],
    ['something else', ({ response }) => response.writeHead(304).end(), 'it has the status 304'],
  ])('that is %s is refused', async (_title, handler, problem) => {
    server.on('tools/list', handler);
    expect(await list()).toBe(`The server’s response can’t be used: ${problem}.`);
  });
});

function html(response: import('node:http').ServerResponse) {
  response.setHeader('content-type', 'text/html').end('<h1>Welcome</h1>');
}

const SSE =
  'The server speaks the older SSE transport, which is not supported. Use its address for streamable HTTP, often /mcp instead of /sse.';
const wants = (what: string, challenge: string) =>
  `The server wants ${what} with WWW-Authenticate: ${challenge}. Signing in is not supported: set a valid token in the “headers” of the tool, such as "Authorization": "Bearer {{secrets.NAME}}".`;

describe('a server that can’t be connected to', () => {
  test.each<[string, Parameters<McpTestServer['on']>[1], string]>([
    [
      'responds with an HTML page',
      ({ response }) => html(response),
      'The server’s response can’t be used: it is neither JSON nor an event stream (HTTP 200).',
    ],
    ['wants a credential', ({ response }) => response.writeHead(401).end('who are you?'), 'HTTP 401: who are you?'],
    ['fails', ({ response }) => response.writeHead(500).end(), 'HTTP 500'],
    [
      'redirects to another host',
      ({ response }) => response.writeHead(308, { location: 'https://crm.example.com/mcp?token=1' }).end(),
      'HTTP 308: the server redirects to https://crm.example.com/mcp, and redirects to another host are not followed. If that is the right address, use it as the URL.',
    ],
    [
      'redirects to a page where a person signs in',
      ({ response }) => response.writeHead(303, { location: '/login' }).end(),
      `HTTP 303: the server redirects to HOST/login, and redirects of this kind are not followed. If that is the right address, use it as the URL.`,
    ],
    [
      'wants OAuth',
      ({ response }) => response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://a/b"' }).end(),
      wants('OAuth: HTTP 401', 'Bearer resource_metadata="https://a/b"'),
    ],
    [
      'wants a token with another scope',
      ({ response }) =>
        response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }).end('{"error":1}'),
      `${wants('OAuth: HTTP 403', 'Bearer error="insufficient_scope"')} The response: {"error":1}`,
    ],
    [
      'wants a password',
      ({ response }) => response.writeHead(401, { 'www-authenticate': 'Basic realm="a"' }).end(),
      wants('a credential: HTTP 401', 'Basic realm="a"'),
    ],
    ...[400, 404, 405].map((status): [string, Parameters<McpTestServer['on']>[1], string] => [
      `speaks the older transport (${status})`,
      ({ response }) => {
        response.writeHead(status).end();
        server.on('GET', ({ response, stream }) => {
          stream();
          response.write(': hello\n\nevent: endpoint\ndata: /messages?sessionId=1\n\n');
        });
      },
      SSE,
    ]),
    [
      'has only a stream of events',
      ({ response }) => {
        response.writeHead(405).end('no');
        server.on('GET', ({ send, stream, response }) => {
          stream();
          send({ method: 'notifications/message', params: {} });
          response.end();
        });
      },
      'HTTP 405: no',
    ],
    [
      'speaks another protocol',
      ({ result }) =>
        result({ protocolVersion: '1999-01-01', capabilities: {}, serverInfo: { name: 'a', version: '1' } }),
      'The server’s response can’t be used: it does not follow the protocol.',
    ],
    [
      'breaks off',
      ({ request }) => request.socket.resetAndDestroy(),
      'The connection was closed before the response was complete.',
    ],
  ])('because it %s is not listed, and a call fails with the reason', async (_title, handler, words) => {
    for (const method of ['initialize', 'server/discover']) server.on(method, handler);
    const error = words.replace('HOST', `http://${server.host}`);
    expect(await list()).toBe(error);
    expect(await call()).toEqual({ error });
    expect(server.of('tools/call')).toEqual([]);
  });

  test.each<[string, string, Parameters<McpTestServer['on']>[1]]>([
    ['hangs', 'server/discover', () => {}],
    ['hangs', 'initialize', () => {}],
    [
      'stalls during its response',
      'initialize',
      ({ response }) => response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc"'),
    ],
  ])('because it %s at %s times out', async (_title, method, handler) => {
    server.on(method, handler);
    const words = 'The response did not arrive in time.';
    let arrived = server.next(method);
    const tools = list();
    await arrived;
    await clock.advance(15_000);
    expect(await tools).toBe(words);
    arrived = server.next(method);
    const outcome = call();
    await arrived;
    await clock.advance(30_000);
    expect(await outcome).toEqual({ error: words });
    expect(server.of('tools/call')).toEqual([]);
  });

  test('because no server is listening is an error', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as { port: number };
    closed.close();
    await once(closed, 'close');
    const url = `http://127.0.0.1:${port}/mcp`;
    expect(await list({ url })).toBe('The host could not be connected to (ECONNREFUSED).');
    expect(await call({ url })).toEqual({ error: 'The host could not be connected to (ECONNREFUSED).' });
  });

  test('because its address is not allowed is an error without the address', async () => {
    const url = 'http://169.254.169.254/mcp';
    expect(await list({ url })).toBe('The destination is not allowed.');
    expect(await call({ url })).toEqual({ error: 'The destination is not allowed.' });
  });

  test.each(['server/discover', 'initialize', 'tools/list'])(
    'because it hangs at %s does not delay the stop of a turn',
    async (method) => {
      const reason = new Error('interrupted');
      const arrived = server.next(method);
      server.on(method, () => {});
      const abort = new AbortController();
      const found = list({}, abort.signal);
      await arrived;
      abort.abort(reason);
      await expect(found).rejects.toBe(reason);
    },
  );

  test('is not called if the turn is stopped before', async () => {
    const reason = new Error('interrupted');
    await expect(list({}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(server.received).toEqual([]);
  });
});

describe('a redirect within the server', () => {
  test.each([
    [307, '/mcp/'],
    [308, 'mcp/'],
    [301, 'http://HOST/mcp/'],
    [302, '/b/mcp?a=1'],
  ])('(%i to %s) is followed with the method, the body and the headers, once for a connection', async (status, to) => {
    await setToken();
    server.redirects.set('/mcp', [status, to.replace('HOST', server.host)]);
    const ended = server.next('DELETE');
    expect(await listed(withToken())).toHaveLength(1);
    await ended;
    expect(await call(withToken(), { sessionId: 'ses_1' })).toEqual({ output: '{"at":1}' });
    expect(await call(withToken(), { sessionId: 'ses_1' })).toEqual({ output: '{"at":1}' });
    const redirected = server.received.filter(({ path }) => path === '/mcp');
    expect(redirected).toHaveLength(2);
    expect(server.received.every(({ headers }) => headers.authorization === `Bearer ${SECRET}`)).toBe(true);
    expect(server.of('tools/call')).toHaveLength(2);
  });

  test('in a circle ends', async () => {
    server.redirects.set('/mcp', [307, '/mcp/']).set('/mcp/', [307, '/mcp']);
    expect(await list()).toBe('HTTP 307: more than 3 redirects in a row are not followed.');
    expect(server.received).toHaveLength(4);
  });
});

describe('a call', () => {
  test('is one request with the input, the operation and the agent’s headers', async () => {
    await setToken();
    expect(await call({ headers: { ...withToken().headers, 'X-Team': 'a', Accept: 'text/plain' } })).toEqual({
      output: '{"at":1}',
    });
    expect(server.of('tools/call')).toMatchObject([
      {
        message: { params: { name: 'look', arguments: { at: 1 }, _meta: { 'signalbox.dev/operationId': 'op_1' } } },
        headers: {
          'idempotency-key': 'op_1',
          authorization: `Bearer ${SECRET}`,
          'x-team': 'a',
          'user-agent': 'Signalbox',
          'content-type': 'application/json',
          accept: expect.stringContaining('application/json'),
          'mcp-session-id': expect.any(String),
          'mcp-protocol-version': '2025-11-25',
        },
      },
    ]);
    expect(server.received.every(({ headers }) => headers.authorization === `Bearer ${SECRET}`)).toBe(true);
    expect(server.received.some(({ httpMethod }) => httpMethod === 'GET')).toBe(false);
  });

  test('has our idempotency key, whatever the agent says', async () => {
    await call({ headers: { 'idempotency-KEY': 'mine' } });
    expect(server.of('tools/call')[0]?.headers['idempotency-key']).toBe('op_1');
  });

  test('that the server refuses is an error with its reason', async () => {
    server.on('tools/call', ({ error }) => error(-32602, 'Unknown tool: look'));
    expect(await call()).toEqual({ error: expect.stringContaining('Unknown tool: look (-32602).') });
  });

  test('that fails in the tool is an error with its text', async () => {
    server.on('tools/call', ({ result }) =>
      result({ isError: true, content: [{ type: 'text', text: 'no such order' }] }),
    );
    expect(await call()).toEqual({ error: 'no such order' });
  });

  test.each([
    [500, 'down', 'HTTP 500: down'],
    [429, '', 'HTTP 429'],
    [403, 'not yours', 'HTTP 403: not yours'],
    [400, 'x'.repeat(200_000), `HTTP 400: ${'x'.repeat(2048)}`],
  ])('with a response of HTTP %i is an error with the beginning of the body', async (status, body, error) => {
    server.on('tools/call', ({ response }) => response.writeHead(status, { 'www-authenticate': 'Bearer' }).end(body));
    expect(await call()).toEqual({ error });
  });

  test.each<[string, Parameters<McpTestServer['on']>[1], string]>([
    ['no content', ({ result }) => result({}), 'it has no content'],
    ['an HTML page', ({ response }) => html(response), 'it is neither JSON nor an event stream (HTTP 200)'],
    [
      'another id',
      ({ response }) =>
        response.setHeader('content-type', 'application/json').end('{"jsonrpc":"2.0","id":99,"result":{}}'),
      'it does not belong to the request',
    ],
    [
      'incomplete JSON',
      ({ response }) => response.setHeader('content-type', 'application/json').end('{"jsonrpc":'),
      'it is not JSON, or nested too deeply',
    ],
    [
      'more than 1 MiB',
      ({ result }) => result({ content: [{ type: 'text', text: 'x'.repeat(1024 * 1024) }] }),
      'it is longer than 1048576 bytes, so it was not read',
    ],
    [
      'a compression bomb',
      ({ response }) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        response.end(gzipSync(Buffer.alloc(50 * 1024 * 1024, 0x20)));
      },
      'it is longer than 1048576 bytes, so it was not read',
    ],
  ])('with a response of %s is an error with an unknown outcome', async (_title, handler, problem) => {
    server.on('tools/call', handler);
    expect(await call()).toEqual(unknown(`The server’s response can’t be used: ${problem}.`));
  });

  test.each([
    [307, { error: expect.stringContaining('the server redirects to https://b.example.com/x') }],
    // Says that the message was handled.
    [303, { error: expect.stringContaining('The request may have taken effect.'), outcomeUnknown: true }],
  ])('with a redirect that is not followed (%i) is an error that says where it leads', async (status, expected) => {
    server.on('tools/call', ({ response }) =>
      response.writeHead(status, { location: 'https://b.example.com/x' }).end(),
    );
    expect(await call()).toEqual(expected);
  });

  test('accepts a batch as its response, which another revision allows', async () => {
    server.on('tools/call', ({ message, response }) => {
      const notification = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } };
      const result = { jsonrpc: '2.0', id: message.id, result: { content: [{ type: 'text', text: 'here' }] } };
      response.setHeader('content-type', 'application/json').end(JSON.stringify([notification, result]));
    });
    expect(await call()).toEqual({ output: 'here' });
  });

  test('cannot change prototypes by its response', async () => {
    const structuredContent = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
    server.on('tools/call', ({ result }) => result({ content: [], structuredContent }));
    expect(await call()).toEqual({ output: structuredContent });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('that takes too long is cancelled, and has an unknown outcome', async () => {
    const cancelled = server.next('notifications/cancelled');
    const arrived = server.next('tools/call');
    let closed: Promise<unknown> | undefined;
    server.on('tools/call', ({ response }) => {
      closed = once(response, 'close');
    });
    const outcome = call({ timeoutSeconds: 300 });
    const { message } = await arrived;
    await clock.advance(299_999);
    await clock.advance(1);
    expect(await outcome).toEqual(unknown('The response did not arrive in time.'));
    expect((await cancelled).message.params?.requestId).toBe(message.id);
    await closed;
  });

  test('that is aborted is cancelled at the server, and throws the reason', async () => {
    const reason = new Error('interrupted');
    const abort = new AbortController();
    const cancelled = server.next('notifications/cancelled');
    const arrived = server.next('tools/call');
    let closed: Promise<unknown> | undefined;
    server.on('tools/call', (exchange) => {
      exchange.stream();
      closed = once(exchange.response, 'close');
    });
    const outcome = call({}, { sessionId: 'ses_1' }, abort.signal);
    const { message } = await arrived;
    abort.abort(reason);
    await expect(outcome).rejects.toBe(reason);
    expect((await cancelled).message.params?.requestId).toBe(message.id);
    await closed;
  });

  test('is not sent if it is aborted before', async () => {
    const reason = new Error('interrupted');
    await expect(call({}, {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(server.received).toEqual([]);
  });

  test('that is aborted while the connection is opened throws the reason, and other calls continue', async () => {
    const reason = new Error('interrupted');
    const abort = new AbortController();
    const arrived = server.next('initialize');
    const go = Promise.withResolvers<void>();
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'a', version: '1' } };
    server.on('initialize', ({ result }) => void go.promise.then(() => result(initialize)));
    const stopped = call({}, { sessionId: 'ses_1', operationId: 'op_1' }, abort.signal);
    const other = call({}, { sessionId: 'ses_1', operationId: 'op_2' });
    await arrived;
    abort.abort(reason);
    await expect(stopped).rejects.toBe(reason);
    go.resolve();
    expect(await other).toEqual({ output: '{"at":1}' });
    expect(server.of('tools/call')).toHaveLength(1);
  });
});

describe('a secret', () => {
  test('is in no log line, whatever the names and schemas of the server’s tools contain', async () => {
    await setToken();
    const cut = `${'x'.repeat(96)}${SECRET}`;
    const named = (name: string, more: object = {}) => ({ ...look, name, ...more });
    server.tools = [
      named(`leak Bearer ${SECRET}`),
      named(cut),
      named(`\0${SECRET}`),
      named('odd', { inputSchema: { type: 'object', $ref: `#/${SECRET}` } }),
      named('old', { inputSchema: { type: 'object', $schema: `https://${SECRET}` } }),
      named('pattern', { inputSchema: { type: 'object', properties: { a: { pattern: `(${SECRET}` } } } }),
      named('task', { execution: { taskSupport: 'required' } }),
    ];
    await listed(withToken());
    expect(warned.length).toBe(1);
    expect(JSON.stringify(warned)).toContain('[secret TOKEN]');
    expect(JSON.stringify(warned)).not.toContain(SECRET.slice(0, 8));
  });

  test.each([
    ['another host', 'api.example.com'],
    ['another port', '127.0.0.1:1'],
  ])('that is for %s is not sent, and the error contains its name', async (_title, allowed) => {
    await setToken([allowed]);
    const words = 'Nothing was sent: secret TOKEN may not be sent to this host.';
    expect(await list(withToken())).toBe(words);
    expect(await call(withToken())).toEqual({ error: words });
    expect(server.received).toEqual([]);
  });

  test('that does not exist means no request', async () => {
    const headers = { A: '{{secrets.NO_SUCH}}' };
    const words = 'Nothing was sent: the environment has no secret NO_SUCH.';
    expect(await list({ headers })).toBe(words);
    expect(await call({ headers })).toEqual({ error: words });
    expect(server.received).toEqual([]);
  });

  test('that is no longer allowed for the host is not sent over an open connection', async () => {
    await setToken();
    await list(withToken());
    await call(withToken(), { sessionId: 'ses_1' });
    await setToken(['api.example.com']);
    const before = server.received.length;
    expect(await call(withToken(), { sessionId: 'ses_1' })).toHaveProperty('error');
    expect(await list(withToken())).toContain('Nothing was sent');
    expect(server.received.slice(before).filter(({ httpMethod }) => httpMethod === 'POST')).toEqual([]);
  });

  test('that has changed is used at once, with another connection', async () => {
    await setToken();
    await call(withToken(), { sessionId: 'ses_1' });
    await setToken([server.host], 'another');
    await call(withToken(), { sessionId: 'ses_1' });
    const calls = server.of('tools/call').map(({ headers }) => headers);
    expect(calls.map(({ authorization }) => authorization)).toEqual([`Bearer ${SECRET}`, 'Bearer another']);
    expect(calls[0]?.['mcp-session-id']).not.toBe(calls[1]?.['mcp-session-id']);
  });

  test('that the server returns is redacted from all of its text', async () => {
    await setToken();
    server.tools = [
      { ...look, description: `Uses ${SECRET}`, inputSchema: { type: 'object', title: SECRET } },
      { ...look, name: SECRET },
    ];
    expect(await listed(withToken())).toMatchObject([
      { description: 'Uses [secret TOKEN]', inputSchema: { title: '[secret TOKEN]' } },
    ]);
    expect(warned).toMatchObject([
      { server: 'crm', count: 1, tools: ['"[secret TOKEN]" has a name that contains a secret'] },
    ]);
    server.on('tools/call', ({ result }) => result({ content: [{ type: 'text', text: `Bearer ${SECRET}` }] }));
    expect(await call(withToken())).toEqual({ output: 'Bearer [secret TOKEN]' });
    server.on('tools/call', ({ result }) => result({ content: [], structuredContent: { [SECRET]: [SECRET] } }));
    expect(await call(withToken())).toEqual({ output: { '[secret TOKEN]': ['[secret TOKEN]'] } });
    server.on('tools/call', ({ result }) => result({ isError: true, content: [{ type: 'text', text: SECRET }] }));
    expect(await call(withToken())).toEqual({ error: '[secret TOKEN]' });
    server.on('tools/call', ({ error }) => error(-32603, `bad token ${SECRET}`));
    expect(await call(withToken())).toEqual({ error: expect.stringContaining('bad token [secret TOKEN]') });
    server.on('tools/call', ({ response }) => response.writeHead(403).end(`Bearer ${SECRET}`));
    expect(await call(withToken())).toEqual({ error: 'HTTP 403: Bearer [secret TOKEN]' });
  });
});

describe('a stream of events', () => {
  // The client resumes it after a pause.
  beforeEach(() => {
    tools = createMcpTools({ ...base.platform, clock: systemClock });
  });

  const text = { content: [{ type: 'text', text: 'here' }] };

  test('returns the response after other messages of the server', async () => {
    server.on('tools/call', (exchange) => {
      exchange.stream();
      exchange.response.write(': hello\n\nevent: other\ndata: nothing\n\n');
      expect(exchange.message.params?._meta).toHaveProperty('progressToken');
      exchange.send({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
      exchange.send({ method: 'notifications/message', params: { level: 'info', data: 'x' } });
      exchange.send({ method: 'notifications/tools/list_changed' });
      exchange.sendResult(text);
    });
    expect(await call()).toEqual({ output: 'here' });
  });

  test('continues after requests of the server, which are refused', async () => {
    const requested = ['sampling/createMessage', 'elicitation/create', 'roots/list', 'ping'];
    const answers: unknown[] = [];
    const refusal = { code: -32601, message: 'This client does not support requests from servers' };
    server.on('tools/call', (exchange) => {
      server.on('answer', ({ message, headers, response }) => {
        response.writeHead(202).end();
        answers[Number(message.id)] = message.error ?? message.result;
        expect(headers).not.toHaveProperty('idempotency-key');
        if (answers.filter(Boolean).length === requested.length) exchange.sendResult(text);
      });
      exchange.stream();
      for (const [id, method] of requested.entries()) exchange.send({ id, method, params: {} });
    });
    expect(await call()).toEqual({ output: 'here' });
    expect(answers).toEqual([refusal, refusal, refusal, {}]);
  });

  test('with too many requests of the server is aborted', async () => {
    server.on('tools/call', (exchange) => {
      exchange.stream();
      for (let id = 0; id < 1000; id++) exchange.send({ id, method: 'ping' });
    });
    expect(await call()).toEqual(
      unknown('The server’s response can’t be used: the server sends requests instead of a response.'),
    );
    expect(server.of('answer').length).toBeLessThanOrEqual(16);
  });

  test('that never ends is aborted', async () => {
    let closed: Promise<unknown> | undefined;
    server.on('tools/call', (exchange) => {
      closed = once(exchange.response, 'close');
      exchange.stream();
      const more = () => {
        while (!exchange.response.destroyed) {
          const noise = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${'x'.repeat(10_000)}"}}\n\n`;
          if (!exchange.response.write(noise)) return void exchange.response.once('drain', more);
        }
      };
      more();
    });
    const problem = 'its event stream reached 8 MiB without a response';
    expect(await call()).toEqual(unknown(`The server’s response can’t be used: ${problem}.`));
    await closed;
  });

  test.each([
    ['a line', 'data: ', 'it is longer than 1048576 bytes, so it was not read'],
    ['an event', '', 'it is longer than 1048576 bytes, so it was not read'],
    // No more of it is kept than of any stream without a response.
    ['a comment', ': ', 'its event stream reached 8 MiB without a response'],
  ])('with %s that never ends is aborted', async (_title, beginning, problem) => {
    server.on('tools/call', ({ stream, response }) => {
      stream();
      response.write(beginning);
      const more = () => {
        while (!response.destroyed) {
          const noise = beginning === '' ? `data: ${'x'.repeat(10_000)}\n` : 'x'.repeat(10_000);
          if (!response.write(noise)) return void response.once('drain', more);
        }
      };
      more();
    });
    expect(await call()).toEqual(unknown(`The server’s response can’t be used: ${problem}.`));
  });

  test('whose response is too long in bytes, but not in characters, is aborted', async () => {
    server.on('tools/call', (exchange) => {
      exchange.stream();
      exchange.sendResult({ content: [{ type: 'text', text: 'ü'.repeat(600_000) }] });
    });
    expect(await call()).toEqual(
      unknown('The server’s response can’t be used: it is longer than 1048576 bytes, so it was not read.'),
    );
  });

  test('that is cut is resumed where it ended, and the call runs once', async () => {
    server.on('tools/call', ({ stream, response, message }) => {
      stream();
      response.end('retry: 1\nid: a-1\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n');
      server.on('GET', (resumed) => {
        resumed.stream();
        if (resumed.headers['last-event-id'] === 'a-1') {
          resumed.send({ method: 'notifications/message', params: {} }, { id: 'a-2' });
          resumed.response.end();
        } else {
          resumed.send({ id: message.id, result: text });
          resumed.response.end();
        }
      });
    });
    expect(await call()).toEqual({ output: 'here' });
    expect(server.of('GET').map(({ headers }) => headers['last-event-id'])).toEqual(['a-1', 'a-2']);
    expect(server.of('GET').every(({ headers }) => headers['mcp-session-id'] !== undefined)).toBe(true);
    expect(server.of('tools/call')).toHaveLength(1);
  });

  test.each<[string, Parameters<McpTestServer['on']>[1]]>([
    ['gets an error', ({ response }) => response.writeHead(404).end()],
    [
      'is empty',
      (exchange) => {
        exchange.stream();
        exchange.response.end();
      },
    ],
    ['breaks', ({ request }) => request.socket.resetAndDestroy()],
  ])('that is cut and then %s three times has failed, with an unknown outcome', async (_title, again) => {
    server.on('tools/call', ({ stream, response }) => {
      stream();
      response.end('retry: 1\nid: a-1\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n');
    });
    server.on('GET', again);
    expect(await call()).toEqual(unknown('The connection was closed before the response was complete.'));
    expect(server.of('GET')).toHaveLength(3);
  });

  test.each<[string, Parameters<McpTestServer['on']>[1]]>([
    [
      'ends',
      (exchange) => {
        exchange.stream();
        exchange.response.end();
      },
    ],
    [
      'breaks',
      (exchange) => {
        exchange.stream();
        exchange.request.socket.resetAndDestroy();
      },
    ],
  ])('that %s without the response is an error at once, with an unknown outcome', async (_title, handler) => {
    server.on('tools/call', handler);
    expect(await call()).toEqual(unknown('The connection was closed before the response was complete.'));
    expect(server.of('GET')).toEqual([]);
  });
});

describe('the MCP session', () => {
  const sessionsOfCalls = () => server.of('tools/call').map(({ headers }) => headers['mcp-session-id']);

  test('is the same for all calls of a session, including concurrent ones', async () => {
    const outcomes = await Promise.all(
      [1, 2, 3].map((at) => call({}, { sessionId: 'ses_1', operationId: `op_${at}`, input: { at } })),
    );
    expect(outcomes).toEqual([1, 2, 3].map((at) => ({ output: `{"at":${at}}` })));
    await call({}, { sessionId: 'ses_1' });
    expect(new Set(sessionsOfCalls()).size).toBe(1);
    expect(server.of('initialize')).toHaveLength(1);
    expect(new Set(server.of('tools/call').map(({ message }) => message.id)).size).toBe(4);
  });

  test('is different for each session, environment, organization and server, and for each call without a session', async () => {
    await call({}, { sessionId: 'ses_1' });
    await call({}, { sessionId: 'ses_2' });
    await call({}, { sessionId: 'ses_1', environment: 'staging' });
    await call({}, { sessionId: 'ses_1', organizationId: '00000000-0000-7000-8000-000000000000' });
    await call({ url: `${server.url}?b` }, { sessionId: 'ses_1' });
    await call();
    await call();
    expect(new Set(sessionsOfCalls()).size).toBe(7);
  });

  test('of a call without a session ends after the call', async () => {
    const ended = server.next('DELETE');
    await call();
    expect((await ended).headers['mcp-session-id']).toBe(sessionsOfCalls()[0]);
  });

  test('ends five minutes after the last call', async () => {
    await call({}, { sessionId: 'ses_1' });
    await clock.advance(200_000);
    await call({}, { sessionId: 'ses_1' });
    await clock.advance(299_999);
    expect(server.of('DELETE')).toEqual([]);
    const ended = server.next('DELETE');
    await clock.advance(1);
    expect((await ended).headers['mcp-session-id']).toBe(sessionsOfCalls()[0]);
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({ output: '{"at":1}' });
    expect(sessionsOfCalls()).toEqual([sessionsOfCalls()[0], sessionsOfCalls()[0], expect.any(String)]);
    expect(new Set(sessionsOfCalls()).size).toBe(2);
  });

  test('ends when the service stops, and running calls are aborted', async () => {
    await call({}, { sessionId: 'ses_1' });
    const arrived = server.next('tools/call');
    server.on('tools/call', () => {});
    const outcome = call({}, { sessionId: 'ses_1' });
    await arrived;
    await tools.close();
    expect(await outcome).toEqual(unknown('The request was aborted.'));
    expect(server.of('DELETE')).toHaveLength(1);
  });

  type Handler = Parameters<McpTestServer['on']>[1];
  const withStatus =
    (status: number, body: string | object = ''): Handler =>
    ({ response }) =>
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  const withError =
    (code: number, message: string, status = 200): Handler =>
    ({ error }) =>
      error(code, message, status);

  const HERE = { output: '{"at":1}' };
  let runs = 0;
  const runOnce = (repeatable = false) => {
    const run = runOf({}, { sessionId: 'ses_1', operationId: `op_${runs++}` });
    return tools.run({ ...run, tool: { ...run.tool, repeatable } }, never);
  };

  test.each<[string, Handler]>([
    ['404', withError(-32001, 'Session not found', 404)],
    ['404 of a proxy', withStatus(404, '<h1>Not found</h1>')],
    ['410', withStatus(410)],
    ['400', withStatus(400)],
    ['400 that says so', withError(-32000, 'Bad Request: No valid session ID provided', 400)],
    ['400 that says so in other words', withError(-32000, 'Bad Request: Server not initialized', 400)],
    ['401', withStatus(401, { error: 'invalid session' })],
    ['401 that wants OAuth', ({ response }) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()],
    ['403', withStatus(403)],
    ['409', withStatus(409, 'SESSION_EXPIRED')],
    ['422', withStatus(422, { detail: 'session does not exist' })],
    ['500 that says so', withStatus(500, { error: 'session not found' })],
    ['a redirect', ({ response }) => response.writeHead(302, { location: 'https://login.example.com/' }).end()],
    ['JSON-RPC -32600', withError(-32600, 'Session terminated')],
    ['JSON-RPC -32600 without a reason', withError(-32600, 'Invalid Request')],
    ['JSON-RPC -32001', withError(-32001, 'Session not found')],
    ['JSON-RPC -32000', withError(-32000, 'Session 3f2a-11 has expired')],
    ['JSON-RPC -32602', withError(-32602, 'Unknown session')],
    [
      'JSON-RPC without an id',
      ({ response }) => {
        const error = { code: -32600, message: 'Session terminated' };
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
      },
    ],
    [
      'JSON-RPC in a stream',
      ({ stream, send, message, response }) => {
        stream();
        send({ id: message.id, error: { code: -32001, message: 'No valid session' } });
        response.end();
      },
    ],
  ])('that the server has forgotten (%s) is replaced once, and the call runs once', async (_title, refusal) => {
    await runOnce();
    server.forgetSessions(refusal);
    expect(await Promise.all([runOnce(), runOnce()])).toEqual([HERE, HERE]);
    expect(server.of('initialize')).toHaveLength(2);
    expect(await runOnce()).toEqual(HERE);
    expect(server.of('initialize')).toHaveLength(2);
    expect(server.of('tools/call')).toHaveLength(6);
  });

  test.each<[string, Handler, string]>([
    ['500', withStatus(500, 'oops'), 'HTTP 500: oops.'],
    ['502', withStatus(502, '<h1>Bad gateway</h1>'), 'HTTP 502: <h1>Bad gateway</h1>.'],
    ['503', withStatus(503), 'HTTP 503.'],
    [
      'a page',
      ({ response }) => html(response),
      'The server’s response can’t be used: it is neither JSON nor an event stream (HTTP 200).',
    ],
    [
      'a closed connection',
      ({ request }) => request.socket.destroy(),
      'The connection was closed before the response was complete.',
    ],
  ])(
    'that the server may have forgotten after the call (%s) is replaced, and only a call that may run twice is repeated',
    async (_title, refusal, words) => {
      await runOnce(true);
      server.forgetSessions(refusal);
      expect(await runOnce(true)).toEqual(HERE);
      expect(await runOnce(true)).toEqual(HERE);
      expect(server.of('initialize')).toHaveLength(2);

      server.forgetSessions(refusal);
      expect(await runOnce()).toEqual(unknown(`The server has lost the session. ${words}`));
      expect(await runOnce()).toEqual(HERE);
      expect(server.of('initialize')).toHaveLength(3);
    },
  );

  test('that the server forgets at once is not replaced again and again', async () => {
    server.on('tools/call', ({ error }) => error(-32001, 'Session not found', 404));
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({ error: expect.stringContaining('HTTP 404') });
    expect(server.of('tools/call')).toHaveLength(1);
    await call({}, { sessionId: 'ses_1' });
    expect(server.of('tools/call')).toHaveLength(2);
  });

  test('is not replaced after other errors, because the call may have taken effect', async () => {
    await call({}, { sessionId: 'ses_1' });
    for (const status of [400, 401, 429, 500, 502]) {
      server.on('tools/call', withStatus(status, 'the booking session is over'));
      expect(await call({}, { sessionId: 'ses_1' })).toEqual({ error: `HTTP ${status}: the booking session is over` });
    }
    for (const code of [-32600, -32000, -32602, -32603]) {
      server.on('tools/call', withError(code, 'the booking is over'));
      expect(await call({}, { sessionId: 'ses_1' })).toEqual({ error: expect.stringContaining('the booking is over') });
    }
    // An error about the page that the server keeps in the session.
    server.on('tools/call', withError(-32000, 'Session closed. Most likely the page has been closed.'));
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({ error: expect.stringContaining('Session closed') });
    expect(server.of('tools/call')).toHaveLength(11);
    expect(server.of('initialize')).toHaveLength(1);
  });

  test('is lost if the server restarts, and is replaced when the server is back', async () => {
    await call({}, { sessionId: 'ses_1' });
    const { host } = server;
    await server.close();
    // Depends on whether the client has noticed the end of the connection.
    const gone = /^The host could not be connected to|^The connection was closed before the response was complete/;
    expect(await call({}, { sessionId: 'ses_1' })).toMatchObject({ error: expect.stringMatching(gone) });
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({
      error: 'The host could not be connected to (ECONNREFUSED).',
    });
    server = await startMcpServer({ port: Number(host.split(':')[1]) });
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({ output: '{"at":1}' });
  });
});

describe('a server of 2026-07-28', () => {
  beforeEach(async () => {
    await server.close();
    server = await startMcpServer({ modern: true });
    server.tools = [
      {
        ...look,
        inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
      },
    ];
    server.on('tools/list', ({ result }) => result({ tools: server.tools, ttlMs: 0, cacheScope: 'private' }));
  });

  test('is called without an MCP session, with all that it needs in each request', async () => {
    const [tool] = await listed();
    expect(tool).toMatchObject({ name: 'crm__look', remoteName: 'look' });
    const run = { ...runOf({}, { input: { region: 'eu' } }), ...(tool && { tool }) };
    expect(await tools.run(run, never)).toEqual({ output: '{"region":"eu"}' });
    expect(server.of('server/discover')).toHaveLength(1);
    expect(server.of('initialize')).toEqual([]);
    expect(server.of('DELETE')).toEqual([]);
    expect(server.of('tools/call')).toMatchObject([
      {
        headers: {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'look',
          'mcp-param-region': 'eu',
          'idempotency-key': 'op_1',
        },
        message: { params: { _meta: { 'signalbox.dev/operationId': 'op_1' } } },
      },
    ]);
  });

  test.each([
    [{ content: [{ type: 'text', text: 'a' }], structuredContent: null }, { output: 'a' }],
    [{ content: [{ type: 'hologram', x: 1 }] }, { output: [{ type: 'hologram', x: 1 }] }],
    [{ structuredContent: { a: 1 } }, { output: { a: 1 } }],
    [{ toolResult: 'a' }, { output: 'a' }],
  ])('may return what its schema does not allow: %j', async (returned, expected) => {
    server.on('tools/call', ({ result }) => result(returned));
    expect(await call()).toEqual(expected);
  });

  test('that requests additional input is refused', async () => {
    server.on('tools/call', ({ result }) =>
      result({ resultType: 'input_required', inputRequests: { a: { method: 'elicitation/create', params: {} } } }),
    );
    expect(await call()).toEqual(
      unknown('The server’s response can’t be used: it requests additional input, which is not supported.'),
    );
  });

  test('gets the older handshake after a downgrade', async () => {
    await listed();
    await call({}, { sessionId: 'ses_1' });
    const { host } = server;
    await server.close();
    server = await startMcpServer({ port: Number(host.split(':')[1]) });
    server.on('tools/call', ({ headers, error, result }) => {
      if (headers['mcp-session-id'] === undefined) return error(-32000, 'Bad Request: Server not initialized', 400);
      return result({ content: [{ type: 'text', text: '{"at":1}' }] });
    });
    expect(await call({}, { sessionId: 'ses_1' })).toEqual({ output: '{"at":1}' });
  });

  test('sees the connection close if a call is aborted', async () => {
    const reason = new Error('interrupted');
    const abort = new AbortController();
    const arrived = server.next('tools/call');
    let closed: Promise<unknown> | undefined;
    server.on('tools/call', ({ response }) => {
      closed = once(response, 'close');
    });
    const outcome = call({}, {}, abort.signal);
    await arrived;
    abort.abort(reason);
    await expect(outcome).rejects.toBe(reason);
    await closed;
  });
});
