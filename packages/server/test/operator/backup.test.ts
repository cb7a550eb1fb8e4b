// Backups and restores of a database of one's own, in the process of the test.
import { once } from 'node:events';
import {
  createReadStream,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { link, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { readConfig } from '../../src/config/config.ts';
import { openBulkConnection } from '../../src/db/bulk-connection.ts';
import { createDb } from '../../src/db/db.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { readMigrations } from '../../src/db/schema/migration-files.ts';
import { dumpSchema } from '../../src/db/schema/schema-dump.ts';
import type { TableSum } from '../../src/db/schema/table-sum.ts';
import { listTables, readTable, snapshotOf } from '../../src/db/schema/tables.ts';
import { backupOnHost } from '../../src/operator/backup.ts';
import type { Progress } from '../../src/operator/progress.ts';
import { checkBackup, restoreOnHost } from '../../src/operator/restore.ts';
import { loadFixture, readFixture } from '../support/fixture.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { startTestService, type TestService } from '../support/service.ts';

vi.mock('node:fs/promises', { spy: true });
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const masterKey = Buffer.alloc(32, 9);
const quiet = () => {};
const silent = { info() {}, warn() {} };

let service: TestService;
let directory: string;
beforeAll(async () => {
  service = await startTestService({ config: { masterKeys: [masterKey] } });
  directory = await mkdtemp(join(tmpdir(), 'signalbox-backup-'));
});
afterAll(() => rm(directory, { recursive: true }));

const configFor = (url: string) =>
  readConfig({}, { DATABASE_URL: url, SIGNALBOX_MASTER_KEY: masterKey.toString('hex') });

async function emptyDatabase() {
  const database = await createTestDatabase({ empty: true });
  return { ...database, config: configFor(database.url) };
}

async function sumsOf(url: string): Promise<Record<string, TableSum>> {
  const connection = await openBulkConnection(url);
  const sums: Record<string, TableSum> = {};
  for (const table of await listTables(connection)) {
    const { rows, sum } = readTable(connection, table);
    for await (const _ of rows);
    sums[table.name] = sum();
  }
  connection.close();
  return sums;
}

async function schemaOf(url: string): Promise<string> {
  const db = createDb({ url, max: 1 });
  return dumpSchema(db).finally(() => db.close());
}

/** Rows of several kinds, with text that `copy` escapes. */
async function useService({ client }: TestService): Promise<{ sessionId: string; fileId: string }> {
  const { agentId } = await client.agents.create({
    name: 'Copied \\. \\N \t ünï 🎈',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: 'a\\.\n\\.\r\n\\N' }, { text: 'b' }] } },
  });
  await client.environments.secrets.set('staging', 'TOKEN', {
    value: 'sealed-and-copied',
    allowedHosts: ['a.example'],
  });
  const { fileId } = await client.files.upload(Buffer.alloc(3_000_000, '\\.\n'), {
    environment: 'staging',
    filename: 'f',
  });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'staging',
    input: 'go\n\\.\n',
    metadata: {},
  });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  return { sessionId, fileId };
}

