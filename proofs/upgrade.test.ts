// The upgrade promise: nodes and clients of the last release and of the next one serve together on one database, while it is migrated,
// in a rolling upgrade and in one back. The next release is the current code with three more migrations, one of each kind. Nodes are
// killed while they run them, and others hold long reads. (P1–P5, P7, P8)
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Signalbox, webhooks } from '@signalbox/client';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import { readMigrations } from '../packages/server/src/db/schema/migration-files.ts';
import { nodeOf } from '../packages/server/test/support/database-state.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { createNextRelease, lastRelease, openLastRelease, type Release } from '../test/releases/last-release.ts';
import { startLoad } from './support/load.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const NODES = 2;
const { seed } = faults;
/** How often all nodes are upgraded and one goes back. */
const rounds = Number(process.env.SIGNALBOX_UPGRADES ?? 1);
const MAX_RETRIES = 30;
/** Sessions that are there before the upgrade. */
const rows = Number(process.env.SIGNALBOX_UPGRADE_ROWS ?? 2_000);
const LONG_READ_SECONDS = 1;
const BATCHES = 100;

const documented = [
  // A node stops, or waits for its database.
  /^503 /,
  // The client repeats a POST whose connection broke with its node, while the database still runs the first one.
  /^409 idempotency_in_progress POST /,
  // Only one of two approvers who disagree decides.
  /^409 \w+ POST \S+\/approvals\//,
  // A worker asks for the next step of a turn that has none.
  /^409 turn_lost POST \S+\/worker_turns\/claim$/,
  // The time passed while the node was down.
  /^400 invalid_request POST \S+\/schedules$/,
];

/** What a migration does while its node is killed, in order: `keep` is a transaction that makes it wait there. */
const stages = [
  {
    // An index waits for those who write its table.
    keep: 'delete from segments where false',
    until: `select from pg_stat_activity where query like '%create index concurrently test_segments%' and wait_event_type = 'Lock'
      and datname = current_database()`,
  },
  {
    keep: `select from sessions where metadata->>'is' = 'earlier' order by ctid desc limit 1 for update`,
    until: 'select from sessions where test_region is not null limit 1',
  },
];

type ClientModule = Pick<typeof import('@signalbox/client'), 'Signalbox' | 'webhooks'>;

let database: TestDatabase;
let last: Release;
let next: Release;
let nodes: Nodes;
/** Each response to the clients that is not a success: status, error code and path. */
const refusals: string[] = [];

beforeAll(async () => {
  const first = (await readMigrations()).length + 1;
  const file = (index: number) => `${String(first + index).padStart(4, '0')}_test_${index}.sql`;
  const worksWith = `-- Works with code of schema version ${lastRelease.schemaVersion} and later.\n`;
  next = await createNextRelease({
    [file(0)]: `${worksWith}
      alter table sessions add column test_region text;
      create table test_regions (
        organization_id uuid not null, session_id uuid not null, primary key (organization_id, session_id),
        foreign key (organization_id, session_id) references sessions on delete cascade);`,
    [file(1)]: `${worksWith}create index concurrently test_segments on segments (organization_id, session_id);`,
    [file(2)]: `${worksWith}-- Repeated until it changes no row.

      update sessions set test_region = 'here' where ctid = any(array(
        select ctid from sessions where test_region is null limit ${rows / BATCHES}));`,
  });
  last = await openLastRelease();
  // A database that the last release created.
  database = await createTestDatabase({ empty: true });
  nodes = await startNodes(NODES, database.url, {}, last.command);
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await database?.drop();
  if (next) await rm(next.directory, { recursive: true });
});

