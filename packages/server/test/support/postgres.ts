import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';

export interface TestDatabase {
  url: string;
  /** Closes all remaining connections. */
  drop(): Promise<void>;
}

/** Creates a migrated database; with `{ empty: true }`, one without tables. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const name = `signalbox_test_${randomBytes(6).toString('hex')}`;
  await onServer(`create database ${name} template ${empty ? 'template0' : inject('databaseTemplate')}`);
  const url = new URL(inject('databaseServerUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: async () => void (await onServer(`drop database if exists ${name} with (force)`)) };
}

const onServer = (text: string) => ask(inject('databaseServerUrl'), text);
