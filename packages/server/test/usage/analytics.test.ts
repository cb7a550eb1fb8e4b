// Analytics: what nodes count, write and fold, and the report of it.
import { BadRequestError } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dropOldAnalytics, foldedBefore, foldMinutes, organizationsToFold } from '../../src/analytics/fold.ts';
import { createAnalytics } from '../../src/analytics/recorder.ts';
import { getAnalytics } from '../../src/analytics/report.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { compactUsage } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { insertUsage } from '../../src/usage/usage.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type OpenAiServer, refuse, respond, startOpenAiServer } from '../support/openai-server.ts';
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

  test('what a node could not write for an hour is dropped, because its minutes may be folded', async () => {
    const late = node();
    late.count(subject(bob), 'webhookAttempts');
    moveTo(HOUR_MS + 60_000);
    await late.flush();
    moveTo(0);
    expect((await report()).total.webhooks.attempts).toBe(0);
  });

  const call = (at: Date, costUsd: number) =>
    insertUsage(
      { organizationId: test_.organizationId, agentId: ada, environment: 'production', endUserId: null, keyId: null },
      {
        operationId: newUuid(),
        model: 'openai/a',
        usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0, costUsd },
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
      if (minute % 30 === 0) await counting.flush();
    }
    await counting.flush();
    const inputs = [
      { from: START.toISOString() },
      { from: START.toISOString(), groupBy: 'agent' },
      { from: START.toISOString(), groupBy: 'model', environment: 'production' },
      { from: START.toISOString(), groupBy: 'environment', agentId: formatId('agt', bob) },
      { from: '2026-03-01T00:00:00.000Z', step: 'day' },
    ] as const;
    moveTo(6 * HOUR_MS);
    const reports = () => Promise.all(inputs.map((input) => report({ ...input, to: clock.now().toISOString() })));
    const before = await reports();
    expect(before[0]!.total).toMatchObject({
      webhooks: { attempts: 260, failed: 0 },
      modelCalls: { succeeded: 130 },
      tokens: 1950,
      costUsd: 0.13,
      firstToken: { count: 260 },
    });
    expect(before[1]!.groups.find(({ group }) => group === formatId('agt', bob))!.failures).toEqual([
      { code: 'model_rejected', count: 13, sessionId: formatId('ses', failed) },
    ]);
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

  test('hours and days are deleted when they are too old to be in a report', async () => {
    const [{ count: stored } = { count: 0 }] = await ctx.db.query<{ count: number }>(sql`
      select count(*)::int as count from analytics where organization_id = ${test_.organizationId}`);
    expect(stored).toBeGreaterThan(0);
    const { signal } = new AbortController();
    await dropOldAnalytics(test_.platform, new Date(START.getTime() + 100 * 24 * HOUR_MS), signal);
    const left = await ctx.db.query<{ length: number }>(sql`
      select distinct interval_seconds as length from analytics where organization_id = ${test_.organizationId}`);
    expect(left.map(({ length }) => length)).toEqual([86_400]);
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
      .poll(async () => (await client.analytics.get()).total, { timeout: 30_000, interval: 500 })
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
