// A database that the operator runs, and the ways in which its settings or its host differ.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { Client } from 'pg';
import sql from 'sql-template-tag';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { StartError } from '../../src/operator/start-error.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { startTransactionPooler } from '../support/transaction-pooler.ts';

/** Runs the text as the owner of the database. */
async function prepare(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(text);
  await client.end();
}

test('a database that has a schema auth, users and migrations of its own keeps them next to those of the service', async () => {
  const database = await createTestDatabase({ empty: true });
  const name = new URL(database.url).pathname.slice(1);
  await prepare(
    database.url,
    `create schema auth; create table auth.users (id int); create table public.users (id int);
     create table public.schema_migrations (version text); create schema signalbox;
     alter database ${name} set search_path to signalbox`,
  );
  const service = await startTestService({ database });
  const { data } = await service.client.agents.list();
  expect(data).toEqual([]);
  expect((await fetch(`${service.url}/console/api/session`)).status).toBeLessThan(500);
  const rows = await service.db.query(sql`select schemaname from pg_tables where tablename = 'passkeys'`);
  expect(rows).toEqual([{ schemaname: 'signalbox' }]);
  await service.stop();
  await database.drop();
});

describe('the start reports what is wrong with a database and what to do, if', () => {
  const admin = (database: TestDatabase, text: string) => prepare(database.url, text);

  async function database(): Promise<TestDatabase & { name: string }> {
    const made = await createTestDatabase({ empty: true });
    onTestFinished(() => made.drop());
    return { ...made, name: new URL(made.url).pathname.slice(1) };
  }

  /** What the operator reads. */
  async function refusalOf(url: string, config: Partial<Config> = {}): Promise<string> {
    const error = await startTestService({
      database: { url, drop: async () => {} },
      config: { databaseUrl: url, ...config },
    }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StartError);
    const { message } = error as StartError;
    const { password } = new URL(url);
    if (password) expect(message).not.toContain(password);
    return message;
  }

  test('it is read-only', async () => {
    const { url, name } = await database();
    await prepare(url, `alter database ${name} set default_transaction_read_only = on`);
    expect(await refusalOf(url)).toContain('is read-only: it is a standby, or default_transaction_read_only is on');
  });

  test('it can store only Latin 1', async () => {
    const { url, name } = await database();
    await prepare(
      url,
      `create database ${name}_latin1 encoding 'LATIN1' template template0 locale_provider libc lc_collate 'C' lc_ctype 'C'`,
    );
    const latin1 = new URL(url);
    latin1.pathname = `/${name}_latin1`;
    expect(await refusalOf(latin1.href)).toContain("encoding LATIN1, which can't store all text");
    await prepare(url, `drop database ${name}_latin1 with (force)`);
  });

  test('its search_path names no schema', async () => {
    const { url, name } = await database();
    await prepare(url, `alter database ${name} set search_path to nowhere`);
    expect(await refusalOf(url)).toContain('search_path of the database’s user, nowhere,'.replace('’', "'"));
  });

  test('its user may open no more connections, or may not create anything', async () => {
    const made = await database();
    const role = `poor_${randomBytes(4).toString('hex')}`;
    await admin(made, `create role ${role} login password 'of the poor' connection limit 0`);
    const url = new URL(made.url);
    url.username = role;
    url.password = 'of the poor';
    expect(await refusalOf(url.href)).toContain('allows no further connections');
    await admin(made, `alter role ${role} connection limit -1; revoke create on schema public from public`);
    expect(await refusalOf(url.href)).toContain('does not let its user create tables');
    await admin(made, `drop role ${role}`);
  });

  test('it is not the database of SIGNALBOX_LISTEN_URL', async () => {
    const [one, other] = [await database(), await database()];
    expect(await refusalOf(one.url, { listenUrl: other.url })).toContain(
      'SIGNALBOX_LISTEN_URL and DATABASE_URL are different databases',
    );
  });

  test('it is behind a transaction pooler, and no direct connection is configured', async () => {
    const { url } = await database();
    const pooler = await startTransactionPooler(url);
    onTestFinished(() => pooler.close());
    expect(await refusalOf(pooler.url)).toMatch(
      /^DATABASE_URL goes through a transaction pooler\. Set SIGNALBOX_LISTEN_URL/,
    );
    expect(await refusalOf(pooler.url, { listenUrl: pooler.url })).toMatch(
      /^SIGNALBOX_LISTEN_URL goes through a transaction pooler/,
    );
  });

  test('it has settings that can’t be changed behind a pooler', async () => {
    const { url, name } = await database();
    await prepare(url, `alter database ${name} set DateStyle to 'SQL, DMY'`);
    const pooler = await startTransactionPooler(url);
    onTestFinished(() => pooler.close());
    expect(await refusalOf(pooler.url, { listenUrl: url })).toContain("alter role … set DateStyle = 'ISO, MDY'");
  });

  test('it is unavailable, with the name of the variable', async () => {
    const { url } = await database();
    const away = new URL(url);
    away.search = '';
    away.host = '127.0.0.1:1';
    expect(await refusalOf(away.href)).toMatch(
      /^The database at 127\.0\.0\.1:1\/.* does not respond .* is DATABASE_URL correct/,
    );
    const pooler = await startTransactionPooler(url);
    onTestFinished(() => pooler.close());
    expect(await refusalOf(pooler.url, { listenUrl: away.href })).toContain('is SIGNALBOX_LISTEN_URL correct?');
  });

  test('it has no TLS, or a certificate of an unknown authority or of another host', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-tls-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const subject = ['-subj', '/CN=db.example', '-addext', 'subjectAltName=DNS:db.example'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1', ...subject],
      { stdio: 'ignore' },
    );
    // Answers the request for TLS with a single letter.
    const answering = async (letter: 'S' | 'N') => {
      const server = createServer((socket) => {
        socket
          .on('error', () => {})
          .once('data', () => {
            socket.write(letter);
            if (letter === 'N') return;
            const secured = new TLSSocket(socket, { isServer: true, key: readFileSync(key), cert: readFileSync(cert) });
            secured.on('error', () => {});
          });
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void server.close());
      return `postgres://user:of-the-test@127.0.0.1:${(server.address() as { port: number }).port}/d?sslmode=require`;
    };
    expect(await refusalOf(await answering('N'))).toContain('does not support TLS');
    const secure = await answering('S');
    expect(await refusalOf(secure)).toContain('Set sslrootcert=');
    expect(await refusalOf(`${secure}&sslrootcert=${cert}`)).toContain('a certificate for another host name');
  });
});

test('behind a transaction pooler, with a direct connection as well, the service works', async () => {
  const database = await createTestDatabase();
  const pooler = await startTransactionPooler(database.url);
  const service = await startTestService({
    database: { url: pooler.url, drop: async () => {} },
    config: { databaseUrl: pooler.url, listenUrl: database.url },
  });
  const agents = Array.from({ length: 20 }, (_, index) => service.client.agents.list({ limit: index + 1 }));
  expect(await Promise.all(agents)).toHaveLength(20);
  await service.stop();
  await pooler.close();
  await database.drop();
});
