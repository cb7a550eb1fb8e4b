// How the sessions of a schedule went: on its runs, on the schedule, and in the overview.
import type { Agent, CreateKey } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';

const clock = createManualClock(new Date('2026-01-02T03:04:05.678Z'));
let service: TestService;
let works: string;
let fails: string;
let waits: string;
beforeAll(async () => {
  service = await startTestService({ clock });
  works = await createAgent('Works', [{ text: 'Done.' }]);
  fails = await createAgent('Fails', [{ failWith: 'rejected' }]);
  waits = await createAgent('Waits', [{ toolCalls: [{ name: 'ask', input: {} }] }]);
});
afterAll(() => service.stop());

async function createAgent(name: string, script: object[]): Promise<string> {
  const model: Agent['model'] = { provider: 'scripted', model: 'demo', settings: { script } };
  const { agentId } = await service.client.agents.create({
    name,
    model,
    tools: [{ type: 'client', name: 'ask', description: 'Asks.', inputSchema: { type: 'object' } }],
  });
  return agentId;
}

const create = async (agentId: string, more: object = {}) =>
  (
    await service.client.schedules.create({
      agentId,
      environment: 'production',
      input: 'go',
      cron: '0 9 * * *',
      ...more,
    })
  ).scheduleId;
const runsOf = async (scheduleId: string) => (await service.client.schedules.runs(scheduleId, { limit: 100 })).data;
const read = (scheduleId: string) => service.client.schedules.get(scheduleId);

/** Runs the schedule, with this agent, until its session has the status. */
async function run(scheduleId: string, agentId: string, status: string): Promise<string> {
  const { client } = service;
  await client.schedules.update(scheduleId, { agentId });
  const { sessionId } = await client.schedules.run(scheduleId);
  await clock.passUntil(async () => (await client.sessions.get(sessionId!)).status === status);
  return sessionId!;
}

test('a run shows how its session is, and nothing of it once it is deleted', async () => {
  const { client } = service;
  const scheduleId = await create(works);
  const session = { status: 'running', stopReason: null, error: null };
  expect(await client.schedules.run(scheduleId)).toMatchObject({ status: 'opened', session, error: null });
  const completed = await run(scheduleId, works, 'completed');
  await run(scheduleId, waits, 'waiting');
  const failed = await run(scheduleId, fails, 'failed');
  const rejected = { code: 'model_rejected', message: expect.any(String) };
  const runs = await runsOf(scheduleId);
  expect(runs.slice(0, 3).map(({ session }) => session)).toEqual([
    { status: 'failed', stopReason: 'error', error: rejected },
    { status: 'waiting', stopReason: null, error: null },
    { status: 'completed', stopReason: 'endTurn', error: null },
  ]);
  const { createdAt: _, ...newest } = runs[0]!;
  expect((await read(scheduleId)).lastRun).toEqual(newest);
  for (const sessionId of [completed, failed]) await client.sessions.delete(sessionId);
  expect((await runsOf(scheduleId)).map(({ sessionId, session }) => [sessionId, session?.status])).toEqual([
    [failed, undefined],
    [expect.any(String), 'waiting'],
    [completed, undefined],
    [expect.any(String), 'completed'],
  ]);
  expect((await read(scheduleId)).lastRun).toMatchObject({ sessionId: failed, session: null });
});

test('a schedule counts the runs that failed since one succeeded, whether no session opened or its turn failed', async () => {
  const { client } = service;
  const scheduleId = await create(works);
  const failedRuns = async () => {
    const { failedRuns } = await read(scheduleId);
    const listed = (await client.schedules.list({ limit: 100 })).data.find((one) => one.scheduleId === scheduleId);
    expect(listed!.failedRuns).toBe(failedRuns);
    return failedRuns;
  };
  expect(await failedRuns()).toBe(0);
  await run(scheduleId, fails, 'failed');
  await run(scheduleId, works, 'completed');
  expect(await failedRuns()).toBe(0);
  await run(scheduleId, fails, 'failed');
  await client.schedules.update(scheduleId, { closeOnIdle: false });
  const open = await run(scheduleId, fails, 'idle');
  expect(await failedRuns()).toBe(2);
  // Neither says that the next one will succeed.
  await client.sessions.cancel(await run(scheduleId, waits, 'waiting'));
  await run(scheduleId, waits, 'waiting');
  expect(await failedRuns()).toBe(2);
  await client.sessions.cancel(open);
  await client.sessions.delete(open);
  expect(await failedRuns()).toBe(1);
  await run(scheduleId, works, 'idle');
  expect(await failedRuns()).toBe(0);
  for (let n = 0; n < 12; n += 1) await run(scheduleId, fails, 'idle');
  expect(await failedRuns()).toBe(10);
  const runs = await runsOf(scheduleId);
  const failed = runs.filter(({ session }) => session?.error);
  expect(failed.length).toBeGreaterThan(12);
  const listed = [];
  for await (const one of client.schedules.runs(scheduleId, { hasError: true, limit: 5 })) listed.push(one);
  expect(listed).toEqual(failed);
});

