// The usage report of an organization: periods, compaction, isolation of organizations.
import { BadRequestError, type CreateAgent } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { createUpkeep } from '../../src/maintenance.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { compactUsage, organizationsToCompact } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { getUsage, insertUsage } from '../../src/usage/usage.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type OpenAiServer, respond, startOpenAiServer } from '../support/openai-server.ts';
import { addOrganization } from '../support/organization.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { startTestService, type TestService } from '../support/service.ts';

const day = (text: string) => new Date(`${text}T00:00:00.000Z`);

describe('the report', () => {
  const clock = createManualClock(new Date('2026-03-10T12:00:00.000Z'));
  const [ada, bob] = [newUuid(), newUuid()];
  let test_: TestPlatform;
  let ctx: PoolContext;
  beforeAll(async () => {
    test_ = await createTestPlatform({ clock });
    ctx = test_.ctx;
    await use('2026-03-01T00:00:00.000Z', { agentId: ada, input: 100, output: 10, cached: 40, cost: 0.1 });
    await use('2026-03-01T23:59:59.999Z', {
      agentId: ada,
      input: 200,
      output: 20,
      cost: 0.2,
      model: 'openai/b',
      endUserId: 'a',
      keyId: newUuid(),
      searches: 3,
    });
    await use('2026-03-03T12:00:00.000Z', {
      agentId: bob,
      input: 5_000,
      output: 1,
      environment: 'staging',
      endUserId: 'B',
    });
    await use('2026-03-10T11:59:00.000Z', { agentId: bob, input: 7, output: 3, cost: 0.000_000_001 });
  });
  afterAll(() => test_.close());

  async function use(
    at: string,
    call: {
      agentId: string;
      input: number;
      output: number;
      cached?: number;
      searches?: number;
      cost?: number;
      model?: string;
      environment?: string;
      endUserId?: string;
      keyId?: string;
      organizationId?: string;
    },
  ): Promise<void> {
    const { organizationId = test_.organizationId, agentId, environment = 'production', model = 'openai/a' } = call;
    const usage = {
      inputTokens: call.input,
      outputTokens: call.output,
      cachedTokens: call.cached ?? 0,
      ...(call.searches && { webSearches: call.searches }),
      costUsd: call.cost ?? null,
    };
    await ctx.db.query(
      insertUsage(
        { organizationId, agentId, environment, endUserId: call.endUserId ?? null, keyId: call.keyId ?? null },
        { operationId: newUuid(), model, usage },
        new Date(at),
      ),
    );
  }

  // The tests run twice, because compaction must not change a report.
  describe.each(['before', 'after'])('%s compaction', (when) => {
    beforeAll(async () => {
      if (when === 'after') {
        while (await compactUsage(ctx.db, test_.organizationId, 3));
        expect(await organizationsToCompact(ctx)).toEqual([]);
      }
    });

    test('without parameters the report has the last 30 days, one entry a day, in order', async () => {
      const report = await getUsage(ctx, {});
      expect(report).toMatchObject({
        from: '2026-02-08T00:00:00.000Z',
        to: '2026-03-11T00:00:00.000Z',
        groupBy: 'day',
        other: null,
      });
      expect(report.data).toHaveLength(31);
      expect(report.data.map(({ group }) => group)).toEqual(report.data.map(({ group }) => group).toSorted());
      expect(report.data.filter(({ steps }) => steps > 0)).toEqual([
        {
          group: '2026-03-01',
          inputTokens: 300,
          outputTokens: 30,
          cachedTokens: 40,
          webSearches: 3,
          steps: 2,
          unpricedSteps: 0,
          costUsd: 0.3,
        },
        {
          group: '2026-03-03',
          inputTokens: 5_000,
          outputTokens: 1,
          cachedTokens: 0,
          steps: 1,
          unpricedSteps: 1,
          costUsd: null,
        },
        {
          group: '2026-03-10',
          inputTokens: 7,
          outputTokens: 3,
          cachedTokens: 0,
          steps: 1,
          unpricedSteps: 0,
          costUsd: 0.000_000_001,
        },
      ]);
      expect(report.total).toEqual({
        inputTokens: 5_307,
        outputTokens: 34,
        cachedTokens: 40,
        webSearches: 3,
        steps: 4,
        unpricedSteps: 1,
        costUsd: 0.300_000_001,
      });
    });

    test('searches are counted once, by whatever they are grouped and split', async () => {
      for (const groupBy of ['day', 'agent', 'environment', 'model', 'endUser', 'apiKey'] as const) {
        const { data, total } = await getUsage(ctx, { groupBy });
        const found = data.flatMap(({ webSearches }) => webSearches ?? []);
        expect([groupBy, total.webSearches, found]).toEqual([groupBy, 3, [3]]);
        if (groupBy === 'day') continue;
        const { data: days } = await getUsage(ctx, { splitBy: groupBy });
        const parts = days.flatMap(({ split = [] }) => split.flatMap(({ webSearches }) => webSearches ?? []));
        expect([groupBy, parts]).toEqual([groupBy, [3]]);
      }
    });

    test('groups by agent, environment, model or end user are ordered by cost, the highest first', async () => {
      const groups = async (groupBy: 'agent' | 'environment' | 'model' | 'endUser') =>
        (await getUsage(ctx, { groupBy })).data.map(({ group, steps, unpricedSteps, costUsd }) => [
          group,
          steps,
          unpricedSteps,
          costUsd,
        ]);
      expect(await groups('agent')).toEqual([
        [formatId('agt', ada), 2, 0, 0.3],
        [formatId('agt', bob), 2, 1, 0.000_000_001],
      ]);
      expect(await groups('environment')).toEqual([
        ['production', 3, 0, 0.300_000_001],
        ['staging', 1, 1, null],
      ]);
      expect(await groups('model')).toEqual([
        ['openai/b', 1, 0, 0.2],
        ['openai/a', 3, 1, 0.100_000_001],
      ]);
      // What was used for no end user is a group as well, so the groups add up to the total.
      expect(await groups('endUser')).toEqual([
        ['a', 1, 0, 0.2],
        ['', 2, 0, 0.100_000_001],
        ['B', 1, 1, null],
      ]);
    });

    test('the parts of each day add up to the day, by whatever they are split', async () => {
      for (const splitBy of ['agent', 'environment', 'model', 'endUser', 'apiKey'] as const) {
        const { data } = await getUsage(ctx, {
          from: '2026-03-01T00:00:00.000Z',
          to: '2026-03-10T12:00:00.000Z',
          splitBy,
        });
        for (const { split = [], steps, inputTokens, unpricedSteps } of data) {
          const sum = (of: 'steps' | 'inputTokens' | 'unpricedSteps') => split.reduce((all, part) => all + part[of], 0);
          expect([splitBy, sum('steps'), sum('inputTokens'), sum('unpricedSteps')]).toEqual([
            splitBy,
            steps,
            inputTokens,
            unpricedSteps,
          ]);
        }
      }
      const { data } = await getUsage(ctx, {
        from: '2026-03-01T00:00:00.000Z',
        to: '2026-03-02T00:00:00.000Z',
        splitBy: 'model',
      });
      expect(data[0]!.split).toMatchObject([
        { group: 'openai/b', inputTokens: 200, costUsd: 0.2 },
        { group: 'openai/a', inputTokens: 100, costUsd: 0.1 },
      ]);
      await expect(getUsage(ctx, { groupBy: 'model', splitBy: 'agent' })).rejects.toMatchObject({
        errors: [{ path: 'splitBy' }],
      });
    });

    test('the report of an environment has the usage of that environment only', async () => {
      const { total, data } = await getUsage(ctx, { groupBy: 'model', environment: 'staging' });
      expect([total.inputTokens, total.steps, data.map(({ group }) => group)]).toEqual([5_000, 1, ['openai/a']]);
      const byUser = await getUsage(ctx, { groupBy: 'endUser', environment: 'staging' });
      expect(byUser.data).toMatchObject([
        { group: 'B', inputTokens: 5_000, outputTokens: 1, steps: 1, unpricedSteps: 1 },
      ]);
    });

    test('a period is extended to whole days of UTC, and the report has its bounds', async () => {
      const steps = async (from: string, to: string) => {
        const report = await getUsage(ctx, { from, to });
        return [report.from, report.to, report.total.steps];
      };
      const [first, second] = ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'];
      expect(await steps(first, second)).toEqual([first, second, 2]);
      expect(await steps('2026-03-01T18:00:00+01:00', '2026-03-01T18:00:00.001+01:00')).toEqual([first, second, 2]);
      expect(await steps(second, '2026-03-03T00:00:00Z')).toEqual([second, '2026-03-03T00:00:00.000Z', 0]);
      expect(await steps('2026-02-28T23:59:59Z', first)).toEqual(['2026-02-28T00:00:00.000Z', first, 0]);
    });
  });

  test('without usage, every number is zero and the cost is null', async () => {
    const nothing = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, steps: 0, unpricedSteps: 0, costUsd: null };
    const input = { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' };
    const day = { data: [{ group: '2020-01-01', ...nothing }], total: nothing, other: null };
    expect(await getUsage(ctx, input)).toMatchObject(day);
    expect(await getUsage(ctx, { ...input, groupBy: 'model' })).toMatchObject({
      data: [],
      total: nothing,
      other: null,
    });
  });

  test('the smallest groups beyond 1,000 are summed', async () => {
    const { organizationId } = await ctx.db.transaction((tx) => createOrganization(tx, 'Many', clock.now()));
    await ctx.db.execute(sql`
      insert into model_usage_days (organization_id, day, agent_id, environment, model, steps, unpriced_steps,
        input_tokens, output_tokens, cached_tokens, cost_usd)
      select ${organizationId}, '2026-03-02', ${ada}, 'production', 'scripted/m' || n, 1, 0, n, 0, 0, n * 0.1
      from generate_series(1, 1003) n`);
    const { data, other, total } = await getUsage({ ...ctx, organizationId }, { groupBy: 'model' });
    expect(data).toHaveLength(1_000);
    expect([data[0]!.group, data[999]!.group]).toEqual(['scripted/m1003', 'scripted/m4']);
    expect(other).toMatchObject({ inputTokens: 6, steps: 3, costUsd: 0.6 });
    expect(total).toMatchObject({ inputTokens: 503_506, steps: 1_003, costUsd: 50_350.6 });
  });

  test.each([
    [{ from: '2026-03-02T00:00:00Z', to: '2026-03-02T00:00:00Z' }, 'from'],
    [{ from: '2026-03-02T00:00:01Z', to: '2026-03-02T00:00:00Z' }, 'from'],
    [{ from: '2026-03-10T12:00:00.001Z' }, 'from'],
    [{ from: '2025-01-01T00:00:00Z', to: '2026-01-02T00:00:00.001Z' }, 'from'],
    [{ to: '0001-01-05T00:00:00Z' }, 'from'],
    [{ to: '9999-12-31T23:59:59.999Z' }, 'to'],
    [{ from: '2016-12-31T23:59:60Z' }, 'from'],
  ])('%j is refused, naming `%s`', async (input, field) => {
    const refused = expect.objectContaining({ status: 400, errors: [expect.objectContaining({ path: field })] });
    await expect(getUsage(ctx, input)).rejects.toEqual(refused);
  });

  test('a period of 366 days is accepted', async () => {
    const { data } = await getUsage(ctx, { from: '2024-01-01T12:00:00Z', to: '2025-01-01T12:00:00Z' });
    expect(data).toHaveLength(367);
  });
});

