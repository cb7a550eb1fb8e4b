// Erasing an end user: nothing of it is left anywhere, whatever happens meanwhile, and nothing of anyone else is touched.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Signalbox } from '@signalbox/client';
import { testReceiverUrl } from '@signalbox/contract';
import sql, { raw } from 'sql-template-tag';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import type { Db } from '../../src/db/db.ts';
import { eraseEndUser, getEndUser } from '../../src/end-users/end-users.ts';
import { eraseEndUsers } from '../../src/end-users/erase.ts';
import { keepFile, receiveFile } from '../../src/files/receive.ts';
import { formatId } from '../../src/lib/ids.ts';
import { createSchedule } from '../../src/schedules/schedules.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import { createTestPlatform } from '../support/platform.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { programFile } from '../support/programs.ts';
import { startTestService, type TestService } from '../support/service.ts';

const masterKey = 'ab'.repeat(32);
const ID = 'customer/é 1041';
const MARKER = 'only-they-wrote-this';
const path = await programFile('node');

const nodes = new Set<ChildProcess>();
afterEach(() => {
  for (const node of nodes) node.kill('SIGKILL');
  nodes.clear();
});

const start = (options: Parameters<typeof startTestService>[0] = {}) =>
  startTestService({ ...options, config: { masterKeys: [Buffer.from(masterKey, 'hex')], ...options.config } });

/** A node of its own process, which also does the periodic work. */
async function spawnNode({ database }: TestService): Promise<ChildProcess> {
  const node = spawn(process.execPath, [path], {
    env: {
      ...process.env,
      DATABASE_URL: database.url,
      SIGNALBOX_MASTER_KEY: masterKey,
      SIGNALBOX_ROLES: 'runtime',
      SIGNALBOX_LOG_LEVEL: 'silent',
    },
  });
  nodes.add(node);
  await once(node.stdout!, 'data');
  return node;
}

const scripted = (script: object[]) => ({ provider: 'scripted' as const, model: 'test', settings: { script } });
const until = (client: Signalbox, sessionId: string, status: string) =>
  expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe(status);
const finished = (client: Signalbox, id = ID) =>
  expect
    .poll(async () => (await client.endUsers.get(id)).erasure, { timeout: 60_000 })
    .toMatchObject({ status: 'finished' });

/** Tables in which a row has one of the texts, in any column, as text or as bytes. */
async function tablesWith(db: Db, texts: readonly string[]): Promise<string[]> {
  const tables = await db.query<{ name: string }>(sql`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r' order by 1`);
  expect(tables.length).toBeGreaterThan(40);
  const found: string[] = [];
  const needles = texts.flatMap((text) => [text, encodeURIComponent(text), Buffer.from(text).toString('hex')]);
  for (const { name } of tables) {
    const rows = await db.execute(sql`
      select 1 from ${raw(name)} t where exists (
        select 1 from unnest(${needles}::text[]) n(needle) where strpos(t::text, n.needle) > 0) limit 1`);
    if (rows > 0) found.push(name);
  }
  return found;
}

/** A conversation with everything that a session can have. */
async function useEverything(client: Signalbox, endUser: { id: string; name?: string }, text: string): Promise<void> {
  const environment = 'production';
  const file = await client.files.upload(Buffer.from(`a file: ${text}`), {
    environment,
    filename: `${text}.txt`,
    mediaType: 'text/plain',
  });
  const helper = await client.agents.create({ name: 'Helper', model: scripted([{ text: '{{input}}' }]) });
  const { agentId } = await client.agents.create({
    name: 'Asking',
    model: scripted([
      { text: '{{input}}', toolCalls: [{ name: 'pay', input: { for: '{{input}}' } }] },
      { toolCalls: [{ name: 'help', input: { input: '{{input}}' } }] },
      { text: '{{lastToolResult}}' },
    ]),
    tools: [
      { type: 'client', name: 'pay', description: 'Pays', inputSchema: { type: 'object' }, approval: 'always' },
      { type: 'agent', name: 'help', description: 'Helps', agentId: helper.agentId },
    ],
  });
  const opening = {
    agentId,
    environment,
    endUser,
    metadata: { note: text },
    input: [
      { type: 'text' as const, text },
      { type: 'file' as const, fileId: file.fileId },
    ],
  };
  const ended = await client.sessions.open(opening, { idempotencyKey: `open ${text}` });
  await until(client, ended.sessionId, 'waiting');
  const { data } = await client.approvals.list({ sessionId: ended.sessionId });
  await client.approvals.approve(data[0]!.operationId, { input: { for: `${text} again` }, reason: text });
  const toolCallId = data[0]!.operationId.replace('op_', 'call_');
  await expect.poll(async () => (await client.sessions.get(ended.sessionId)).waitingFor?.type).toBe('toolResult');
  await client.sessions.sendToolResult(ended.sessionId, { toolCallId, output: { said: text } });
  await until(client, ended.sessionId, 'idle');
  await client.sessions.update(ended.sessionId, { metadata: { changed: text } });
  await client.sessions.fork(ended.sessionId, { input: text });
  // This one waits for an approval, with another message in its queue.
  const waiting = await client.sessions.open(opening);
  await until(client, waiting.sessionId, 'waiting');
  await client.sessions.sendMessage(waiting.sessionId, { content: `${text}, later` });
  const schedule = { agentId: helper.agentId, environment, cron: '0 9 1 1 *', input: text, metadata: { note: text } };
  const { scheduleId } = await client.schedules.create({ ...schedule, endUser });
  await client.schedules.update(scheduleId, { metadata: { changed: text } });
  await client.sessions.open({ agentId, environment, endUser, metadata: { note: text } });
}

