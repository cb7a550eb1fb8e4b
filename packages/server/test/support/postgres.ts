import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  url: string;
  /** Cuts whatever is still connected. */
  drop(): Promise<void>;
}

/** A database of its own, migrated; `{ empty: true }` gives one without tables. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const name = `signalbox_test_${randomBytes(6).toString('hex')}`;
  await onServer(`create database ${name} template ${empty ? 'template0' : inject('databaseTemplate')}`);
  const url = new URL(inject('databaseServerUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => onServer(`drop database if exists ${name} with (force)`) };
}

async function onServer(text: string): Promise<void> {
  const client = new Client({ connectionString: inject('databaseServerUrl') });
  await client.connect();
  await client.query(text).finally(() => client.end());
}
