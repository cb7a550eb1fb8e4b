// PostgreSQL analyzes a table once a tenth of its rows are new, which in a new database under load is every few seconds. That can take
// half a second of CPU time, during which commits take twice as long.
import sql, { raw } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

const SESSIONS = 12;
// Their rows move to other tables.
const EMPTIED = ['events_pending', 'pending_deliveries'];

let service: TestService;
let receiver: Receiver;
beforeAll(async () => {
  service = await startTestService();
  receiver = await createReceiver();
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function rowCounts(): Promise<Map<string, number>> {
  const tables = await service.db.query<{ name: string }>(sql`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`);
  const counts = await Promise.all(
    tables.map(async ({ name }) => {
      const [row] = await service.db.query<{ count: number }>(sql`select count(*)::int as count from ${raw(name)}`);
      return [name, row!.count] as const;
    }),
  );
  return new Map(counts);
}

test('a table that every session adds rows to is analyzed once half of its rows are new', async () => {
  const { client } = service;
  await client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
  const agent = await client.agents.create({
    name: 'A',
    model: { provider: 'scripted', model: 'instant', settings: { script: [{ text: 'Hello' }] } },
  });
  const before = await rowCounts();
  for (let opened = 0; opened < SESSIONS; opened += 1) {
    await client.sessions.open({
      agentId: agent.agentId,
      environment: 'production',
      input: 'Hello',
      closeOnIdle: true,
    });
  }
  const growing = async () => {
    const after = await rowCounts();
    return [...after.keys()].filter((name) => after.get(name)! - before.get(name)! >= SESSIONS).sort();
  };
  await expect.poll(growing).toEqual(expect.arrayContaining(['segments', 'session_search', 'webhook_deliveries']));

  const analyzed = await service.db.query<{ name: string }>(sql`
    select relname as name from pg_class where 'autovacuum_analyze_scale_factor=0.5' = any(reloptions)`);
  const names = analyzed.map(({ name }) => name);
  expect((await growing()).filter((name) => !names.includes(name) && !EMPTIED.includes(name))).toEqual([]);
});
