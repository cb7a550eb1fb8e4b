// The overview: the current state of an organization, in numbers that are cheap to read.
import type { Agent } from '@signalbox/client';
import { maxCount } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countOpenSessions } from '../../src/events/open-sessions.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { getOverview } from '../../src/overview/overview.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { costOfBatch, listenTo } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { createReceiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

const nothing = {
  sessions: { idle: 0, running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0 },
  pendingApprovals: 0,
  webhooks: { blocked: 0, failing: 0, degraded: 0, disabled: 0, waitingDeliveries: 0 },
  schedules: { failing: 0 },
  keysExpiringSoon: 0,
};
const DAY_MS = 86_400_000;

describe('the overview of a service', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  const scripted = (script: object[]): Agent['model'] => ({
    provider: 'scripted',
    model: 'demo',
    settings: { script },
  });

  async function open(environment: string, script: object[], status: string, more: object = {}): Promise<string> {
    const { client } = service;
    const { agentId } = await client.agents.create({
      name: 'A',
      model: scripted(script),
      tools: [
        { type: 'client', name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, approval: 'always' },
      ],
    });
    const { sessionId } = await client.sessions.open({ agentId, environment, input: 'go', ...more });
    await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe(status);
    return sessionId;
  }

  test('counts sessions, approvals, destinations and keys, of all environments or of one', async () => {
    const { client } = service;
    expect(await client.overview()).toEqual(nothing);
    const asking = [{ toolCalls: [{ name: 'pay', input: {} }] }];
    await open('production', asking, 'waiting');
    await open('staging', asking, 'waiting');
    await open('staging', [{ text: 'ok' }], 'idle');
    await open('production', [{ text: 'ok' }], 'completed', { closeOnIdle: true });
    await client.sessions.cancel(await open('production', asking, 'waiting'));
    const soon = new Date(Date.now() + DAY_MS).toISOString();
    await client.keys.create({ name: 'all', permission: 'read', expiresAt: soon });
    await client.keys.create({ name: 'one', permission: 'read', expiresAt: soon, environments: ['production'] });
    const later = new Date(Date.now() + 15 * DAY_MS).toISOString();
    await client.keys.create({ name: 'later', permission: 'read', expiresAt: later });

    expect(await client.overview()).toEqual({
      ...nothing,
      sessions: { ...nothing.sessions, idle: 1, waiting: 2, completed: 1, cancelled: 1 },
      pendingApprovals: 2,
      keysExpiringSoon: 2,
    });
    const staging = {
      ...nothing,
      sessions: { ...nothing.sessions, idle: 1, waiting: 1 },
      pendingApprovals: 1,
      keysExpiringSoon: 1,
    };
    expect(await client.overview({ environment: 'staging' })).toEqual(staging);
    // A key of one environment sees nothing of the others.
    const { secret } = await client.keys.create({ name: 'S', permission: 'read', environments: ['staging'] });
    const limited = service.clientWith(secret!);
    expect(await limited.overview()).toEqual(staging);
    await expect(limited.overview({ environment: 'production' })).rejects.toMatchObject({ status: 403 });
  });

  test('counts a failing destination and the deliveries that wait for it', async () => {
    const { client } = service;
    const receiver = await createReceiver(() => 500);
    await client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
    await open('production', [{ text: 'ok' }], 'idle');
    await expect
      .poll(async () => (await client.overview()).webhooks)
      .toEqual({ blocked: 0, failing: 1, degraded: 0, disabled: 0, waitingDeliveries: 1 });
    expect((await client.overview({ environment: 'staging' })).webhooks).toEqual(nothing.webhooks);
    receiver.respond = () => 410;
    const [delivery] = (await client.webhookSubscriptions.deliveries.list('production')).data;
    await client.webhookSubscriptions.deliveries.resend('production', delivery!.deliveryId);
    await expect.poll(async () => (await client.overview()).webhooks.disabled).toBe(1);
    expect((await client.overview()).webhooks.failing).toBe(0);
    await receiver.close();
  });

  test('counts a blocked subscription, only in its environment', async () => {
    const { client, db } = service;
    await client.webhookSubscriptions.create({ environment: 'staging', url: 'signalbox:test-receiver' });
    expect((await client.overview()).webhooks.blocked).toBe(0);
    await db.execute(sql`update webhook_subscriptions set sealed_secret = '' where environment = 'staging'`);
    expect((await client.overview()).webhooks.blocked).toBe(1);
    expect((await client.overview({ environment: 'staging' })).webhooks.blocked).toBe(1);
    expect((await client.overview({ environment: 'production' })).webhooks.blocked).toBe(0);
  });
});