test('nothing of an end user is left after an erasure in whose middle a node was killed, and everything of others is', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await start({ database });
  const { client } = first;
  await client.webhookSubscriptions.create({ environment: 'production', url: testReceiverUrl });
  await useEverything(client, { id: ID, name: MARKER }, MARKER);
  await useEverything(client, { id: 'another', name: 'Another' }, 'what another wrote');
  const { agentId } = await client.agents.create({ name: 'Idle', model: 'scripted/echo' });
  for (let n = 0; n < 50; n++) {
    const opening = { agentId, environment: 'production', endUser: { id: ID }, metadata: { note: MARKER } };
    await Promise.all(Array.from({ length: 10 }, () => client.sessions.open(opening)));
  }
  await expect
    .poll(async () => (await client.webhookSubscriptions.received('production')).data.length)
    .toBeGreaterThan(1);
  const before = await tablesWith(first.db, [ID, MARKER]);
  expect(before).toEqual(
    expect.arrayContaining(['sessions', 'messages', 'segments', 'operations', 'approvals', 'idempotency_records']),
  );
  expect(before).toEqual(expect.arrayContaining(['files', 'file_pieces', 'schedules', 'received_webhooks']));
  await first.stop();

  // From here on, only the other processes do the periodic work.
  const api = await start({ database, config: { roles: new Set(['api']) } });
  onTestFinished(() => api.stop());
  const requested = await api.client.endUsers.erase(ID);
  expect(requested).toMatchObject({ endUserId: ID, erasure: { status: 'running', finishedAt: null } });
  await expect(
    api.client.sessions.open({ agentId, environment: 'production', endUser: { id: ID } }),
  ).rejects.toMatchObject({ code: 'conflict' });

  const killed = await spawnNode(api);
  await expect
    .poll(async () => (await api.client.endUsers.get(ID)).erasure!.deletedSessions, { interval: 5 })
    .toBeGreaterThan(0);
  killed.kill('SIGKILL');
  await once(killed, 'close');
  const half = (await api.client.endUsers.get(ID)).erasure!;
  expect(half.status).toBe('running');
  expect((await api.client.sessions.list({ endUserId: ID })).data.length).toBeGreaterThan(0);

  await Promise.all([spawnNode(api), spawnNode(api)]);
  await finished(api.client);
  const { hasSessions, erasure } = await api.client.endUsers.get(ID);
  expect(hasSessions).toBe(false);
  // With the child and the fork.
  expect(erasure).toMatchObject({ deletedSessions: 505, deletedFiles: 1, deletedSchedules: 1 });
  expect(await tablesWith(api.db, [ID, MARKER])).toEqual([]);

  expect((await api.client.sessions.list({ endUserId: 'another', limit: 100 })).data).toHaveLength(5);
  expect(await tablesWith(api.db, ['what another wrote'])).toEqual(
    expect.arrayContaining(['messages', 'file_pieces', 'schedules', 'idempotency_records', 'received_webhooks']),
  );
  const { data: events } = await api.client.events.list({ type: ['end_user.erasure_started', 'end_user.erased'] });
  expect(events.map(({ type, resource, changes }) => [type, resource.type, changes])).toEqual([
    ['end_user.erased', 'end_user', { sessions: [null, 505], files: [null, 1], schedules: [null, 1] }],
    ['end_user.erasure_started', 'end_user', null],
  ]);
  expect(events[0]!.resource.id).toBe(events[1]!.resource.id);

  const again = await api.client.sessions.open({ agentId, environment: 'production', endUser: { id: ID } });
  expect((await api.client.endUsers.get(ID)).hasSessions).toBe(true);
  expect((await api.client.endUsers.get(ID)).erasure).toMatchObject({ status: 'finished' });
  await api.client.endUsers.erase(ID);
  await finished(api.client);
  expect((await api.client.endUsers.get(ID)).erasure).toMatchObject({ deletedSessions: 1 });
  await expect(api.client.sessions.get(again.sessionId)).rejects.toMatchObject({ status: 404 });
}, 180_000);

