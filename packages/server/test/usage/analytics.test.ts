// Analytics: what nodes count, write and fold, and the report of it.
import { BadRequestError } from '@signalbox/client';
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dropOldAnalytics, foldedBefore, foldMinutes, organizationsToFold } from '../../src/analytics/fold.ts';
import { DAY, ROLLUP_INTERVALS } from '../../src/analytics/intervals.ts';
import { createAnalytics } from '../../src/analytics/recorder.ts';
import { getAnalytics } from '../../src/analytics/report.ts';
import { ALL_AGENTS, NO_ID } from '../../src/analytics/rows.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { compactUsage } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { insertUsage } from '../../src/usage/usage.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type OpenAiServer, refuse, respond, startOpenAiServer } from '../support/openai-server.ts';
import { costOf } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { createReceiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

const START = new Date('2026-03-10T12:00:30.000Z');

describe('what nodes count', () => {
  let now = START;
  const clock = { ...createManualClock(START), now: () => now };
  const moveTo = (ms: number) => {
    now = new Date(START.getTime() + ms);
  };
  const [ada, bob] = [newUuid(), newUuid()];
  let test_: TestPlatform;
  let ctx: PoolContext;
  beforeAll(async () => {
    test_ = await createTestPlatform({ clock });
    ctx = test_.ctx;
  });
  afterAll(() => test_.close());

  const subject = (agentId = ada, environment = 'production') => ({
    organizationId: test_.organizationId,
    environment,
    agentId,
    model: 'openai/a',
  });
  const node = () => createAnalytics(test_.platform);
  const report = (input: Parameters<typeof getAnalytics>[1] = {}) => getAnalytics(ctx, input);
  const HOUR_MS = 3_600_000;

  test('two nodes count together, and a write whose acknowledgement was lost counts once', async () => {
    let isLost = true;
    const { db } = test_.platform;
    const one = createAnalytics({
      ...test_.platform,
      db: {
        async execute(statement) {
          const count = await db.execute(statement);
          if (isLost) throw new Error('The acknowledgement is lost');
          return count;
        },
      },
    });
    const two = node();
    one.count(subject(), 'turns', 'sessionsOpened');
    one.observe(subject(), 'turnMs', 1_000);
    await one.flush();
    isLost = false;
    one.count(subject(), 'turns');
    one.countFailure(subject(), { code: 'model_timeout', sessionId: newUuid() });
    two.count(subject(), 'turns');
    two.count(subject(bob, 'staging'), 'turns', 'toolCalls', 'toolCallsFailed');
    two.observe(subject(), 'turnMs', 4_000);
    for (const each of [one, two, one]) await each.flush();
    const { total, points } = await report({
      step: 'minute',
      from: '2026-03-10T11:59:00.000Z',
      to: '2026-03-10T12:02:00.000Z',
    });
    expect(total).toMatchObject({
      sessions: { opened: 1 },
      turns: { ended: 4, failed: 1 },
      toolCalls: { ended: 1, failed: 1 },
      turnDuration: { count: 2 },
    });
    expect(points.map(({ turns }) => turns.ended)).toEqual([0, 4, 0]);
  });

  test('what a node could not write for ten minutes is dropped, because its minutes may be folded', async () => {
    const late = node();
    late.count(subject(bob), 'webhookAttempts');
    moveTo(9 * 60_000);
    late.count(subject(bob), 'toolCalls');
    // A count of a minute that began 30 seconds before.
    moveTo(10 * 60_000);
    expect(foldedBefore(clock.now()).getTime()).toBeLessThan(START.getTime() - 30_000);
    await late.flush();
    moveTo(0);
    const { total } = await report({ to: new Date(START.getTime() + HOUR_MS).toISOString() });
    expect(total.webhooks.attempts).toBe(0);
    expect(total.toolCalls.ended).toBe(2);
  });

  const call = (at: Date, costUsd: number) =>
    insertUsage(
      { organizationId: test_.organizationId, agentId: ada, environment: 'production', endUserId: null, keyId: null },
      {
        operationId: newUuid(),
        model: 'openai/a',
        usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0, webSearches: 2, costUsd },
      },
      at,
    );

  test('folding and compaction change no report, in batches and on two nodes at once', async () => {
    const { db } = test_.platform;
    const counting = node();
    const failed = newUuid();
    for (let minute = 0; minute < 130; minute += 1) {
      moveTo(minute * 60_000);
      for (const agentId of [ada, bob]) {
        counting.count(subject(agentId), 'turns', 'webhookAttempts');
        counting.observe(subject(agentId), 'firstTokenMs', 100 + minute * 10);
      }
      if (minute % 10 === 0) counting.countFailure(subject(bob), { code: 'model_rejected', sessionId: failed });
      await db.query(call(clock.now(), 0.001));
      if (minute % 5 === 0) await counting.flush();
    }
    await counting.flush();
    const inputs = [
      { from: START.toISOString() },
      { from: START.toISOString(), groupBy: 'agent' },
      { from: START.toISOString(), groupBy: 'model', environment: 'production' },
      { from: START.toISOString(), groupBy: 'environment', agentId: formatId('agt', bob) },
      { from: '2026-03-01T00:00:00.000Z', step: 'day' },
      // From here on, sums are read from blocks of 64, 16 and 4 days that include the day.
      ...['2026-06-01', '2026-04-01', '2026-03-20', '2026-03-12'].map(
        (day) =>
          ({ from: '2026-01-01T00:00:00.000Z', to: `${day}T00:00:00.000Z`, step: 'day', groupBy: 'agent' }) as const,
      ),
      { from: '2026-02-07T22:00:00.000Z', step: 'hour', groupBy: 'model', agentId: formatId('agt', ada) },
    ] as const;
    moveTo(6 * HOUR_MS);
    const reports = () => Promise.all(inputs.map((input) => report({ to: clock.now().toISOString(), ...input })));
    const before = await reports();
    expect(before[0]!.total).toMatchObject({
      webhooks: { attempts: 260, failed: 0 },
      modelCalls: { succeeded: 130 },
      tokens: 1950,
      webSearches: 260,
      costUsd: 0.13,
      firstToken: { count: 260 },
    });
    expect(before[1]!.groups.find(({ group }) => group === formatId('agt', bob))!.failures).toEqual([
      { code: 'model_rejected', count: 13, sessionId: formatId('ses', failed) },
    ]);
    for (const { groups, total } of before.slice(1, 4)) {
      const sum = (of: (one: (typeof groups)[number]) => number) => groups.reduce((all, one) => all + of(one), 0);
      expect(sum(({ turns }) => turns.ended)).toBe(total.turns.ended);
      expect(sum(({ turns }) => turns.failed)).toBe(total.turns.failed);
      expect(sum(({ firstToken }) => firstToken.count)).toBe(total.firstToken.count);
    }
    while (await compactUsage(db, test_.organizationId, 50));
    expect(await reports()).toEqual(before);
    const until = foldedBefore(clock.now());
    expect(await organizationsToFold(test_.platform, until)).toEqual([test_.organizationId]);
    const folding = async () => {
      while (await foldMinutes(db, test_.organizationId, until, 7));
    };
    await Promise.all([folding(), folding()]);
    await folding();
    expect(await organizationsToFold(test_.platform, until)).toEqual([]);
    expect(await reports()).toEqual(before);
  });

  test('two hours by the minute, and the two before them, are complete until they are over', async () => {
    moveTo(4 * HOUR_MS);
    const inMinutes = { step: 'minute', from: new Date(START.getTime() + 2 * HOUR_MS).toISOString() } as const;
    const whole = { step: 'hour', from: '2026-03-10T12:00:00.000Z', to: '2026-03-10T15:00:00.000Z' } as const;
    const { signal } = new AbortController();
    await dropOldAnalytics(test_.platform, clock.now(), signal);
    const { total, previous } = await report(inMinutes);
    expect(previous.turns.ended).toBeGreaterThan(0);
    expect(previous.turns.ended + total.turns.ended).toBe((await report(whole)).total.turns.ended);
    moveTo(5 * HOUR_MS);
    await dropOldAnalytics(test_.platform, clock.now(), signal);
    moveTo(4 * HOUR_MS);
    expect((await report(inMinutes)).previous.turns.ended).toBeLessThan(previous.turns.ended);
  });

  test('a year is read from a point a day and two dozen rows an agent', async () => {
    const [agents, days] = [10, 732];
    const organizationId = newUuid();
    const to = new Date('2026-03-11T00:00:00.000Z');
    await ctx.db.query(sql`
      insert into analytics (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by, turns)
      select ${organizationId}, length, to_timestamp(at), 'production', agent, '', '', ${NO_ID}, length / 86400
      from unnest(${ROLLUP_INTERVALS}::int[]) length,
        unnest(${[ALL_AGENTS, ...Array.from({ length: agents }, () => newUuid())]}::uuid[]) agent,
        generate_series(${to.getTime() / 1000 - days * DAY}::bigint / length * length, ${to.getTime() / 1000 - 1}::bigint, length) at`);
    const statements: Sql[] = [];
    const batch: typeof ctx.db.batch = (some) => {
      statements.push(...some);
      return ctx.db.batch(some);
    };
    const large = { ...ctx, organizationId, db: { ...ctx.db, batch } };
    const input = {
      from: new Date(to.getTime() - 366 * DAY * 1000).toISOString(),
      to: to.toISOString(),
      step: 'day',
    } as const;
    const { total, previous, points, groups } = await getAnalytics(large, { ...input, groupBy: 'agent' });
    expect([total.turns.ended, previous.turns.ended, points.length]).toEqual([366, 366, 366]);
    expect(groups.map(({ turns }) => turns.ended)).toEqual(Array.from({ length: agents }, () => 366));
    const rows = [];
    for (const statement of statements) rows.push((await costOf(ctx.db, statement, { asIfLarge: true })).rows);
    // Rows of all agents are between those of each, which are passed over. Some are of unnest.
    expect(rows[0]).toBeLessThanOrEqual(366 * (agents + 1) + 20);
    for (const ofSums of rows.slice(1)) expect(ofSums).toBeLessThanOrEqual(23 * (agents + 1) + 20);
  });

  test('hours and days are deleted when they are too old to be in a report', async () => {
    const [{ count: stored } = { count: 0 }] = await ctx.db.query<{ count: number }>(sql`
      select count(*)::int as count from analytics where organization_id = ${test_.organizationId}`);
    expect(stored).toBeGreaterThan(0);
    const { signal } = new AbortController();
    await dropOldAnalytics(test_.platform, new Date(START.getTime() + 100 * 24 * HOUR_MS), signal);
    const left = await ctx.db.query<{ length: number }>(sql`
      select distinct interval_seconds as length from analytics where organization_id = ${test_.organizationId}`);
    const day = 86_400;
    expect(left.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([day, 4 * day, 16 * day, 64 * day]);
    await dropOldAnalytics(test_.platform, new Date(START.getTime() + 800 * 24 * HOUR_MS), signal);
    const none = await ctx.db.query(sql`
      select 1 as one from analytics where organization_id = ${test_.organizationId}`);
    expect(none).toEqual([]);
  });
});

describe('a service', () => {
  let service: TestService;
  let provider: OpenAiServer;
  beforeAll(async () => {
    provider = await startOpenAiServer();
    service = await startTestService({
      config: { prices: createPrices({ 'openai-compatible/org/fast': { inputUsd: 10, outputUsd: 50 } }) },
    });
  });
  afterAll(async () => {
    await service.stop();
    await provider.close();
  });

  test('counts sessions, turns, failures, first tokens, tool calls, deliveries and cost', async () => {
    const { client } = service;
    const receiver = await createReceiver();
    await client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
    const model = { provider: 'openai-compatible', model: 'org/fast', baseUrl: provider.url } as const;
    const good = await client.agents.create({ name: 'Good', model });
    const bad = await client.agents.create({ name: 'Bad', model: { ...model, model: 'org/bad' } });
    provider.next(respond({ text: ['Hello.'], usage: { prompt: 100, completion: 10 } }));
    const first = await client.sessions.open({
      agentId: good.agentId,
      environment: 'production',
      input: 'Hi',
      closeOnIdle: true,
    });
    for await (const _ of client.sessions.stream(first.sessionId));
    provider.next(refuse(400));
    const second = await client.sessions.open({
      agentId: bad.agentId,
      environment: 'production',
      input: 'Hi',
      closeOnIdle: true,
    });
    for await (const _ of client.sessions.stream(second.sessionId));
    const third = await client.sessions.open({ agentId: good.agentId, environment: 'staging' });
    await client.sessions.cancel(third.sessionId);

    await expect
      .poll(async () => (await client.analytics.get()).total, { interval: 500 })
      .toMatchObject({
        sessions: { opened: 3, completed: 1, failed: 1, cancelled: 1 },
        turns: { ended: 2, failed: 1 },
        turnDuration: { count: 2 },
        firstToken: { count: 1 },
        modelCalls: { succeeded: 1, failed: 1 },
        webhooks: { attempts: expect.any(Number), failed: 0 },
        costUsd: 0.0015,
      });
    const { groups, previous } = await client.analytics.get({ groupBy: 'agent', environment: 'production' });
    const failing = groups.find(({ group }) => group === bad.agentId)!;
    expect(failing).toMatchObject({
      turns: { ended: 1, failed: 1 },
      failures: [{ code: 'model_rejected', count: 1, sessionId: second.sessionId }],
    });
    expect(groups.find(({ group }) => group === '')!.webhooks.attempts).toBeGreaterThan(0);
    expect(previous.turns.ended).toBe(0);
    await receiver.close();
  });

  test('a period that is too long, too long ago, or reversed is refused with the name of the field', async () => {
    for (const query of [
      { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' },
      { from: '2020-01-02T00:00:00Z', to: '2020-01-03T00:00:00Z', step: 'hour' },
      { from: '2020-01-02T00:00:00Z', to: '2020-01-02T01:00:00Z', step: 'minute' },
      { from: '2020-01-02T00:00:00Z', to: '2022-01-02T00:00:00Z' },
    ] as const) {
      const refused = await service.client.analytics.get(query).catch((error) => error);
      expect(refused).toBeInstanceOf(BadRequestError);
      expect(refused).toMatchObject({ errors: [{ path: 'from' }] });
    }
  });
});
