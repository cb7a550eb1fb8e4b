// The upgrade promise: nodes and clients of the last release and of the next one serve together on one database, while it is migrated,
// in a rolling upgrade and in one back. The next release is the current code with three more migrations, one of each kind.
// (P1–P5, P7, P8)
import { rm } from 'node:fs/promises';
import { Signalbox, webhooks } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import { readMigrations } from '../packages/server/src/db/migration-files.ts';
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

const documented = [
  // A node stops, or waits for its database.
  /^503 /,
  // Only one of two approvers who disagree decides.
  /^409 POST \S+\/approvals\//,
  // A worker asks for the next step of a turn that has none.
  /^409 POST \S+\/worker_turns\/claim$/,
  // The time passed while the node was down.
  /^400 POST \S+\/schedules$/,
];

type ClientModule = Pick<typeof import('@signalbox/client'), 'Signalbox' | 'webhooks'>;

let database: TestDatabase;
let last: Release;
let next: Release;
let nodes: Nodes;
/** What the clients were told that is not a success: status and path. */
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
        select ctid from sessions where test_region is null limit 10));`,
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
  const signal = () => (rounds > 1 && random.chance(0.5) ? 'SIGKILL' : 'SIGTERM');
  const someWork = () => load.shown(40 + random.below(60));
  const broken = await load.during(async () => {
    await someWork();
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
  const migrated = await ask<{ version: number }>(
    database.url,
    `select version from signalbox_migrations where name like 'test_%' and applied_by is not null`,
  );
  expect(migrated).toHaveLength(3);
  expect(
    await ask(database.url, `select from pg_index where indexrelid = 'test_segments'::regclass and indisvalid`),
  ).toHaveLength(1);
});

async function noteRefusals(...[url, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(url, init);
  if (response.status >= 400) refusals.push(`${response.status} ${init?.method ?? 'GET'} ${url}`);
  return response;
}