/** With one key for each kind of caller. */
async function startWithAgent() {
  const service = await start();
  const { agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  const open = (id: string, more: object = {}) =>
    service.client.sessions.open({ agentId, environment: 'production', endUser: { id }, ...more });
  return { service, client: service.client, agentId, open };
}

test('only an admin key without limits reads and erases end users', async () => {
  const { service, client } = await startWithAgent();
  const refused = { status: 403, code: 'insufficient_permission' };
  for (const key of [
    { permission: 'read' as const },
    { permission: 'write' as const },
    { permission: 'admin' as const, environments: ['production'] },
    { scopes: ['sessions:run' as const, 'sessions:read' as const] },
  ]) {
    const limited = service.clientWith((await client.keys.create({ name: 'Limited', ...key })).secret!);
    await expect(limited.endUsers.erase('a')).rejects.toMatchObject(refused);
    await expect(limited.endUsers.get('a')).rejects.toMatchObject(refused);
  }
  expect((await client.endUsers.get('a')).erasure).toBeNull();
});

test('an id of any characters is erased by its path, and only that one', async () => {
  const { client, open } = await startWithAgent();
  const ids = [
    'a/b',
    'a%2Fb',
    '../a',
    '?x=1#y',
    'a b+c',
    '"\'`;--',
    '日本 👩‍👩‍👧',
    '\u202Ea',
    '👩'.repeat(200),
    '...',
    '%',
    '\\',
  ];
  for (const id of ids) await open(id);
  for (const [at, id] of ids.entries()) {
    expect(await client.endUsers.get(id)).toEqual({ endUserId: id, hasSessions: true, erasure: null });
    expect((await client.endUsers.erase(id)).endUserId).toBe(id);
    await finished(client, id);
    expect((await client.sessions.list({ limit: 100 })).data).toHaveLength(ids.length - at - 1);
  }
  for (const id of ['.', '..']) await expect(open(id)).rejects.toMatchObject({ code: 'invalid_request' });
});

/** Requests about an end user, each with an `Idempotency-Key` of its own that begins with `whose`. */
async function repeatable(client: Signalbox, agentId: string, whose: string, id: string): Promise<void> {
  const environment = 'production';
  const named = (what: string) => ({ idempotencyKey: `${whose} ${what}` });
  const endUser = { name: MARKER, id };
  const { sessionId } = await client.sessions.open({ agentId, environment, endUser }, named('session'));
  await client.sessions.share(sessionId, { title: `With {"${MARKER}` }, named('share'));
  await client.schedules.create({ agentId, environment, cron: '0 9 1 1 *', endUser }, named('schedule'));
  await client.sessions.createToken(sessionId, { scopes: ['read'] }, named('token'));
  await client.sessionTokens.create({ agentId, environment, endUser, scopes: ['read'] }, named('own token'));
  const request = { method: 'GET' as const, url: 'http://127.0.0.1:1/?user={{session.endUser.id}}' };
  const tool = { type: 'http' as const, name: 'look', description: 'd', inputSchema: {}, request };
  await client.agents.testTool(environment, { tool, input: {}, endUser }, named('tool test'));
}

test('stored responses about an end user are erased, whatever they show, and no others', async () => {
  const { service, client, agentId } = await startWithAgent();
  await repeatable(client, agentId, 'theirs', ID);
  await repeatable(client, agentId, 'not theirs', 'another');
  const keys = async () => {
    const rows = await service.db.query<{ key: string }>(sql`
      select r.idempotency_key as key from idempotency_records r where r.idempotency_key like '%theirs %'`);
    return rows.map(({ key }) => key);
  };
  expect(await keys()).toHaveLength(12);
  await client.endUsers.erase(ID);
  await finished(client, ID);
  expect((await keys()).filter((key) => key.startsWith('theirs'))).toEqual([]);
  expect(await keys()).toHaveLength(6);
  expect(await tablesWith(service.db, [ID])).toEqual([]);
});

test('responses that nodes of the previous release stored are erased if they say whose they are', async () => {
  const { service, client, agentId } = await startWithAgent();
  await repeatable(client, agentId, 'theirs', ID);
  await service.db.execute(sql`
    delete from idempotency_records where idempotency_key ~ 'token|tool'`);
  await service.db.execute(sql`update idempotency_records set subjects = null`);
  await client.endUsers.erase(ID);
  await finished(client, ID);
  expect(await tablesWith(service.db, [ID, MARKER])).toEqual([]);
});

test('an erasure of someone without sessions finishes, and a second request during one changes nothing', async () => {
  const { client } = await startWithAgent();
  await client.endUsers.erase('nobody');
  await finished(client, 'nobody');
  expect((await client.endUsers.get('nobody')).erasure).toMatchObject({ deletedSessions: 0, deletedFiles: 0 });

  const service = await start({ config: { roles: new Set(['api']) } });
  const [a, b] = await Promise.all([service.client.endUsers.erase('x'), service.client.endUsers.erase('x')]);
  expect(b.erasure).toEqual(a.erasure);
  expect(await service.client.endUsers.erase('x')).toEqual(a);
  expect((await service.client.events.list({ type: ['end_user.erasure_started'] })).data).toHaveLength(1);
});

test('a running turn stops, and what its node still writes is refused', async () => {
  const { service, client } = await startWithAgent();
  const { agentId } = await client.agents.create({
    name: 'Slow',
    model: scripted([{ text: 'word '.repeat(1_000), tokenDelayMs: 5 }]),
  });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    endUser: { id: 'running' },
    input: 'Go',
  });
  await expect.poll(async () => (await client.sessions.chunks(sessionId)).data.length).toBeGreaterThan(0);
  await client.endUsers.erase('running');
  await finished(client, 'running');
  await expect(client.sessions.get(sessionId)).rejects.toMatchObject({ status: 404 });
  await expect
    .poll(() => service.db.execute(sql`select 1 from segments where organization_id is not null limit 1`))
    .toBe(0);
});

