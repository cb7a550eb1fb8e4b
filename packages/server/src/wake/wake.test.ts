// Wake-ups between two nodes, over the NOTIFY of a real database.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { newUuid } from '../lib/ids.ts';
import { HintBatch, type Hints, readPayload, type Topic } from './hints.ts';
import { createWake, type Wake } from './wake.ts';

const topics: Topic[] = [
  'runnable',
  'inbox',
  'journal',
  'child',
  'offered',
  'available',
  'limits',
  'subscription',
  'access',
];

let world: TestPlatform;
let nodes: Wake[];
beforeEach(async () => {
  world = await createTestPlatform();
  nodes = [];
});
afterEach(async () => {
  for (const node of nodes) await node.close();
  await world.close();
});

/** A node with everything that it receives from other nodes; resolves when it listens. */
async function node() {
  const wake = createWake({ ...world.platform, acrossNodes: true });
  nodes.push(wake);
  const heard: { topic: Topic; hint: unknown }[] = [];
  const { promise: listens, resolve } = Promise.withResolvers<void>();
  for (const topic of topics) {
    wake.subscribe(topic, (hint, here) => {
      if (!hint) resolve();
      if (!here) heard.push({ topic, hint });
    });
  }
  await listens;
  heard.length = 0;
  return { wake, heard };
}

const journalHint = (organizationId = newUuid(), environment = 'production') => ({
  organizationId,
  environment,
  sessionId: newUuid(),
});

test('3,000 sessions that were committed at once are each heard by name, and no hint says to look everywhere', async () => {
  const [here, there] = [await node(), await node()];
  const organizations = Array.from({ length: 30 }, () => newUuid());
  const hints = Array.from({ length: 3_000 }, (_, n) =>
    journalHint(organizations[n % 30], n % 2 === 0 ? 'production' : 'staging'),
  );
  for (const hint of hints) here.wake.publish('journal', hint);
  await expect.poll(() => there.heard.length).toBe(hints.length);
  expect(there.heard.every(({ topic }) => topic === 'journal')).toBe(true);
  const bySession = (a: { sessionId: string }, b: { sessionId: string }) => (a.sessionId < b.sessionId ? -1 : 1);
  expect(there.heard.map(({ hint }) => hint as Hints['journal']).toSorted(bySession)).toEqual(
    hints.toSorted(bySession),
  );
  expect(here.heard).toEqual([]);
});

test('a hint of each topic arrives as it was published, and twice the same arrives once', async () => {
  const [here, there] = [await node(), await node()];
  const session = { organizationId: newUuid(), sessionId: newUuid() };
  const published: { [T in Topic]: Hints[T] } = {
    runnable: session,
    inbox: session,
    child: session,
    journal: { ...session, environment: 'production' },
    offered: { ...session, queue: 'Coding_2.eu-west' },
    available: { organizationId: session.organizationId, model: 'Zm9v-_8' },
    limits: { organizationId: session.organizationId },
    subscription: { organizationId: session.organizationId },
    access: { callerId: newUuid() },
  };
  for (const topic of [...topics, ...topics]) here.wake.publish(topic, published[topic]);
  await expect.poll(() => there.heard.length).toBe(topics.length);
  expect(there.heard).toEqual(topics.map((topic) => ({ topic, hint: published[topic] })));
});

test('payloads keep to the size that PostgreSQL takes, and together hold every hint once', () => {
  const gathered = new HintBatch();
  const hints = Array.from({ length: 1_000 }, (_, n) => journalHint(newUuid(), `environment-${n % 7}`));
  for (const hint of [...hints, ...hints]) gathered.add('journal', hint);
  const payloads = gathered.payloads('node', 500);
  expect(Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))).toBeLessThanOrEqual(500);
  const read = payloads.flatMap((payload) => readPayload(payload).hints.map(({ hint }) => hint));
  expect(new Set(read.map((hint) => JSON.stringify(hint)))).toHaveLength(hints.length);
  expect(read).toHaveLength(hints.length);
  expect(read).toEqual(expect.arrayContaining([hints[0], hints.at(-1)]));
});

test('after its connection was lost, a node gets one hint that anything may have happened', async () => {
  const [here, there] = [await node(), await node()];
  await world.platform.db.query(sql`
    select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`);
  await expect.poll(() => there.heard.length).toBe(topics.length);
  expect(there.heard).toEqual(expect.arrayContaining(topics.map((topic) => ({ topic, hint: undefined }))));
  there.heard.length = 0;
  const hint = journalHint();
  here.wake.publish('journal', hint);
  await expect.poll(() => there.heard).toEqual([{ topic: 'journal', hint }]);
});

test('a subscriber to an environment gets the commits of that environment alone, here and from other nodes', async () => {
  const [here, there] = [await node(), await node()];
  const organizationId = newUuid();
  const commits = ['production', 'staging', 'production'].map((environment) =>
    journalHint(organizationId, environment),
  );
  commits.push(journalHint(newUuid(), 'production'));
  const received = [here, there].map(({ wake }) => {
    const hints: unknown[] = [];
    wake.subscribeToEnvironment({ organizationId, environment: 'production' }, (hint) => hints.push(hint));
    return hints;
  });
  for (const hint of commits) here.wake.publish('journal', hint);
  await expect.poll(() => there.heard.length).toBe(commits.length);
  for (const hints of received) expect(hints).toEqual([commits[0], commits[2]]);
});
