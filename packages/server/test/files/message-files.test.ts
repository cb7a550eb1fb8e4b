// Files in messages: what a message names exists in its environment, stays as long as it is used, and goes when it is not.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { Content, FilePart } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createShards } from '../../src/db/shards.ts';
import { systemSource } from '../../src/events/record.ts';
import { contentOf, openFile } from '../../src/files/content.ts';
import { createFile } from '../../src/files/create.ts';
import { messageParts } from '../../src/files/message-files.ts';
import { purgeFiles } from '../../src/files/purge.ts';
import { dropUnusedFiles } from '../../src/files/retention.ts';
import { createFileStores } from '../../src/files/stores.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { atFileEnd } from '../support/at-file-end.ts';
import { noise, pdf, png, upload } from '../support/files.ts';
import { addOrganization } from '../support/organization.ts';
import { startTestService, type TestService } from '../support/service.ts';

const DAY_MS = 24 * 3600 * 1000;
let service: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService();
  const agent = await service.client.agents.create({
    name: 'Reader',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ text: 'ok' }] } },
  });
  agentId = agent.agentId;
});
afterAll(() => service.stop());

const content = (...fileIds: string[]): Content => [
  { type: 'text', text: 'Read this.' },
  ...fileIds.map((fileId) => ({ type: 'file' as const, fileId })),
];
const open = (input: Content, environment = 'production') =>
  service.client.sessions.open({ agentId, environment, input, closeOnIdle: true });

async function ended(sessionId: string): Promise<void> {
  for await (const _ of service.client.sessions.stream(sessionId));
}

/** A platform whose time is so many days later. */
function platformIn(days: number) {
  const { db } = service;
  const log = createLog({ level: 'error', destination: { write() {} } });
  const clock = { ...systemClock, now: () => new Date(Date.now() + days * DAY_MS) };
  const files = createFileStores({ db, log, clock }, { maxFileMegabytes: 0 });
  return { db, clock, log, files, metrics: createMetrics(), shards: createShards(db) };
}

/** What maintenance does so many days later. */
async function maintain(days: number): Promise<void> {
  const platform = platformIn(days);
  const { signal } = new AbortController();
  await dropUnusedFiles(platform, uuidOf('org', service.organizationId), 30, signal);
  await purgeFiles(platform, signal);
}

const exists = (fileId: string) =>
  service.fetch(`/api/v1/files/${fileId}`).then(({ status }) => (status === 404 ? false : status === 200));

async function storedBytes() {
  const [row] = await service.db.query<{ counted: number; files: number; pieces: number }>(sql`
    select file_bytes as counted,
      (select coalesce(sum(bytes), 0)::bigint from files f where f.organization_id = o.organization_id and purge_after is null) as files,
      (select coalesce(sum(octet_length(bytes)), 0)::bigint from file_pieces p where p.organization_id = o.organization_id) as pieces
    from organizations o where o.organization_id = ${uuidOf('org', service.organizationId)}`);
  return row!;
}

/** As a tool's result. */
async function createInSession(sessionId: string, filename = 'chart.png'): Promise<FilePart> {
  const source = systemSource(uuidOf('org', service.organizationId));
  const file = { environment: 'production', sessionId: uuidOf('ses', sessionId), filename, mediaType: 'text/plain' };
  return await createFile(platformIn(0), source, file, Readable.from([png]));
}

test('a message says what its files are, in the session’s first input and in later messages', async () => {
  const image = await upload(service, png, { headers: { 'x-filename': 'photo.png' } });
  const nameless = await upload(service, pdf);
  const { sessionId } = await service.client.sessions.open({
    agentId,
    environment: 'production',
    input: content(image.fileId),
  });
  await service.client.sessions.sendMessage(sessionId, { content: content(nameless.fileId, image.fileId) });
  const { data } = await service.client.sessions.messages(sessionId);
  const parts = data.filter(({ role }) => role === 'user').map((message) => message.content.slice(1));
  const imagePart = {
    type: 'file',
    fileId: image.fileId,
    mediaType: 'image/png',
    bytes: png.length,
    filename: 'photo.png',
  };
  expect(parts).toEqual([
    [imagePart],
    [{ type: 'file', fileId: nameless.fileId, mediaType: 'application/pdf', bytes: pdf.length }, imagePart],
  ]);
  await service.client.sessions.cancel(sessionId);
});

