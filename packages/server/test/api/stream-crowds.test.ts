// Many streams at once: what they cost other callers, and what they receive.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Envelope } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { createTenant, type Tenant } from '../support/tenant.ts';

const LONG = 450_000;

let service: TestService;
let own: Tenant;
const sockets: Socket[] = [];
/** Reads of a journal that the service requested from its database. */
let reads = 0;
const hear = (text: unknown) => {
  if (String(text).includes('from segments')) reads += 1;
};

beforeEach(async () => {
  service = await startTestService();
  own = { organizationId: uuidOf('org', service.organizationId), key: service.adminKey };
  reads = 0;
  subscribe('signalbox.statement', hear);
});
afterEach(async () => {
  unsubscribe('signalbox.statement', hear);
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.stop();
});

/** Sessions with this many long chunks each, every one in its own segment. */
async function sessionsOf({ organizationId, key }: Tenant, count: number, chunks: number): Promise<string[]> {
  const { agentId } = await service.clientWith(key).agents.create({ name: 'A', model: 'scripted/x' });
  const ids = Array.from({ length: count }, () => newUuid());
  await service.db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at)
    select ${organizationId}, id, ${uuidOf('agt', agentId)}, 'production', 'idle', 1, ${chunks + 1}, false, '{}', now(), now()
    from unnest(${ids}::uuid[]) as id`);
  await service.db.execute(sql`
    insert into segments (organization_id, session_id, turn, seq_from, seq_to, body, created_at)
    select ${organizationId}, id, 1, n, n, '["' || n || repeat('a', ${LONG}) || '"]', now()
    from unnest(${ids}::uuid[]) as id, generate_series(1, ${chunks}::integer) as n`);
  return ids.map((id) => formatId('ses', id));
}

/** Opens a stream that is not read. */
function open(sessionId: string, { key }: Tenant): void {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  socket.pause();
  socket.write(`GET /api/v1/sessions/${sessionId}/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
}

/** The seqs of this many chunks after the given one, each complete. */
async function read(sessionId: string, { key }: Tenant, after: number, count: number): Promise<number[]> {
  const gone = new AbortController();
  const answer = await fetch(`${service.url}/api/v1/sessions/${sessionId}/stream`, {
    headers: { authorization: `Bearer ${key}`, ...(after > 0 && { 'last-event-id': `turn_1:seq_${after}` }) },
    signal: gone.signal,
  });
  const seqs: number[] = [];
  let text = '';
  for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    const events = text.split('\n\n');
    text = events.pop()!;
    for (const event of events) {
      const envelope = JSON.parse(/^data: (.*)$/m.exec(event)![1]!) as Envelope;
      for (const { seq, ...chunk } of envelope.chunks) {
        expect(chunk).toMatchObject({ type: 'message.chunk', delta: seq + 'a'.repeat(LONG) });
        seqs.push(seq);
      }
    }
    if (seqs.length >= count) break;
  }
  gone.abort();
  return seqs;
}

/** Resolves when all requests have arrived. No more at once than the kernel's accept queue holds. */
async function openAll(opens: readonly (() => void)[]): Promise<void> {
  let arrived = 0;
  const arrive = () => {
    arrived += 1;
  };
  subscribe('http.server.request.start', arrive);
  for (let at = 0; at < opens.length; at += 300) {
    const some = opens.slice(at, at + 300);
    for (const act of some) act();
    await expect.poll(() => arrived, { interval: 1 }).toBe(at + some.length);
  }
  unsubscribe('http.server.request.start', arrive);
}

/** Delays every read of a journal until it is released. */
async function holdJournals(): Promise<() => Promise<void>> {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const over = service.db.transaction(async (tx) => {
    await tx.execute(sql`lock table segments in access exclusive mode`);
    held.resolve();
    await released.promise;
  });
  await held.promise;
  return () => {
    released.resolve();
    return over;
  };
}

test('when an organization opens 1,500 streams at once, another’s calls are served before them', async () => {
  const other = await createTenant(service);
  const [sessions, [session]] = [await sessionsOf(own, 300, 1), await sessionsOf(other, 1, 1)];
  const release = await holdJournals();
  await openAll([...sessions, ...sessions, ...sessions, ...sessions, ...sessions].map((id) => () => open(id, own)));
  // Streams that wait for the database leave connections to it for other calls.
  expect((await send(service.url, 'GET', '/me', { key: other.key })).status).toBe(200);
  const before = reads;
  const calls: Promise<unknown>[] = [];
  await openAll([
    () => calls.push(send(service.url, 'GET', `/sessions/${session}/chunks`, { key: other.key })),
    () => calls.push(read(session!, other, 0, 1)),
  ]);
  await release();
  expect(await Promise.all(calls)).toEqual([expect.objectContaining({ status: 200 }), [1]]);
  expect(before).toBeLessThanOrEqual(8);
  expect(reads - before).toBeLessThanOrEqual(30);
}, 120_000);

test('200 clients that resume at different positions read each chunk of the journal a few times, not 200', async () => {
  const chunks = 10;
  const [session] = await sessionsOf(own, 1, chunks);
  const cursors = Array.from({ length: 200 }, (_, n) => n % chunks);
  const found = await Promise.all(cursors.map((after) => read(session!, own, after, chunks - after)));
  expect(found).toEqual(cursors.map((after) => Array.from({ length: chunks - after }, (_, n) => after + n + 1)));
  expect(reads).toBeLessThanOrEqual(5 * chunks);
}, 120_000);

test('clients that leave at any moment leave nothing behind: later ones are served', async () => {
  const chunks = 3;
  const sessions = await sessionsOf(own, 20, chunks);
  const release = await holdJournals();
  // Some leave while they wait for the database or for others, some in the middle of a chunk.
  await openAll(Array.from({ length: 300 }, (_, n) => () => open(sessions[n % sessions.length]!, own)));
  for (const socket of sockets.splice(0, 150)) socket.destroy();
  await release();
  for (const socket of sockets.splice(0, 140)) await once(socket.resume(), 'data').then(() => socket.destroy());
  for (const socket of sockets.splice(0)) socket.destroy();
  const found = await Promise.all(sessions.map((session) => read(session, own, 0, chunks)));
  expect(found).toEqual(sessions.map(() => [1, 2, 3]));
  const metrics = async () => (await service.fetch('/metrics')).text();
  await expect.poll(metrics).toMatch(/signalbox_live_readers 0\n/);
}, 120_000);
