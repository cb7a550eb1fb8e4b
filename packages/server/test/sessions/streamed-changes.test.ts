// A change with `Accept: text/event-stream`: its response is the session, and then what the session does until it is idle.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Chunk, Session } from '@signalbox/client';
import { beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let agentId: string;
let approvalAgentId: string;

beforeAll(async () => {
  service = await startTestService();
  ({ agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' }));
  ({ agentId: approvalAgentId } = await service.client.agents.create({
    name: 'Asks',
    model: {
      provider: 'scripted',
      model: 'asks',
      settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }] },
    },
    tools: [{ type: 'client', name: 'pay', description: 'Pays.', inputSchema: { type: 'object' }, approval: 'always' }],
  }));
});

interface Streamed {
  status: number;
  type: string;
  replayed: string | null;
  session: Session;
  /** The id of the last event. */
  cursor: string | undefined;
  chunks: Chunk[];
  names: string[];
}

const events = { accept: 'text/event-stream', 'content-type': 'application/json' };

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  from = service,
): Promise<Streamed> {
  const response = await from.fetch(`/api/v1${path}`, {
    method: 'POST',
    headers: { ...events, ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const found = text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map(
      (block) => Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s))) as Record<string, string>,
    );
  expect(found[0]?.event, text).toBe('session');
  const { session } = JSON.parse(found[0]!.data!) as { session: Session };
  return {
    status: response.status,
    type: response.headers.get('content-type')!,
    replayed: response.headers.get('idempotent-replayed'),
    session,
    cursor: found.at(-1)!.id,
    chunks: found.slice(1).flatMap(({ data }) => (JSON.parse(data!) as { chunks: Chunk[] }).chunks),
    names: found.map(({ event }) => event!),
  };
}

const open = (more: object = {}, headers?: Record<string, string>, from = service) =>
  post('/sessions', { agentId, environment: 'production', input: 'one', ...more }, headers, from);

async function after(session: Session): Promise<Chunk[]> {
  const listed = await service.client.sessions.chunks(session.sessionId, { cursor: session.cursor! });
  return listed.data.flatMap(({ chunks }) => chunks);
}

test('a session that is opened streams its first turn, and the response ends when it is idle', async () => {
  const opened = await open();
  expect(opened).toMatchObject({ status: 201, type: 'text/event-stream; charset=utf-8', replayed: null });
  expect(opened.session).toMatchObject({ status: 'running', turn: 1 });
  expect(opened.names.slice(1).every((name) => name === 'session.chunks')).toBe(true);
  expect(opened.chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'idle' });
  expect(opened.chunks).toEqual(await after(opened.session));
  expect(opened.cursor).toBe((await service.client.sessions.get(opened.session.sessionId)).cursor);
});

test('a session that this node runs from its first commit on streams without a read of its journal', async () => {
  // The first one is opened by a transaction that reads the version of its agent.
  const { session } = await open();
  const reads: string[] = [];
  const hear = (text: unknown) => void (String(text).includes('from segments') && reads.push(String(text)));
  subscribe('signalbox.statement', hear);
  const opened = await open();
  const sent = await post(`/sessions/${session.sessionId}/messages`, { content: 'two' });
  unsubscribe('signalbox.statement', hear);
  expect(reads).toEqual([]);
  expect(opened.chunks).toEqual(await after(opened.session));
  expect(sent.chunks).toEqual(await after(sent.session));
});

test('a session that ends with its turn ends the response with its terminal status', async () => {
  const { chunks } = await open({ closeOnIdle: true });
  expect(chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'completed' });
});

test('a session without input is the whole response', async () => {
  const { session, chunks } = await open({ input: undefined });
  expect(session.status).toBe('idle');
  expect(chunks).toEqual([]);
});

test('a message streams its turn and none before it', async () => {
  const { session } = await open();
  const sent = await post(`/sessions/${session.sessionId}/messages`, { content: 'two' });
  expect(sent.status).toBe(202);
  expect(new Set(sent.chunks.map(({ turn }) => turn))).toEqual(new Set([2]));
  expect(sent.chunks).toEqual(await after(sent.session));
});

test('a fork streams the turn that its input starts', async () => {
  const { session } = await open();
  const fork = await post(`/sessions/${session.sessionId}/fork`, { input: 'other' });
  expect(fork.session.forkedFrom).toMatchObject({ sessionId: session.sessionId });
  expect(fork.chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'idle', turn: 2 });
});

test('the response stays open while the session waits, and continues after the decision', async () => {
  const response = await service.fetch('/api/v1/sessions', {
    method: 'POST',
    headers: events,
    body: JSON.stringify({ agentId: approvalAgentId, environment: 'production', input: 'pay' }),
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const readUntil = async (what: string) => {
    while (!text.includes(what)) {
      const { done, value } = await reader.read();
      expect(done, text).toBe(false);
      text += value;
    }
  };
  await readUntil('"status":"waiting"');
  const [, sessionId] = /"sessionId":"(ses_\w+)"/.exec(text)!;
  const [approval] = (await service.client.approvals.list({ sessionId: sessionId! })).data;
  await service.client.approvals.approve(approval!.operationId);
  await readUntil('"waitingFor":{"type":"tool');
  const [, toolCallId] = /"toolCallIds":\["(call_\w+)"\]/.exec(text.slice(text.lastIndexOf('"waitingFor":{')))!;
  // The result continues the same turn, and its own response shows the rest of it.
  const rest = await post(`/sessions/${sessionId}/tool_results`, { toolCallId, output: 'done' });
  expect(rest.chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'idle' });
  await readUntil('"status":"idle"');
  expect((await reader.read()).done).toBe(true);
});

test('a message to a busy session streams from where the session is until its own turn has ended', async () => {
  const { client } = service;
  const { sessionId } = await client.sessions.open({
    agentId: approvalAgentId,
    environment: 'production',
    input: 'pay',
  });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  const queued = post(`/sessions/${sessionId}/messages`, { content: 'and then' });
  await expect.poll(async () => (await client.sessions.messages(sessionId)).data.length).toBeGreaterThan(2);
  const [approval] = (await client.approvals.list({ sessionId })).data;
  await client.approvals.deny(approval!.operationId);
  const { session, chunks } = await queued;
  expect(session).toMatchObject({ status: 'waiting', turn: 1 });
  expect(chunks[0]).toMatchObject({ type: 'approval.resolved', turn: 1 });
  expect(chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'idle', turn: 2 });
  expect(chunks).toEqual(await after(session));
});

