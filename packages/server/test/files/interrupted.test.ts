// Uploads that do not end: the client leaves or stops sending, the node dies, the database loses what it had. Nothing of them stays, and
// nothing waits for them.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Problem } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, expect, test } from 'vitest';
import { createShards } from '../../src/db/shards.ts';
import { createDatabaseStore } from '../../src/files/database-store.ts';
import { purgeFiles } from '../../src/files/purge.ts';
import { createFileStores } from '../../src/files/stores.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { contentOf, noise, png, sendUpload, upload } from '../support/files.ts';
import { ignoreConnections } from '../support/idle.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { addOrganization } from '../support/organization.ts';
import { programFile } from '../support/programs.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 3600_000;
let service: TestService;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.stop();
});

/** Sends the head of an upload and a part of its content. */
function begin(url: string, content: Uint8Array, key = service.adminKey): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  sockets.push(socket.on('error', () => {}));
  socket.write(
    `POST /api/v1/files?environment=production HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${32 * MIB}\r\n\r\n`,
  );
  socket.write(content);
  return socket;
}

async function stored(): Promise<{ pending: number; pieces: number }> {
  const [row] = await service.db.query<{ pending: number; pieces: number }>(sql`
    select (select count(*) from files where purge_after is not null)::int as pending,
      (select count(*) from file_pieces)::int as pieces`);
  return row!;
}

async function until(is: (state: { pending: number; pieces: number }) => boolean): Promise<void> {
  await expect.poll(stored).toSatisfy(is);
}

async function purgeIn(ms: number): Promise<void> {
  const { db } = service;
  const clock = { ...systemClock, now: () => new Date(Date.now() + ms), sleep: () => Promise.resolve() };
  const log = createLog({ level: 'error', destination: { write() {} } });
  const files = createFileStores({ db, log, clock }, { maxFileMegabytes: 0 });
  await purgeFiles({ db, clock, log, files, shards: createShards(db) }, new AbortController().signal);
}

