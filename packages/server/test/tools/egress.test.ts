// What egress/ guarantees, for everything that sends requests: webhooks, http tools, MCP tools, models.
//
//   DNS rebinding  each gets a host name that first resolves to an allowed address, and then to a forbidden one, at which a server of
//                  this test must receive no connection
//   connections    each gets its response while another organization's request occupies the only connection to the server
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Model, ModelList, Tool } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEgress, type Egress, type OrganizationEgress } from '../../src/egress/egress.ts';
import { createLookup, type Lookup } from '../../src/egress/lookup.ts';
import { parseEgressAllow } from '../../src/egress/policy.ts';
import { createCatalog, createModels } from '../../src/models/models.ts';
import type { ListedTools, ToolOutcome, TurnTool } from '../../src/tools/tool/tool.ts';
import { createTools } from '../../src/tools/tools.ts';
import { getDelivery, listDeliveries } from '../../src/webhooks/deliveries.ts';
import { testWebhookSubscription } from '../../src/webhooks/test-envelope.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { append, createWorld as createWebhookWorld, status } from '../support/webhooks.ts';

const NAME = 'rebinding.example.com';
const ALLOWED = '127.0.0.1';
const FORBIDDEN = '127.0.0.2';

let dns: DnsServer;
let lookup: Lookup;
/** The current DNS response. */
let answers: { a: string[] };
let base: TestPlatform;
let egress: Egress;
let allowed: Ear;
let forbidden: Ear;
const never = new AbortController().signal;

interface Ear {
  port: number;
  connections: number;
  requests: number;
  /** Resolves with the first request for `/hang`, which gets no response. */
  hanging: Promise<void>;
  close(): void;
}

/** Closes each connection after its response, so that every request needs another. */
async function listen(host: string, port = 0): Promise<Ear> {
  const hanging = Promise.withResolvers<void>();
  const listener: RequestListener = (request, response) => {
    if (request.url === '/hang') return hanging.resolve();
    ear.requests += 1;
    request.resume().on('end', () => response.setHeader('connection', 'close').end('{}'));
  };
  const server = createServer(listener);
  const sockets = new Set<Socket>();
  const ear: Ear = {
    port,
    connections: 0,
    requests: 0,
    hanging: hanging.promise,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  server.on('connection', (socket: Socket) => {
    ear.connections += 1;
    sockets.add(socket);
  });
  server.listen(port, host);
  await once(server, 'listening');
  ear.port = (server.address() as AddressInfo).port;
  return ear;
}

beforeEach(async () => {
  answers = { a: [ALLOWED] };
  dns = await startDnsServer({ [NAME]: () => answers });
  const asked = createLookup({ servers: [dns.address] });
  lookup = (host) => asked(host, { system: false });
  egress = createEgress({ policy: parseEgressAllow(ALLOWED), lookup, maxPerOrigin: 1 });
  allowed = await listen(ALLOWED);
  forbidden = await listen(FORBIDDEN, allowed.port);
  base = await createTestPlatform();
});
afterEach(async () => {
  await base.close();
  await egress.close();
  allowed.close();
  forbidden.close();
  dns.close();
});

const url = () => `http://${NAME}:${allowed.port}/`;

/** Acts once while the name resolves to the allowed address, and once after it has moved; returns the second outcome. */
async function afterRebinding<T>(act: () => Promise<T>): Promise<T> {
  await act();
  const before = allowed.requests;
  expect(before).toBeGreaterThan(0);
  answers = { a: [FORBIDDEN] };
  const outcome = await act();
  expect({ allowed: allowed.requests - before, forbidden: forbidden.connections }).toEqual({
    allowed: 0,
    forbidden: 0,
  });
  expect(JSON.stringify(outcome)).not.toContain(FORBIDDEN);
  return outcome;
}

async function callHttpTool(): Promise<ToolOutcome> {
  const tools = createTools({ ...base.platform, egress });
  const source: Tool = {
    type: 'http',
    name: 'look',
    description: '',
    inputSchema: {},
    request: { method: 'GET', url: url() },
  };
  const tool: TurnTool = {
    name: 'look',
    description: '',
    inputSchema: {},
    approval: 'never',
    by: null,
    repeatable: true,
    runsAs: 'here',
    source,
  };
  const { organizationId } = base;
  const run = { organizationId, environment: 'production', endUser: null, tool, input: {}, operationId: 'op_1' };
  return await tools.run(run, never).finally(() => tools.close());
}

async function listMcpTools(): Promise<ListedTools> {
  const tools = createTools({ ...base.platform, egress });
  const owner = { organizationId: base.organizationId, environment: 'production', endUser: null };
  const tool: Tool = { type: 'mcp', name: 'crm', url: url() };
  return await tools.list(owner, [tool], never).finally(() => tools.close());
}

const model = (): Model => ({ provider: 'openai-compatible', model: 'small', baseUrl: `${url()}v1` });

async function askModel(): Promise<unknown> {
  const ask = createModels({ ...base.platform, egress });
  try {
    const call = {
      organizationId: base.organizationId,
      sessionId: 'ses_1',
      environment: 'production',
      config: model(),
      instructions: '',
      tools: [],
      limits: { maxOutputTokens: null },
      outputSchema: null,
      transcript: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'go' }] }],
      callsBefore: 0,
    };
    for await (const _ of ask(call, never));
    return undefined;
  } catch (error) {
    return { ...(error as object), message: (error as Error).message };
  }
}

