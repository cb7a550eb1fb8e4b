// The timeline of a session: its turns and operations, with start and end.
import { type Agent, BadRequestError, NotFoundError, type SessionTurn } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const tool = { type: 'client' as const, name: 'look_up', description: 'Looks up.', inputSchema: { type: 'object' } };
const scripted = (script: object[]): Agent['model'] => ({ provider: 'scripted', model: 'demo', settings: { script } });
const asking = scripted([{ toolCalls: [{ name: 'look_up', input: {} }] }, { text: 'Done' }]);

async function openWith(model: Agent['model'], input: string | undefined = 'go') {
  const { agentId } = await service.client.agents.create({
    name: 'A',
    model,
    tools: [{ ...tool, approval: 'always' }],
  });
  const session = await service.client.sessions.open({
    agentId,
    environment: 'production',
    ...(input !== undefined && { input }),
  });
  return { agentId, sessionId: session.sessionId };
}

const turnsOf = async (sessionId: string) => (await service.client.sessions.turns(sessionId)).data;
const outline = ({ operations }: SessionTurn) =>
  operations.map(({ kind, step, status }) => `${step} ${kind} ${status}`);
const ms = (from: string | null, to: string | null) => Date.parse(to!) - Date.parse(from!);

async function until(sessionId: string, status: string): Promise<void> {
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe(status);
}

test('a turn shows its model calls, its approval and its tool call, each with its status', async () => {
  const { client } = service;
  const { sessionId } = await openWith(asking);
  await until(sessionId, 'waiting');
  const [asked] = await turnsOf(sessionId);
  expect(asked).toMatchObject({ turn: 1, agentVersion: 1, status: 'waiting', stopReason: null, endedAt: null });
  expect(outline(asked!)).toEqual(['1 model succeeded', '1 approval pending', '1 tool pending']);
  expect(asked!.operations[2]).toMatchObject({ name: 'look_up', startedAt: null, endedAt: null });

  const [approval] = (await client.approvals.list({ sessionId })).data;
  await client.approvals.approve(approval!.operationId);
  await expect.poll(async () => outline((await turnsOf(sessionId))[0]!)[2]).toBe('1 tool waiting');
  await until(sessionId, 'waiting');
  const { waitingFor } = await client.sessions.get(sessionId);
  await client.sessions.sendToolResult(sessionId, { toolCallId: waitingFor!.toolCallIds[0]!, output: 1 });
  await until(sessionId, 'idle');

  const [turn] = await turnsOf(sessionId);
  expect(turn).toMatchObject({ status: 'completed', stopReason: 'endTurn', usage: { steps: 2, toolCalls: 1 } });
  expect(outline(turn!)).toEqual(['1 model succeeded', '1 approval approved', '1 tool succeeded', '2 model succeeded']);
  const [model, decision, call, last] = turn!.operations;
  expect(model).toMatchObject({ name: 'scripted/demo', toolCallId: null });
  expect(model!.usage!.inputTokens).toBeGreaterThan(0);
  expect(model).toMatchObject({ toolType: null, error: null, attempts: [] });
  expect(ms(model!.startedAt, last!.firstTokenAt)).toBeGreaterThanOrEqual(0);
  expect(ms(last!.firstTokenAt, last!.endedAt)).toBeGreaterThanOrEqual(0);
  expect(call).toMatchObject({ toolType: 'client', error: null, firstTokenAt: null });
  expect(decision!.operationId).toBe(call!.operationId);
  expect(call).toMatchObject({ toolCallId: waitingFor!.toolCallIds[0], usage: null, childSessionId: null });
  // One after another, all within the turn.
  expect(model!.startedAt).toBe(turn!.startedAt);
  for (const [before, after] of [
    [decision!, call!],
    [call!, last!],
  ] as const)
    expect(ms(before.endedAt, after.startedAt)).toBeGreaterThanOrEqual(0);
  expect(ms(last!.endedAt, turn!.endedAt)).toBeGreaterThanOrEqual(0);
  // Equal to the usage of the session.
  expect(turn!.usage).toEqual((await client.sessions.get(sessionId)).usage);
});

test('turns are listed newest first, in pages, each with the version of the agent that it ran', async () => {
  const { client } = service;
  const { agentId, sessionId } = await openWith(scripted([{ text: 'ok' }]));
  await until(sessionId, 'idle');
  for (const name of ['B', 'C']) {
    await client.agents.update(agentId, { name, model: scripted([{ text: name }]) });
    await client.sessions.sendMessage(sessionId, { content: 'again' });
    await until(sessionId, 'idle');
  }
  const first = await client.sessions.turns(sessionId, { limit: 2 });
  expect(first.data.map(({ turn, agentVersion }) => [turn, agentVersion])).toEqual([
    [3, 3],
    [2, 2],
  ]);
  expect(first.hasMore).toBe(true);
  const second = await first.nextPage();
  expect(second.data.map(({ turn, agentVersion }) => [turn, agentVersion])).toEqual([[1, 1]]);
  expect(second.hasMore).toBe(false);
  // The session ends after its last turn, and does not change that turn.
  await client.sessions.close(sessionId);
  expect(await turnsOf(sessionId)).toEqual([...first.data, ...second.data]);
});

