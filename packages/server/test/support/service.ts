// A whole service in the test's own process, on a database of its own, used through the TypeScript client.
//
// Every service started here keeps promise P9 or fails its test file: each secret that is issued or passes through a client is
// remembered, and at the end none of them may be in any log line, event or stored response.
import { randomBytes } from 'node:crypto';
import { Signalbox } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, expect } from 'vitest';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createDb, type Db } from '../../src/db/db.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/lib/log.ts';
import { startService } from '../../src/main.ts';
import { createKeyOnHost } from '../../src/operator/operator.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export interface TestService {
  /** Without `/api/v1`; empty on a node without the role `api`. */
  readonly url: string;
  /** As the start prints it. */
  readonly setupLink: string | undefined;
  /** With the admin key. */
  readonly client: Signalbox;
  readonly adminKey: string;
  readonly organizationId: string;
  /** A client with another key (or none of ours), watched for secrets like the first. */
  clientWith(apiKey: string): Signalbox;
  /** `fetch` on a path of this service, with the admin key unless told otherwise, watched as well. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** To read what is stored. */
  readonly db: Db;
  readonly database: TestDatabase;
  /** Its log lines, each a JSON text. */
  readonly logLines: readonly string[];
  /** What a node does before it stops. */
  drain(): Promise<void>;
  /** Stopping again does nothing. Services that are still running at the end of the test file are stopped then. */
  stop(): Promise<void>;
}

export interface TestServiceOptions {
  clock?: Clock;
  /** Over the configuration of tests: every role, a free port, receivers on 127.0.0.1 allowed. */
  config?: Partial<Config>;
  /** Another service's: this one is a second node. */
  database?: TestDatabase;
  /** The size of the node's pool. */
  maxConnections?: number;
  /** The directory of the built console. */
  consoleDir?: string;
}

/** All nodes of a test file seal with the same key, as nodes of one installation must. */
const masterKey = randomBytes(32).toString('hex');
const secrets = new Set<string>();
const everyLine: string[] = [];
const services = new Set<TestService>();

/** Remembers a secret that no log line, event or stored response may contain. */
export function watchSecret(secret: string): void {
  // Shorter ones occur by chance.
  if (secret.length >= 8) secrets.add(secret);
}

export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = options.database ?? (await createTestDatabase());
  const config: Config = {
    ...readConfig(
      { port: '0' },
      {
        DATABASE_URL: database.url,
        SIGNALBOX_MASTER_KEY: masterKey,
        SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
        SIGNALBOX_LOG_LEVEL: 'trace',
      },
    ),
    ...(options.maxConnections && { databaseConnections: options.maxConnections }),
    ...options.config,
  };
  const logLines: string[] = [];
  const write = (line: string) => {
    logLines.push(line);
    everyLine.push(line);
  };
  watchSecret(masterKey);
  const service = await startService(config, {
    log: createLog({ level: config.logLevel, destination: { write } }),
    checkResponses: true,
    ...(options.clock && { clock: options.clock }),
    ...(options.consoleDir && { consoleDir: options.consoleDir }),
  });
  const url = service.url ?? '';
  const { apiKey, organizationId } = await createKeyOnHost(config, { name: 'Test', permission: 'admin' });
  const adminKey = apiKey.secret;
  watchSecret(adminKey);
  const db = createDb({ url: database.url, max: 2 });
  const clientWith = (key: string) =>
    new Signalbox({ apiKey: key, baseUrl: url || 'http://127.0.0.1:1', fetch: watchedFetch });
  let stopped: Promise<void> | undefined;

  async function stop(): Promise<void> {
    await service.stop();
    const leaks = await leaksIn(db);
    await db.close();
    if (!options.database) await database.drop();
    services.delete(test);
    expect(leaks, 'rows that hold a secret').toEqual([]);
  }

  const test: TestService = {
    url,
    setupLink: service.setupLink,
    client: clientWith(adminKey),
    adminKey,
    organizationId,
    clientWith,
    fetch(path, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has('authorization')) headers.set('authorization', `Bearer ${adminKey}`);
      return watchedFetch(url + path, { ...init, headers });
    },
    db,
    database,
    logLines,
    drain: service.drain,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
  services.add(test);
  return test;
}

afterAll(async () => {
  // Nodes that share a database stop before the one that drops it.
  for (const service of [...services].reverse()) await service.stop();
  expect(
    everyLine.filter((line) => [...secrets].some((secret) => line.includes(secret))),
    'log lines that hold a secret',
  ).toEqual([]);
});

async function leaksIn(db: Db): Promise<string[]> {
  const rows = await db.query<{ text: string }>(sql`
    select 'event ' || body::text as text from events
    union all select 'event ' || body::text from events_pending
    union all select 'answer ' || r::text from idempotency_records r`);
  return rows.map(({ text }) => text).filter((text) => [...secrets].some((secret) => text.includes(secret)));
}

/** Global fetch; remembers the secrets in the JSON of requests and responses. */
const watchedFetch: typeof fetch = async (input, init) => {
  if (typeof init?.body === 'string') watchJson(init.body, /\/secrets\//.test(String(input)));
  const response = await fetch(input, init);
  if (/json/.test(response.headers.get('content-type') ?? '')) watchJson(await response.clone().text(), false);
  return response;
};

function watchJson(text: string, isSecretWrite: boolean): void {
  const secretFields = isSecretWrite ? ['value'] : ['secret', 'signingSecret'];
  try {
    JSON.parse(text, (name, value) => {
      if (secretFields.includes(name) && typeof value === 'string') watchSecret(value);
      return value;
    });
  } catch {
    // A test of what the service does with what is not JSON.
  }
}
