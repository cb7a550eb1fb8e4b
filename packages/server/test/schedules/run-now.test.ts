// Names, the preview of times, and runs that a caller starts, on two nodes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const clock = createManualClock(new Date('2026-01-02T03:04:05.678Z'));
let service: TestService;
let other: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService({ clock });
  other = await startTestService({ clock, database: service.database });
  ({ agentId } = await service.client.agents.create({ name: 'Agent', model: 'scripted/echo' }));
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

const create = (more: object = {}) =>
  service.client.schedules.create({ agentId, environment: 'production', cron: '0 9 * * *', ...more });
const runsOf = async (scheduleId: string) => (await service.client.schedules.runs(scheduleId, { limit: 100 })).data;
const there = () => other.clientWith(service.adminKey);

test('a schedule can have a name, which is changed, removed and recorded', async () => {
  const { schedules, events } = service.client;
  const { scheduleId, name } = await create({ name: 'Morning report' });
  expect(name).toBe('Morning report');
  expect((await schedules.update(scheduleId, { name: 'Report' })).name).toBe('Report');
  expect((await schedules.update(scheduleId, { name: null })).name).toBeNull();
  const { data } = await events.list({ resourceId: scheduleId, order: 'asc' });
  expect(data.map(({ changes }) => changes?.name)).toEqual([
    [null, 'Morning report'],
    ['Morning report', 'Report'],
    ['Report', null],
  ]);
  await expect(create({ name: '' })).rejects.toMatchObject({ status: 400 });
  await expect(create({ name: 'x'.repeat(201) })).rejects.toMatchObject({ status: 400 });
});

test('the preview has the next times in the time zone, of valid expressions only, for everyone who reads schedules', async () => {
  const { client } = service;
  expect(await client.schedules.preview({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' })).toEqual(
    ['02', '05', '06', '07', '08'].map((day) => `2026-01-${day}T08:00:00.000Z`),
  );
  expect(await client.schedules.preview({ cron: '0 0 29 2 *', count: 2 })).toEqual([
    '2028-02-29T00:00:00.000Z',
    '2032-02-29T00:00:00.000Z',
  ]);
  for (const wrong of [
    { cron: '61 * * * *' },
    { cron: '0 9 30 2 *' },
    { cron: '* * * * *', timezone: 'CST' },
    { cron: '* * * * *', count: 11 },
  ]) {
    await expect(client.schedules.preview(wrong)).rejects.toMatchObject({ status: 400 });
  }
  const scopes = [
    [['agents:read'], 200],
    [['sessions:read'], 403],
  ] as const;
  for (const [given, status] of scopes) {
    const { secret } = await client.keys.create({ name: given.join(), scopes: [...given] });
    const response = await send(service.url, 'GET', '/schedules/preview?cron=0+9+*+*+*', { key: secret! });
    expect(response.status).toBe(status);
  }
  const limited = await client.keys.create({
    name: 'limited',
    permission: 'read',
    environments: ['staging'],
    agents: [agentId],
  });
  expect((await send(service.url, 'GET', '/schedules/preview?cron=0+9+*+*+*', { key: limited.secret! })).status).toBe(
    200,
  );
});

test('a manual run opens one session like an occurrence, changes no time, and is listed and recorded as manual', async () => {
  const { client } = service;
  for (const status of ['enabled', 'paused'] as const) {
    const before = await create({
      status,
      input: 'Report.',
      metadata: { team: 'support' },
      endUser: { id: 'eve' },
      budget: { maxTokens: 1000 },
    });
    const { scheduleId } = before;
    const run = await client.schedules.run(scheduleId);
    expect(run).toMatchObject({ manual: true, status: 'opened', error: null, scheduledAt: clock.now().toISOString() });
    await clock.passUntil(async () => (await client.sessions.get(run.sessionId!)).status === 'completed');
    const ended = { ...run, session: { status: 'completed', stopReason: 'endTurn', error: null } };
    expect(await runsOf(scheduleId)).toEqual([ended]);
    const session = await client.sessions.get(run.sessionId!);
    expect(session).toMatchObject({
      agentId,
      metadata: { team: 'support' },
      endUser: { id: 'eve' },
      budget: { maxTokens: 1000 },
    });
    const after = await client.schedules.get(scheduleId);
    const { createdAt: _, ...lastRun } = ended;
    expect(after).toEqual({ ...before, lastRun });
    const [event] = (await client.events.list({ resourceId: scheduleId, type: 'schedule.opened' })).data;
    expect(event).toMatchObject({
      actor: { type: 'api_key' },
      sessionId: run.sessionId,
      changes: { manual: [null, true] },
    });
  }
});

test('repeated with its Idempotency-Key it opens no second session; without, each of many on two nodes opens its own', async () => {
  const { scheduleId } = await create();
  const post = (url: string, key: string) =>
    send(url, 'POST', `/schedules/${scheduleId}/run`, { key: service.adminKey, headers: { 'idempotency-key': key } });
  const first = await post(service.url, 'once');
  expect(first.status).toBe(201);
  expect((await post(other.url, 'once')).json).toEqual(first.json);
  expect(await runsOf(scheduleId)).toHaveLength(1);
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? service.client : there()).schedules.run(scheduleId)),
  );
  const runs = await runsOf(scheduleId);
  expect(new Set(runs.map(({ scheduledAt }) => scheduledAt)).size).toBe(21);
  expect(new Set(runs.map(({ sessionId }) => sessionId)).size).toBe(21);
});

