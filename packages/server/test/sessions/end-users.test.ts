// End users: for whom a session is, and what inherits that.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let echo: string;
beforeAll(async () => {
  service = await startTestService();
  echo = (await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' })).agentId;
});

const open = (more: object = {}) => service.client.sessions.open({ agentId: echo, environment: 'production', ...more });
const idle = (sessionId: string) =>
  expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');

test('a session shows the end user that it was opened for, and null without one', async () => {
  const endUser = { id: 'user_1', name: 'Ada' };
  const opened = await open({ endUser });
  expect(opened.endUser).toEqual(endUser);
  expect((await service.client.sessions.get(opened.sessionId)).endUser).toEqual(endUser);
  expect((await open({ endUser: { id: 'user_1' } })).endUser).toEqual({ id: 'user_1' });
  expect((await open({ endUser: null })).endUser).toBeNull();
  expect((await open()).endUser).toBeNull();
});

test('an end user without an id, or with one that is too long or empty, is refused', async () => {
  const refused = { status: 400, code: 'invalid_request' };
  for (const endUser of [
    {},
    { id: '' },
    { id: 'x'.repeat(201) },
    { id: 1 },
    { id: 'a', name: '' },
    { id: 'a', x: 1 },
  ]) {
    await expect(open({ endUser })).rejects.toMatchObject(refused);
  }
  await expect(open({ endUser: { id: 'a', name: 'n'.repeat(201) } })).rejects.toMatchObject(refused);
  await expect(open({ endUser: { id: 'a\u0000b' } })).rejects.toMatchObject(refused);
});

test('any text is an id, and sessions are found by exactly that text', async () => {
  const ids = [
    'a@example.com',
    '../../etc/passwd',
    '%2e%2e%2f',
    "'; drop table sessions; --",
    '"quoted" \\ {{secrets.X}}',
    'straße ÄÖ 日本 👩‍👩‍👧',
    'a b',
    ' a b ',
    'A b',
    '\u202Eright to left',
    '👩'.repeat(200),
  ];
  for (const id of ids) {
    const { sessionId } = await open({ endUser: { id } });
    const found = await service.client.sessions.list({ endUserId: id });
    expect(found.data.map((session) => [session.sessionId, session.endUser])).toEqual([[sessionId, { id }]]);
  }
});

test('sessions of an end user are listed page by page, newest first, with other filters', async () => {
  const opened: string[] = [];
  for (const metadata of [{ n: 1 }, { n: 2 }, { n: 3 }]) {
    opened.unshift((await open({ endUser: { id: 'pages' }, metadata })).sessionId);
  }
  const listed: string[] = [];
  for await (const { sessionId } of service.client.sessions.list({ endUserId: 'pages', limit: 1 }))
    listed.push(sessionId);
  expect(listed).toEqual(opened);
  const idsOf = async (filter: object) =>
    (await service.client.sessions.list({ endUserId: 'pages', ...filter })).data.map(({ sessionId }) => sessionId);
  expect(await idsOf({ metadata: { n: '2' } })).toEqual([opened[1]]);
  expect(await idsOf({ status: 'running' })).toEqual([]);
  expect(await idsOf({ environment: 'production', agentId: echo })).toEqual(opened);
  expect((await service.client.sessions.list({ endUserId: 'nobody', metadata: { n: '2' } })).data).toEqual([]);
});

test('forks and child sessions are for the same end user', async () => {
  const { client } = service;
  const endUser = { id: 'family', name: 'Ada' };
  const asking = await client.agents.create({
    name: 'Asking',
    model: {
      provider: 'scripted',
      model: 'test',
      settings: { script: [{ toolCalls: [{ name: 'ask', input: { input: 'Hello' } }] }, { text: 'Done.' }] },
    },
    tools: [{ type: 'agent', name: 'ask', description: 'Asks', agentId: echo }],
  });
  const parent = await client.sessions.open({
    agentId: asking.agentId,
    environment: 'production',
    endUser,
    input: 'Go',
  });
  await idle(parent.sessionId);
  const fork = await client.sessions.fork(parent.sessionId, { metadata: {} });
  const { data } = await client.sessions.list({ endUserId: 'family' });
  expect(data).toHaveLength(3);
  expect(data.map((session) => session.endUser)).toEqual([endUser, endUser, endUser]);
  expect(data.filter(({ parentSessionId }) => parentSessionId === parent.sessionId)).toHaveLength(1);
  expect(data.map(({ sessionId }) => sessionId)).toContain(fork.sessionId);
});

test('a schedule opens its sessions for its end user', async () => {
  const { client } = service;
  const at = new Date(Date.now() + 1_000).toISOString();
  const endUser = { id: 'scheduled', name: 'Ada' };
  const schedule = await client.schedules.create({ agentId: echo, environment: 'production', at, endUser });
  expect(schedule.endUser).toEqual(endUser);
  await expect.poll(async () => (await client.sessions.list({ endUserId: 'scheduled' })).data).toHaveLength(1);
  const changed = await client.schedules.update(schedule.scheduleId, { endUser: { id: 'other' } });
  expect(changed.endUser).toEqual({ id: 'other' });
  expect((await client.schedules.update(schedule.scheduleId, { metadata: { a: 1 } })).endUser).toEqual({ id: 'other' });
  expect((await client.schedules.update(schedule.scheduleId, { endUser: null })).endUser).toBeNull();
  expect((await client.schedules.get(schedule.scheduleId)).endUser).toBeNull();
});

test('tools get the end user of their session, which the model and the caller’s input can’t change', async () => {
  const { client } = service;
  const seen: [string | undefined, unknown, string][] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    seen.push([request.url, request.headers['x-user'], Buffer.concat(chunks).toString()]);
    response.end('ok');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { agentId } = await client.agents.create({
    name: 'Tools',
    model: {
      provider: 'scripted',
      model: 'test',
      settings: {
        script: [
          { toolCalls: [{ name: 'note', input: { text: 'Hi', session: { endUser: { id: 'another' } } } }] },
          { text: '{{lastToolResult}}' },
        ],
      },
    },
    tools: [
      {
        type: 'http',
        name: 'note',
        description: 'Notes',
        inputSchema: { type: 'object' },
        approval: 'never',
        request: {
          method: 'POST',
          url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/{{session.endUser.id}}`,
          headers: { 'X-User': '{{session.endUser.name}}' },
          body: { by: '{{session.endUser.id}}', text: '{{input.text}}' },
        },
      },
    ],
  });
  const endUser = { id: 'a/b "c"', name: 'Ada' };
  const named = await client.sessions.open({ agentId, environment: 'production', endUser, input: 'Go' });
  await idle(named.sessionId);
  expect(seen).toEqual([['/a%2Fb%20%22c%22', 'Ada', JSON.stringify({ by: endUser.id, text: 'Hi' })]]);
  const nameless = await client.sessions.open({ agentId, environment: 'production', input: 'Go' });
  await idle(nameless.sessionId);
  expect(seen).toHaveLength(1);
  const { data } = await client.sessions.messages(nameless.sessionId);
  expect(JSON.stringify(data)).toContain('session.endUser.id is missing: the session has no end user');
});

test('a worker learns for whom its turn is', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'Own', model: { provider: 'worker', queue: 'end-users' } });
  const endUser = { id: 'worked', name: 'Ada' };
  await client.sessions.open({ agentId, environment: 'production', endUser, input: 'Hello' });
  const stopping = new AbortController();
  const given = Promise.withResolvers<unknown>();
  const done = client.workers.run({
    queue: 'end-users',
    signal: stopping.signal,
    onTurn: (turn) => given.resolve(turn.endUser),
  });
  expect(await given.promise).toEqual(endUser);
  stopping.abort();
  await done;
});
