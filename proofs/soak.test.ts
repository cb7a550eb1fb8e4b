// A service that runs for a long time needs no more memory and files than at first, and forgets no work. `npm test` runs some hundred
// sessions, which shows objects that stay; `npm run prove -- soak` offers 50 a second for an hour, which also shows single entries of
// a map, and prints a line for each minute.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import { leftoversIn } from '../packages/server/test/support/database-state.ts';
import { type MixedLoad, startMixedLoad } from './support/mixed-load.ts';
import { startWatchedService, type Usage, type WatchedService } from './support/watched-service.ts';

const MINUTES = Number(process.env.SIGNALBOX_SOAK_MINUTES ?? 0);
const PER_SECOND = 50;
const AT_A_TIME = 10;
const TICK_MS = 20;
// On a busy machine, sessions beyond this number are left out and counted.
const MAX_IN_PROGRESS = 200;
const MAX_LEFT_OUT = 0.2;
// By then the caches with a limit are full: the largest has the last 10,000 credentials, and three in ten sessions have a new one.
const WARM_UP_MINUTES = Math.ceil(MINUTES / 4);
const ROUND = 200;
const ROUNDS = 7;
// A node keeps recent text for other readers for two seconds.
const RECENT_MS = 2_100;
const NEGLIGIBLE_BYTES = 20_000;
const QUIET = { timeout: 120_000, interval: 500 };
// An entry of a map with an id as its key has at least 100 bytes. In the first rounds a session adds some 200 without a leak,
// among them 50 to the cache of credentials, until it is full.
const MAX_BYTES_A_SESSION = { inRounds: 300, objects: 10, resident: 100 };

let service: WatchedService;
let load: MixedLoad;

beforeAll(async () => {
  // Otherwise the code that V8 discards would hide what sessions leave.
  const flags = MINUTES > 0 ? [] : ['--no-flush-bytecode'];
  service = await startWatchedService({ SIGNALBOX_SESSIONS_KEPT_DAYS: '1' }, flags);
  load = await startMixedLoad(service);
}, 120_000);

afterAll(async () => {
  await load?.close();
  await service?.stop();
}, 120_000);

test.skipIf(MINUTES > 0)('sessions that are done leave no objects in memory', { timeout: 600_000 }, async () => {
  await inTurn(ROUND);
  await quiet();
  const left: number[] = [];
  let before = await settled();
  // What a round compiles for the first time, the next one has.
  while (left.length < ROUNDS && !left.some((bytes) => bytes < MAX_BYTES_A_SESSION.inRounds)) {
    await inTurn(ROUND);
    await quiet();
    const objects = await settled();
    left.push(Math.round((objects - before) / ROUND));
    before = objects;
  }
  expect(left.at(-1), `bytes a session, in rounds: ${left}`).toBeLessThan(MAX_BYTES_A_SESSION.inRounds);
  await requireAllDone();
});

test.runIf(MINUTES > 0)(
  `${PER_SECOND} sessions a second for ${MINUTES} minutes need no more memory at the end`,
  { timeout: (MINUTES + 30) * 60_000 },
  async () => {
    await inTurn(ROUND);
    await quiet();
    const idle = await service.usage();
    print('idle', idle);
    const minutes: Minute[] = [];
    let leftOut = 0;
    for (let minute = 1; minute <= MINUTES; minute += 1) {
      leftOut += await offerForMinute();
      const usage = await service.usage();
      print(`minute ${minute}`, usage);
      await letRetentionDelete();
      if (minute > WARM_UP_MINUTES) minutes.push({ sessions: load.opened, usage });
    }
    await quiet();
    console.log(`${leftOut} sessions were left out`);
    for (const what of ['objects', 'external', 'resident', 'database'] as const) {
      const [first, last] = [minutes.slice(0, 5), minutes.slice(-5)].map((part) =>
        megabytes(mean(part.map(({ usage }) => usage[what]))),
      );
      const perSession = bytesASession(minutes, what).toFixed(1);
      console.log(`${what}: ${perSession} bytes a session, from ${first} to ${last} MB`);
    }
    await expect.poll(async () => moreThan(idle, await service.usage()), QUIET).toEqual([]);
    print('idle', await service.usage());
    await requireAllDone();
    expect(leftOut / (leftOut + load.opened)).toBeLessThan(MAX_LEFT_OUT);
    expect(bytesASession(minutes, 'objects')).toBeLessThan(MAX_BYTES_A_SESSION.objects);
    expect(bytesASession(minutes, 'resident')).toBeLessThan(MAX_BYTES_A_SESSION.resident);
  },
);