describe('the overview of many resources', () => {
  const clock = createManualClock();
  let platform: TestPlatform;
  let ctx: PoolContext;
  beforeAll(async () => {
    platform = await createTestPlatform({ clock });
    ctx = platform.ctx;
    await ctx.db.execute(sql`
      insert into agents (organization_id, agent_id, version, created_at, updated_at)
      values (${ctx.organizationId}, ${ctx.organizationId}, 1, ${clock.now()}, ${clock.now()})`);
  });
  afterAll(() => platform.close());

  async function sessions(count: number, environment: string, status: string, endedAt: Date | null): Promise<void> {
    await ctx.db.execute(sql`
      insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata,
        created_at, updated_at, ended_at)
      select ${ctx.organizationId}::uuid, gen_random_uuid(), ${ctx.organizationId}::uuid, ${environment}, ${status}, false, '{}',
        ${clock.now()}, ${clock.now()}, ${endedAt}::timestamptz from generate_series(1, ${count}) n`);
    await countOpenSessions(ctx.db, ctx.organizationId, clock.now());
  }

  test('does not count what ended more than a day ago or belongs to another organization', async () => {
    const now = clock.now().getTime();
    await sessions(3, 'production', 'failed', new Date(now - DAY_MS));
    await sessions(5, 'staging', 'failed', new Date(now - DAY_MS - 1));
    expect((await getOverview(ctx, {})).overview.sessions.failed).toBe(3);
    const other = await ctx.db.transaction((tx) => createOrganization(tx, 'Other', clock.now()));
    expect((await getOverview({ ...ctx, organizationId: other.organizationId }, {})).overview).toEqual(nothing);
  });

  test('stops counting at the maximum, also across environments', async () => {
    await sessions(maxCount - 10, 'production', 'idle', null);
    expect((await getOverview(ctx, {})).overview.sessions.idle).toBe(maxCount - 10);
    await sessions(20, 'staging', 'idle', null);
    expect((await getOverview(ctx, {})).overview.sessions.idle).toBe(maxCount);
    expect((await getOverview(ctx, { environment: 'staging' })).overview.sessions.idle).toBe(20);
    expect((await getOverview(ctx, { environment: 'nowhere' })).overview).toEqual({ ...nothing });
  });

  test('distinguishes failing and degraded destinations, and counts a paused one as neither', async () => {
    const now = clock.now();
    for (const [name, status, degraded] of [
      ['a', 'enabled', false],
      ['b', 'enabled', true],
      ['c', 'paused', true],
      ['d', 'disabled', true],
    ] as const) {
      await ctx.db.query(sql`
        insert into environments (organization_id, name, environment_id, created_at)
        values (${ctx.organizationId}, ${name}, ${newUuid()}, ${now})`);
      await ctx.db.query(sql`
        insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
          sealed_secret, secret_version, failing_since, degraded, created_at, updated_at)
        values (${ctx.organizationId}, ${name}, ${newUuid()}, '', '{}', ${status}, '', 1, ${now}, ${degraded}, ${now}, ${now})`);
    }
    const { webhooks } = (await getOverview(ctx, {})).overview;
    // Their secrets are not sealed, and no node delivers here.
    expect(webhooks).toEqual({ blocked: 2, failing: 1, degraded: 1, disabled: 1, waitingDeliveries: 0 });
  });

  test('counts by the indexes, also in environments that PostgreSQL has no statistics of, and no idle sessions', async () => {
    // With one environment and one status, PostgreSQL expects so many of each that reading the whole table seems cheap.
    await ctx.db.execute(sql`
      delete from sessions where organization_id = ${ctx.organizationId} and (environment = 'staging' or status <> 'idle')`);
    await ctx.db.execute(sql`vacuum (analyze) sessions`);
    await ctx.db.execute(sql`
      insert into environments (organization_id, name, environment_id, created_at)
      select ${ctx.organizationId}::uuid, 'new-' || n, gen_random_uuid(), now() from generate_series(1, 50) n
      on conflict do nothing`);
    const { db, batches } = listenTo(ctx.db);
    await getOverview({ ...ctx, db } as PoolContext, {});
    expect(batches).toHaveLength(1);
    for (const cost of await costOfBatch(ctx.db, batches[0]!)) {
      expect(cost.wholeTables).not.toContain('sessions');
      expect(cost.indexes).not.toContain('sessions_by_agent');
      // An index look-up for each environment and status.
      expect(cost.rows).toBeLessThan(20 + 6 * 60);
      expect(cost.pages).toBeLessThan(500);
    }
  });
});
