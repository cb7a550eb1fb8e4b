// Lists that leave out most of what there is find the rest by an index, whichever values they were asked with before.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from './support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  const { client, db } = service;
  const { agentId } = await client.agents.create({ name: 'one', model: 'scripted/echo' });
  await client.sessions.open({ agentId, environment: 'production' });
  // Waiting, as nearly all of those do that have a long life; and their approvals, nearly all decided.
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at, updated_at)
    select s.organization_id, gen_random_uuid(), s.agent_id, s.environment, 'waiting', false, '{}', s.created_at, s.updated_at
    from sessions s cross join generate_series(1, 5000)`);
  await db.execute(sql`
    insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input_schema, once, status,
      requested_at)
    select s.organization_id, s.session_id, s.session_id, s.agent_id, s.environment, 'pay', '{}', false, 'approved', s.created_at
    from sessions s where s.status = 'waiting'`);
  await db.execute(sql`analyze sessions`);
  await db.execute(sql`analyze approvals`);
});

/** Of the statement that a list sends, as it is planned for any values. */
async function planOf(table: string, list: () => PromiseLike<unknown>): Promise<string> {
  const heard: string[] = [];
  const hear = (text: unknown) => void heard.push(text as string);
  subscribe('signalbox.statement', hear);
  await list();
  unsubscribe('signalbox.statement', hear);
  const text = heard.find((one) => one.includes(` from ${table} `) && one.includes(' limit '))!;
  const client = await service.db.connect();
  try {
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query(`prepare list as ${text}`);
    const values = new Set(text.match(/\$\d+/g)).size;
    const { rows } = await client.query(`explain execute list(${Array(values).fill('null').join(', ')})`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  } finally {
    await client.end();
  }
}

test.each([
  ['failed', 'sessions_ended'],
  ['idle', 'sessions_open'],
] as const)('the few Sessions that are %s are found among many that wait', async (status, index) => {
  const plan = await planOf('sessions', () => service.client.sessions.list({ status }));
  expect(plan).toContain(index);
});

test('the few approvals that are pending are found among many that were decided', async () => {
  const plan = await planOf('approvals', () => service.client.approvals.list({ status: 'pending' }));
  expect(plan).toContain('approvals_pending');
});
