// A whole service in the process of the test, with its own database, used through the TypeScript client.
//
// Every service started here keeps promise P9 or fails its test file: it records each secret that the service issues or that passes
// through a client, and checks at the end that no log line, event or stored response contains one.
import { randomBytes } from 'node:crypto';
import { Signalbox } from '@signalbox/client';
import sql from 'sql-template-tag';
import { expect } from 'vitest';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createDb, type Db } from '../../src/db/db.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { formatId } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { type Overrides, startService } from '../../src/main.ts';
import { createKeyOnHost } from '../../src/operator/operator.ts';
import { allOrganizations } from '../../src/organizations/organizations.ts';
import { atFileEnd } from './at-file-end.ts';
import { keepLine } from './last-lines.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export interface TestService {
  /** Without `/api/v1`; empty on a node without the role `api`. */
  readonly url: string;
  /** The key that the start prints. */
  readonly setupLink: string | undefined;
  /** Uses the admin key. */
  readonly client: Signalbox;
  readonly adminKey: string;
  readonly organizationId: string;
  /** Creates a client with another key, valid or not, also watched for secrets. */
  clientWith(apiKey: string): Signalbox;
  /** `fetch` on a path of this service, also watched for secrets. Default: with the admin key. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** For reading stored rows. */
  readonly db: Db;
  readonly database: TestDatabase;
  /** Its log lines, in JSON. */
  readonly logLines: readonly string[];
  /** What a node does before it stops. */
  drain(): Promise<void>;
  /** A second stop does nothing. The end of the test file stops services that still run. */
  stop(): Promise<void>;
}

export interface TestServiceOptions {
  clock?: Clock;
  /** Overrides the defaults of tests: every role, a free port, receivers on 127.0.0.1 allowed. */
  config?: Partial<Config>;
  /** The database of another service, of which this one becomes a second node. */
  database?: TestDatabase;
  /** The size of the node's pool. */
  maxConnections?: number;
  /** The directory of the built console. */
  consoleDir?: string;
  egress?: Overrides['egress'];
}

/** All nodes of a test file use the same encryption key, as nodes of one installation must. */
const masterKey = randomBytes(32).toString('hex');
const secrets = new Set<string>();
const everyLine: string[] = [];
const services = new Set<TestService>();

/** Records a secret that no log line, event or stored response may contain. */
export function watchSecret(secret: string): void {
  // Shorter texts occur by chance.
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
    keepLine(line);
  };
  watchSecret(masterKey);
  const service = await startService(config, {
    log: createLog({ level: config.logLevel, destination: { write } }),
    checkResponses: true,
    ...(options.clock && { clock: options.clock }),
    ...(options.consoleDir && { consoleDir: options.consoleDir }),
    ...(options.egress && { egress: options.egress }),
  });
  const url = service.url ?? '';
  const db = createDb({ url: database.url, max: 2 });
  // A test may have added organizations before it starts a second node.
  const [first] = await allOrganizations(db);
  const organization = formatId('org', first!.organizationId);
  const { apiKey, organizationId } = await createKeyOnHost(config, { name: 'Test', permission: 'admin', organization });
  const adminKey = apiKey.secret;
  watchSecret(adminKey);
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

atFileEnd(async () => {
  try {
    // Nodes that share a database stop before the one that drops it.
    for (const service of [...services].reverse()) await service.stop();
    const leaked = everyLine.filter((line) => [...secrets].some((secret) => line.includes(secret)));
    expect(leaked, 'log lines that hold a secret').toEqual([]);
  } finally {
    services.clear();
    everyLine.length = 0;
    secrets.clear();
  }
});

async function leaksIn(db: Db): Promise<string[]> {
  const rows = await db.query<{ text: string }>(sql`
    select 'event ' || body::text as text from events
    union all select 'event ' || body::text from events_pending
    union all select 'response ' || r::text from idempotency_records r`);
  return rows.map(({ text }) => text).filter((text) => [...secrets].some((secret) => text.includes(secret)));
}

/** Global fetch, which records the secrets in the JSON of requests and responses. */
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
      if (typeof value === 'string' && (secretFields.includes(name) || value.startsWith('sbt_'))) watchSecret(value);
      return value;
    });
  } catch {
    // The test sends a body that is not JSON.
  }
}