test('a turn shows how it ended: cancelled, interrupted or failed; a session without turns has an empty timeline', async () => {
  const { client } = service;
  const cancelled = await openWith(asking);
  const interrupted = await openWith(asking);
  const failed = await openWith(scripted([{ failWith: 'refusal' }]));
  await until(cancelled.sessionId, 'waiting');
  await client.sessions.cancel(cancelled.sessionId);
  await until(interrupted.sessionId, 'waiting');
  await client.sessions.interrupt(interrupted.sessionId);
  await until(interrupted.sessionId, 'idle');
  const { endedAt } = await client.sessions.get(cancelled.sessionId);
  const [one] = await turnsOf(cancelled.sessionId);
  expect(one).toMatchObject({ status: 'cancelled', stopReason: null, endedAt });
  expect(outline(one!)).toEqual(['1 model succeeded', '1 approval cancelled', '1 tool cancelled']);
  expect(await turnsOf(interrupted.sessionId)).toMatchObject([{ status: 'completed', stopReason: 'interrupted' }]);
  await expect.poll(async () => (await turnsOf(failed.sessionId))[0]?.stopReason).toBe('refusal');

  const { agentId } = failed;
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  expect(await turnsOf(sessionId)).toEqual([]);
});

test('a missing session, or one that the key may not read, has no timeline', async () => {
  const { client } = service;
  await expect(client.sessions.turns('ses_01k9xq3v7gf3pbt8zn5e6m2r4c')).rejects.toBeInstanceOf(NotFoundError);
  const { sessionId } = await openWith(scripted([{ text: 'ok' }]));
  const other = await client.sessions.list({ limit: 1 });
  await expect(client.sessions.turns(sessionId, { cursor: other.nextCursor })).rejects.toBeInstanceOf(BadRequestError);
  const { secret } = await client.keys.create({ name: 'S', permission: 'read', environments: ['staging'] });
  await expect(service.clientWith(secret!).sessions.turns(sessionId)).rejects.toMatchObject({ status: 403 });
});

async function allOf<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of list) all.push(one);
  return all;
}

test('the transcript can be read from its end: each page has the entries of the other order, reversed', async () => {
  const { client } = service;
  const { sessionId } = await openWith(scripted([{ text: 'ok' }]), 'first');
  await until(sessionId, 'idle');
  await client.sessions.sendMessage(sessionId, { content: 'second' });
  await until(sessionId, 'idle');
  const { sessionId: waiting } = await openWith(asking);
  await until(waiting, 'waiting');
  for (const content of ['later', 'last']) await client.sessions.sendMessage(waiting, { content });
  for (const [id, count] of [
    [sessionId, 4],
    [waiting, 4],
  ] as const) {
    const oldest = await allOf(client.sessions.messages(id, { limit: 100 }));
    expect(oldest).toHaveLength(count);
    for (const limit of [1, 3, 100]) {
      const newest = await allOf(client.sessions.messages(id, { order: 'desc', limit }));
      expect(newest.toReversed()).toEqual(oldest);
    }
  }
  // Only the newest page has the queued messages, in addition to its limit.
  const page = await client.sessions.messages(waiting, { order: 'desc', limit: 1 });
  expect(page.data.map(({ turn, role }) => `${turn} ${role}`)).toEqual(['null user', 'null user', '1 assistant']);
  const { nextCursor: cursor } = page;
  await expect(client.sessions.messages(waiting, { cursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
});

test('queued messages have their turns in order of arrival, whatever the clocks of their nodes', async () => {
  const { client, db } = service;
  const { sessionId } = await openWith(asking);
  await until(sessionId, 'waiting');
  const texts = ['one', 'two', 'three'];
  const ids: string[] = [];
  for (const content of texts) ids.push((await client.sessions.sendMessage(sessionId, { content })).messageId);
  // As if each had arrived at another node, whose clock is behind that of the previous one.
  for (const [n, id] of ids.entries()) {
    await db.execute(sql`
      update session_inbox set inbox_id = ${`00000000-0000-7000-8000-00000000000${9 - n}`}
      where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${uuidOf('ses', sessionId)}
        and inbox_id = ${uuidOf('msg', id)}`);
  }
  const said = async () =>
    (await allOf(client.sessions.messages(sessionId)))
      .filter(({ role }) => role === 'user')
      .map(({ content }) => (content[0]!.type === 'text' ? content[0]!.text : ''));
  expect(await said()).toEqual(['go', ...texts]);
  await client.sessions.sendMessage(sessionId, { content: 'at once', onBusy: 'steer' });
  expect(await said()).toEqual(['go', 'at once', ...texts]);
  await expect.poll(async () => (await client.sessions.get(sessionId)).turn).toBe(5);
  expect(await said()).toEqual(['go', 'at once', ...texts]);
});