describe('compaction', () => {
  let test_: TestPlatform;
  beforeAll(async () => {
    test_ = await createTestPlatform({ clock: createManualClock(new Date('2026-03-10T00:00:01.000Z')) });
  });
  afterAll(() => test_.close());

  /** Stores model calls of past days in a new organization. */
  async function fill(calls: number, now = day('2026-03-02')): Promise<string> {
    const { db } = test_.platform;
    const { organizationId } = await db.transaction((tx) => createOrganization(tx, 'Some', now));
    const agentId = newUuid();
    await db.batch(
      Array.from({ length: calls }, (_, n) =>
        insertUsage(
          { organizationId, agentId, environment: n % 2 ? 'staging' : 'production', endUserId: null, keyId: null },
          {
            operationId: newUuid(),
            model: `openai/${n % 3}`,
            usage: { inputTokens: n, outputTokens: 1, cachedTokens: 0, costUsd: n % 5 === 0 ? null : 0.000_000_1 },
          },
          new Date(now.getTime() + (n % 4) * 43_200_000),
        ),
      ),
    );
    return organizationId;
  }

  const reportOf = (organizationId: string) =>
    getUsage({ ...test_.ctx, organizationId }, { from: '2026-03-01T00:00:00Z', to: '2026-03-10T00:00:00Z' });

  const rowsOf = async (organizationId: string) => {
    const [row] = await test_.platform.db.query(sql`
      select (select count(*) from model_usage where organization_id = ${organizationId}) as calls,
        (select count(*) from model_usage_days where organization_id = ${organizationId}) as sums`);
    return row;
  };

  test('reports do not change while two nodes compact simultaneously', async () => {
    const organizationId = await fill(600);
    const wanted = await reportOf(organizationId);
    const nodes = [test_.platform, await test_.anotherNode()];
    let compacting = true;
    let reads = 0;
    const reading = (async () => {
      while (compacting) {
        expect(await reportOf(organizationId)).toEqual(wanted);
        reads += 1;
      }
    })();
    await Promise.all(
      nodes.map(async ({ db }) => {
        while (await compactUsage(db, organizationId, 10));
      }),
    );
    compacting = false;
    await reading;
    expect(reads).toBeGreaterThan(3);
    // A node that found only rows locked by the other has stopped. The other, or the next pass, compacts the rest.
    while (await compactUsage(test_.platform.db, organizationId, 10));
    expect(await reportOf(organizationId)).toEqual(wanted);
    expect(await rowsOf(organizationId)).toEqual({ calls: 0, sums: 12 });
  });

  test('calls stored after compaction are added to the sums of their day', async () => {
    const organizationId = await fill(8);
    const { db } = test_.platform;
    await compactUsage(db, organizationId);
    const [{ total }, rows] = [await reportOf(organizationId), await rowsOf(organizationId)];
    const [sum] = await db.query<{ agentId: string }>(
      sql`select agent_id as "agentId" from model_usage_days where organization_id = ${organizationId} limit 1`,
    );
    const usage = { inputTokens: 1_000, outputTokens: 1, cachedTokens: 1, costUsd: 1 };
    await db.query(
      insertUsage(
        { organizationId, agentId: sum!.agentId, environment: 'production', endUserId: null, keyId: null },
        { operationId: newUuid(), model: 'openai/0', usage },
        day('2026-03-02'),
      ),
    );
    const wanted = { inputTokens: total.inputTokens + 1_000, steps: 9, costUsd: total.costUsd! + 1 };
    expect((await reportOf(organizationId)).total).toMatchObject(wanted);
    await compactUsage(db, organizationId);
    expect((await reportOf(organizationId)).total).toMatchObject(wanted);
    expect(await rowsOf(organizationId)).toEqual(rows);
  });

  test('the background pass compacts every organization', async () => {
    const organizations = [await fill(5), await fill(5)];
    const clock = createManualClock(new Date('2026-03-10T00:00:01.000Z'));
    const upkeep = createUpkeep(
      { ...test_.platform, clock },
      { eventsKeptDays: 400, deliveriesKeptDays: 30, filesKeptDays: 30 },
    );
    upkeep.start();
    for (const organizationId of organizations) {
      await expect.poll(() => rowsOf(organizationId)).toMatchObject({ calls: 0 });
    }
    await upkeep.stop();
  });
});