test('if the client leaves in the middle, what was stored is removed at once', async () => {
  service = await startTestService();
  const socket = begin(service.url, noise(3 * MIB));
  await until(({ pieces }) => pieces >= 2);
  socket.destroy();
  await until(({ pending, pieces }) => pending === 0 && pieces === 0);
  // It is not a fault of the service.
  expect(service.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
});

test('an upload in which nothing arrives for a minute is ended with 408, and what was stored is removed', async () => {
  const clock = createManualClock();
  service = await startTestService({ clock });
  const socket = begin(service.url, noise(2 * MIB + 5));
  let response = '';
  socket.on('data', (data) => {
    response += data;
  });
  await until(({ pieces }) => pieces === 2);
  await clock.passWhile(once(socket, 'close'));
  expect(response).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
  await until(({ pending, pieces }) => pending === 0 && pieces === 0);
});

test('an upload that arrives in drips is ended after 15 minutes, and one that the database delays is not', async () => {
  const clock = createManualClock();
  service = await startTestService({ clock });
  const release = await lockPieces();
  const waiting = sendUpload(service, noise(2 * MIB));
  await until(({ pending }) => pending === 1);
  const dripping = begin(service.url, new Uint8Array(1));
  await until(({ pending }) => pending === 2);
  let isClosed = false;
  dripping.once('close', () => {
    isClosed = true;
  });
  const drip = async () => {
    for (; !isClosed; await clock.sleep(30_000)) dripping.write('x');
  };
  // They wait for the lock.
  ignoreConnections(({ url, state }) => url === service.database.url && state === 'open');
  const begun = clock.now().getTime();
  void drip();
  await clock.passUntil(() => isClosed);
  const minutes = (clock.now().getTime() - begun) / 60_000;
  expect(minutes).toBeGreaterThan(14);
  expect(minutes).toBeLessThan(20);
  await release();
  expect((await waiting).status).toBe(201);
});

test('what a killed node has stored is removed later, and no sooner than an upload may take', async () => {
  const masterKey = randomBytes(32).toString('hex');
  service = await startTestService({ config: { masterKeys: [Buffer.from(masterKey, 'hex')] } });
  const path = await programFile('node');
  const node = spawn(process.execPath, [path], {
    env: {
      ...process.env,
      DATABASE_URL: service.database.url,
      SIGNALBOX_MASTER_KEY: masterKey,
      SIGNALBOX_ROLES: 'api',
      SIGNALBOX_LOG_LEVEL: 'silent',
    },
  });
  try {
    const [url] = (await once(node.stdout.setEncoding('utf8'), 'data')) as [string];
    begin(url.trim(), noise(3 * MIB));
    await until(({ pieces }) => pieces >= 2);
    node.kill('SIGKILL');
    await once(node, 'close');
    await purgeIn(HOUR_MS);
    expect((await stored()).pending).toBe(1);
    await purgeIn(3 * HOUR_MS);
    expect(await stored()).toEqual({ pending: 0, pieces: 0 });
  } finally {
    node.kill('SIGKILL');
  }
});

test('pieces that the database lost in a crash are noticed before the file exists', async () => {
  service = await startTestService();
  const file = { organizationId: uuidOf('org', service.organizationId), fileId: newUuid() };
  async function* content() {
    yield noise(2 * MIB);
    yield noise(10);
    await service.db.execute(sql`
      delete from file_pieces
      where organization_id = ${file.organizationId} and file_id = ${file.fileId} and position = 0`);
  }
  await expect(createDatabaseStore(service.db).write(file, content())).rejects.toThrow('not available');
});

test('uploads have places of their own: beyond them 429 for one organization and 503 for all, and other requests go on', async () => {
  service = await startTestService({ config: { maxUploads: 2, maxRequestsInFlight: 1 } });
  const second = await addOrganization(service, 'Second');
  const third = await addOrganization(service, 'Third');
  const first = begin(service.url, noise(MIB));
  await until(({ pending }) => pending === 1);
  const { secret: other } = await service.client.keys.create({ name: 'other', permission: 'write' });
  for (const key of [service.adminKey, other!]) expect((await sendUpload(service, png, { key })).status).toBe(429);
  begin(service.url, noise(MIB), second);
  await until(({ pending }) => pending === 2);
  const refused = await sendUpload(service, png, { key: third });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect((await service.fetch('/api/v1/me')).status).toBe(200);
  first.destroy();
  await until(({ pending }) => pending === 1);
  expect((await sendUpload(service, png)).status).toBe(201);
});

test('of the uploads of an organization, a key has half, and the tokens of an end user three', async () => {
  service = await startTestService({ config: { maxUploads: 16 } });
  const model = { provider: 'scripted' as const, model: 'instant', settings: { script: [{ text: 'ok' }] } };
  const { agentId } = await service.client.agents.create({ name: 'Agent', model });
  const tokenOf = async (id: string) =>
    (
      await service.client.sessionTokens.create({
        agentId,
        environment: 'production',
        endUser: { id },
        scopes: ['send'],
      })
    ).token!;
  for (let count = 1; count <= 3; count += 1) {
    begin(service.url, noise(MIB), await tokenOf('mallory'));
    await until(({ pending }) => pending === count);
  }
  expect((await sendUpload(service, png, { key: await tokenOf('mallory') })).status).toBe(429);
  expect((await sendUpload(service, png, { key: await tokenOf('ben') })).status).toBe(201);
  for (let count = 4; count <= 7; count += 1) {
    begin(service.url, noise(MIB));
    await until(({ pending }) => pending === count);
  }
  const refused = await sendUpload(service, png);
  expect([refused.status, ((await refused.json()) as Problem).detail]).toEqual([
    429,
    'You have your share of the requests in flight on this node. Retry in a moment.',
  ]);
  expect((await sendUpload(service, png, { key: await tokenOf('ben') })).status).toBe(201);
});

test('a download whose file is deleted in the middle breaks off, and never looks complete', async () => {
  service = await startTestService();
  const { fileId } = await upload(service, noise(32 * MIB));
  const reader = (await contentOf(service, fileId)).body!.getReader();
  await reader.read();
  await service.fetch(`/api/v1/files/${fileId}`, { method: 'DELETE' });
  await purgeIn(1000);
  const rest = async () => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toThrow();
});

async function lockPieces(): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = service.db.transaction(async (tx) => {
    await tx.query(sql`lock table file_pieces in share mode`);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  return async () => {
    held.resolve();
    await holding;
  };
}