test('a restored database has the same rows and schema, its event log is intact, and the service continues on it', async () => {
  const { sessionId, fileId } = await useService(service);
  // A read of the log numbers its records.
  await service.client.events.list();
  const file = join(directory, 'whole.backup');
  const summary = await backupOnHost(configFor(service.database.url), { into: file }, quiet);
  expect(summary).toMatchObject({ masterKeyIn: 'SIGNALBOX_MASTER_KEY', otherStores: {}, bytes: statSync(file).size });
  expect(summary.sessions).toBeGreaterThan(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const text = gunzipSync(readFileSync(file)).toString('latin1');
  for (const secret of ['sealed-and-copied', service.adminKey, masterKey.toString('hex'), masterKey.toString('base64')])
    expect(text).not.toContain(secret);

  const target = await emptyDatabase();
  const restored = await restoreOnHost(target.config, { from: file }, quiet);
  expect(restored).toMatchObject({ tables: summary.tables, rows: summary.rows, hasRightKey: true, containsKey: false });
  expect(restored.chains.map(({ problem }) => problem)).toEqual([undefined]);
  expect(restored.chains[0]!.records).toBeGreaterThan(3);
  expect(await schemaOf(target.url)).toBe(await schemaOf(service.database.url));

  const again = await startTestService({ database: target, config: { masterKeys: [masterKey] } });
  const there = again.clientWith(service.adminKey);
  expect(await there.sessions.get(sessionId)).toEqual(await service.client.sessions.get(sessionId));
  expect((await buffer(await there.files.content(fileId))).equals(Buffer.alloc(3_000_000, '\\.\n'))).toBe(true);
  await there.sessions.sendMessage(sessionId, { content: 'more' });
  await expect.poll(async () => (await there.sessions.get(sessionId)).turn).toBe(2);
  expect(await there.events.verify()).toMatchObject({ ok: true });
  await again.stop();
  await target.drop();
});

test('what two nodes write while a backup runs is in it as of one moment', async () => {
  const other = await startTestService({ database: service.database, config: { masterKeys: [masterKey] } });
  const { agentId } = await service.client.agents.create({
    name: 'Busy',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: 'word '.repeat(50) }] } },
  });
  let isOver = false;
  async function keepOpening({ client }: TestService): Promise<void> {
    while (!isOver) await client.sessions.open({ agentId, environment: 'production', input: 'go', closeOnIdle: true });
  }
  const writers = [keepOpening(service), keepOpening(other)];
  // The reader takes nothing until many sessions were opened after the snapshot.
  const slow = new PassThrough({ highWaterMark: 1 });
  const config = configFor(service.database.url);
  const saving = backupOnHost(config, { into: slow }, quiet).then((summary) => {
    slow.end();
    return summary;
  });
  const count = async () =>
    Number((await ask<{ n: string }>(service.database.url, 'select count(*) as n from sessions'))[0]!.n);
  const first = await new Promise<Buffer>((resolve) => slow.once('readable', () => resolve(slow.read())));
  const atStart = await count();
  await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(atStart + 20);
  const bytes = Buffer.concat([first, await buffer(slow)]);
  const summary = await saving;
  isOver = true;
  await Promise.all(writers);
  await other.stop();

  expect(summary.sessions).toBeLessThanOrEqual(atStart);
  const target = await emptyDatabase();
  await restoreOnHost(target.config, { from: Readable.from([bytes]) }, quiet);
  const torn = await ask(
    target.url,
    `select s.session_id from sessions s
     where s.next_seq - 1 <> coalesce((
         select max(seq_to) from segments g where g.session_id = s.session_id and g.turn = s.turn), 0)
       or s.ended_at is not null and not exists (select from messages m where m.session_id = s.session_id)`,
  );
  expect(torn).toEqual([]);
  await target.drop();
});

test('a backup that begins while a migration rewrites and adds tables waits for it, and has every row', async () => {
  const source = await emptyDatabase();
  await migrate(source.url, silent);
  await ask(source.url, `insert into organizations values (gen_random_uuid(), 'One', now())`);
  const migrating = new Client({ connectionString: source.url });
  await migrating.connect();
  await migrating.query(`
    begin;
    alter table organizations alter column name type varchar(100);
    create table added (id int primary key);
    insert into added values (7)`);
  const connection = await openBulkConnection(source.url);
  const snapshot = snapshotOf(connection);
  const waiting = `select from pg_stat_activity
    where datname = current_database() and application_name = 'signalbox copy' and wait_event_type = 'Lock'`;
  await expect.poll(() => ask(source.url, waiting)).toHaveLength(1);
  await migrating.query('commit');
  await migrating.end();
  const rowsOf: Record<string, number> = {};
  for await (const { name, rows, sum } of (await snapshot).tables()) {
    for await (const _ of rows);
    rowsOf[name] = sum().rows;
  }
  expect(rowsOf).toMatchObject({ organizations: 1, added: 1 });
  connection.close();
  await source.drop();
});

