// One PostgreSQL for the whole run, with one migrated template that each test file clones.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { ask } from './ask.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A database to connect to for creating others; the user may. */
    databaseServerUrl: string;
    /** The name of the migrated template on that server. */
    databaseTemplate: string;
  }
}

const silent = { info() {}, error() {} };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = process.env.DATABASE_URL_FOR_TESTS
    ? { url: process.env.DATABASE_URL_FOR_TESTS, stop: async () => {} }
    : await startOwnServer();
  const template = `signalbox_template_${randomBytes(6).toString('hex')}`;
  try {
    await ask(server.url, `create database ${template}`);
    const url = new URL(server.url);
    url.pathname = `/${template}`;
    await migrate(url.href, silent);
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('databaseServerUrl', server.url);
  project.provide('databaseTemplate', template);
  return async () => {
    await ask(server.url, `drop database ${template} with (force)`);
    await server.stop();
  };
}

async function startOwnServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-test-'));
  const server = await startEmbeddedPostgres({
    dataDir,
    log: silent,
    // It lives as long as the run and no test cuts its power, so nothing has to reach the disk.
    settings: { fsync: 'off', full_page_writes: 'off', max_connections: 300 },
  });
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
