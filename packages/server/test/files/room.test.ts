// Room in the storage of an organization: it is taken before anything is stored, and one end user can't take all of it.
import type { Problem, StoredFile } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createShards } from '../../src/db/shards.ts';
import { eraseEndUsers } from '../../src/end-users/erase.ts';
import { systemSource } from '../../src/events/record.ts';
import { purgeFiles } from '../../src/files/purge.ts';
import { keepFile, type NewFile, receiveFile } from '../../src/files/receive.ts';
import { dropUnusedFiles } from '../../src/files/retention.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import type { Platform } from '../../src/platform.ts';
import { sendUpload, upload } from '../support/files.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
const DAY_MS = 24 * 3600 * 1000;

let base: TestPlatform;
let service: TestService;
let agentId: string;
/** The platform with a limit, and how many bytes it has stored. */
let platform: Platform;
let storedBytes: number;

beforeAll(async () => {
  base = await createTestPlatform();
  service = await startTestService({ config: { maxFileMegabytes: 1000 } });
  const model = { provider: 'scripted' as const, model: 'instant', settings: { script: [{ text: 'ok' }] } };
  ({ agentId } = await service.client.agents.create({ name: 'Agent', model }));
});
afterAll(async () => {
  await base.close();
  await service.stop();
});
beforeEach(async () => {
  storedBytes = 0;
  const { files } = base.platform;
  const own: typeof files.own = {
    ...files.own,
    async write(file, content) {
      async function* counted() {
        for await (const chunk of content) {
          storedBytes += chunk.length;
          yield chunk;
        }
      }
      await files.own.write(file, counted());
    },
  };
  platform = { ...base.platform, files: { ...files, own, maxBytes: 10 * MIB } };
  await base.platform.db.query(sql`delete from files where organization_id = ${base.organizationId}`);
  await base.platform.db.query(sql`
    update organizations set file_bytes = 0 where organization_id = ${base.organizationId}`);
});

const newFile = (length?: number): NewFile => ({
  organizationId: base.organizationId,
  environment: 'production',
  filename: null,
  claimedType: undefined,
  length,
  sessionId: null,
  uploader: null,
});

async function* bytesOf(total: number, chunk = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < total; at += chunk) yield Buffer.alloc(Math.min(chunk, total - at));
}

async function store(total: number, length?: number): Promise<void> {
  const received = await receiveFile(platform, newFile(length), bytesOf(total));
  await platform.db.transaction((tx) => keepFile(tx, platform, systemSource(base.organizationId), received));
}

const full = { code: 'storage_full', message: expect.stringContaining('10 MiB together') };

test('a file of known length that does not fit is refused before a byte of it is stored', async () => {
  await store(4 * MIB, 4 * MIB);
  storedBytes = 0;
  await expect(store(7 * MIB, 7 * MIB)).rejects.toMatchObject(full);
  expect(storedBytes).toBe(0);
  await store(6 * MIB, 6 * MIB);
});

test('a file of unknown length is stored as far as there is room, and one that fits exactly is kept', async () => {
  await expect(store(32 * MIB)).rejects.toMatchObject(full);
  expect(storedBytes).toBeLessThanOrEqual(10 * MIB);
  // What it had taken is there again.
  await store(7 * MIB);
  storedBytes = 0;
  await expect(store(3 * MIB + 1)).rejects.toMatchObject(full);
  expect(storedBytes).toBeLessThanOrEqual(3 * MIB);
  await store(3 * MIB - 100);
  await expect(store(101)).rejects.toMatchObject(full);
  await store(100);
});

test('uploads at the same time never take the same room, and one that ends early returns what it had', async () => {
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => store(4 * MIB, 4 * MIB)));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  const cut = Promise.withResolvers<void>();
  const isHalf = Promise.withResolvers<void>();
  async function* half() {
    yield* bytesOf(MIB);
    isHalf.resolve();
    await cut.promise;
    throw new Error('the client left');
  }
  const lost = receiveFile(platform, newFile(2 * MIB), half());
  await isHalf.promise;
  await expect(store(100)).rejects.toMatchObject(full);
  cut.resolve();
  await expect(lost).rejects.toThrow('the client left');
  await store(2 * MIB);
});

test('after a crash of a node, the room of its uploads is free once they are removed', async () => {
  // It is gone in the middle.
  const never = Promise.withResolvers<void>();
  const isHalf = Promise.withResolvers<void>();
  async function* half() {
    yield* bytesOf(MIB);
    isHalf.resolve();
    await never.promise;
  }
  void receiveFile(platform, newFile(10 * MIB), half());
  await isHalf.promise;
  await expect(store(100)).rejects.toMatchObject(full);
  const clock = { ...systemClock, now: () => new Date(Date.now() + 3 * 3600 * 1000) };
  const later = { ...platform, clock };
  await purgeFiles({ ...later, shards: createShards(platform.db, later) }, new AbortController().signal);
  await store(10 * MIB);
});

// ── End users ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function tokenOf(id: string): Promise<string> {
  const { token } = await service.client.sessionTokens.create({
    agentId,
    environment: 'production',
    endUser: { id, name: `Name of ${id}` },
    scopes: ['open', 'read', 'send'],
  });
  return token!;
}

const problemOf = async (response: Response) => (await response.json()) as Problem;
const fileOf = async (fileId: string) =>
  ((await (await service.fetch(`/api/v1/files/${fileId}`)).json()) as { file: StoredFile }).file;