test('a file that is not in the environment is refused with its place, wherever content is sent', async () => {
  const staged = await upload(service, png, { environment: 'staging' });
  const gone = await upload(service, png);
  await service.fetch(`/api/v1/files/${gone.fileId}`, { method: 'DELETE' });
  const foreign = await upload(service, png, { key: await addOrganization(service, 'Other') });
  const mine = await upload(service, png);
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const timing = { at: new Date(Date.now() + 365 * DAY_MS).toISOString() };
  const schedule = { agentId, environment: 'production', input: content(mine.fileId), ...timing };
  const { scheduleId } = await service.client.schedules.create(schedule);
  for (const { fileId } of [staged, gone, foreign]) {
    const wrong = content(mine.fileId, fileId);
    const refusal = (field: string) => ({
      status: 422,
      code: 'file_invalid',
      errors: [{ path: `${field}[2].fileId`, message: `there is no file ${fileId} in the environment "production"` }],
    });
    await expect(open(wrong)).rejects.toMatchObject(refusal('input'));
    await expect(service.client.sessions.sendMessage(sessionId, { content: wrong })).rejects.toMatchObject(
      refusal('content'),
    );
    await expect(service.client.schedules.create({ ...schedule, input: wrong })).rejects.toMatchObject(
      refusal('input'),
    );
    await expect(service.client.schedules.update(scheduleId, { input: wrong })).rejects.toMatchObject(refusal('input'));
  }
  await expect(service.client.schedules.update(scheduleId, { environment: 'staging' })).rejects.toMatchObject({
    code: 'file_invalid',
  });
  await service.client.schedules.delete(scheduleId);
});

test('an unused file goes after its time, with its bytes; one that a session or a schedule names stays', async () => {
  await maintain(32);
  const [unused, ofSession, ofSchedule] = await Promise.all(
    [png, pdf, noise(5000)].map((body) => upload(service, body)),
  );
  const session = await open(content(ofSession!.fileId));
  await ended(session.sessionId);
  const { scheduleId } = await service.client.schedules.create({
    agentId,
    environment: 'production',
    input: content(ofSchedule!.fileId),
    at: new Date(Date.now() + 365 * DAY_MS).toISOString(),
  });
  const left = async () => Promise.all([unused!, ofSession!, ofSchedule!].map(({ fileId }) => exists(fileId)));
  await maintain(29);
  expect(await left()).toEqual([true, true, true]);
  await maintain(31);
  expect(await left()).toEqual([false, true, true]);
  // Known to be in use on day 31, so not looked at again before day 61.
  await service.client.sessions.delete(session.sessionId);
  await service.client.schedules.update(scheduleId, { input: 'no file any more' });
  await maintain(60);
  expect(await left()).toEqual([false, true, true]);
  await maintain(62);
  expect(await left()).toEqual([false, false, false]);
  await service.client.schedules.delete(scheduleId);
  const { counted, files, pieces } = await storedBytes();
  expect([counted, pieces]).toEqual([files, files]);
});

test('a file of a tool has the type of its bytes and a name that can be one, and can be read', async () => {
  const { sessionId } = await open('go');
  await ended(sessionId);
  const part = await createInSession(sessionId, '../chart.png');
  expect(part).toEqual({
    type: 'file',
    fileId: expect.any(String),
    mediaType: 'image/png',
    bytes: png.length,
    filename: 'chart.png',
  });
  expect(await createInSession(sessionId, 'a\nb')).not.toHaveProperty('filename');
  const organizationId = uuidOf('org', service.organizationId);
  const file = await openFile(platformIn(0), organizationId, uuidOf('file', part.fileId));
  expect((await contentOf(file!)).equals(png)).toBe(true);
  expect(await openFile(platformIn(0), newUuid(), uuidOf('file', part.fileId))).toBeUndefined();
});

