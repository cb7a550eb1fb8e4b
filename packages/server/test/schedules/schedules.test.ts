// Schedules through the client: which values are valid, who may see and change them, and that a running service opens their
// sessions. scheduler.test.ts tests many due schedules, and nodes that race or die.
import { BadRequestError, type CreateSchedule, NotFoundError, PermissionError } from '@signalbox/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.ts';
import { addOrganization } from '../support/organization.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const clock = createManualClock(new Date('2026-01-02T03:04:05.678Z'));
let service: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService({ clock });
  ({ agentId } = await service.client.agents.create({ name: 'Agent', model: 'scripted/echo' }));
});
afterAll(() => service.stop());

const create = (more: Partial<CreateSchedule> = { cron: '0 9 * * *' }) =>
  service.client.schedules.create({ agentId, environment: 'production', ...more });
const eventsOf = async (scheduleId: string) =>
  (await service.client.events.list({ resourceId: scheduleId, order: 'asc' })).data;

test('a schedule is shown with all default values', async () => {
  const schedule = await create({ cron: '0 9 * * 1-5' });
  expect(schedule).toEqual({
    scheduleId: expect.stringMatching(/^sch_/),
    name: null,
    agentId,
    environment: 'production',
    endUser: null,
    input: null,
    metadata: {},
    budget: null,
    cron: '0 9 * * 1-5',
    timezone: 'UTC',
    at: null,
    status: 'enabled',
    closeOnIdle: true,
    nextAt: '2026-01-02T09:00:00.000Z',
    lastRun: null,
    failedRuns: 0,
    createdAt: '2026-01-02T03:04:05.678Z',
    updatedAt: '2026-01-02T03:04:05.678Z',
  });
  expect(await service.client.schedules.get(schedule.scheduleId)).toEqual(schedule);
});

test('white space around an expression and a time zone is dropped', async () => {
  const tidy = { cron: '0 9 * * *', timezone: 'Europe/Berlin' };
  for (const [before, after] of [
    [' ', ''],
    ['', '\n'],
    ['\t', '\u00a0'],
  ]) {
    const given = { cron: `${before}0 9  * * *${after}`, timezone: `${before}Europe/Berlin${after}` };
    const { scheduleId } = await create(given);
    expect(await service.client.schedules.get(scheduleId)).toMatchObject(tidy);
    expect(await service.client.schedules.update(scheduleId, { ...given, name: 'again' })).toMatchObject(tidy);
    expect(await service.client.schedules.preview(given)).toEqual(await service.client.schedules.preview(tidy));
  }
});

test('the values it was created with are returned, a time in UTC', async () => {
  const given = {
    input: [{ type: 'text' as const, text: 'Report.' }],
    metadata: { team: 'support' },
    budget: { maxTokens: 1000 },
    status: 'paused' as const,
    closeOnIdle: false,
  };
  expect(await create({ ...given, cron: '0 9 * * *', timezone: 'Asia/Kolkata' })).toMatchObject({
    ...given,
    nextAt: null,
  });
  expect(await create({ at: '2026-03-01T12:00:00+02:00' })).toMatchObject({
    cron: null,
    timezone: null,
    at: '2026-03-01T10:00:00.000Z',
    nextAt: '2026-03-01T10:00:00.000Z',
  });
});

