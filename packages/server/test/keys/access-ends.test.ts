// Access that ends: what a key's end, change or rotation does to its session tokens, and to the open streams of both, on every node.
import { Signalbox as Client, type Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** The time as it is, but a pause of 30 seconds never ends: what a stream is checked by at the latest ends none of them here. */
const withoutPolls: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms >= 25_000 && ms <= 30_000 ? 1_000_000 : ms, signal),
};

let nodes: [TestService, TestService];
let client: Signalbox;
let agentId: string;
let sessionId: string;
beforeAll(async () => {
  const first = await startTestService({ clock: withoutPolls });
  nodes = [first, await startTestService({ clock: withoutPolls, database: first.database })];
  ({ client } = first);
  ({ agentId } = await client.agents.create({ name: 'A', model: 'scripted/echo' }));
  ({ sessionId } = await client.sessions.open({ agentId, environment: 'production' }));
});
afterAll(async () => {
  for (const node of nodes.toReversed()) await node.stop();
});

/** Opens a stream; `ended` resolves when the service has closed it. */
async function open(node: TestService, credential: string, id = sessionId) {
  const response = await fetch(`${node.url}/api/v1/sessions/${id}/stream`, {
    headers: { authorization: `Bearer ${credential}` },
  });
  expect(response.status).toBe(200);
  const reader = response.body!.getReader();
  const read = async () => {
    try {
      while (!(await reader.read()).done);
      return 'at its end';
    } catch {
      return 'in the middle';
    }
  };
  return { ended: read() };
}

const codeOn = async (node: TestService, credential: string) => {
  const answer = await send(node.url, 'GET', `/sessions/${sessionId}`, { key: credential });
  return answer.status === 200 ? 'ok' : asProblem(answer).code;
};

/** A key with tokens of it. */
async function keyWithTokens(more: object = {}) {
  const { keyId, secret } = await client.keys.create({ name: 'k', permission: 'write', ...more });
  const own = nodes[0].clientWith(secret!);
  const { token: ofSession } = await own.sessions.createToken(sessionId, { scopes: ['read', 'send'] });
  const { token: ofUser } = await own.sessionTokens.create({
    agentId,
    environment: 'production',
    endUser: { id: 'u' },
    scopes: ['open', 'read'],
  });
  const user = new Client({ baseUrl: nodes[0].url, token: async () => ofUser! });
  const ofUserSession = (await user.sessions.open({ agentId, environment: 'production' })).sessionId;
  return { keyId, secret: secret!, tokens: [ofSession!, ofUser!] as const, ofUserSession };
}

