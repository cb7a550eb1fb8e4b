// Backups, restores and moves of the embedded database, in the process of the test.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { openBulkConnection } from '../../src/db/bulk-connection.ts';
import { writeStartMark } from '../../src/db/start-mark.ts';
import { createLog } from '../../src/lib/log.ts';
import { startService } from '../../src/main.ts';
import { backupOnHost } from '../../src/operator/backup.ts';
import { moveOnHost } from '../../src/operator/move.ts';
import { createKeyOnHost } from '../../src/operator/operator.ts';
import { restoreOnHost } from '../../src/operator/restore.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { watchSecret } from '../support/service.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const quiet = () => {};
const log = createLog({ level: 'silent', destination: { write() {} } });

let directory: string;
let dataDir: string;
let config: Config;
let key: string;
let agentId: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox-move-'));
  dataDir = join(directory, 'data');
  config = readConfig({ 'data-dir': dataDir, port: '0' }, {});
  const service = await startService(config, { log });
  // While the service runs.
  key = (await createKeyOnHost(config, { name: 'Mover', permission: 'admin' })).apiKey.secret;
  watchSecret(key);
  const client = new Signalbox({ apiKey: key, baseUrl: service.url! });
  ({ agentId } = await client.agents.create({
    name: 'Moved',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: 'hello' }] } },
  }));
  await client.environments.secrets.set('staging', 'TOKEN', { value: 'sealed-and-moved', allowedHosts: ['a.example'] });
  await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  await client.events.list();
  await backupOnHost(config, { into: join(directory, 'running.backup') }, quiet);
  await service.stop();
});
afterAll(() => rm(directory, { recursive: true }));

/** Starts the service there, and uses what was copied. */
async function useCopy(copied: Config, meanwhile = async () => {}): Promise<void> {
  const service = await startService(copied, { log });
  try {
    const client = new Signalbox({ apiKey: key, baseUrl: service.url! });
    expect((await client.agents.get(agentId)).name).toBe('Moved');
    expect(await client.events.verify()).toMatchObject({ ok: true });
    const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
    await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
    await meanwhile();
  } finally {
    await service.stop();
  }
}

test('a backup of a running service is restored into a new data directory, which needs the same master key', async () => {
  const elsewhere = readConfig({ 'data-dir': join(directory, 'restored'), port: '0' }, {});
  const restored = await restoreOnHost(elsewhere, { from: join(directory, 'running.backup') }, quiet);
  expect(restored).toMatchObject({ hasRightKey: false, keptIn: undefined });
  expect(readdirSync(elsewhere.dataDir)).toEqual(['postgres']);
  const copied = readConfig(
    { 'data-dir': elsewhere.dataDir, port: '0' },
    { SIGNALBOX_MASTER_KEY: readFileSync(join(dataDir, 'master.key'), 'utf8') },
  );
  const backup = { from: join(directory, 'running.backup') };
  await expect(restoreOnHost(elsewhere, backup, quiet)).rejects.toThrow(/There is a database in .* already/);

  // With a file that turns out to be damaged, and with the service running, the database stays as it is.
  const cut = join(directory, 'cut.backup');
  writeFileSync(cut, readFileSync(backup.from).subarray(0, -20));
  await expect(restoreOnHost(copied, { from: cut, replace: true }, quiet)).rejects.toThrow(/is damaged/);
  expect(readdirSync(elsewhere.dataDir)).toEqual(['postgres']);
  await useCopy(copied, () =>
    expect(restoreOnHost(copied, { ...backup, replace: true }, quiet)).rejects.toThrow(
      /Signalbox is running in .* Stop it/,
    ),
  );

  const { keptIn } = await restoreOnHost(copied, { ...backup, replace: true }, quiet);
  expect(keptIn).toMatch(/postgres\.before-restore-\d{8}T\d{6}Z(-2)?$/);
  expect(existsSync(keptIn!)).toBe(true);

  // As if a restore into an empty directory had been killed just before its end: the same command finishes it.
  const mark = { because: 'restoring', from: 'running.backup', at: '2026-01-31T00:00:00.000Z' } as const;
  await writeStartMark(elsewhere.dataDir, { ...mark, replaces: false });
  expect(existsSync((await restoreOnHost(copied, backup, quiet)).keptIn!)).toBe(true);
  await useCopy(copied);
  // One with --force needs it again.
  await writeStartMark(elsewhere.dataDir, { ...mark, replaces: true });
  await expect(restoreOnHost(copied, backup, quiet)).rejects.toThrow(/There is a database in .* already/);
});

test('restores in the same second keep each database and each key that they replace', async () => {
  const from = join(directory, 'with-key.backup');
  const passphrase = 'correct horse battery';
  await backupOnHost(config, { into: from, passphrase }, quiet);
  const target = readConfig({ 'data-dir': join(directory, 'again'), port: '0' }, {});
  await restoreOnHost(target, { from, passphrase }, quiet);
  // It has another key by now.
  writeFileSync(join(target.dataDir, 'master.key'), Buffer.alloc(32, 7).toString('hex'));
  const names = ['postgres', 'master.key'] as const;
  // What restores in this and the next two minutes would have kept.
  const kept: string[] = [];
  for (let second = 0; second < 120; second += 1) {
    const at = new Date(Date.now() + second * 1000).toISOString().replaceAll(/[-:]|\.\d+/g, '');
    for (const name of names) {
      const path = join(target.dataDir, `${name}.before-restore-${at}`);
      mkdirSync(path);
      writeFileSync(join(path, 'theirs'), at);
      kept.push(join(path, 'theirs'));
    }
  }
  const { keptIn } = await restoreOnHost(target, { from, passphrase, replace: true }, quiet);
  expect(keptIn).toMatch(/postgres\.before-restore-\d{8}T\d{6}Z-2$/);
  expect(kept.filter((path) => !existsSync(path))).toEqual([]);
  expect(readdirSync(target.dataDir).filter((name) => /^master\.key\.before-restore-.*-2$/.test(name))).toHaveLength(1);
});