describe('a repeated request', () => {
  test('streams the same session again, on any node, and opens no other', async () => {
    const other = await startTestService({ database: service.database });
    const key = { 'idempotency-key': 'once' };
    const first = await open({}, key);
    const again = await open({}, key);
    const elsewhere = await open({}, { ...key, authorization: `Bearer ${service.adminKey}` }, other);
    expect(again).toEqual({ ...first, replayed: 'true' });
    expect(elsewhere).toEqual({ ...first, replayed: 'true' });
  });

  test('streams only what followed then, also if the session has continued', async () => {
    const key = { 'idempotency-key': 'then' };
    const first = await open({}, key);
    await post(`/sessions/${first.session.sessionId}/messages`, { content: 'two' });
    expect(await open({}, key)).toEqual({ ...first, replayed: 'true' });
  });
});

test('a refusal is JSON', async () => {
  const response = await service.fetch('/api/v1/sessions', {
    method: 'POST',
    headers: events,
    body: JSON.stringify({ agentId, environment: 'nowhere', input: 'one' }),
  });
  expect(response.status).toBe(404);
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
});

test('a client that names JSON first, or no type, gets JSON', async () => {
  for (const accept of ['application/json', '*/*', 'application/json, text/event-stream;q=0.5']) {
    const response = await service.fetch('/api/v1/sessions', {
      method: 'POST',
      headers: { ...events, accept },
      body: JSON.stringify({ agentId, environment: 'production', input: 'one' }),
    });
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    await response.body!.cancel();
  }
});

describe('a caller', () => {
  test('that may run sessions and not read them gets no stream, and opens nothing', async () => {
    const { secret } = await service.client.keys.create({ name: 'Runs', scopes: ['sessions:run'] });
    const count = async () => (await service.client.sessions.list({ limit: 100 })).data.length;
    const before = await count();
    const response = await service.fetch('/api/v1/sessions', {
      method: 'POST',
      headers: { ...events, authorization: `Bearer ${secret}` },
      body: JSON.stringify({ agentId, environment: 'production', input: 'one' }),
    });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining('sessions:read') });
    expect(await count()).toBe(before);
  });

  test('with a session token reads what the token may see of the chunks, and needs to be able to read', async () => {
    const { session } = await open();
    const path = `/sessions/${session.sessionId}/messages`;
    const tokenWith = async (scopes: ('read' | 'send')[]) =>
      (await service.client.sessions.createToken(session.sessionId, { scopes })).token!;
    const token = await tokenWith(['read', 'send']);
    const sent = await post(path, { content: 'two' }, { authorization: `Bearer ${token}` });
    expect(sent.session.usage.costUsd).toBeNull();
    expect(sent.chunks.find(({ type }) => type === 'step.started')).toMatchObject({ model: '' });
    const refused = await service.fetch(`/api/v1${path}`, {
      method: 'POST',
      headers: { ...events, authorization: `Bearer ${await tokenWith(['send'])}` },
      body: JSON.stringify({ content: 'three' }),
    });
    expect(refused.status).toBe(404);
  });
});

test('a client that leaves loses nothing: the turn runs on, and the stream of the session has it', async () => {
  const over = new AbortController();
  const response = await service.fetch('/api/v1/sessions', {
    method: 'POST',
    headers: events,
    body: JSON.stringify({ agentId, environment: 'production', input: 'one', metadata: { left: 'early' } }),
    signal: over.signal,
  });
  over.abort();
  await response.text().catch(() => {});
  const [session] = (await service.client.sessions.list({ metadata: { left: 'early' } })).data;
  await expect.poll(async () => (await service.client.sessions.get(session!.sessionId)).status).toBe('idle');
});

test('500 streamed sessions at once get all of their chunks', async () => {
  const all = await Promise.all(Array.from({ length: 500 }, () => open()));
  for (const { chunks } of all) expect(chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'idle' });
  expect(new Set(all.map(({ session }) => session.sessionId)).size).toBe(500);
});

test('the client streams a new session, and then a message, with one request each', async () => {
  const { client } = service;
  const { session, stream } = await client.sessions.openAndStream({
    agentId,
    environment: 'production',
    input: 'one',
  });
  const chunks: Chunk[] = [];
  for await (const envelope of stream) chunks.push(...envelope.chunks);
  expect(chunks).toEqual(await after(session));
  const sent = await client.sessions.sendAndStream(session.sessionId, { content: 'two' });
  expect(sent.messageId).toMatch(/^msg_/);
  const turns = new Set<number>();
  for await (const envelope of sent.stream) for (const { turn } of envelope.chunks) turns.add(turn);
  expect([...turns]).toEqual([2]);
});