test('a backup of an earlier release is restored and migrated', async () => {
  const fixture = await readFixture(new URL('../fixtures/database-0001.json.gz', import.meta.url));
  const old = await emptyDatabase();
  await migrate(old.url, silent, { through: fixture.migrations.length });
  await loadFixture(fixture, old.url);
  const file = join(directory, 'old.backup');
  await backupOnHost(old.config, { into: file }, quiet);
  const target = await emptyDatabase();
  const restored = await restoreOnHost(target.config, { from: file }, quiet);
  expect(restored.chains.every(({ problem, records }) => problem === undefined && records > 0)).toBe(true);
  expect(restored.hasRightKey).toBe(false);
  await migrate(old.url, silent);
  expect(await sumsOf(target.url)).toEqual(await sumsOf(old.url));
  expect(await schemaOf(target.url)).toBe(await schemaOf(old.url));
  await Promise.all([old.drop(), target.drop()]);
});

/** A small backup, as the lines in it. */
async function smallBackup(): Promise<string[]> {
  const source = await emptyDatabase();
  await migrate(source.url, silent);
  await ask(
    source.url,
    `insert into organizations values (gen_random_uuid(), 'One', now()), (gen_random_uuid(), 'Two', now())`,
  );
  const stream = new PassThrough();
  const [bytes] = await Promise.all([
    buffer(stream),
    backupOnHost(source.config, { into: stream }, quiet).finally(() => stream.end()),
  ]);
  await source.drop();
  return gunzipSync(bytes).toString().split('\n');
}