test('manual runs just before an occurrence do not take its place', async () => {
  const { scheduleId } = await create({ cron: '* * * * *', input: 'go' });
  const { nextAt } = await service.client.schedules.get(scheduleId);
  await clock.advance(Date.parse(nextAt!) - clock.now().getTime() - 1);
  const manual = await Promise.all(Array.from({ length: 4 }, () => service.client.schedules.run(scheduleId)));
  expect(manual.map(({ scheduledAt }) => scheduledAt)).not.toContain(nextAt);
  await clock.passUntil(async () =>
    (await runsOf(scheduleId)).some(
      ({ scheduledAt, manual, status }) => scheduledAt === nextAt && !manual && status === 'opened',
    ),
  );
});

test('what refuses a session refuses the run, and nothing is listed', async () => {
  const { client } = service;
  const archived = await client.agents.create({ name: 'Old', model: 'scripted/echo' });
  const { scheduleId } = await create({ agentId: archived.agentId });
  await client.agents.archive(archived.agentId);
  await expect(client.schedules.run(scheduleId)).rejects.toMatchObject({ code: 'agent_archived' });
  expect(await runsOf(scheduleId)).toEqual([]);
  await expect(client.schedules.run('sch_01hzzzzzzzzzzzzzzzzzzzzzzz')).rejects.toMatchObject({ status: 404 });
  const { secret } = await client.keys.create({ name: 'runner', scopes: ['agents:read', 'sessions:run'] });
  await expect(service.clientWith(secret!).schedules.run(scheduleId)).rejects.toMatchObject({ status: 403 });
});

test('who starts a run is a requester of its session, as those who wrote the schedule are', async () => {
  const { client } = service;
  const pay = await client.agents.create({
    name: 'Payer',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }] } },
    tools: [
      {
        type: 'client',
        name: 'pay',
        description: 'Pays.',
        inputSchema: { type: 'object' },
        approval: { policy: 'always', by: { notRequester: true } },
      },
    ],
  });
  const { scheduleId } = await create({ agentId: pay.agentId, input: 'Pay.' });
  // A key of the host: no requester created it.
  const starter = other.clientWith(other.adminKey);
  const refusalAfter = async (by: typeof starter) => {
    const { sessionId } = await by.schedules.run(scheduleId);
    await clock.passUntil(async () => (await client.sessions.get(sessionId!)).status === 'waiting');
    return (await starter.approvals.list({ sessionId: sessionId! })).data[0]!.refusal;
  };
  expect(await refusalAfter(client)).toBeNull();
  expect(await refusalAfter(starter)).toMatchObject({ code: 'not_an_approver' });
});