test('sessions that are opened while an erasure begins are erased, or refused', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const one = await start({ database });
  onTestFinished(() => one.stop());
  const other = await start({ database, config: { roles: new Set(['api']) } });
  onTestFinished(() => other.stop());
  const { agentId } = await one.client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  for (let round = 0; round < 5; round++) {
    const id = `raced ${round}`;
    const open = (client: Signalbox) =>
      client.sessions.open({ agentId, environment: 'production', endUser: { id } }).then(
        () => 'opened',
        (error: { code: string }) => error.code,
      );
    const results: string[] = [];
    const opening = Array.from({ length: 8 }, async (_, n) => {
      for (let i = 0; i < 8; i++) results.push(await open(n % 2 ? one.client : other.client));
    });
    await other.client.endUsers.erase(id);
    await finished(one.client, id);
    const { erasure } = await one.client.endUsers.get(id);
    await Promise.all(opening);
    expect(results.filter((result) => result !== 'opened' && result !== 'conflict')).toEqual([]);
    // Sessions that are left were opened after the end.
    const { data } = await one.client.sessions.list({ endUserId: id, limit: 100 });
    for (const { createdAt } of data)
      expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(Date.parse(erasure!.finishedAt!));
    const opened = results.filter((result) => result === 'opened').length;
    expect(data.length + erasure!.deletedSessions).toBe(opened);
  }
});

test('a file that another end user needs too stays, and one that only they used is gone', async () => {
  const { client, open } = await startWithAgent();
  const upload = (filename: string) =>
    client.files.upload(Buffer.from(filename), { environment: 'production', filename, mediaType: 'text/plain' });
  const [shared, own, unused] = [await upload('shared.txt'), await upload('own.txt'), await upload('unused.txt')];
  const { agentId } = await client.agents.create({ name: 'Reads', model: scripted([{ text: 'Read.' }]) });
  const parts = (...files: { fileId: string }[]) => files.map(({ fileId }) => ({ type: 'file' as const, fileId }));
  await open('a', { agentId, input: parts(shared, own) });
  await open('b', { agentId, input: parts(shared) });
  await client.endUsers.erase('a');
  await finished(client, 'a');
  expect((await client.files.get(shared.fileId)).filename).toBe('shared.txt');
  expect((await client.files.get(unused.fileId)).filename).toBe('unused.txt');
  await expect(client.files.get(own.fileId)).rejects.toMatchObject({ status: 404 });
});