test('a file that is cut off, damaged, of another program or of a newer release is refused, and the database stays empty', async () => {
  const lines = await smallBackup();
  const whole = gzipSync(lines.join('\n'));
  const header = JSON.parse(lines[0]!);
  const withHeader = (changes: object) =>
    gzipSync([JSON.stringify({ ...header, ...changes }), ...lines.slice(1)].join('\n'));
  const newer = [...header.migrations, { ...header.migrations.at(-1), version: header.migrations.length + 1 }];
  const changed = lines.findIndex((line) => line.includes('\tOne\t'));
  const without = (from: number, count: number) => gzipSync(lines.toSpliced(from, count).join('\n'));
  const flipped = Buffer.from(whole);
  // A bit of gzip's checksum. Elsewhere a bit may refer to the same text in another place, and nothing is damaged.
  flipped[whole.length - 8]! ^= 1;
  const wrong: [name: string, bytes: Buffer, message: RegExp][] = [
    ['nothing', Buffer.alloc(0), /damaged: it is cut off/],
    ['text', Buffer.from('hello, this is not a backup'), /is not a backup of Signalbox/],
    ['other gzip', gzipSync('{"hello":1}\n'), /is not a backup of Signalbox/],
    ['without its end', whole.subarray(0, whole.length - 9), /damaged: it is cut off/],
    ['half', whole.subarray(0, whole.length >> 1), /damaged: it is cut off/],
    ['a bit', flipped, /damaged/],
    [
      'a changed row',
      gzipSync(lines.with(changed, lines[changed]!.replace('One', 'Six')).join('\n')),
      /organizations differ/,
    ],
    ['a missing row', without(changed, 1), /organizations differ/],
    ['lines cut off', gzipSync(lines.slice(0, -2).join('\n')), /damaged: it is cut off/],
    [
      'a missing table',
      without(
        lines.findIndex((line) => line.startsWith('{"table":"users"')),
        3,
      ),
      /tables are missing/,
    ],
    [
      'another form',
      withHeader({ signalboxBackup: 2, release: '9.9.9' }),
      /Restore it with Signalbox 9\.9\.9 or later/,
    ],
    [
      'newer',
      withHeader({ migrations: newer, release: '9.9.9' }),
      /schema version \d+, of Signalbox 9\.9\.9\. .* Use Signalbox 9\.9\.9 or later/,
    ],
    ...[
      { migrations: 5 },
      { migrations: [] },
      { migrations: header.migrations.map(() => null) },
      { migrations: header.migrations.with(0, { ...header.migrations[0], name: '\u001b[31mred' }) },
      { masterKeys: {} },
      { masterKeys: { salt: 1, nonce: 2, tag: 3, text: 4 } },
      { createdAt: '\u001b]0;title\u0007' },
      { release: '\u001b[31m' },
      { release: '\u001b[31m', signalboxBackup: 2 },
      { otherStores: null },
      { otherStores: { s3: 1 } },
    ].map((changes): (typeof wrong)[number] => [
      JSON.stringify(changes),
      withHeader(changes),
      /damaged: its first line is wrong \((migrations|masterKeys|createdAt|release|otherStores)[\w.[\]]*\)/,
    ]),
    [
      'columns that are not names',
      gzipSync([lines[0], '{"table":"agents","columns":[["agent_id"],{}]}', '\\.\n'].join('\n')),
      /the beginning of a table is missing/,
    ],
    [
      'unreleased',
      withHeader({ migrations: header.migrations.with(0, { ...header.migrations[0], sha256: 'x' }) }),
      /unreleased state/,
    ],
  ];
  const target = await emptyDatabase();
  const aRow = lines.findIndex((line) => line.startsWith('{"table":"organizations"')) + 1;
  for (const [code, rows] of [
    ['22P02', [lines[aRow]!.replace(/^\S{8}/, 'a secret')]],
    ['22P04', [`${lines[aRow]}\tmore`]],
    ['23505', [lines[aRow]!, lines[aRow]!]],
  ] as const) {
    const from = Readable.from([gzipSync(lines.toSpliced(aRow, 1, ...rows).join('\n'))]);
    await expect(restoreOnHost(target.config, { from }, quiet)).rejects.toThrow(
      `What is copied is damaged: the database refuses a row (${code}). Nothing was changed. Use another backup.`,
    );
  }
  for (const [name, bytes, message] of wrong) {
    await expect(restoreOnHost(target.config, { from: Readable.from([bytes]) }, quiet), name).rejects.toThrow(message);
    await expect(checkBackup(Readable.from([bytes]), quiet), name).rejects.toThrow(message);
  }
  const organizations = `select case when to_regclass('organizations') is null then 0 else (select count(*) from organizations) end as n`;
  await migrate(target.url, silent);
  expect(await ask(target.url, organizations)).toEqual([{ n: '0' }]);
  // Whatever the size of the pieces in which it arrives.
  expect(await checkBackup(Readable.from([...whole].map((byte) => Buffer.of(byte))), quiet)).toMatchObject({ rows: 2 });
  await restoreOnHost(target.config, { from: Readable.from([whole]) }, quiet);
  expect(await ask(target.url, organizations)).toEqual([{ n: '2' }]);
  await expect(restoreOnHost(target.config, { from: Readable.from([whole]) }, quiet)).rejects.toThrow(/is not empty/);
  await target.drop();
});

/** A connection to a database that can be cut. */
async function startLine(to: string): Promise<{ url: string; cut(): void; close(): Promise<void> }> {
  const { hostname, port, searchParams } = new URL(to);
  const directory = searchParams.get('host');
  const sockets = new Set<Socket>();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    const upstream = directory ? connect(`${directory}/.s.PGSQL.${port}`) : connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket)).on('error', () => {});
    }
    client.pipe(upstream).pipe(client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(to);
  url.search = '';
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut,
    async close() {
      cut();
      await once(server.close(), 'close');
    },
  };
}

