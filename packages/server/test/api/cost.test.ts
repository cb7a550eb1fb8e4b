// A request of one caller does not delay those of others. Every route that takes a body, including the console's, gets bodies in
// which one field grows. Every route gets query strings and headers up to their limits, and unexpected bodies. Every part of an
// agent's definition grows, and the agent is then run. Each POST has an Idempotency-Key. Each body doubles up to its limit. The event
// loop is never blocked for more than 250 ms of its thread's CPU time, and every request gets a response. `npm test` uses only the last
// size.
//
// The seed is printed; SIGNALBOX_FUZZ_SEED repeats its inputs, and SIGNALBOX_COST_RUNS sets how many fields of each body grow.
import { type Route, routes, type SchemaObject } from '@signalbox/contract';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { personOf } from './fuzz/cases.ts';
import { consoleCalls } from './fuzz/console-calls.ts';
import { type Definition, definitions, toolLists } from './fuzz/definitions.ts';
import { growthsOf, large } from './fuzz/growth.ts';
import { expectUnblocked } from './fuzz/loop-watch.ts';
import { requestOf } from './fuzz/request.ts';
import { valid } from './fuzz/values.ts';
import { exchange } from './fuzz/wire.ts';
import { createFuzzWorld, type FuzzWorld } from './fuzz/world.ts';

const seed = Number(process.env.SIGNALBOX_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env.SIGNALBOX_COST_RUNS ?? 1);
const isShort = runs <= 1;
const BODY_LIMIT = 1024 * 1024;
/** The size of a page of an MCP server's list, below the limit of a response. */
const PAGE_BYTES = 900_000;
/** Room in a body for everything except the growing field. */
const REST_BYTES = 16 * 1024;
const FIRST_BYTES = isShort ? BODY_LIMIT : 16 * 1024;
let routesDone = 0;
const REFRESHED_EVERY = isShort ? 8 : 1;

let tools: McpTestServer;
let world: FuzzWorld;
let port: number;

beforeAll(async () => {
  console.log(`growing with SIGNALBOX_FUZZ_SEED=${seed} SIGNALBOX_COST_RUNS=${runs}`);
  tools = await startMcpServer();
  world = await createFuzzWorld([tools.host]);
  port = Number(new URL(world.service.url).port);
});
afterAll(async () => {
  await world?.close();
  await tools?.close();
});

function* sizes(): Generator<number> {
  for (let bytes = FIRST_BYTES; bytes < BODY_LIMIT; bytes *= 2) yield bytes;
  yield BODY_LIMIT - REST_BYTES;
}

let posts = 0;
function headersOf({ method, path }: Route): [string, string][] {
  const isConsole = path.startsWith('/console/');
  const headers: [string, string][] = isConsole
    ? personOf({})
    : [['Authorization', `Bearer ${world.service.adminKey}`]];
  if (method === 'POST' && !isConsole) headers.push(['Idempotency-Key', `cost-${posts++}`]);
  return headers;
}

interface Sent {
  query?: [string, unknown][];
  headers?: [string, string][];
  body?: unknown;
}

const all = Object.entries<Route>({ ...routes, ...consoleCalls });
const sample = (schema: unknown) =>
  fc.sample(schema ? valid(schema as SchemaObject) : fc.constant({}), { seed, numRuns: 1 })[0] as Record<
    string,
    unknown
  >;

/** Sends a request to the route, and expects a response before the event loop was blocked for too long. */
async function expectCheap(name: string, route: Route, { query = [], headers = [], body }: Sent): Promise<void> {
  const { method, path } = route;
  const params = sample(route.params);
  const made = { method, path, params, query, headers: [...headersOf(route), ...headers], body, mutations: [] };
  const request = requestOf(made, { resolve: world.resolve, host: `127.0.0.1:${port}` });
  await expectUnblocked(
    async () => {
      const answer = await exchange(port, request);
      // A longer request may be cut off.
      if ((request.body?.length ?? 0) <= BODY_LIMIT) expect(answer?.status, name).toBeLessThan(500);
    },
    { what: name },
  );
}

const withBody = all.filter(([, { body }]) => body !== undefined);

test.each(withBody)('%s with a growing body', { timeout: 60_000 + runs * 30_000 }, async (_, route) => {
  if (routesDone++ % REFRESHED_EVERY === 0) await world.refresh();
  const growths = growthsOf(route.body as SchemaObject, sample(route.body));
  for (const { name, body } of fc.sample(fc.constantFrom(...growths), { seed, numRuns: runs })) {
    for (const bytes of sizes()) await expectCheap(`${name}, ${bytes} bytes`, route, { body: body(bytes) });
  }
});

/** For a URL with its path, below the limit of the service. */
const QUERY_BYTES = 7_000;
/** For one header, below the limit of all headers. */
const HEADER_BYTES = 12_000;

