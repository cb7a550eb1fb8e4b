// Listeners through the client and over HTTP: on two nodes of which one is killed, and as callers that may not listen.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Chunk, type CreateKey, Signalbox } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { programFile } from '../support/programs.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const masterKey = 'cd'.repeat(32);
const path = await programFile('node');

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { masterKeys: [Buffer.from(masterKey, 'hex')] } });
});
afterAll(() => service.stop());

/** An agent that says this many words, slowly. */
const talker = (words: number) => ({
  name: `Talker ${words}`,
  model: {
    provider: 'scripted' as const,
    model: 'x',
    settings: { script: [{ text: Array.from({ length: words }, (_, n) => `word${n}`).join(' '), tokenDelayMs: 5 }] },
  },
});

test('a listener whose node is killed continues on another one: each session whole, in order and once', async () => {
  const { client, database, adminKey, db } = service;
  const own = (await db.query<{ id: string }>(sql`select node_id as id from nodes`)).map(({ id }) => id);
  const node = spawn(process.execPath, [path], {
    env: {
      ...process.env,
      DATABASE_URL: database.url,
      SIGNALBOX_MASTER_KEY: masterKey,
      SIGNALBOX_LOG_LEVEL: 'silent',
    },
  });
  onTestFinished(() => void node.kill('SIGKILL'));
  const [printed] = await once(node.stdout, 'data');
  const killed = { url: String(printed).trim(), isAlive: true };

  // As a load balancer in front of both nodes.
  const connections: string[] = [];
  const balanced: typeof fetch = (input, init) => {
    const url = new URL(String(input));
    const base = new URL(killed.isAlive ? killed.url : service.url);
    url.host = base.host;
    if (url.pathname.endsWith('/stream')) connections.push(base.host);
    return fetch(url, init);
  };
  const listener = new Signalbox({ apiKey: adminKey, baseUrl: service.url, fetch: balanced });
  const over = new AbortController();
  const opened = Promise.withResolvers<void>();
  const received = new Map<string, Chunk[]>();
  const ended = new Set<string>();
  const stream = listener.environments.stream(
    'staging',
    { onConnection: (state) => state === 'open' && opened.resolve() },
    { signal: over.signal },
  );
  const listening = (async () => {
    for await (const { sessionId, chunks } of stream) {
      received.set(sessionId, [...(received.get(sessionId) ?? []), ...chunks]);
      if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'completed')) ended.add(sessionId);
    }
  })();
  listening.catch(() => {});
  await opened.promise;
  const { agentId } = await client.agents.create(talker(200));
  const open = () => client.sessions.open({ agentId, environment: 'staging', input: 'go', closeOnIdle: true });
  const sessions = await Promise.all(Array.from({ length: 12 }, open));
  await expect.poll(() => received.size).toBe(12);

  killed.isAlive = false;
  node.kill('SIGKILL');
  await once(node, 'close');
  sessions.push(...(await Promise.all(Array.from({ length: 4 }, open))));
  // Instead of waiting until it expires.
  await db.execute(
    sql`update nodes set lease_expires_at = now() - interval '1 minute' where node_id <> all(${own}::uuid[])`,
  );
  await expect.poll(() => ended.size).toBe(16);
  expect(new Set(connections)).toEqual(new Set([new URL(killed.url).host, new URL(service.url).host]));
  for (const { sessionId } of sessions) {
    const types = 'message.chunk,session.status,tool.call,approval.requested,approval.resolved';
    const all: Chunk[] = [];
    const query = { types: types.split(',') as Chunk['type'][], limit: 1000 };
    for await (const envelope of client.sessions.chunks(sessionId, query)) all.push(...envelope.chunks);
    expect(received.get(sessionId)).toEqual(all);
  }
  over.abort();
  await expect(listening).rejects.toThrow();
});

test('a listener ends when its key is deleted, and no caller without the scope, the environment or the agent becomes one', async () => {
  const { client, clientWith } = service;
  const { agentId } = await client.agents.create(talker(1));
  const other = await client.agents.create(talker(2));
  const create = async (params: object) => {
    const key = await client.keys.create({ name: 'Listener', ...params } as CreateKey);
    watchSecret(key.secret!);
    return { ...key, client: clientWith(key.secret!) };
  };
  const first = async (caller: Signalbox, env = 'staging', params = {}) => {
    const over = new AbortController();
    const opened = Promise.withResolvers<'open'>();
    const onConnection = (state: 'open' | 'lost') => void (state === 'open' && opened.resolve('open'));
    const stream = caller.environments.stream(env, { ...params, onConnection }, { signal: over.signal, maxRetries: 0 });
    const reading = (async () => {
      for await (const _ of stream);
    })();
    const outcome = Promise.race([opened.promise, reading.catch((error) => error.status as number)]);
    return { outcome: await outcome, reading, end: () => over.abort() };
  };
  const limited = await create({ permission: 'read', environments: ['staging'] });
  const ofAgent = await create({ scopes: ['sessions:read'], agents: [agentId] });
  const writer = await create({ scopes: ['webhooks:write'] });
  const { token } = await client.sessionTokens.create({
    agentId,
    environment: 'staging',
    endUser: { id: 'u1' },
    scopes: ['read', 'open'],
  });
  watchSecret(token!);
  const outcomes = [
    await first(limited.client),
    await first(limited.client, 'production'),
    await first(ofAgent.client),
    await first(ofAgent.client, 'staging', { agentId: other.agentId }),
    await first(writer.client),
    await first(clientWith(token!)),
    await first(clientWith('sbk_nobody')),
    await first(client, 'nowhere'),
  ];
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['open', 403, 'open', 403, 403, 404, 401, 404]);
  const [listening, , ofAgents] = outcomes;
  await client.keys.delete(limited.keyId);
  await expect(listening!.reading).rejects.toMatchObject({ status: 401 });
  ofAgents!.end();
  await expect(ofAgents!.reading).rejects.toThrow();
});