async function listModels(): Promise<ModelList> {
  const request = { organizationId: base.organizationId, environment: 'production', config: model() };
  return await createCatalog({ ...base.platform, egress }).list(request);
}

test('an http tool does not follow a host name to a forbidden address', async () => {
  expect(await afterRebinding(callHttpTool)).toEqual({ error: expect.stringContaining('not allowed') });
});

test('an MCP tool does not follow a host name to a forbidden address', async () => {
  expect(await afterRebinding(listMcpTools)).toMatchObject({
    tools: [],
    unavailable: [{ reason: expect.stringContaining('not allowed') }],
  });
});

test('a model at a base URL does not follow a host name to a forbidden address', async () => {
  expect(await afterRebinding(askModel)).toMatchObject({ code: 'model_not_allowed', retryable: false });
});

test('a list of models does not follow a host name to a forbidden address', async () => {
  expect(await afterRebinding(listModels)).toMatchObject({ models: [], problem: { code: 'model_not_allowed' } });
});

/** Occupies the only connection of another organization to the server. */
async function hang(others: OrganizationEgress): Promise<void> {
  const request = { url: `${url()}hang`, method: 'GET', timeoutMs: 60_000, maxResponseBytes: 0 };
  others.request(request).catch(() => {}); // Rejects when the egress is closed.
  await allowed.hanging;
}

test.each<[string, () => Promise<unknown>]>([
  ['an http tool', callHttpTool],
  ['an MCP tool', listMcpTools],
  ['a model', askModel],
  ['a list of models', listModels],
])('%s does not wait for the requests of another organization', async (_title, send) => {
  await hang(egress.of('another'));
  await send();
  expect(allowed.requests).toBeGreaterThan(0);
});

test.each(['a delivery', 'a test'])(
  '%s of a webhook does not wait for the requests of another organization',
  async (what) => {
    const world = await createWebhookWorld({ lookup, maxPerOrigin: 1 });
    try {
      await hang(world.platform.egress.of(world.strangerId));
      await world.subscribe(url());
      if (what === 'a test') {
        const { attempt } = await testWebhookSubscription(world.context(), { env: 'production' });
        expect(attempt).toMatchObject({ status: 200, error: null });
      } else {
        await world.node();
        const session = await world.session();
        await append(world, session, [status()]);
        await world.delivered(session);
      }
    } finally {
      await world.end();
    }
  },
);

test('a webhook does not follow a host name to a forbidden address', async () => {
  const world = await createWebhookWorld({ lookup });
  try {
    await world.subscribe(url());
    await world.node();
    const session = await world.session();
    const context = world.context();
    const attempted = async () => {
      const known = (await listDeliveries(context, { env: 'production' })).data.length;
      await append(world, session, [status()]);
      await world.advanceUntil(async () => {
        const { data } = await listDeliveries(context, { env: 'production' });
        return data.length > known && data[0]!.attemptCount > 0;
      }, 100);
      const { data } = await listDeliveries(context, { env: 'production' });
      return (await getDelivery(context, { env: 'production', deliveryId: data[0]!.deliveryId })).webhookDelivery;
    };
    const { attempts } = await afterRebinding(attempted);
    expect(attempts).toMatchObject([{ status: null, error: 'not_allowed', responseBody: null }]);
  } finally {
    await world.end();
  }
});
