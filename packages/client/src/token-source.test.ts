import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { type Answer, json, problem, quickTime, serve, timeoutMs } from '../test/fake-service.ts';
import { AuthenticationError, type Chunk, ConnectionError, type GetToken, Signalbox } from './index.ts';

const session = { sessionId: 'ses_1' };
const of = (header: string | undefined) => header?.replace('Bearer ', '');

/** A service that accepts only the newest token, and a client that gets it from `issue`. */
async function startTokens(answer: Answer, issue?: (count: number) => ReturnType<GetToken>) {
  const state = { newest: 'sbt_1', issued: 0 };
  const { url, seen } = await serve(async (response, request, number, raw) => {
    if (of(request.headers.authorization) !== state.newest) return problem(response, 401, 'session_token_expired');
    await answer(response, request, number, raw);
  });
  const client = new Signalbox({
    baseUrl: url,
    sleep: quickTime().sleep,
    timeoutMs,
    token: () => {
      state.issued += 1;
      return issue?.(state.issued) ?? state.newest;
    },
  });
  return { client, seen, state };
}

const getSession: Answer = (response) => json(response, 200, { session });

test('calls share one token, and a refused one is replaced once for all of them', async () => {
  const { client, seen, state } = await startTokens(getSession);
  await Promise.all(Array.from({ length: 20 }, () => client.sessions.get('ses_1')));
  expect(state.issued).toBe(1);
  state.newest = 'sbt_2';
  const all = await Promise.all(Array.from({ length: 20 }, () => client.sessions.get('ses_1')));
  expect(all).toEqual(Array.from({ length: 20 }, () => session));
  expect(state.issued).toBe(2);
  // A page's own headers would make the browser ask first.
  expect(seen.every(({ headers }) => headers['user-agent']?.includes('signalbox') === false)).toBe(true);
});

test('a POST that is repeated with a new token has the same idempotency key', async () => {
  const { client, seen, state } = await startTokens((response) => json(response, 202, { session, messageId: 'msg_1' }));
  await client.sessions.sendMessage('ses_1', { content: 'One' });
  state.newest = 'sbt_2';
  await client.sessions.sendMessage('ses_1', { content: 'Two' });
  expect(seen.map(({ headers }) => of(headers.authorization))).toEqual(['sbt_1', 'sbt_1', 'sbt_2']);
  expect(seen[1]!.headers['idempotency-key']).toBe(seen[2]!.headers['idempotency-key']);
  expect(seen[0]!.headers['idempotency-key']).not.toBe(seen[1]!.headers['idempotency-key']);
});

test('a call fails if the service refuses the new token as well', async () => {
  const { client, state } = await startTokens(getSession, (count) => `sbt_old_${count}`);
  await expect(client.sessions.get('ses_1')).rejects.toThrow(AuthenticationError);
  expect(state.issued).toBe(2);
});

test('a stream whose token expires resumes at its cursor with a new one', async () => {
  const chunk = (seq: number): Chunk => ({ type: 'message.chunk', delta: `${seq}`, turn: 1, seq });
  const end: Chunk = { type: 'session.status', status: 'completed', waitingFor: null, turn: 1, seq: 3 };
  const send = (response: ServerResponse, ...chunks: Chunk[]) => {
    const { turn, seq } = chunks.at(-1)!;
    const data = JSON.stringify({ event: 'session.chunks', cursor: `turn_${turn}:seq_${seq}`, chunks });
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`event: session.chunks\ndata: ${data}\n\n`);
  };
  const { client, seen, state } = await startTokens((response, { url }) => {
    if (url.includes('cursor=')) return send(response, end);
    state.newest = 'sbt_2';
    send(response, chunk(1), chunk(2));
  });
  const read: number[] = [];
  for await (const { chunks } of client.sessions.stream('ses_1')) read.push(...chunks.map(({ seq }) => seq));
  expect(read).toEqual([1, 2, 3]);
  expect(state.issued).toBe(2);
  expect(seen.at(-1)!.url).toContain('cursor=turn_1%3Aseq_2');
});

test('a function that fails is called again, and its error is the cause', async () => {
  const failing = await startTokens(getSession, () => Promise.reject(new Error('signed out')));
  const error = await failing.client.sessions.get('ses_1').catch((one: unknown) => one);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(error).toMatchObject({ code: 'token_unavailable', detail: 'No session token: signed out' });
  expect(failing.state.issued).toBe(3);
  expect(failing.seen).toEqual([]);

  const passing = await startTokens(getSession, (count) => {
    if (count === 1) throw new Error('offline');
    return 'sbt_1';
  });
  expect(await passing.client.sessions.get('ses_1')).toEqual(session);
});

test('credentials of several kinds, and values that are not a token, are refused without showing them', async () => {
  const both = { apiKey: 'sbk_secret', token: () => 'sbt_secret' } as never;
  expect(() => new Signalbox(both)).toThrow(/not several/);
  expect(() => new Signalbox({ token: 'sbt_secret' } as never)).toThrow('must be a function');
  const { client } = await startTokens(getSession, () => 'sbt_with\nline');
  await expect(client.sessions.get('ses_1')).rejects.toThrow(/^token must return a session token: printable ASCII/);
});