/** As if so much had been uploaded. */
async function setSize(fileId: string, bytes: number): Promise<void> {
  await service.db.query(sql`update files set bytes = ${bytes} where file_id = ${uuidOf('file', fileId)}`);
}

async function sendInMessage(token: string, fileId: string): Promise<string> {
  const response = await service.fetch('/api/v1/sessions', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input: [{ type: 'file', fileId }] }),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return ((await response.json()) as { session: { sessionId: string } }).session.sessionId;
}

test('what an end user has not sent may have 100 MiB, with whatever token, and other end users can still upload', async () => {
  const mallory = await tokenOf('mallory');
  const { fileId } = await upload(service, 'x', { key: mallory });
  await setSize(fileId, 100 * MIB - 2);
  await upload(service, 'xx', { key: await tokenOf('mallory') });
  expect(await problemOf(await sendUpload(service, 'x', { key: mallory }))).toMatchObject({
    status: 409,
    code: 'storage_full',
    detail:
      'Your files that are in no message yet may have 100 MiB together. Send them in a message first; the others are deleted after a day.',
  });
  await upload(service, 'x', { key: await tokenOf('ben') });
  await upload(service, 'x');
  await sendInMessage(mallory, fileId);
  await upload(service, 'x', { key: mallory });
});

test('an end user may have a quarter of the storage, in messages or not', async () => {
  const small = await startTestService({ database: service.database, config: { maxFileMegabytes: 40 } });
  const greedy = await tokenOf('greedy');
  const { fileId } = await upload(small, 'x', { key: greedy });
  await sendInMessage(greedy, fileId);
  await setSize(fileId, 10 * MIB - 1);
  await upload(small, 'x', { key: greedy });
  expect(await problemOf(await sendUpload(small, 'x', { key: greedy }))).toMatchObject({
    status: 409,
    detail: 'Your files may have 10 MiB together.',
  });
  await upload(small, 'x', { key: await tokenOf('ben') });
  await small.stop();
});

test('a file says who has uploaded it, and to an end user nothing about it', async () => {
  const token = await tokenOf('ada');
  const own = await upload(service, 'x', { key: token });
  expect(own.uploadedBy).toBeNull();
  expect((await fileOf(own.fileId)).uploadedBy).toEqual({ type: 'end_user', id: 'ada', name: 'Name of ada' });
  const byKey = await upload(service, 'x');
  expect(byKey.uploadedBy).toEqual({ type: 'api_key', id: expect.stringMatching(/^key_/), name: 'Test' });
  const { data } = await service.client.files.list({ environment: 'production' });
  expect(data.slice(0, 2).map(({ uploadedBy }) => uploadedBy?.type)).toEqual(['api_key', 'end_user']);
});

test('what an end user has not sent is deleted after a day, and nothing else is', async () => {
  const token = await tokenOf('cleo');
  const [unsent, sent] = [await upload(service, 'x', { key: token }), await upload(service, 'y', { key: token })];
  const byKey = await upload(service, 'z');
  await sendInMessage(token, sent.fileId);
  // Sent with a node of an earlier version, which did not say so.
  const early = await upload(service, 'w', { key: token });
  await sendInMessage(token, early.fileId);
  await service.db.query(sql`update files set is_unsent = true where file_id = ${uuidOf('file', early.fileId)}`);
  const { db } = service;
  const drop = (ms: number) => {
    const clock = { ...systemClock, now: () => new Date(Date.now() + ms) };
    const organizationId = uuidOf('org', service.organizationId);
    return dropUnusedFiles({ ...base.platform, db, clock }, organizationId, 30, new AbortController().signal);
  };
  const left = async () =>
    Promise.all(
      [unsent, sent, byKey, early].map(async ({ fileId }) => (await service.fetch(`/api/v1/files/${fileId}`)).ok),
    );
  await drop(DAY_MS - 60_000);
  expect(await left()).toEqual([true, true, true, true]);
  await drop(DAY_MS + 60_000);
  expect(await left()).toEqual([false, true, true, true]);
  const [row] = await db.query<{ isUnsent: boolean }>(sql`
    select is_unsent as "isUnsent" from files where file_id = ${uuidOf('file', early.fileId)}`);
  expect(row!.isUnsent).toBe(false);
});

test('when an end user is erased, unsent uploads are deleted, and the others no longer name the end user', async () => {
  const token = await tokenOf('erika');
  const unsent = await upload(service, 'x', { key: token });
  const sent = await upload(service, 'y', { key: token });
  await sendInMessage(token, sent.fileId);
  // In a session of someone else too.
  await service.client.sessions.open({
    agentId,
    environment: 'production',
    input: [{ type: 'file', fileId: sent.fileId }],
  });
  await service.client.endUsers.erase('erika');
  const organizationId = uuidOf('org', service.organizationId);
  const signal = new AbortController().signal;
  await expect
    .poll(async () => {
      await eraseEndUsers({ ...base.platform, db: service.db }, organizationId, signal);
      return (await service.client.endUsers.get('erika')).erasure?.status;
    })
    .toBe('finished');
  expect((await service.fetch(`/api/v1/files/${unsent.fileId}`)).status).toBe(404);
  expect((await fileOf(sent.fileId)).uploadedBy).toEqual({ type: 'end_user', id: null, name: 'End user' });
  const rows = await service.db.query(sql`select 1 from files where uploader->>'id' = 'erika'`);
  expect(rows).toEqual([]);
});
