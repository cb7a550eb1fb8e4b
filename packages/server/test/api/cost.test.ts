// What callers send costs the others nothing: every route that takes a body is sent bodies of which one place grows, and whatever
// an agent's definition can hold grows and is then run. Every POST has an Idempotency-Key. Each input doubles up to the limit of a body (in `npm test` it only has the
// last size). Whatever it is, the event loop is never held for more than 250 ms of its thread's own CPU time, and everything is answered.
//
// The seed is printed; SIGNALBOX_FUZZ_SEED gives the same inputs again, SIGNALBOX_COST_RUNS says how many places of each route's body grow.
import { type Route, routes, type SchemaObject } from '@signalbox/contract';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Definition, definitions } from './fuzz/definitions.ts';
import { growthsOf } from './fuzz/growth.ts';
import { createLoopWatch } from './fuzz/loop-watch.ts';
import { requestOf } from './fuzz/request.ts';
import { valid } from './fuzz/values.ts';
import { exchange } from './fuzz/wire.ts';
import { createFuzzWorld, type FuzzWorld } from './fuzz/world.ts';

const seed = Number(process.env.SIGNALBOX_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env.SIGNALBOX_COST_RUNS ?? 1);
const isShort = runs <= 1;
const MOST_MS = 250;
const BODY_LIMIT = 1024 * 1024;
/** Of a body beside what grows in it. */
const REST_BYTES = 16 * 1024;
const FIRST_BYTES = isShort ? BODY_LIMIT : 16 * 1024;
let routesDone = 0;
const REFRESHED_EVERY = isShort ? 8 : 1;
/** A collection of garbage, or code that runs for the first time, may fall into one. */
const TRIES = 3;

let world: FuzzWorld;
let port: number;
const watch = createLoopWatch();

beforeAll(async () => {
  console.log(`growing with SIGNALBOX_FUZZ_SEED=${seed} SIGNALBOX_COST_RUNS=${runs}`);
  world = await createFuzzWorld();
  port = Number(new URL(world.service.url).port);
});
afterAll(() => world?.close());

function* sizes(): Generator<number> {
  for (let bytes = FIRST_BYTES; bytes < BODY_LIMIT; bytes *= 2) yield bytes;
  yield BODY_LIMIT - REST_BYTES;
}

/** The shortest of some tries, unless the first is well. */
async function longestStretch(act: () => Promise<unknown>): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && shortest > MOST_MS; tries++)
    shortest = Math.min(shortest, await watch.during(act));
  return shortest;
}

let posts = 0;
function headersOf({ method }: Route): [string, string][] {
  const headers: [string, string][] = [['Authorization', `Bearer ${world.service.adminKey}`]];
  if (method === 'POST') headers.push(['Idempotency-Key', `cost-${posts++}`]);
  return headers;
}

const withBody = Object.entries<Route>(routes).filter(([, { body }]) => body !== undefined);

test.each(withBody)('%s', { timeout: 60_000 + runs * 30_000 }, async (_, route) => {
  if (routesDone++ % REFRESHED_EVERY === 0) await world.refresh();
  const part = (schema: unknown) => (schema ? valid(schema as SchemaObject) : fc.constant({}));
  const [params, whole] = [part(route.params), part(route.body)].map(
    (part) => fc.sample(part, { seed, numRuns: 1 })[0],
  );
  const growths = growthsOf(route.body as SchemaObject, whole);
  const some = fc.sample(fc.constantFrom(...growths), { seed, numRuns: runs });
  const { method, path } = route;
  for (const { name, body } of some) {
    for (const bytes of sizes()) {
      const made = {
        method,
        path,
        params: params as Record<string, unknown>,
        query: [],
        headers: headersOf(route),
        body: body(bytes),
        mutations: [],
      };
      const request = requestOf(made, { resolve: world.resolve, host: `127.0.0.1:${port}` });
      const ms = await longestStretch(async () => {
        const answer = await exchange(port, request);
        if (request.body!.length <= BODY_LIMIT) expect(answer?.status, `${name}, ${bytes} bytes`).toBeLessThan(500);
      });
      expect(ms, `${name}, ${bytes} bytes`).toBeLessThan(MOST_MS);
    }
  }
});

/** In bytes, so that nothing but the service works on what is large. */
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

/** Sends it; undefined if it is refused, as what is too much may be. */
async function sent<T>(request: ReturnType<typeof post>): Promise<T | undefined> {
  const { status = 0, text = '' } = (await exchange(port, request)) ?? {};
  expect(status, text).toBeLessThan(500);
  return status < 300 ? (JSON.parse(text) as T) : undefined;
}

/** What sends the agent, and lets it answer once if it was created. */
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
  // Some are what they are at any size.
  for (const bytes of grow.length === 0 ? [BODY_LIMIT] : sizes()) {
    const run = runOf(grow(bytes));
    expect(await longestStretch(run), `${bytes} bytes`).toBeLessThan(MOST_MS);
  }
});

test('afterwards the service is well', async () => {
  expect((await fetch(`${world.service.url}/readyz`)).status).toBe(200);
});