/** What there is more of than before, except connections to the database, which are pipes to Node: their pool has a limit. */
function moreThan(before: Usage, now: Usage): string[] {
  const files = ({ openFiles, connections }: Usage) => openFiles - connections;
  const resources = Object.entries(now.resources).filter(
    ([kind, count]) => kind !== 'PipeWrap' && count > (before.resources[kind] ?? 0),
  );
  return [
    ...resources.map(([kind, count]) => `${kind}: ${count}`),
    ...(files(now) > files(before) ? [`open files: ${files(now)}`] : []),
  ];
}

interface Minute {
  sessions: number;
  usage: Usage;
}

async function inTurn(sessions: number): Promise<void> {
  let left = sessions;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await load.next();
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

/** Offers sessions at a constant rate for a minute, and waits until they are done. Returns how many were left out. */
async function offerForMinute(): Promise<number> {
  const [begin, first] = [performance.now(), load.opened];
  let leftOut = 0;
  for (let ms = 0; ms < 60_000; ms = performance.now() - begin) {
    const due = Math.floor((ms / 1000) * PER_SECOND) - (load.opened - first) - leftOut;
    for (let at = 0; at < due; at += 1) {
      if (load.inProgress < MAX_IN_PROGRESS) void load.next();
      else leftOut += 1;
    }
    await sleep(TICK_MS);
  }
  await expect.poll(() => load.inProgress, QUIET).toBe(0);
  return leftOut;
}

/** Waits until nothing is in progress and the receiver has everything. */
async function quiet(): Promise<void> {
  await expect.poll(() => [load.inProgress, load.undelivered()], QUIET).toEqual([0, 0]);
}

/** The size of all objects, when what is kept for seconds has been dropped. */
async function settled(): Promise<number> {
  for (let size = Number.POSITIVE_INFINITY; ; ) {
    const { objects } = await service.usage();
    if (objects > size - NEGLIGIBLE_BYTES) return objects;
    size = objects;
    await sleep(RECENT_MS);
  }
}

/** Makes the sessions that ended as old as retention requires. */
async function letRetentionDelete(): Promise<void> {
  await ask(
    service.databaseUrl,
    `update sessions set ended_at = ended_at - interval '2 days'
    where ended_at > now() - interval '1 day' and not delivery_due`,
  );
}

async function requireAllDone(): Promise<void> {
  expect(load.failures).toEqual([]);
  expect(await leftoversIn(service.databaseUrl)).toEqual([]);
  expect(await service.errors()).toEqual([]);
  const open = await ask(service.databaseUrl, "select status from sessions where status not in ('idle', 'completed')");
  expect(open).toEqual([]);
  // Retention may be deleting.
  await expect.poll(async () => (await storedSessions()) + (await deletedSessions()), QUIET).toBe(load.opened);
}

async function storedSessions(): Promise<number> {
  const [row] = await ask<{ count: number }>(service.databaseUrl, 'select count(*)::int as count from sessions');
  return row!.count;
}

async function deletedSessions(): Promise<number> {
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  return Number(/^signalbox_dropped_sessions_total (\d+)$/m.exec(metrics)?.[1]);
}

function print(when: string, usage: Usage): void {
  const { objects, code, external, arrayBuffers, resident, cpuSeconds, openFiles, database, connections, disk } = usage;
  const sizes = { rss: resident, objects, code, external, arrayBuffers, PostgreSQL: database, disk };
  const parts = [
    `${load.opened} sessions, ${load.failures.length} failures`,
    ...Object.entries(sizes).map(([name, bytes]) => `${name} ${megabytes(bytes)} MB`),
    `${cpuSeconds.toFixed(1)} s of CPU time`,
    `${openFiles} open files`,
    `${connections} connections`,
    JSON.stringify(usage.resources),
  ];
  console.log(`${when}: ${parts.join(', ')}`);
  if (load.failures.length > 0) console.log(load.failures.slice(-5).join('\n'));
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The slope of the line that fits best, by least squares. */
function bytesASession(minutes: readonly Minute[], what: 'objects' | 'external' | 'resident' | 'database'): number {
  const at = mean(minutes.map(({ sessions }) => sessions));
  const size = mean(minutes.map(({ usage }) => usage[what]));
  const covariance = mean(minutes.map(({ sessions, usage }) => (sessions - at) * (usage[what] - size)));
  return covariance / mean(minutes.map(({ sessions }) => (sessions - at) ** 2));
}