test('a run that could not open a session has failed, one that was missed has not', async () => {
  const { client } = service;
  const agentId = await createAgent('Retired', [{ text: 'Done.' }]);
  const scheduleId = await create(agentId, { cron: '0 * * * *' });
  await client.agents.archive(agentId);
  await clock.advance(3 * 3_600_000);
  await clock.passUntil(async () => (await read(scheduleId)).lastRun?.status === 'failed');
  const { lastRun, failedRuns } = await read(scheduleId);
  expect(lastRun).toMatchObject({ sessionId: null, session: null, error: { code: 'agent_archived' } });
  expect((await runsOf(scheduleId)).map(({ status }) => status)).toContain('missed');
  expect(failedRuns).toBe(1);
  expect((await client.schedules.runs(scheduleId, { hasError: true })).data.map(({ status }) => status)).toEqual([
    'failed',
  ]);
});

test('a caller sees nothing of a session that it cannot read', async () => {
  const { client } = service;
  const scheduleId = await create(fails, { environment: 'staging' });
  await run(scheduleId, fails, 'failed');
  const as = async (key: Partial<CreateKey>) => {
    const { schedules } = service.clientWith((await client.keys.create({ name: 'k', ...key } as CreateKey)).secret!);
    const { lastRun, failedRuns } = await schedules.get(scheduleId);
    const [newest] = (await schedules.runs(scheduleId)).data;
    expect(newest!.session).toEqual(lastRun!.session);
    return { status: lastRun!.session?.status, failedRuns };
  };
  const seen = { status: 'failed', failedRuns: 1 };
  const unseen = { status: undefined, failedRuns: 0 };
  expect(await as({ scopes: ['agents:read', 'sessions:read'] })).toEqual(seen);
  expect(await as({ scopes: ['agents:read'] })).toEqual(unseen);
  expect(await as({ permission: 'read', agents: [fails] })).toEqual(seen);
  expect(await as({ permission: 'read', environments: ['staging'] })).toEqual(seen);
  // The schedule is theirs now, but the session was opened for another agent in another environment.
  await client.schedules.update(scheduleId, { agentId: works, environment: 'production' });
  expect(await as({ permission: 'read', agents: [works] })).toEqual(unseen);
  expect(await as({ permission: 'read', environments: ['production'] })).toEqual(unseen);
  const { secret } = await client.keys.create({ name: 'runner', scopes: ['agents:read', 'schedules:write'] });
  expect((await service.clientWith(secret!).schedules.run(scheduleId)).session).toBeNull();
});

test('the overview counts the schedules that will run again and whose last runs failed, by environment', async () => {
  const { client } = service;
  await client.environments.create({ name: 'counted' });
  const failing = async (environment?: string) =>
    (await client.overview(environment === undefined ? {} : { environment })).schedules.failing;
  for (const { scheduleId } of (await client.schedules.list({ limit: 100 })).data) {
    await client.schedules.delete(scheduleId);
  }
  const scheduleId = await create(fails, { environment: 'counted' });
  const other = await create(works, { environment: 'counted' });
  await run(other, works, 'completed');
  expect(await failing('counted')).toBe(0);
  await run(scheduleId, fails, 'failed');
  await run(scheduleId, waits, 'waiting');
  expect([await failing('counted'), await failing(), await failing('staging')]).toEqual([1, 1, 0]);
  await client.schedules.update(scheduleId, { status: 'paused' });
  expect(await failing('counted')).toBe(0);
  await client.schedules.update(scheduleId, { status: 'enabled' });
  expect(await failing('counted')).toBe(1);
  await run(scheduleId, works, 'completed');
  expect(await failing('counted')).toBe(0);
});
