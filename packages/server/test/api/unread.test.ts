// Responses that their clients do not read: what they cost, and that they end.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import sql from 'sql-template-tag';
import { afterEach, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { collectGarbage } from '../support/garbage.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { createTenant, type Tenant } from '../support/tenant.ts';

let service: TestService;
let clock: ManualClock;
const sockets: Socket[] = [];
/** Connections of the requests since `note` was subscribed. */
const connections: Socket[] = [];
const responses: ServerResponse[] = [];
const note = (message: unknown) => {
  const { response, socket } = message as { response: ServerResponse; socket: Socket };
  responses.push(response);
  connections.push(socket);
};
afterEach(async () => {
  unsubscribe('http.server.request.start', note);
  responses.length = 0;
  connections.length = 0;
  for (const socket of sockets.splice(0)) socket.destroy();
  await clock.passWhile(service.stop());
});

async function start(config: Partial<Config> = {}): Promise<void> {
  clock = createManualClock();
  service = await startTestService({ clock, config });
}

/** The organization that exists from the start. */
const first = (): Tenant => ({ organizationId: uuidOf('org', service.organizationId), key: service.adminKey });

/** A session whose journal has these texts, each committed separately. */
async function sessionOf(texts: readonly string[], { organizationId, key } = first()): Promise<string> {
  const client = service.clientWith(key);
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  const id = uuidOf('ses', sessionId);
  await service.db.execute(sql`
    insert into segments (organization_id, session_id, turn, seq_from, seq_to, body, created_at)
    select ${organizationId}, ${id}, 1, n, n, body, now()
    from unnest(${texts.map((text) => JSON.stringify([text]))}::text[]) with ordinality as t (body, n)`);
  await service.db.execute(sql`
    update sessions set turn = 1, next_seq = ${texts.length + 1}
    where organization_id = ${organizationId} and session_id = ${id}`);
  return sessionId;
}

/** Sends a request and never reads the response. */
function ask(path: string, key = service.adminKey): Socket {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  socket.pause();
  socket.write(`GET /api/v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  return socket;
}

/** Resolves when each of them waits for its reader, and nothing more is written. */
async function allWait(): Promise<void> {
  const wait = () => connections.every(({ writableLength, destroyed }) => destroyed || writableLength > 0);
  const written = () => connections.map(({ bytesWritten }) => bytesWritten).join();
  for (let before = ''; !wait() || before !== written(); ) {
    before = written();
    for (let turn = 0; turn < 200; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Lets time pass until readers that take nothing are disconnected. */
const letStall = () => clock.pass(90_000);

const KIB = 1024;

/** Counts the statements that read a journal from now on. */
function countReads(): { count: number; stop(): void } {
  const reads = { count: 0, stop: () => unsubscribe('signalbox.statement', hear) };
  const hear = (text: unknown) => {
    if (String(text).includes('from segments')) reads.count += 1;
  };
  subscribe('signalbox.statement', hear);
  return reads;
}

async function memoryInUse(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('60 unread streams of a session buffer 64 KiB each, and are closed a minute later', async () => {
  await start();
  const sessionId = await sessionOf([
    ...Array.from({ length: 20 }, (_, n) => `${n} ${'a'.repeat(300)}`),
    ...Array.from({ length: 10 }, () => '€'.repeat(200 * KIB)),
  ]);
  subscribe('http.server.request.start', note);
  for (let n = 0; n < 60; n += 1) ask(`/sessions/${sessionId}/stream`);
  await expect.poll(() => connections.length).toBe(60);
  await allWait();
  const held = connections.map(({ writableLength }) => writableLength);
  expect(Math.max(...held)).toBeLessThanOrEqual(64 * KIB);

  const closed = Promise.all(connections.map((connection) => once(connection, 'close')));
  await letStall();
  await closed;
});

test('200 unread streams cost 64 KiB each in addition to what they share, and read each long chunk once', async () => {
  await start();
  const chunks = Array.from({ length: 30 }, (_, n) => String(n % 10).repeat(450_000));
  const sessionId = await sessionOf(chunks);
  subscribe('http.server.request.start', note);
  const reads = countReads();
  const before = await memoryInUse();
  for (let n = 0; n < 200; n += 1) ask(`/sessions/${sessionId}/stream`);
  await expect.poll(() => connections.length).toBe(200);
  await allWait();
  reads.stop();
  expect(Math.max(...connections.map(({ writableLength }) => writableLength))).toBeLessThanOrEqual(64 * KIB);
  expect((await memoryInUse()) - before).toBeLessThan(200 * 64 * KIB + 64 * KIB * KIB);
  expect(reads.count).toBeLessThanOrEqual(chunks.length);
});

test('unread data has a bound: beyond it only the slowest client of the organization with the most is closed', async () => {
  await start({ maxUnreadMegabytes: 2 });
  const few = await createTenant(service);
  const chunks = Array.from({ length: 30 }, () => 'a'.repeat(450_000));
  const [own, others] = [await sessionOf(chunks), await sessionOf(chunks, few)];
  subscribe('http.server.request.start', note);
  for (let n = 0; n < 10; n += 1) ask(`/sessions/${others}/stream`, few.key);
  await expect.poll(() => connections.length).toBe(10);
  await allWait();
  for (let n = 0; n < 80; n += 1) ask(`/sessions/${own}/stream`);
  await expect.poll(() => connections.length).toBe(90);
  await allWait();
  const open = connections.filter(({ destroyed }) => !destroyed);
  const held = open.reduce((sum, { writableLength }) => sum + writableLength, 0);
  // What a connection accepts before it signals back pressure is added to this.
  expect(held).toBeLessThanOrEqual((2 * KIB + open.length * 16) * KIB);
  expect(open.length).toBeGreaterThan(30);
  expect(connections.slice(0, 10).every(({ destroyed }) => !destroyed)).toBe(true);
});

test('unread responses release their slot', async () => {
  await start({ maxRequestsInFlight: 2 });
  const sessionId = await sessionOf(Array.from({ length: 20 }, () => '€'.repeat(500 * KIB)));
  subscribe('http.server.request.start', note);
  for (let n = 0; n < 2; n += 1) ask(`/sessions/${sessionId}/chunks?limit=1000`);
  await expect.poll(() => responses.filter(({ writableEnded }) => writableEnded)).toHaveLength(2);
  await allWait();
  const me = () => send(service.url, 'GET', '/me', { key: service.adminKey });
  expect((await me()).status).toBe(503);
  const closed = Promise.all(responses.slice(0, 2).map((response) => once(response, 'close')));
  await letStall();
  // The rest of the response has a second for each 8 KiB.
  await clock.advance(24 * 60_000);
  await letStall();
  await closed;
  expect((await me()).status).toBe(200);
});