test(`two releases serve together during an upgrade and on the way back, for clients of both: nothing is lost, doubled or refused (seed ${seed})`, {
  timeout: 240_000 + rounds * 60_000,
}, async () => {
  const random = createRandom(seed);
  const older = (await import(last.client)) as ClientModule;
  const clients = nodes.urls.flatMap((baseUrl) =>
    [older, { Signalbox, webhooks }].map(
      (release) =>
        new release.Signalbox({ apiKey: nodes.apiKey, baseUrl, maxRetries: MAX_RETRIES, fetch: noteRefusals }),
    ),
  );
  const load = await startLoad({
    nodes: { ...nodes, clients },
    random: random.fork(),
    databaseUrl: () => database.url,
    isVaried: true,
    verify: ({ body, headers }, secret) =>
      Promise.all([older.webhooks.verify(body, headers, secret), webhooks.verify(body, headers, secret)]),
  });
  await createSessions(clients[0]!);
  const signal = () => (rounds > 1 && random.chance(0.5) ? 'SIGKILL' : 'SIGTERM');
  const someWork = () => load.shown(40 + random.below(60));
  const broken = await load.during(async () => {
    await someWork();
    await killDuringMigrations(rounds > 1 ? stages : stages.slice(0, 1));
    for (let round = 0; round < rounds; round += 1) {
      for (let index = 0; index < NODES; index += 1) {
        await nodes.replace(index, next.command, signal());
        await someWork();
      }
      await nodes.replace(random.below(NODES), last.command, signal());
      await someWork();
    }
  });
  await load.close();
  expect(broken).toEqual([]);
  expect(refusals.filter((refusal) => !documented.some((pattern) => pattern.test(refusal)))).toEqual([]);
  expect(nodes.errors).toEqual([]);
  for (const client of clients) expect(await client.events.verify()).toMatchObject({ ok: true });
  expect(
    await ask(
      database.url,
      `select (select count(*)::integer from signalbox_migrations where name like 'test_%') as migrated,
        (select indisvalid from pg_index where indexrelid = 'test_segments'::regclass) as "isIndexed",
        count(*)::integer as sessions, count(test_region)::integer as changed
      from sessions where metadata->>'is' = 'earlier'`,
    ),
  ).toEqual([{ migrated: 3, isIndexed: true, sessions: rows, changed: rows }]);
});

/** Copies of one that has ended. */
async function createSessions(client: Signalbox): Promise<void> {
  const model = { provider: 'scripted' as const, model: 'any', settings: { script: [{ text: 'Done.' }] } };
  const { agentId } = await client.agents.create({ name: 'Earlier', model });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'go',
    closeOnIdle: true,
    metadata: { is: 'earlier' },
  });
  for await (const _ of client.sessions.stream(sessionId));
  await expect.poll(() => nodeOf(database.url, sessionId)).toBe(null);
  await ask(
    database.url,
    `insert into sessions select copy.* from sessions s, generate_series(2, ${rows}) g,
      lateral jsonb_populate_record(s, jsonb_build_object('session_id', gen_random_uuid(), 'of', g)) copy
    where s.metadata->>'is' = 'earlier'`,
  );
}

/** In each stage, starts a node of the next release and kills it. Meanwhile reports read all sessions. */
async function killDuringMigrations(during: readonly (typeof stages)[number][]): Promise<void> {
  let isOver = false;
  async function readLong(): Promise<void> {
    while (!isOver) {
      await ask(database.url, `select count(*), pg_sleep(${LONG_READ_SECONDS}) from sessions where turn >= 0`);
      await new Promise((resolve) => setTimeout(resolve, LONG_READ_SECONDS * 1000));
    }
  }
  const reading = readLong();
  for (const { keep, until } of during) {
    const other = new Client({ connectionString: database.url });
    await other.connect();
    await other.query('begin');
    await other.query(keep);
    const node = spawn(process.execPath, [next.command, 'start', '--port', '0'], { env: nodes.env });
    const printed = Promise.all([text(node.stdout), text(node.stderr)]);
    const isThere = () =>
      ask(database.url, until).then(
        (found) => found.length > 0,
        () => false,
      );
    const isReached = await vi.waitUntil(isThere, { timeout: 120_000 }).catch(() => false);
    node.kill('SIGKILL');
    await once(node, 'close');
    await other.end();
    if (!isReached) throw new Error(`The node did not reach: ${until}\n${(await printed).join('')}`);
  }
  isOver = true;
  await reading;
}

async function noteRefusals(...[url, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(url, init);
  if (response.status >= 400) {
    const { code } = (await response
      .clone()
      .json()
      .catch(() => ({}))) as { code?: string };
    refusals.push(`${response.status} ${code} ${init?.method ?? 'GET'} ${url}`);
  }
  return response;
}
