// What the organization used: the report, its periods, compaction, tenancy.
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../src/lib/context.ts';
import { formatId, newUuid } from '../src/lib/ids.ts';
import { createOrganization } from '../src/organizations/organizations.ts';
import { createUpkeep } from '../src/upkeep.ts';
import { compactUsage, organizationsToCompact, startOfDay } from '../src/usage/compact.ts';
import { getUsage, insertUsage } from '../src/usage/usage.ts';
import { createManualClock } from './support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from './support/platform.ts';

const day = (text: string) => new Date(`${text}T00:00:00.000Z`);

describe('the report', () => {
  const clock = createManualClock(new Date('2026-03-10T12:00:00.000Z'));
  const [ada, bob] = [newUuid(), newUuid()];
  let test_: TestPlatform;
  let ctx: Context;
  beforeAll(async () => {
    test_ = await createTestPlatform({ clock });
    ctx = test_.ctx;
    await use('2026-03-01T00:00:00.000Z', { agentId: ada, input: 100, output: 10, cached: 40, cost: 0.1 });
    await use('2026-03-01T23:59:59.999Z', { agentId: ada, input: 200, output: 20, cost: 0.2, model: 'openai/b' });
    await use('2026-03-03T12:00:00.000Z', { agentId: bob, input: 5_000, output: 1, environment: 'staging' });
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
      cost?: number;
      model?: string;
      environment?: string;
      organizationId?: string;
    },
  ): Promise<void> {
    const { organizationId = test_.organizationId, agentId, environment = 'production', model = 'openai/a' } = call;
    const usage = {
      inputTokens: call.input,
      outputTokens: call.output,
      cachedTokens: call.cached ?? 0,
      costUsd: call.cost ?? null,
    };
    await ctx.db.query(
      insertUsage({ organizationId, agentId, environment }, { operationId: newUuid(), model, usage }, new Date(at)),
    );
  }

  // What is asked must be answered the same before and after compaction, so it is asked twice.
  describe.each(['before', 'after'])('%s compaction', (when) => {
    beforeAll(async () => {
      if (when === 'after') {
        while (await compactUsage(ctx.db, test_.organizationId, startOfDay(clock.now()), 2));
        const [left] = await ctx.db.query<{ calls: number }>(
          sql`select count(*) as calls from model_usage where organization_id = ${test_.organizationId}`,
        );
        expect(left).toEqual({ calls: 1 });
      }
    });

    test('without parameters it is the last 30 days by day, every day in order', async () => {
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
        steps: 4,
        unpricedSteps: 1,
        costUsd: 0.300_000_001,
      });
    });

    test('by agent, environment and model, the most expensive first', async () => {
      const groups = async (groupBy: 'agent' | 'environment' | 'model') =>
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
    });

    test('a period is taken to whole days of UTC, and says which', async () => {
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

  test('where nothing was used, everything is zero and there is no cost', async () => {
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

  test('beyond 1,000 groups, the smallest are summed', async () => {
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

  test('366 days are taken', async () => {
    const { data } = await getUsage(ctx, { from: '2024-01-01T12:00:00Z', to: '2025-01-01T12:00:00Z' });
    expect(data).toHaveLength(367);
  });
});

describe('compaction', () => {
  const before = day('2026-03-10');
  let test_: TestPlatform;
  beforeAll(async () => {
    test_ = await createTestPlatform({ clock: createManualClock(new Date('2026-03-10T00:00:01.000Z')) });
  });
  afterAll(() => test_.close());

  /** Some calls of days that are over, in an organization of their own. */
  async function fill(calls: number, now = day('2026-03-02')): Promise<string> {
    const { db } = test_.platform;
    const { organizationId } = await db.transaction((tx) => createOrganization(tx, 'Some', now));
    const agentId = newUuid();
    await db.batch(
      Array.from({ length: calls }, (_, n) =>
        insertUsage(
          { organizationId, agentId, environment: n % 2 ? 'staging' : 'production' },
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

  test('two nodes at once and a reader: each report is that of before', async () => {
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
        while (await compactUsage(db, organizationId, before, 10));
      }),
    );
    compacting = false;
    await reading;
    expect(reads).toBeGreaterThan(3);
    // A node that found the other's locks alone has stopped; what it left is the other's, or the next pass's.
    while (await compactUsage(test_.platform.db, organizationId, before, 10));
    expect(await reportOf(organizationId)).toEqual(wanted);
    expect(await rowsOf(organizationId)).toEqual({ calls: 0, sums: 12 });
  });

  test('a call that was written late is added to the sums of its day', async () => {
    const organizationId = await fill(8);
    const { db } = test_.platform;
    await compactUsage(db, organizationId, before);
    const { total } = await reportOf(organizationId);
    const [sum] = await db.query<{ agentId: string }>(
      sql`select agent_id as "agentId" from model_usage_days where organization_id = ${organizationId} limit 1`,
    );
    const usage = { inputTokens: 1_000, outputTokens: 1, cachedTokens: 1, costUsd: 1 };
    await db.query(
      insertUsage(
        { organizationId, agentId: sum!.agentId, environment: 'production' },
        { operationId: newUuid(), model: 'openai/0', usage },
        new Date(before.getTime() - 1),
      ),
    );
    const after = { ...total, inputTokens: total.inputTokens + 1_000, steps: 9, costUsd: total.costUsd! + 1 };
    expect((await reportOf(organizationId)).total).toMatchObject({ inputTokens: after.inputTokens, steps: 9 });
    await compactUsage(db, organizationId, before);
    expect((await reportOf(organizationId)).total).toMatchObject({ inputTokens: after.inputTokens, steps: 9 });
    expect(await rowsOf(organizationId)).toMatchObject({ calls: 0 });
  });

  test('the calls of the present day stay, and an organization with nothing else is left alone', async () => {
    const organizationId = await fill(8, before);
    const { db } = test_.platform;
    expect(await organizationsToCompact(db, before)).not.toContain(organizationId);
    expect(await compactUsage(db, organizationId, before)).toBe(false);
    expect(await rowsOf(organizationId)).toEqual({ calls: 8, sums: 0 });
  });

  test('the background pass compacts every organization', async () => {
    const organizations = [await fill(5), await fill(5)];
    const clock = createManualClock(new Date('2026-03-10T00:00:01.000Z'));
    const upkeep = createUpkeep({ ...test_.platform, clock });
    upkeep.start();
    for (const organizationId of organizations) {
      await expect.poll(() => rowsOf(organizationId)).toMatchObject({ calls: 0 });
    }
    await upkeep.stop();
  });
});