describe('is refused', () => {
  test.each<[string, object, string, RegExp]>([
    ['without a time', {}, 'cron', /is required, or at/],
    ['with two kinds of time', { cron: '0 9 * * *', at: '2027-01-01T00:00:00Z' }, 'at', /together with cron/],
    ['with seconds', { cron: '0 0 9 * * *' }, 'cron', /must be five fields.*such as "0 9 \* \* 1-5"/],
    ['with an invalid minute', { cron: '61 9 * * *' }, 'cron', /is not a cron expression.*61/],
    ['on 30 February', { cron: '0 9 30 2 *' }, 'cron', /never occurs/],
    ['with an unknown time zone', { cron: '0 9 * * *', timezone: 'Mars/Base' }, 'timezone', /such as Europe\/Berlin/],
    [
      'with a time zone for a time',
      { at: '2027-01-01T00:00:00Z', timezone: 'UTC' },
      'timezone',
      /only allowed with cron/,
    ],
    ['in the past', { at: '2026-01-02T03:04:05.678Z' }, 'at', /must be in the future/],
    ['with an invalid time', { at: 'tomorrow' }, 'at', /ISO 8601/],
    ['in a year that cannot be stored', { at: '0000-01-01T00:00:00Z' }, 'at', /years 1 to 9999/],
    ['with an unknown status', { cron: '0 9 * * *', status: 'off' }, 'status', /"enabled", "paused"/],
    ['with an unknown field', { cron: '0 9 * * *', every: 'day' }, 'every', /not a known field/],
  ])('%s, by a 400 that names the field', async (_, body, path, message) => {
    const given = { agentId, environment: 'production', ...body };
    const created = await send(service.url, 'POST', '/schedules', { key: service.adminKey, body: given });
    expect([created.status, created.json.errors]).toEqual([400, [{ path, message: expect.stringMatching(message) }]]);
  });

  test('with an unknown agent or environment, an archived agent, or a budget without a price', async () => {
    const { client } = service;
    const archived = await client.agents.create({ name: 'Old', model: 'scripted/echo' });
    await client.agents.archive(archived.agentId);
    const cron = '0 9 * * *';
    const unknown = 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c';
    await expect(create({ cron, environment: 'nowhere' })).rejects.toThrow(NotFoundError);
    await expect(create({ cron, agentId: unknown })).rejects.toThrow(NotFoundError);
    await expect(create({ cron, agentId: archived.agentId })).rejects.toMatchObject({ code: 'agent_archived' });
    await expect(create({ cron, budget: { maxCostUsd: 1 } })).rejects.toMatchObject({ code: 'budget_invalid' });
    const { scheduleId } = await create();
    const update = (params: object) => client.schedules.update(scheduleId, params);
    await expect(update({ environment: 'nowhere' })).rejects.toThrow(NotFoundError);
    await expect(update({ agentId: unknown })).rejects.toThrow(NotFoundError);
    await expect(update({ agentId: archived.agentId })).rejects.toMatchObject({ code: 'agent_archived' });
    await expect(update({ budget: { maxCostUsd: 1 } })).rejects.toMatchObject({ code: 'budget_invalid' });
    // A model of a provider has a built-in price, so its budget works from the first start.
    const priced = await client.agents.create({ name: 'Priced', model: 'openai/gpt-6.1-terra' });
    await create({ cron, agentId: priced.agentId, budget: { maxCostUsd: 1 } });
  });
});

