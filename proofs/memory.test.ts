// The memory of a node does not grow with what its tools return: one organization has many calls at once, each with a result as large as a
// tool may return, and the node stays within its bounds, while it serves another organization.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Signalbox } from '@signalbox/client';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type Nodes, startNodes } from './support/nodes.ts';

const MIB = 1024 * 1024;
const SESSIONS = Number(process.env.SIGNALBOX_MEMORY_SESSIONS ?? 2);
const CALLS = 20;
/**
 * A quarter of a small node of 1 GiB for what tools return, and some for the garbage; for each further session, what its model gets.
 * Before files were stored as they arrive, 40 took 700 MiB, and 40 results of many values that were parsed 1,300. Without the room that
 * calls take of the node's memory (lib/memory.ts) it grows no more than with it: lib/memory.test.ts and test/tools/memory.test.ts hold that.
 */
const MAX_GROWTH_MIB = 300 + 25 * SESSIONS;
/** V8 collects garbage before it exceeds this, and ends the node if the live objects do: most of a larger growth would be garbage. */
const HEAP_MIB = 200 + 25 * SESSIONS;
const HEAP = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` };
const QUIET = { timeout: 600_000, interval: 200 };

const kinds: Record<string, { type: string; body: Buffer }> = {
  files: { type: 'image/png', body: Buffer.alloc(8 * MIB, 0xff) },
  texts: { type: 'text/plain', body: Buffer.alloc(MIB, 'a') },
  values: { type: 'application/json', body: Buffer.from(`[${'[],'.repeat(349_000)}[]]`) },
  records: { type: 'application/json', body: Buffer.from(`[${'{"id":123456,"name":"Ada"},'.repeat(38_000)}1]`) },
};

let database: TestDatabase;
let nodes: Nodes;
let served = 0;
const listener: RequestListener = (request, response) => {
  served += 1;
  const { type, body } = kinds[request.url!.slice(1)]!;
  response.writeHead(200, { 'content-type': type }).end(body);
};
const server = createServer(listener);

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  database = await createTestDatabase();
}, 60_000);
afterAll(async () => {
  await nodes?.end();
  server.closeAllConnections();
  server.close();
  await database.drop();
});

test.runIf(process.platform === 'linux').for(Object.keys(kinds))(
  `${SESSIONS} sessions with ${CALLS} calls at once that return large %s`,
  { timeout: 900_000 },
  async (kind) => {
    await nodes?.end();
    nodes = await startNodes(1, database.url, HEAP);
    const [client] = nodes.clients;
    const { port } = server.address() as AddressInfo;
    const script = [
      { text: 'Wait.', toolCalls: Array.from({ length: CALLS }, () => ({ name: 'look' })) },
      { text: 'Done.' },
    ];
    const { agentId } = await client!.agents.create({
      name: kind,
      model: { provider: 'scripted', model: 'any', settings: { script } },
      tools: [
        {
          type: 'http',
          name: 'look',
          description: 'look',
          inputSchema: { type: 'object' },
          request: { method: 'GET', url: `http://127.0.0.1:${port}/${kind}` },
          approval: 'never',
        },
      ],
    });
    const open = () => client!.sessions.open({ agentId, environment: 'production', input: 'Look.' });
    const before = await residentMib('VmRSS');
    served = 0;
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, open));
    // A client that does not retry fails with the node.
    const other = new Signalbox({ baseUrl: nodes.urls[0]!, apiKey: nodes.apiKey, maxRetries: 0 });
    const statuses = () => Promise.all(sessions.map(({ sessionId }) => other.sessions.get(sessionId)));
    await expect
      .poll(async () => (await statuses()).map(({ status, error }) => error?.code ?? status), QUIET)
      .toEqual(sessions.map(() => 'idle'));
    const peak = await residentMib('VmHWM');
    console.log(`${kind}: from ${before.toFixed()} to at most ${peak.toFixed()} MiB`);
    expect([served, nodes.errors]).toEqual([SESSIONS * CALLS, []]);
    expect(peak - before).toBeLessThan(MAX_GROWTH_MIB);
  },
);

test.runIf(process.platform === 'linux')(
  `${40 * SESSIONS} requests with long bodies of many values that wait for the database`,
  { timeout: 900_000 },
  async () => {
    await nodes?.end();
    nodes = await startNodes(1, database.url, HEAP);
    const [client] = nodes.clients;
    const { agentId } = await client!.agents.create({ name: 'bodies', model: { provider: 'scripted', model: 'any' } });
    const { sessionId } = await client!.sessions.open({ agentId, environment: 'production' });
    const before = await residentMib('VmRSS');
    const body = `{"toolCallId":"call_01k9xq3v7gf3pbt8zn5e6m2r4c","output":[${'[],'.repeat(349_000)}[]]}`;
    const send = async () => {
      const { status } = await fetch(`${nodes.urls[0]}/api/v1/sessions/${sessionId}/tool_results`, {
        method: 'POST',
        headers: { authorization: `Bearer ${nodes.apiKey}`, 'content-type': 'application/json' },
        body,
      });
      return status;
    };
    const lock = new pg.Client(database.url);
    await lock.connect();
    await lock.query('begin');
    await lock.query('lock table sessions in exclusive mode');
    const responses = Array.from({ length: 40 * SESSIONS }, send);
    // The first has waited for a connection for as long as it may.
    await Promise.race(responses);
    await lock.end();
    const statuses = await Promise.all(responses);
    const peak = await residentMib('VmHWM');
    console.log(`bodies: from ${before.toFixed()} to at most ${peak.toFixed()} MiB`);
    expect(statuses.filter((status) => status !== 404 && status !== 503)).toEqual([]);
    // 310 to 415 with 80 bodies, by how often garbage is collected. Without a bound, the node ends: each would take 30.
    expect(peak - before).toBeLessThan(MAX_GROWTH_MIB + 200);
  },
);

/** `VmHWM`: the most so far. */
async function residentMib(what: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${nodes.pid(0)}/status`, 'utf8');
  return Number(new RegExp(`^${what}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1024;
}
