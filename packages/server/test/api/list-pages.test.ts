// Every list while 8 writers insert into all of them: paging through it returns each row that existed at the start once, and no
// row twice.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page, PageRequest } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

const WRITERS = 8;
const ROUNDS = 2;
// Small compared with what is written meanwhile: paging through longer lists would take a thousand calls.
const PAGE = 3;
const LONG_PAGE = 30;

let service: TestService;
let ids: { asking: string; answering: string; sessionId: string; scheduleId: string };
let address: string;

beforeAll(async () => {
  service = await startTestService();
  const { client } = service;
  const receiver = createServer((request, response) => void request.resume().on('end', () => response.end('{}')));
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const scripted = (script: object[]) => ({ provider: 'scripted' as const, model: 'test', settings: { script } });
  const tool = {
    type: 'client' as const,
    name: 'pay',
    description: 'Pays',
    inputSchema: { type: 'object' },
    effectful: true,
  };
  const asking = await client.agents.create({
    name: 'asking',
    model: scripted([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'done' }]),
    tools: [tool],
  });
  const answering = await client.agents.create({ name: 'answering', model: scripted([{ text: 'one two three' }]) });
  await client.webhookSubscriptions.create({ environment: 'production', url: address });
  const session = await client.sessions.open({ agentId: answering.agentId, environment: 'staging' });
  const schedule = { agentId: answering.agentId, environment: 'staging', cron: '0 0 1 1 *', status: 'paused' as const };
  const { scheduleId } = await client.schedules.create(schedule);
  ids = { asking: asking.agentId, answering: answering.agentId, sessionId: session.sessionId, scheduleId };
  return () => void receiver.close();
});
afterAll(() => service.stop());

/** Creates a row in each list, or what leads to one. */
async function writeOnce(writer: number, round: number): Promise<void> {
  const { client, db } = service;
  const name = `w${writer}r${round}`;
  await client.keys.create({ name, permission: 'read' });
  await client.agents.create({ name, model: 'scripted/x' });
  await client.agents.update(ids.asking, { description: name });
  await client.environments.create({ name });
  await client.environments.secrets.set('staging', name.toUpperCase(), {
    value: 'hidden',
    allowedHosts: ['example.com'],
  });
  await client.webhookSubscriptions.create({ environment: name, url: address });
  await client.sessions.open({ agentId: ids.asking, environment: 'production', input: 'go' });
  await client.sessions.sendMessage(ids.sessionId, { content: name });
  await client.schedules.create({
    agentId: ids.answering,
    environment: 'staging',
    cron: '0 0 1 1 *',
    status: 'paused',
  });
  await db.query(sql`
    insert into schedule_runs (organization_id, schedule_id, scheduled_at, status, created_at)
    select s.organization_id, s.schedule_id, ${new Date(Date.UTC(2026, 0, 1, writer, round))}, 'missed', now()
    from schedules s where s.organization_id = (select organization_id from organizations) order by s.schedule_id limit 1`);
}

type Walk = (query: { limit: number; cursor?: string }) => PageRequest<object>;
type Client = TestService['client'];
const lists: Record<string, (client: Client) => Walk> = {
  keys: (client) => (query) => client.keys.list(query),
  agents: (client) => (query) => client.agents.list(query),
  'versions of an agent': (client) => (query) => client.agents.versions(ids.asking, query),
  environments: (client) => (query) => client.environments.list(query),
  secrets: (client) => (query) => client.environments.secrets.list('staging', query),
  sessions: (client) => (query) => client.sessions.list(query),
  'messages of a session': (client) => (query) => client.sessions.messages(ids.sessionId, query),
  'chunks of a session': (client) => (query) => client.sessions.chunks(ids.sessionId, query),
  approvals: (client) => (query) => client.approvals.list(query),
  'approvals, newest first': (client) => (query) => client.approvals.list({ ...query, order: 'desc' }),
  schedules: (client) => (query) => client.schedules.list(query),
  'runs of a schedule': (client) => (query) => client.schedules.runs(ids.scheduleId, query),
  'webhook subscriptions': (client) => (query) => client.webhookSubscriptions.list(query),
  deliveries: (client) => (query) => client.webhookSubscriptions.deliveries.list('production', query),
  'the event log': (client) => (query) => client.events.list(query),
  'the event log, oldest first': (client) => (query) => client.events.list({ ...query, order: 'asc' }),
};
const keyFields = [
  'sequence',
  'version',
  'keyId',
  'environmentId',
  'messageId',
  'operationId',
  'scheduledAt',
  'deliveryId',
  'webhookSubscriptionId',
  'scheduleId',
  'sessionId',
  'name',
] as const;

/** Identifies a row of a page. */
function keysIn({ data }: Page<object>): string[] {
  return data.flatMap((row) => {
    const { chunks } = row as { chunks?: { turn: number; seq: number }[] };
    if (chunks) return chunks.map(({ turn, seq }) => `${turn}:${seq}`);
    const fields = row as Record<string, unknown>;
    // Agents have a version too, but so have secrets.
    if ('agentId' in fields && 'instructions' in fields) return [`${fields.agentId} ${fields.version}`];
    return [String(fields[keyFields.find((field) => field !== 'version' && field in fields)!])];
  });
}

async function walk(list: Walk, limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await list({ limit, ...(cursor && { cursor }) });
    seen.push(...keysIn(page));
    if (!page.hasMore) return seen;
    cursor = page.nextCursor;
  }
}

test('no list skips or duplicates a row while 8 writers insert', async () => {
  let writing = WRITERS;
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    for (let round = 0; round < ROUNDS; round += 1) await writeOnce(writer, round);
    writing -= 1;
  });
  const rows = new Map<string, number>();
  const readers = Object.entries(lists).map(async ([name, listOf]) => {
    const list = listOf(service.client);
    for (let last = false; !last; ) {
      last = writing === 0;
      const before = await walk(list, 100);
      const walked = await walk(list, /log|chunks/.test(name) ? LONG_PAGE : PAGE);
      // An agent with new versions is the same row.
      const rowOf = (key: string) => (name === 'agents' ? key.split(' ')[0]! : key);
      const seen = walked.map(rowOf);
      expect(
        seen.filter((key, at) => seen.indexOf(key) !== at),
        `${name}: twice`,
      ).toEqual([]);
      expect(
        before.map(rowOf).filter((key) => !seen.includes(key)),
        `${name}: skipped`,
      ).toEqual([]);
      rows.set(name, seen.length);
    }
  });
  await Promise.all([...writers, ...readers]);
  expect([...rows].filter(([, count]) => count < WRITERS * ROUNDS)).toEqual([]);
});