/** The longest allowed query strings, for each field of the route and an unknown one. */
function queriesOf(route: Route): [name: string, query: [string, unknown][]][] {
  const fields = [...Object.keys((route.query as SchemaObject | undefined)?.properties ?? {}), 'unknown'];
  const times = (each: number, pair: (index: number) => [string, unknown]) =>
    Array.from({ length: Math.floor(QUERY_BYTES / each) }, (_, index) => pair(index));
  return fields.flatMap((field): [string, [string, unknown][]][] => [
    [`${field}: text`, [[field, 'a'.repeat(QUERY_BYTES)]]],
    [`${field}: escapes`, [[field, '%'.repeat(QUERY_BYTES / 3)]]],
    [`${field}: list`, [[field, 'a,'.repeat(QUERY_BYTES / 4)]]],
    [`${field}: digits`, [[field, '9'.repeat(QUERY_BYTES)]]],
    [`${field}: again and again`, times(field.length + 3, () => [field, 'a'])],
    [`${field}: keys`, times(field.length + 12, (index) => [`${field}[k${index}]`, 'a'])],
    [`${field}: depth`, [[`${field}${'[a]'.repeat(QUERY_BYTES / 7)}`, 'a']]],
  ]);
}

test.each(all)(
  '%s with a long query string, long headers and an unexpected body',
  { timeout: 60_000 },
  async (_, route) => {
    if (routesDone++ % REFRESHED_EVERY === 0) await world.refresh();
    const body = route.body && sample(route.body);
    const queries = queriesOf(route);
    const some = isShort ? fc.sample(fc.constantFrom(...queries), { seed, numRuns: 3 }) : queries;
    for (const [name, query] of some) await expectCheap(`query ${name}`, route, { query, body });
    for (const header of ['Last-Event-ID', 'Accept', 'Cookie', 'Traceparent', 'X-Request-Id', 'Origin']) {
      await expectCheap(header, route, { headers: [[header, 'a;,='.repeat(HEADER_BYTES / 4)]], body });
    }
    if (route.body) return;
    const how = fc.sample(fc.constantFrom(...Object.keys(large)), { seed, numRuns: 1 })[0]!;
    await expectCheap(`a body of ${how}`, route, { body: large[how]!(BODY_LIMIT - REST_BYTES, {}) });
  },
);

/** Encoded here, so that only the service works on the large value. */
function post(path: string, body: object) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers: [string, string][] = [
    ['Host', `127.0.0.1:${port}`],
    ['Authorization', `Bearer ${world.service.adminKey}`],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(bytes.length)],
  ];
  return { method: 'POST', target: `/api/v1${path}`, headers, body: bytes, isCut: false };
}

/** Sends the request; undefined if it is refused, as a body over a limit may be. */
async function sent<T>(request: ReturnType<typeof post>): Promise<T | undefined> {
  const { status = 0, text = '' } = (await exchange(port, request)) ?? {};
  expect(status, text).toBeLessThan(500);
  return status < 300 ? (JSON.parse(text) as T) : undefined;
}

/** Sends the agent, and runs one turn if it was created. */
function runOf({ agent, input }: Definition): () => Promise<void> {
  const limits = { turnTimeoutSeconds: 20, maxStepsPerTurn: 2 };
  const creation = post('/agents', { name: 'Grown', limits, ...agent });
  const opening = (agentId: string) => post('/sessions', { agentId, environment: 'production', input });
  return async () => {
    const created = await sent<{ agent: { agentId: string } }>(creation);
    const opened = created && (await sent<{ session: { sessionId: string } }>(opening(created.agent.agentId)));
    if (!opened) return;
    const { sessionId } = opened.session;
    const isRunning = async () => (await world.service.client.sessions.get(sessionId)).status === 'running';
    await expect.poll(isRunning, { timeout: 60_000, interval: 20 }).toBe(false);
  };
}

test.each(Object.entries(definitions))('an agent with %s', { timeout: 300_000 }, async (_, grow) => {
  // Some have a fixed size.
  for (const bytes of grow.length === 0 ? [BODY_LIMIT] : sizes()) {
    const run = runOf(grow(bytes));
    await expectUnblocked(run, { what: `${bytes} bytes` });
  }
});

test.each(Object.entries(toolLists))(
  'an MCP server whose list of tools has %s',
  { timeout: 300_000 },
  async (_, list) => {
    for (const bytes of sizes()) {
      tools.tools = list(bytes);
      const asked = tools.of('tools/list').length;
      // A new server, so that nothing of the previous list is cached.
      const url = `${tools.url}?${bytes}-${posts++}`;
      const run = runOf({ agent: { model: 'scripted/x', tools: [{ type: 'mcp', name: 'm', url }] }, input: 'go' });
      await expectUnblocked(run, { what: `${bytes} bytes` });
      expect(tools.of('tools/list').length).toBeGreaterThan(asked);
    }
  },
);

test('an MCP server with 32 pages, each of the maximum size', { timeout: 300_000 }, async () => {
  const page = toolLists['long descriptions']!(PAGE_BYTES);
  tools.on('tools/list', (exchange) => {
    const number = Number(exchange.message.params?.cursor ?? 1);
    exchange.result({ tools: page, ...(number < 32 && { nextCursor: String(number + 1) }) });
  });
  const url = `${tools.url}?pages`;
  const run = runOf({ agent: { model: 'scripted/x', tools: [{ type: 'mcp', name: 'm', url }] }, input: 'go' });
  await expectUnblocked(run);
  expect(tools.of('tools/list').length).toBeGreaterThanOrEqual(32);
});

test('afterwards the service is ready', async () => {
  expect((await fetch(`${world.service.url}/readyz`)).status).toBe(200);
});