describe('changes', () => {
  test('are recorded by field, and an update without a difference is not a change', async () => {
    const { client } = service;
    const first = await create({ cron: '0 9 * * *', input: 'one' });
    expect(await client.schedules.update(first.scheduleId, {})).toEqual(first);
    expect(await client.schedules.update(first.scheduleId, { cron: '0 9 * * *', timezone: 'UTC' })).toEqual(first);
    await clock.advance(1_000);
    const second = await client.schedules.update(first.scheduleId, {
      input: 'two',
      timezone: 'Europe/Berlin',
      metadata: { a: 1 },
    });
    expect(second).toMatchObject({ input: 'two', timezone: 'Europe/Berlin', nextAt: '2026-01-02T08:00:00.000Z' });
    await client.schedules.delete(first.scheduleId);
    const events = await eventsOf(first.scheduleId);
    expect(events.map(({ type, changes }) => ({ type, changes }))).toEqual([
      {
        type: 'schedule.created',
        changes: {
          agentId: [null, agentId],
          cron: [null, '0 9 * * *'],
          timezone: [null, 'UTC'],
          status: [null, 'enabled'],
        },
      },
      {
        type: 'schedule.updated',
        changes: { input: ['one', 'two'], metadata: [{}, { a: 1 }], timezone: ['UTC', 'Europe/Berlin'] },
      },
      { type: 'schedule.deleted', changes: null },
    ]);
    expect(events[0]).toMatchObject({ environment: 'production', actor: { type: 'api_key' } });
  });

  test('replace a cron expression by a time, and the other way round', async () => {
    const { client } = service;
    const { scheduleId } = await create({ cron: '0 9 * * *', timezone: 'Europe/Berlin' });
    const at = '2026-06-01T00:00:00.000Z';
    const refused = (params: object) => expect(client.schedules.update(scheduleId, params)).rejects;
    await refused({ at }).toThrow(/at: must not be given together with cron/);
    await refused({ cron: null }).toThrow(/cron: is required, or at/);
    const once = await client.schedules.update(scheduleId, { cron: null, at });
    expect(once).toMatchObject({ cron: null, timezone: null, at, nextAt: at });
    await refused({ timezone: 'Europe/Berlin' }).toThrow(BadRequestError);
    await refused({ at: '2025-01-01T00:00:00Z' }).toThrow(/must be in the future/);
    const again = await client.schedules.update(scheduleId, { cron: '0 12 * * *', at: null });
    expect(again).toMatchObject({ cron: '0 12 * * *', timezone: 'UTC', at: null });
    const berlin = await client.schedules.update(scheduleId, { timezone: 'Europe/Berlin' });
    expect(berlin).toMatchObject({ timezone: 'Europe/Berlin', nextAt: '2026-01-02T11:00:00.000Z' });
    expect(await client.schedules.update(scheduleId, { timezone: null })).toMatchObject({ timezone: 'UTC' });
    expect(await client.schedules.update(scheduleId, { input: 'a', budget: { maxSteps: 1 } })).toMatchObject({
      input: 'a',
      budget: { maxSteps: 1 },
    });
    expect(await client.schedules.update(scheduleId, { input: null, budget: null })).toMatchObject({
      input: null,
      budget: null,
    });
  });

  test('of a schedule whose agent was archived can pause it, but not enable it', async () => {
    const { client } = service;
    const agent = await client.agents.create({ name: 'Soon old', model: 'scripted/echo' });
    const { scheduleId } = await create({ cron: '0 9 * * *', agentId: agent.agentId });
    await client.agents.archive(agent.agentId);
    expect(await client.schedules.update(scheduleId, { status: 'paused' })).toMatchObject({ nextAt: null });
    const refused = { status: 409, code: 'agent_archived' };
    await expect(client.schedules.update(scheduleId, { status: 'enabled' })).rejects.toMatchObject(refused);
    const both = { status: 'enabled', agentId } as const;
    expect(await client.schedules.update(scheduleId, both)).toMatchObject({ status: 'enabled' });
  });
});

test('an environment with schedules cannot be deleted', async () => {
  const { client } = service;
  await client.environments.create({ name: 'planned' });
  const { scheduleId } = await create({ cron: '0 9 * * *', environment: 'planned', status: 'paused' });
  const refused = { code: 'conflict', detail: expect.stringContaining('schedules') };
  await expect(client.environments.delete('planned')).rejects.toMatchObject(refused);
  await client.schedules.update(scheduleId, { environment: 'staging' });
  expect(await client.environments.delete('planned')).toMatchObject({ deleted: true });
});

test('schedules are listed newest first, by agent, environment and status', async () => {
  const { client } = service;
  const agent = await client.agents.create({ name: 'Listed', model: 'scripted/echo' });
  const of = { cron: '0 9 * * *', agentId: agent.agentId };
  const one = await create(of);
  const two = await create({ ...of, environment: 'staging' });
  const three = await create({ ...of, status: 'paused' });
  const found = async (query: object) =>
    (await client.schedules.list({ agentId: agent.agentId, ...query })).data.map(({ scheduleId }) => scheduleId);
  expect(await found({})).toEqual([three, two, one].map(({ scheduleId }) => scheduleId));
  expect(await found({ environment: 'staging' })).toEqual([two.scheduleId]);
  expect(await found({ status: 'paused' })).toEqual([three.scheduleId]);
  const page = await client.schedules.list({ agentId: agent.agentId, limit: 2 });
  expect((await page.nextPage())?.data).toEqual([one]);
});

