// A rolling restart without failed requests: two nodes behind each load balancer of docs/operations/load-balancers.md are restarted one
// after the other while clients open sessions, read them and send requests through all balancers. `npm run prove -- balancer` runs it for longer.
import { setTimeout as delay } from 'node:timers/promises';
import { Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type Balancer, balancers, isInstalled, startBalancer } from './support/balancers.ts';
import { type Nodes, startNodes } from './support/nodes.ts';

/** How often each node is restarted. Only `npm run prove` does so: how long each balancer takes to notice is a matter of seconds. */
const restarts = Number(process.env.SIGNALBOX_ROLLING_RESTARTS ?? 0);
const isProof = restarts > 0;
// nginx notices a stopped node only when a connection is refused, and then avoids it for 10 s, even if it is back. It must not avoid both.
const NGINX_FORGETS_MS = 10_000;
const LEAST_REQUESTS = 1000;
const LANES = 4;
const kinds = Object.entries(balancers);

interface Seen {
  requests: number;
  failed: string[];
  streams: number;
  longestPauseMs: number;
}

let database: TestDatabase;
let nodes: Nodes;
let agentId: string;
const running: Balancer[] = [];
const seen = new Map<string, Seen>();

beforeAll(async () => {
  if (!isProof) return;
  for (const [name, kind] of kinds) {
    if (!isInstalled(kind)) throw new Error(`${name} is not installed. Do: apt-get install -y haproxy nginx`);
  }
  database = await createTestDatabase();
  nodes = await startNodes(2, database.url);
  const script = [{ text: 'one two three four five six seven eight nine ten '.repeat(3), tokenDelayMs: 50 }];
  const model = { provider: 'scripted' as const, model: 'any', settings: { script } };
  ({ agentId } = await nodes.clients[0]!.agents.create({ name: 'Talker', model }));

  for (const [, kind] of kinds) running.push(await startBalancer(kind, nodes.urls));
  let isOver = false;
  const uses = kinds.map(async ([name], index) => {
    seen.set(name, await use(running[index]!.url, () => isOver));
  });
  for (let restarted = 0; restarted < nodes.urls.length * restarts; restarted += 1) {
    const index = restarted % nodes.urls.length;
    await delay(NGINX_FORGETS_MS);
    await nodes.restart(index);
    // As an operator waits for one node before the next.
    while (!(await fetch(`${nodes.urls[index]}/readyz`)).ok) await delay(50);
  }
  isOver = true;
  await Promise.all(uses);
}, 300_000);
afterAll(async () => {
  await Promise.all(running.map((balancer) => balancer.stop()));
  await nodes?.end();
  await database?.drop();
});

/** Sends requests, opens sessions and reads them through a balancer until `isOver`. */
async function use(url: string, isOver: () => boolean): Promise<Seen> {
  const headers = { authorization: `Bearer ${nodes.apiKey}`, 'content-type': 'application/json' };
  const client = new Signalbox({ apiKey: nodes.apiKey, baseUrl: url });
  const failed: string[] = [];
  const pausesMs: number[] = [];
  let requests = 0;
  let streams = 0;

  /** Sent once: the client does not retry. */
  async function ask(method: string, path: string, body?: object): Promise<{ session?: { sessionId: string } }> {
    requests += 1;
    try {
      const response = await fetch(`${url}/api/v1${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text) as object;
      failed.push(`${method} ${path}: ${response.status} ${text.slice(0, 80).replaceAll(/\s+/g, ' ')}`);
    } catch (error) {
      failed.push(`${method} ${path}: ${error} ${(error as Error).cause}`);
    }
    await delay(500);
    return {};
  }

  async function asking(): Promise<void> {
    while (!isOver() || requests < LEAST_REQUESTS) {
      await ask('GET', '/me');
      await delay(50);
    }
  }

  async function reading(): Promise<void> {
    while (!isOver()) {
      const opened = { agentId, environment: 'production', input: 'go', closeOnIdle: true };
      const { session } = await ask('POST', '/sessions', opened);
      if (!session) continue;
      streams += 1;
      let last: number | undefined;
      for await (const _ of client.sessions.stream(session.sessionId)) {
        const now = performance.now();
        if (last !== undefined) pausesMs.push(now - last);
        last = now;
      }
    }
  }

  await Promise.all(Array.from({ length: LANES }, () => [reading(), asking()]).flat());
  return { requests, failed, streams, longestPauseMs: Math.max(...pausesMs) };
}

for (const [name] of kinds) {
  const title = `behind ${name} no request fails and no stream pauses for a second while nodes restart one after another`;
  test.runIf(isProof)(title, () => {
    const { requests, failed, streams, longestPauseMs } = seen.get(name)!;
    const said = `${failed.length} of ${requests} requests failed, ${streams} streams, longest pause ${Math.round(longestPauseMs)} ms`;
    process.stdout.write(`\n${name}: ${said}\n`);
    expect(failed, said).toEqual([]);
    expect(streams).toBeGreaterThan(0);
    expect(longestPauseMs, said).toBeLessThan(1000);
  });
}