describe('through the client', () => {
  const model = { provider: 'openai-compatible', model: 'org/priced' } as const;
  let provider: OpenAiServer;
  let service: TestService;
  beforeAll(async () => {
    provider = await startOpenAiServer();
    const prices = createPrices({ 'openai-compatible/org/priced': { inputUsd: 10, cachedInputUsd: 1, outputUsd: 50 } });
    service = await startTestService({ config: { prices } });
  });
  afterAll(async () => {
    await service.stop();
    await provider.close();
  });

  /** Runs one turn of an agent with this model; resolves with the usage of the turn and of the session. */
  async function run(agent: object, environment = 'production') {
    const { client } = service;
    const { agentId } = await client.agents.create({ name: 'A', ...(agent as Pick<CreateAgent, 'model'>) });
    const { sessionId } = await client.sessions.open({ agentId, environment, input: 'Hello', closeOnIdle: true });
    let turn: unknown;
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      for (const chunk of chunks) if (chunk.type === 'turn.completed') turn = chunk.usage;
    }
    const { usage: session } = await client.sessions.get(sessionId);
    return { agentId, sessionId, turn, session };
  }

  test('the turn, the session and the report have the cost of the provider’s usage, with cached tokens priced apart', async () => {
    const { client } = service;
    provider.next(
      respond({
        toolCalls: [{ name: 'unknown', arguments: {} }],
        usage: { prompt: 1_000, completion: 100, cached: 400 },
      }),
      respond({ text: 'Done', usage: { prompt: 2_000, completion: 10, cached: 0 } }),
    );
    const priced = await run({ model: { ...model, baseUrl: provider.url } });
    // 600 × $10 + 400 × $1 + 100 × $50, and 2,000 × $10 + 10 × $50, over a million.
    const tokens = { inputTokens: 3_000, outputTokens: 110, cachedTokens: 400, steps: 2 };
    const used = { ...tokens, toolCalls: 1, costUsd: 0.0319 };
    expect(priced).toMatchObject({ turn: used, session: used });
    const free = await run({ model: 'scripted/free' }, 'staging');
    expect(free).toMatchObject({ turn: { steps: 1, costUsd: null }, session: { steps: 1, costUsd: null } });

    const total = { steps: 3, unpricedSteps: 1, costUsd: 0.0319, cachedTokens: 400 };
    const byDay = await client.usage.get();
    expect(byDay).toMatchObject({ groupBy: 'day', total, other: null });
    expect(byDay.data.reduce((steps, day) => steps + day.steps, 0)).toBe(3);
    const cost = { ...tokens, unpricedSteps: 0, costUsd: 0.0319 };
    const none = { steps: 1, unpricedSteps: 1, costUsd: null };
    const groups = async (groupBy: 'agent' | 'environment' | 'model') => (await client.usage.get({ groupBy })).data;
    expect(await groups('agent')).toMatchObject([
      { group: priced.agentId, ...cost },
      { group: free.agentId, ...none },
    ]);
    expect(await groups('environment')).toMatchObject([
      { group: 'production', ...cost },
      { group: 'staging', ...none },
    ]);
    expect(await groups('model')).toMatchObject([
      { group: 'openai-compatible/org/priced', ...cost },
      { group: 'scripted/free', ...none },
    ]);

    await client.sessions.delete(priced.sessionId);
    expect((await client.usage.get()).total).toEqual(byDay.total);
  });

  test('a key with `read` gets the report, and another organization sees none of it', async () => {
    await run({ model: 'scripted/x' });
    const reader = await service.client.keys.create({ name: 'reader', permission: 'read' });
    const report = await service.clientWith(reader.secret!).usage.get();
    expect(report.total).toEqual((await service.client.usage.get()).total);
    expect(report.total.steps).toBeGreaterThan(0);

    const other = service.clientWith(await addOrganization(service, 'Other'));
    expect((await other.usage.get()).total).toMatchObject({ steps: 0, costUsd: null });
    for (const groupBy of ['agent', 'environment', 'model'] as const) {
      expect((await other.usage.get({ groupBy })).data).toEqual([]);
    }
  });

  test('an invalid period or grouping is refused with the name of the field', async () => {
    const ask = (query: object) => service.client.usage.get(query);
    for (const [query, path] of [
      [{ from: 'yesterday' }, 'from'],
      [{ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'from'],
      [{ groupBy: 'session' }, 'groupBy'],
      [{ limit: 1 }, 'limit'],
    ] as const) {
      const refused = await ask(query).catch((error) => error);
      expect(refused).toBeInstanceOf(BadRequestError);
      expect(refused).toMatchObject({ code: 'invalid_request', errors: [{ path }] });
    }
  });
});