test('a restore whose connection breaks at any table leaves an empty database, in which it can be repeated', async () => {
  const whole = gzipSync((await smallBackup()).join('\n'));
  const target = await emptyDatabase();
  const line = await startLine(target.url);
  for (const step of ['copying', 'creating indexes and constraints', 'verifying', 'verifying the event log']) {
    // At once, so that nothing that the restore sends afterwards arrives.
    const cutAt: Progress = (state) => {
      if (state.step === step) line.cut();
    };
    const restoring = restoreOnHost(configFor(line.url), { from: Readable.from([whole]) }, cutAt);
    await expect(restoring, step).rejects.toThrow();
    expect((await sumsOf(target.url)).organizations, step).toMatchObject({ rows: 0 });
  }
  await line.close();
  await restoreOnHost(target.config, { from: Readable.from([whole]) }, quiet);
  expect(await schemaOf(target.url)).toBe(await schemaOf(service.database.url));
  await target.drop();
});

test('a restore whose database stores something else than it was given fails, and stores nothing', async () => {
  const whole = gzipSync((await smallBackup()).join('\n'));
  const target = await emptyDatabase();
  await migrate(target.url, silent);
  await ask(
    target.url,
    `create function change() returns trigger language plpgsql as 'begin new.name := lower(new.name); return new; end'`,
  );
  await ask(target.url, 'create trigger change before insert on organizations for each row execute function change()');
  await expect(restoreOnHost(target.config, { from: Readable.from([whole]) }, quiet)).rejects.toThrow(
    /The copy of the table organizations differs.*Nothing was changed/,
  );
  expect(await ask(target.url, 'select * from organizations')).toEqual([]);
  await target.drop();
});

test('a restore reports an event log whose chain does not hold, and keeps the data', async () => {
  const fixture = await readFixture(new URL('../fixtures/database-0001.json.gz', import.meta.url));
  const source = await emptyDatabase();
  await migrate(source.url, silent, { through: fixture.migrations.length });
  await loadFixture(fixture, source.url);
  await ask(
    source.url,
    `update events set body = jsonb_set(body::jsonb, '{outcome}', '"denied"')::json where sequence = 2`,
  );
  const file = join(directory, 'tampered.backup');
  await backupOnHost(source.config, { into: file }, quiet);
  const target = await emptyDatabase();
  const { chains } = await restoreOnHost(target.config, { from: file }, quiet);
  expect(chains.map(({ problem }) => problem)).toContain('record 2 does not have the hash of its content');
  await Promise.all([source.drop(), target.drop()]);
});

test('a backup is whole or not there: nothing is left of one that fails, and no file is overwritten', async () => {
  const config = configFor(service.database.url);
  const taken = join(directory, 'taken.backup');
  writeFileSync(taken, 'mine');
  await expect(backupOnHost(config, { into: taken }, quiet)).rejects.toThrow(/taken\.backup exists already/);
  expect(readFileSync(taken, 'utf8')).toBe('mine');
  await expect(backupOnHost(config, { into: join(directory, 'no/where') }, quiet)).rejects.toThrow(
    /its directory does not exist/,
  );
  // Linux has a device that is always full.
  await expect(backupOnHost(config, { into: createFullDisk() }, quiet)).rejects.toThrow(/ENOSPC/);
  // A file of a process that does not exist any more.
  const left = join(directory, 'next.backup.99999999.part');
  writeFileSync(left, 'half');
  utimesSync(left, new Date(0), new Date(0));
  await expect(
    backupOnHost(config, { into: join(directory, 'next.backup') }, () => {
      throw new Error('broken on the way');
    }),
  ).rejects.toThrow('broken on the way');
  expect(readdirSync(directory).filter((name) => name.includes('next'))).toEqual([]);
});

test('a backup is never written through a link or into a file that was there before it', async () => {
  const config = configFor(service.database.url);
  const others = join(directory, 'others');
  writeFileSync(others, 'theirs', { mode: 0o666 });
  for (const [name, prepare] of [
    ['linked', symlinkSync],
    ['shared', linkSync],
  ] as const) {
    const file = join(directory, `${name}.backup`);
    const draft = `${file}.${process.pid}.part`;
    prepare(others, draft);
    await backupOnHost(config, { into: file }, quiet);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(lstatSync(file).isSymbolicLink()).toBe(false);
    expect([readFileSync(others, 'utf8'), readFileSync(draft, 'utf8')]).toEqual(['theirs', 'theirs']);
    await rm(draft);
  }
});