test('a read key lists and reads; only a write key changes', async () => {
  const { client } = service;
  const { scheduleId } = await create();
  const reader = service.clientWith((await client.keys.create({ name: 'r', permission: 'read' })).secret!);
  const writer = service.clientWith((await client.keys.create({ name: 'w', permission: 'write' })).secret!);
  expect(await reader.schedules.get(scheduleId)).toMatchObject({ scheduleId });
  expect((await reader.schedules.list()).data.length).toBeGreaterThan(0);
  expect((await reader.schedules.runs(scheduleId)).data).toEqual([]);
  for (const attempt of [
    () => reader.schedules.create({ agentId, environment: 'production', cron: '0 9 * * *' }),
    () => reader.schedules.update(scheduleId, { status: 'paused' }),
    () => reader.schedules.delete(scheduleId),
  ]) {
    await expect(attempt()).rejects.toThrow(PermissionError);
  }
  await writer.schedules.update(scheduleId, { status: 'paused' });
  expect(await writer.schedules.delete(scheduleId)).toEqual({ scheduleId, deleted: true });
  await expect(client.schedules.get(scheduleId)).rejects.toThrow(NotFoundError);
});

test('another organization cannot see or change a schedule: it gets the same 404 as for an unknown one', async () => {
  const { client } = service;
  const other = service.clientWith(await addOrganization(service, 'Other'));
  const { scheduleId } = await create();
  const theirs = await other.agents.create({ name: 'Theirs', model: 'scripted/echo' });
  for (const attempt of [
    () => other.schedules.get(scheduleId),
    () => other.schedules.update(scheduleId, { status: 'paused' }),
    () => other.schedules.delete(scheduleId),
    () => other.schedules.runs(scheduleId),
    () => other.schedules.create({ agentId, environment: 'production', cron: '0 9 * * *' }),
    () => client.schedules.update(scheduleId, { agentId: theirs.agentId }),
  ]) {
    await expect(attempt(), attempt.toString()).rejects.toThrow(NotFoundError);
  }
  expect((await other.schedules.list()).data).toEqual([]);
  expect(await client.schedules.get(scheduleId)).toMatchObject({ status: 'enabled' });
});

test('a running service opens the session and runs it to its end, and the run refers to the session', async () => {
  const { client } = service;
  const agent = await client.agents.create({
    name: 'Reporter',
    model: { provider: 'scripted', model: 'r', settings: { script: [{ text: 'Report: {{input}}' }] } },
  });
  const at = new Date(clock.now().getTime() + 60_000).toISOString();
  const { scheduleId } = await create({ agentId: agent.agentId, input: 'sales', at });
  await clock.advance(60_000);
  const runs = async () => (await client.schedules.runs(scheduleId)).data;
  await clock.passUntil(async () => (await runs()).length > 0);
  const run = (await runs())[0]!;
  expect(run).toMatchObject({ scheduledAt: at, status: 'opened', error: null });
  let text = '';
  for await (const { chunks } of client.sessions.stream(run.sessionId!)) {
    for (const chunk of chunks) if (chunk.type === 'message.chunk') text += chunk.delta;
  }
  expect(text).toBe('Report: sales');
  expect(await client.sessions.get(run.sessionId!)).toMatchObject({ status: 'completed' });
  expect(await client.schedules.get(scheduleId)).toMatchObject({
    nextAt: null,
    lastRun: { scheduledAt: at, status: 'opened', sessionId: run.sessionId },
  });
  expect((await client.schedules.runs(scheduleId, { status: 'failed' })).data).toEqual([]);
  expect(
    (await client.events.list({ sessionId: run.sessionId!, order: 'asc' })).data.map(({ type }) => type),
  ).toContain('schedule.opened');
});

test('runs are listed page by page, and an invalid cursor is refused', async () => {
  const { client } = service;
  const { scheduleId } = await create({ cron: '0 * * * *' });
  await clock.advance(10 * 3_600_000);
  await clock.passUntil(async () => (await client.schedules.get(scheduleId)).lastRun !== null);
  const page = await client.schedules.runs(scheduleId, { limit: 4 });
  const hours = [];
  for await (const run of client.schedules.runs(scheduleId, { limit: 4 })) hours.push(run.scheduledAt);
  expect(hours.length).toBeGreaterThanOrEqual(10);
  expect(hours).toEqual(hours.toSorted().toReversed());
  expect((await page.nextPage())?.data[0]?.scheduledAt).toBe(hours[4]);
  const [version, list] = JSON.parse(Buffer.from(page.nextCursor, 'base64url').toString());
  const forged = Buffer.from(JSON.stringify([version, list, 'yesterday'])).toString('base64url');
  for (const cursor of ['nonsense', forged]) {
    await expect(client.schedules.runs(scheduleId, { cursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
  }
});