test('what a tool created goes with its session, unless another session names it', async () => {
  const { sessionId } = await open('go');
  await ended(sessionId);
  const own = (await createInSession(sessionId)).fileId;
  const shared = (await createInSession(sessionId)).fileId;
  const other = await open(content(shared));
  await ended(other.sessionId);
  await service.client.sessions.delete(sessionId);
  expect([await exists(own), await exists(shared)]).toEqual([false, true]);
  const { counted, files } = await storedBytes();
  expect(counted).toBe(files);
  await maintain(0);
  expect((await storedBytes()).pieces).toBe(files);
});

test('what a tool created stays if another session names it while its session is deleted', async () => {
  const { sessionId } = await open('go');
  await ended(sessionId);
  const { fileId } = await createInSession(sessionId);
  const holderId = newUuid();
  const holder = {
    organizationId: uuidOf('org', service.organizationId),
    environment: 'production',
    field: 'content',
    caller: { callerId: null },
  };
  let deletion: Promise<unknown> | undefined;
  await service.db.transaction(async (tx) => {
    await messageParts(tx, { ...holder, holderId }, content(fileId), new Date());
    let isDeleted = false;
    deletion = service.client.sessions.delete(sessionId).then(() => {
      isDeleted = true;
    });
    const isBlocked = async () =>
      (
        await service.db.query(sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
      ).length > 0;
    await expect.poll(async () => isDeleted || (await isBlocked())).toBe(true);
  });
  await deletion;
  expect(await exists(fileId)).toBe(true);
  const { counted, files } = await storedBytes();
  expect(counted).toBe(files);
});

test('a message does not renew a file that it may not name', async () => {
  const { fileId } = await upload(service, png, { environment: 'staging' });
  const holder = {
    organizationId: uuidOf('org', service.organizationId),
    environment: 'production',
    field: 'content',
    caller: { callerId: null },
  };
  const later = new Date(Date.now() + 20 * DAY_MS);
  await service.db.transaction(async (tx) => {
    await expect(messageParts(tx, { ...holder, holderId: newUuid() }, content(fileId), later)).rejects.toMatchObject({
      code: 'file_invalid',
    });
  });
  const [row] = await service.db.query<{ usedAt: Date }>(sql`
    select used_at as "usedAt" from files where file_id = ${uuidOf('file', fileId)}`);
  expect(row!.usedAt.getTime()).toBeLessThan(later.getTime());
});

/** An agent whose first step calls a client's tool and then a server's tool that returns a file. */
async function agentWithTools(): Promise<string> {
  const photos = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
  atFileEnd(() => void photos.close());
  await new Promise<void>((resolve) => photos.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(photos.address() as AddressInfo).port}/`;
  const tool = { description: 'A file', inputSchema: { type: 'object' as const } };
  const created = await service.client.agents.create({
    name: 'Photographer',
    model: {
      provider: 'scripted',
      model: 'x',
      settings: { script: [{ toolCalls: ['scan', 'photo'].map((name) => ({ name, input: {} })) }, { text: 'ok' }] },
    },
    tools: [
      { ...tool, type: 'client', name: 'scan' },
      { ...tool, type: 'http', name: 'photo', request: { method: 'GET', url }, approval: 'never' },
    ],
  });
  return created.agentId;
}

/** A session with a turn whose message has `sent`, whose client's tool returns `scanned`, and whose server's tool a new file. */
async function sessionWithFiles(sent: string, scanned: string) {
  const { sessions } = service.client;
  const { sessionId } = await sessions.open({
    agentId: await agentWithTools(),
    environment: 'production',
    input: content(sent),
  });
  let toolCallId = '';
  await expect
    .poll(async () => {
      const { waitingFor } = await sessions.get(sessionId);
      if (waitingFor?.type === 'toolResult') toolCallId = waitingFor.toolCallIds[0]!;
      return toolCallId;
    })
    .not.toBe('');
  await sessions.sendToolResult(sessionId, { toolCallId, output: [{ type: 'file', fileId: scanned }, 'a scan'] });
  await expect.poll(async () => (await sessions.get(sessionId)).status).toBe('idle');
  const { data } = await service.client.files.list({ environment: 'production' });
  const created = data.find((file) => file.sessionId === sessionId)!.fileId;
  return { sessionId, created };
}

test('a fork keeps the files of the turns that it has, and no others, whichever is deleted first', async () => {
  const { client } = service;
  const [sent, scanned, later] = (await Promise.all([1, 2, 3].map(() => upload(service, png)))).map(
    ({ fileId }) => fileId,
  ) as [string, string, string];
  const { sessionId, created } = await sessionWithFiles(sent, scanned);
  await client.sessions.sendMessage(sessionId, { content: content(later) });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  const early = await client.sessions.fork(sessionId, { atTurn: 1 });
  const fork = await client.sessions.fork(early.sessionId);

  const { token } = await client.sessions.createToken(fork.sessionId, { scopes: ['read', 'send'] });
  const asUser = (path: string, init: RequestInit = {}) =>
    service.fetch(`/api/v1${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
  const opened: number[] = [];
  // One after another: a token has few streams at once.
  for (const fileId of [sent, scanned, created, later]) {
    const response = await asUser(`/files/${fileId}/content`);
    await response.body?.cancel();
    opened.push(response.status);
  }
  expect(opened).toEqual([200, 200, 200, 404]);
  const message = { method: 'POST', body: JSON.stringify({ content: content(later) }) };
  expect((await asUser(`/sessions/${fork.sessionId}/messages`, message)).status).toBe(422);

  const left = () => Promise.all([sent, scanned, created, later].map(exists));
  for (const id of [sessionId, early.sessionId]) {
    await client.sessions.cancel(id);
    await client.sessions.delete(id);
  }
  await maintain(31);
  expect(await left()).toEqual([true, true, true, false]);
  await client.sessions.cancel(fork.sessionId);
  await client.sessions.delete(fork.sessionId);
  await maintain(63);
  expect(await left()).toEqual([false, false, false, false]);
});

test('a message keeps what it says of a file that was deleted', async () => {
  const { fileId } = await upload(service, png);
  const { sessionId } = await open(content(fileId));
  await ended(sessionId);
  await service.fetch(`/api/v1/files/${fileId}`, { method: 'DELETE' });
  const { data } = await service.client.sessions.messages(sessionId);
  expect(data[0]!.content[1]).toEqual({ type: 'file', fileId, mediaType: 'image/png', bytes: png.length });
});

test('files that can’t be removed now keep no others from it, and a pass looks at each of them once', async () => {
  const organizationId = uuidOf('org', service.organizationId);
  const { fileId } = await upload(service, png);
  const past = new Date(Date.now() - DAY_MS);
  await service.db.batch([
    sql`insert into files (organization_id, file_id, environment, store, purge_after, used_at, created_at)
      select ${organizationId}, gen_random_uuid(), 'production', 'gone', ${past}, ${past}, ${past} from generate_series(1, 450)`,
    sql`update files set purge_after = ${new Date(past.getTime() + 1)}
      where organization_id = ${organizationId} and file_id = ${uuidOf('file', fileId)}`,
  ]);
  const platform = platformIn(0);
  let found = 0;
  const query: typeof platform.shards.query = async (what, statement) => {
    const answer = await platform.shards.query(what, statement);
    found += answer.rows.length;
    return answer as never;
  };
  await purgeFiles({ ...platform, shards: { ...platform.shards, query } }, new AbortController().signal);
  const left = await service.db.query<{ store: string }>(sql`
    select store from files where organization_id = ${organizationId} and purge_after is not null`);
  expect([left.length, new Set(left.map(({ store }) => store))]).toEqual([450, new Set(['gone'])]);
  expect(found).toBeLessThan(500);
  await service.db.execute(sql`
    delete from files where organization_id = ${organizationId} and purge_after is not null`);
});