test('a database of which a restore or a move was interrupted does not start, nor one that was moved', async () => {
  const at = '2026-01-31T00:00:00.000Z';
  await writeStartMark(dataDir, { because: 'restoring', from: 'a.backup', replaces: true, at });
  await expect(startService(config, { log })).rejects.toThrow(
    /A restore of a\.backup .* was interrupted .* Run signalbox restore again/,
  );
  await writeStartMark(dataDir, { because: 'moved', to: 'db:5432/x', moveId: 'x', at });
  await expect(startService(config, { log })).rejects.toThrow(/was moved to db:5432\/x .* set DATABASE_URL/);
  await expect(createKeyOnHost(config, { name: 'No', permission: 'read' })).rejects.toThrow(/was moved to/);
  await expect(moveOnHost(config, 'postgres://a@b/c', quiet)).rejects.toThrow(/was moved to db:5432/);
  await rm(join(dataDir, 'do-not-start.json'));
});

test('a move needs no superuser, copies everything, is not done twice, and leaves a database that does not start', async () => {
  const target = await createTestDatabase({ empty: true });
  const role = `mover_${process.pid}`;
  await ask(inject('databaseServerUrl'), `create role ${role} login password 'moving'`);
  const url = new URL(target.url);
  await ask(target.url, `alter database ${url.pathname.slice(1)} owner to ${role}`);
  // What a role or a database may have set.
  await ask(target.url, `alter role ${role} set statement_timeout = '20s'`);
  await ask(target.url, `alter role ${role} set "DateStyle" = 'SQL, DMY'`);
  [url.username, url.password] = [role, 'moving'];
  const connection = await openBulkConnection(url.href);
  expect(await connection.query('show statement_timeout')).toEqual([{ statement_timeout: '0' }]);
  connection.close();

  const running = await startService(config, { log });
  await expect(moveOnHost({ ...config, databaseUrl: url.href }, undefined, quiet)).rejects.toThrow(
    /in use by another running Signalbox/,
  );
  await running.stop();
  await expect(moveOnHost(config, 'postgres://nobody@127.0.0.1:1/none', quiet)).rejects.toThrow(
    /does not respond.*--to/,
  );
  await expect(moveOnHost(config, url.href, quiet)).rejects.toThrow(/--to contains a password.*PGPASSWORD/);
  await expect(moveOnHost(config, 'mysql://a', quiet)).rejects.toThrow(/--to is not the URL of a database/);
  await expect(moveOnHost(config, undefined, quiet)).rejects.toThrow(/set DATABASE_URL to an empty database/);

  // A move that fails, at any step, leaves the source as it was and the target empty.
  for (const step of ['copying', 'verifying the event log']) {
    const failing = moveOnHost({ ...config, databaseUrl: url.href }, undefined, (state) => {
      if (state.step === step) throw new Error('broken on the way');
    });
    await expect(failing).rejects.toThrow('broken on the way');
    expect(existsSync(join(dataDir, 'do-not-start.json'))).toBe(false);
    expect(await ask(target.url, 'select * from organizations')).toEqual([]);
  }

  const { to, loaded } = await moveOnHost({ ...config, databaseUrl: url.href }, undefined, quiet);
  expect(to).not.toContain('moving');
  expect(loaded!.rows).toBeGreaterThan(20);
  expect(loaded!.chains[0]).toMatchObject({ records: expect.any(Number) });
  expect(loaded!.chains[0]!.problem).toBeUndefined();
  const mark = readFileSync(join(dataDir, 'do-not-start.json'), 'utf8');
  expect(mark).not.toContain('moving@');
  await expect(startService(config, { log })).rejects.toThrow(/was moved to/);

  // As if the command had been killed between the commit and its end.
  await writeStartMark(dataDir, { ...JSON.parse(mark), because: 'moving' });
  expect(await moveOnHost({ ...config, databaseUrl: url.href }, undefined, quiet)).toEqual({ to, loaded: undefined });
  expect(JSON.parse(readFileSync(join(dataDir, 'do-not-start.json'), 'utf8')).because).toBe('moved');

  // It is not copied over what happened since.
  await rm(join(dataDir, 'do-not-start.json'));
  await expect(moveOnHost({ ...config, databaseUrl: url.href }, undefined, quiet)).rejects.toThrow(/is not empty/);
  expect(existsSync(join(dataDir, 'do-not-start.json'))).toBe(false);

  await useCopy(
    readConfig(
      { port: '0' },
      { DATABASE_URL: url.href, SIGNALBOX_MASTER_KEY: readFileSync(join(dataDir, 'master.key'), 'utf8') },
    ),
  );
  await target.drop();
  await ask(inject('databaseServerUrl'), `drop role ${role}`);
});
