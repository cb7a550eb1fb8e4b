// Readers that disconnect, and shutdown: the service waits for neither without a limit.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import type { Db } from '../../src/db/db.ts';
import { type App, createApp } from '../../src/http/app.ts';
import { createKey } from '../../src/keys/keys.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import type { Identity } from '../../src/people/identity.ts';
import type { Platform } from '../../src/platform.ts';
import { createWorld, type World } from '../support/session-world.ts';

let world: World;
let app: App;
let port: number;
let key: string;
let sessionId: string;
/** Delays the query of a session's head until it is resolved. */
let gate: PromiseWithResolvers<void>;
let asked: PromiseWithResolvers<void>;
/** Resolved when the API stops waiting for requests in progress. */
let graceOver: PromiseWithResolvers<void>;
let following: number;
let ended: PromiseWithResolvers<void>;

beforeEach(async () => {
  world = await createWorld();
  const { platform } = world;
  gate = Promise.withResolvers();
  asked = Promise.withResolvers();
  ended = Promise.withResolvers();
  graceOver = Promise.withResolvers();
  following = 0;
  const gatedDb = (db: Db): Db => ({
    ...db,
    of: (organizationId) => gatedDb(db.of(organizationId)),
    async query<Row>(sql: Sql) {
      if (sql.text.includes('ended_at is not null as ended')) {
        asked.resolve();
        await gate.promise;
      }
      return db.query<Row>(sql);
    },
  });
  const gated: Platform = {
    ...platform,
    db: gatedDb(platform.db),
    clock: {
      ...platform.clock,
      sleep: (ms, signal) => (ms === 5_000 ? graceOver.promise : platform.clock.sleep(ms, signal)),
    },
    live: {
      ...platform.live,
      follow(...of) {
        const stream = platform.live.follow(...of);
        return {
          open(onMore) {
            following += 1;
            const reader = stream.open(onMore);
            const close = () => {
              reader.close();
              following -= 1;
              ended.resolve();
            };
            return {
              take: () => reader.take(),
              get end() {
                return reader.end;
              },
              close,
            };
          },
        };
      },
    },
  };
  const scrape = { text: async () => '', stop: async () => {} };
  app = await createApp(gated, {
    version: 'test',
    limits: readConfig({}, {}),
    monitoring: { scrape, token: undefined, isDraining: () => false },
    operator: { operatorToken: undefined, organizationId: world.organizationId },
    // Users do not sign in here.
    identity: { cookieIn: () => undefined } as unknown as Identity,
    provider: undefined,
  });
  port = await app.listen({ port: 0, host: '127.0.0.1' });
  key = (await createKey(world.ctx, { name: 'k', permission: 'admin' })).apiKey.secret!;
  sessionId = await world.open(await world.agent());
});
afterEach(async () => {
  gate.resolve();
  graceOver.resolve();
  await app.close();
  await world.close();
});

async function request(path: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  return socket;
}

/** What a request gets if the service begins to shut down while the request is in progress. */
async function receivedAtShutdown(path: string): Promise<string> {
  const socket = await request(path);
  let received = '';
  socket.on('data', (data) => {
    received += data;
  });
  await asked.promise;
  const closed = app.close();
  gate.resolve();
  await closed;
  if (!socket.destroyed) await once(socket, 'close');
  return received;
}

test('a reader that disconnects before its stream begins leaves nothing open', async () => {
  const socket = await request(`/sessions/${sessionId}/stream`);
  await asked.promise;
  socket.resetAndDestroy();
  await once(socket, 'close');
  // Once the server has responded to a later request, it has noticed the disconnect.
  await (await fetch(`http://127.0.0.1:${port}/healthz`)).text();
  gate.resolve();
  await ended.promise;
  expect(following).toBe(0);
});

test('a stream that is about to begin is served and ends, without delaying the shutdown', async () => {
  const received = await receivedAtShutdown(`/sessions/${sessionId}/stream`);
  expect(received).toContain('200 OK');
  // The end of a chunked body: the client resumes on another node.
  expect(received.endsWith('0\r\n\r\n')).toBe(true);
});

test('a request in progress gets its response at shutdown, which does not wait for its connection', async () => {
  expect(await receivedAtShutdown(`/sessions/${sessionId}/chunks`)).toContain('200 OK');
});

test('an endless request does not delay the shutdown', async () => {
  const socket = await request('/me');
  await once(socket, 'data');
  socket.write(`POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`);
  socket.write('Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
  await once(socket, 'data'); // the server responds with 100 Continue
  const closed = app.close();
  graceOver.resolve();
  await closed;
});

test('a stream whose client takes nothing does not delay the shutdown', async () => {
  gate.resolve();
  await world.platform.db.execute(sql`
    insert into segments (organization_id, session_id, turn, seq_from, seq_to, body, created_at)
    select ${world.organizationId}, ${uuidOf('ses', sessionId)}, 9, n, n, '["' || repeat('a', 450000) || '"]', now()
    from generate_series(1, 30) as n`);
  await world.platform.db.execute(sql`
    update sessions set turn = 9, next_seq = 31
    where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  let connection: Socket | undefined;
  const note = (message: unknown) => {
    connection = (message as { socket: Socket }).socket;
  };
  subscribe('http.server.request.start', note);
  const client = await request(`/sessions/${sessionId}/stream`);
  client.pause();
  await expect.poll(() => connection?.writableLength).toBeGreaterThan(0);
  unsubscribe('http.server.request.start', note);
  const closed = app.close();
  await ended.promise;
  graceOver.resolve();
  await closed;
  expect(connection!.destroyed).toBe(true);
});