test('a backup can be written to a disk whose file system has no links, and overwrites nothing there', async () => {
  const config = configFor(service.database.url);
  const file = join(directory, 'usb.backup');
  const refusal = () => Object.assign(new Error('operation not permitted'), { code: 'EPERM' });
  vi.mocked(link).mockRejectedValueOnce(refusal());
  await backupOnHost(config, { into: file }, quiet);
  expect(await checkBackup(file, quiet)).toMatchObject({ tables: expect.any(Number) });
  // Another program takes the name just before the end.
  const taken = join(directory, 'taken-late.backup');
  vi.mocked(link).mockImplementationOnce(async () => {
    writeFileSync(taken, 'mine');
    throw refusal();
  });
  await expect(backupOnHost(config, { into: taken }, quiet)).rejects.toThrow(/exists already/);
  expect(readFileSync(taken, 'utf8')).toBe('mine');
  expect(readdirSync(directory).filter((name) => name.endsWith('.part'))).toEqual([]);
});

function createFullDisk() {
  const full = new PassThrough();
  full._write = (_chunk, _encoding, done) => done(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }));
  return full;
}

test('the master key is in a backup only if a passphrase encrypts it, and only that passphrase opens it', async () => {
  const file = join(directory, 'with-key.backup');
  const config = configFor(service.database.url);
  await expect(backupOnHost(config, { into: file, passphrase: 'short' }, quiet)).rejects.toThrow(
    /at least 12 characters/,
  );
  const passphrase = 'correct horse battery';
  expect(await backupOnHost(config, { into: file, passphrase }, quiet)).toMatchObject({ masterKeyIn: null });
  const text = gunzipSync(readFileSync(file)).toString('latin1');
  expect(text).not.toContain(masterKey.toString('base64'));
  expect(text).not.toContain(passphrase);

  const target = await emptyDatabase();
  const dataDir = join(directory, 'data');
  const elsewhere = readConfig({ 'data-dir': dataDir }, { DATABASE_URL: target.url });
  await expect(restoreOnHost(elsewhere, { from: file, passphrase: 'another passphrase' }, quiet)).rejects.toThrow(
    /passphrase is not the one/,
  );
  const refused = createReadStream(file);
  await expect(restoreOnHost(elsewhere, { from: refused, passphrase: 'a third passphrase' }, quiet)).rejects.toThrow();
  expect(refused.closed, 'a refused file is closed').toBe(true);
  const restored = await restoreOnHost(elsewhere, { from: file, passphrase }, quiet);
  expect(restored).toMatchObject({ masterKeyIn: join(dataDir, 'master.key'), hasRightKey: true, containsKey: true });
  expect(statSync(join(dataDir, 'master.key')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(dataDir, 'master.key'), 'utf8').trim()).toBe(masterKey.toString('base64'));
  await target.drop();
});

test('a cut file on the disk is refused by its name', async () => {
  const file = join(directory, 'cut.backup');
  await backupOnHost(configFor(service.database.url), { into: file }, quiet);
  expect(await checkBackup(createReadStream(file), quiet)).toMatchObject({ containsKey: false });
  truncateSync(file, statSync(file).size - 1);
  await expect(checkBackup(file, quiet)).rejects.toThrow(`${file} is damaged: it is cut off. Use another backup.`);
  await expect(checkBackup(join(directory, 'none'), quiet)).rejects.toThrow('does not exist');
});

test('no table has a sequence or an identity, which a copy would not contain', async () => {
  expect(await ask(service.database.url, 'select * from pg_sequences')).toEqual([]);
  expect((await readMigrations()).length).toBeGreaterThan(0);
});