test('usage keeps its sums, under no end user, and the event log never has an id', async () => {
  const { service, client } = await startWithAgent();
  const { agentId } = await client.agents.create({ name: 'Tells', model: scripted([{ text: 'one two three' }]) });
  for (const id of ['a-user', 'another-user']) {
    const { sessionId } = await client.sessions.open({
      agentId,
      environment: 'production',
      endUser: { id, name: id },
      input: 'Go',
    });
    await until(client, sessionId, 'idle');
    await client.sessions.update(sessionId, { metadata: { of: id } });
  }
  const groups = async () =>
    (await client.usage.get({ groupBy: 'endUser' })).data.map(({ group, steps }) => [group, steps]).toSorted();
  const { total } = await client.usage.get();
  expect(await groups()).toEqual([
    ['a-user', 1],
    ['another-user', 1],
  ]);
  await client.endUsers.erase('a-user');
  await finished(client, 'a-user');
  expect(await groups()).toEqual([
    ['', 1],
    ['another-user', 1],
  ]);
  expect((await client.usage.get()).total).toEqual(total);
  const { data } = await client.events.list({ limit: 500 });
  expect(JSON.stringify(data)).not.toMatch(/a-user|another-user/);
  expect(data.find(({ type }) => type === 'session.updated')!.changes).toEqual({
    metadata: [{ bytes: 2 }, { bytes: expect.any(Number) }],
  });
  expect(await tablesWith(service.db, ['a-user'])).toEqual([]);
});

test('an erasure begins after the sessions that are being opened', async () => {
  const { platform, ctx, close } = await createTestPlatform();
  onTestFinished(close);
  const { agent } = await createAgent(ctx, { name: 'Echo', model: 'scripted/echo' });
  const endUser = { id: 'slow' };
  const { erasing } = await platform.db.transaction(async (tx) => {
    await openSession({ ...ctx, db: tx }, { agentId: agent.agentId, environment: 'production', endUser });
    let isDone = false;
    const erasing = eraseEndUser(ctx, { endUserId: 'slow' }).finally(() => {
      isDone = true;
    });
    // It waits for this transaction.
    await expect
      .poll(
        async () => isDone || (await platform.db.execute(sql`select 1 from pg_locks where not granted limit 1`)) > 0,
      )
      .toBe(true);
    return { erasing };
  });
  expect((await erasing).endUser).toMatchObject({ hasSessions: true, erasure: { status: 'running' } });
  await eraseEndUsers(platform, ctx.organizationId, new AbortController().signal);
  expect((await getEndUser(ctx, { endUserId: 'slow' })).endUser).toMatchObject({
    hasSessions: false,
    erasure: { status: 'finished', deletedSessions: 1 },
  });
});

test('the erasure itself deletes schedules, what forks had kept and the bytes of files, before it has finished', async () => {
  const { platform, ctx, close } = await createTestPlatform();
  onTestFinished(close);
  const { agent } = await createAgent(ctx, { name: 'Echo', model: 'scripted/echo' });
  const { organizationId } = ctx;
  const content = (async function* () {
    yield Buffer.from(MARKER);
  })();
  const file = await receiveFile(
    platform,
    {
      organizationId,
      environment: 'production',
      filename: `${MARKER}.txt`,
      claimedType: 'text/plain',
      sessionId: null,
      uploader: null,
    },
    content,
  );
  await platform.db.transaction((tx) => keepFile(tx, platform, ctx, file));
  const input = [
    { type: 'text' as const, text: MARKER },
    { type: 'file' as const, fileId: formatId('file', file.fileId) },
  ];
  const opening = { agentId: agent.agentId, environment: 'production', endUser: { id: ID }, input };
  const { session } = await openSession(ctx, opening);
  await cancelSession(ctx, { sessionId: session.sessionId });
  await forkSession(ctx, { sessionId: session.sessionId, input: MARKER });
  await createSchedule(ctx, { ...opening, at: '2100-01-01T00:00:00Z' });
  await eraseEndUser(ctx, { endUserId: ID });
  expect(await tablesWith(platform.db, [MARKER])).toEqual(expect.arrayContaining(['messages', 'file_pieces', 'files']));
  await eraseEndUsers(platform, organizationId, new AbortController().signal);
  expect((await getEndUser(ctx, { endUserId: ID })).endUser.erasure).toMatchObject({
    status: 'finished',
    deletedSessions: 2,
    deletedFiles: 1,
    deletedSchedules: 1,
  });
  expect(await tablesWith(platform.db, [ID, MARKER])).toEqual([]);
});
