// Starts one PostgreSQL for the whole run, with a migrated template that each test file clones; none if no selected test needs one.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTemporaryPostgres } from '@signalbox/embedded-postgres';
import type { TestProject } from 'vitest/node';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { migrate } from '../../src/db/schema/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A database to connect to for creating others; its user has that right. */
    databaseServerUrl: string;
    /** The name of the migrated template on that server. */
    databaseTemplate: string;
    /** The file to record the statements in. */
    statementsFile: string;
  }
}

const LINT = fileURLToPath(new URL('../../../../test/sql-lint.ts', import.meta.url));
const silent = { info() {}, warn() {}, error() {} };

interface Running {
  url: string;
  template: string;
  statementsFile: string;
  stop(): Promise<void>;
}

// Each project of vitest.config.ts loads this file again; all of them use one server.
const shared = globalThis as { signalboxTestServer?: Promise<Running>; signalboxTestProjects?: number };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.signalboxTestProjects = (shared.signalboxTestProjects ?? 0) + 1;
  shared.signalboxTestServer ??= start();
  const { url, template, statementsFile, stop } = await shared.signalboxTestServer;
  project.provide('databaseServerUrl', url);
  project.provide('databaseTemplate', template);
  project.provide('statementsFile', statementsFile);
  return async () => {
    shared.signalboxTestProjects! -= 1;
    if (shared.signalboxTestProjects === 0) await stop();
  };
}

async function start(): Promise<Running> {
  const server = process.env.DATABASE_URL_FOR_TESTS
    ? { url: process.env.DATABASE_URL_FOR_TESTS, stop: async () => {} }
    : await startTemporaryPostgres({ settings: { max_connections: 300 } });
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
  const scratch = await mkdtemp(join(tmpdir(), 'signalbox-statements-'));
  // Set for a run of all tests, in which each statement of the sources must run (scripts/test.mjs).
  const whole = process.env.SIGNALBOX_TEST_STATEMENTS;
  const statementsFile = whole ?? join(scratch, 'statements.jsonl');
  return {
    url: server.url,
    template,
    statementsFile,
    async stop() {
      await ask(server.url, `drop database ${template} with (force)`);
      await server.stop();
      if (whole === undefined) judge(statementsFile);
      await rm(scratch, { recursive: true });
    },
  };
}

/** Fails the run if a statement breaks the SQL rules. */
function judge(statementsFile: string): void {
  if (!existsSync(statementsFile)) return;
  const { status } = spawnSync(process.execPath, [LINT, statementsFile, '--some'], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