describe('on two nodes', () => {
  const changes: [string, (keyId: string) => Promise<unknown>, string][] = [
    ['is deleted', (keyId) => client.keys.delete(keyId), 'token_revoked'],
    ['is rotated', (keyId) => client.keys.rotate(keyId), 'token_rotated'],
    ['is limited to another environment', (keyId) => client.keys.update(keyId, { environments: ['staging'] }), ''],
  ];
  test.each(changes)(
    'when a key %s, its tokens are refused at the next request, and streams of it and of them end',
    async (_, change, code) => {
      const { keyId, secret, tokens, ofUserSession } = await keyWithTokens();
      const streams = [];
      for (const node of nodes) {
        streams.push(await open(node, secret), await open(node, tokens[0]), await open(node, tokens[1], ofUserSession));
      }
      for (const node of nodes) for (const token of [tokens[0], secret]) expect(await codeOn(node, token)).toBe('ok');
      await change(keyId);
      for (const node of nodes) {
        for (const token of tokens) expect(await codeOn(node, token)).toBe('session_token_revoked');
        expect(await codeOn(node, secret)).toBe(code || 'insufficient_permission');
      }
      expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(Array(6).fill('in the middle'));
    },
  );

  test('a key that loses a scope takes it from its tokens, which end the streams that need it', async () => {
    const { keyId, tokens } = await keyWithTokens();
    const { ended } = await open(nodes[1], tokens[0]);
    await client.keys.update(keyId, { scopes: ['sessions:run'] });
    expect(await codeOn(nodes[1], tokens[0])).toBe('not_found');
    const sent = await send(nodes[1].url, 'POST', `/sessions/${sessionId}/interrupt`, { key: tokens[0], body: {} });
    expect(sent.status).toBe(200);
    expect(await ended).toBe('in the middle');
  });

  test('a change that takes nothing from a key ends none of its streams', async () => {
    const { keyId, secret, tokens } = await keyWithTokens();
    const { sessionId: other } = await client.sessions.open({ agentId, environment: 'production' });
    const { token } = await nodes[0].clientWith(secret).sessions.createToken(other, { scopes: ['read'] });
    const streams = [await open(nodes[1], secret, other), await open(nodes[1], token!, other)];
    await client.keys.update(keyId, { name: 'renamed', environments: ['production'] });
    expect(await codeOn(nodes[1], tokens[0])).toBe('ok');
    // Their session ends them, so they were open until then.
    await client.sessions.cancel(other);
    expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(['at its end', 'at its end']);
  });

  test('after a rotation with a grace period, tokens of the old secret last as long as that secret', async () => {
    const { keyId, secret, tokens } = await keyWithTokens();
    const { secret: newer } = await client.keys.rotate(keyId, { gracePeriodSeconds: 3600 });
    const byOld = await nodes[1].clientWith(secret).sessions.createToken(sessionId, { scopes: ['read'] });
    const byNew = await nodes[1].clientWith(newer!).sessions.createToken(sessionId, { scopes: ['read'] });
    for (const token of [tokens[0], byOld.token!, byNew.token!]) expect(await codeOn(nodes[1], token)).toBe('ok');
    await client.keys.deleteOldSecret(keyId);
    for (const token of [tokens[0], byOld.token!]) expect(await codeOn(nodes[1], token)).toBe('session_token_revoked');
    expect(await codeOn(nodes[1], byNew.token!)).toBe('ok');
  });
});

describe('at its time', () => {
  let clock: ManualClock;
  let service: TestService;
  beforeAll(async () => {
    clock = createManualClock(new Date());
    service = await startTestService({ clock });
  });
  afterAll(() => clock.passWhile(service.stop()));

  test('a token expires, and its streams end so that a client resumes with the next token and misses nothing', async () => {
    const agent = await service.client.agents.create({ name: 'A', model: 'scripted/echo' });
    const session = await service.client.sessions.open({ agentId: agent.agentId, environment: 'production' });
    const id = session.sessionId;
    const fetched: string[] = [];
    const getToken = async () => {
      const { token } = await service.client.sessions.createToken(id, { scopes: ['read'], expiresInSeconds: 60 });
      fetched.push(token!);
      return token!;
    };
    // A client without pauses, since the clock is not its own.
    const page = new Client({ baseUrl: service.url, token: getToken, sleep: async (ms, signal) => pause(ms, signal) });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { chunks } of page.sessions.stream(id)) {
        for (const chunk of chunks) if (chunk.type === 'message.chunk') seen.push(chunk.delta);
      }
    })();
    await expect.poll(() => fetched.length).toBe(1);
    const first = await open(service, fetched[0]!, id);
    await service.client.sessions.sendMessage(id, { content: 'one' });
    await clock.passUntil(() => seen.length > 0);
    await clock.advance(61_000);
    expect(await first.ended).toBe('at its end');
    expect(asProblem(await send(service.url, 'GET', `/sessions/${id}`, { key: fetched[0]! })).code).toBe(
      'session_token_expired',
    );
    await expect.poll(() => fetched.length).toBe(2);
    const before = seen.length;
    await service.client.sessions.sendMessage(id, { content: 'two' });
    await clock.passUntil(() => seen.length > before);
    await service.client.sessions.cancel(id);
    await clock.passWhile(reading);
    expect(seen.join('')).toContain('one');
    expect(seen.join('')).toContain('two');
  });
});

/** Time-outs never come, and other pauses take no time. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms < 10_000) return new Promise((resolve) => setImmediate(resolve));
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
}
