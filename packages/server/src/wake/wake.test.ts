// Wake-ups between two nodes, over the NOTIFY of a real database.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
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
async function node(clock: Pick<Clock, 'now'> = systemClock) {
  const nodeId = newUuid();
  const wake = createWake({ ...world.platform, clock: { ...systemClock, now: clock.now }, nodeId, acrossNodes: true });
  nodes.push(wake);
  const heard: { topic: Topic; hint: unknown }[] = [];
  const { promise: listens, resolve } = Promise.withResolvers<void>();
  for (const topic of topics) {
    wake.subscribe(topic, (hint, from) => {
      if (!hint) resolve();
      if (!hint || from !== undefined) heard.push({ topic, hint });
    });
  }
  await listens;
  heard.length = 0;
  return { wake, heard, nodeId };
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

type Node = Awaited<ReturnType<typeof node>>;

const isOf = (hint: unknown, { sessionId }: { sessionId: string }) =>
  (hint as Hints['journal'])?.sessionId === sessionId;
const countOf = ({ heard }: Node, one: { sessionId: string }) => heard.filter(({ hint }) => isOf(hint, one)).length;

/** When they have heard it, they have heard what was sent before: PostgreSQL keeps the order of commits. */
async function arrived({ wake }: Node, others: readonly Node[]): Promise<void> {
  const callerId = newUuid();
  wake.publish('access', { callerId });
  for (const { heard } of others)
    await expect.poll(() => heard.some(({ hint }) => (hint as Hints['access'])?.callerId === callerId)).toBe(true);
}

/** A commit of text to each session, alone in its NOTIFY. */
async function commitText(writer: Node, sessions: readonly Hints['journal'][], others: readonly Node[]): Promise<void> {
  for (const one of sessions) writer.wake.publish('journal', { ...one, isText: true });
  await arrived(writer, others);
}

/** Three nodes; the first has found that there is no other, and every node has a hint of its sessions. */
async function threeNodes(sessions: readonly Hints['journal'][], clock?: Pick<Clock, 'now'>) {
  const [writer, reader, other] = [await node(clock), await node(), await node()];
  const probe = journalHint();
  await expect
    .poll(async () => {
      const before = countOf(other, probe);
      await commitText(writer, [probe], [other]);
      return countOf(other, probe) - before;
    })
    .toBe(0);
  for (const one of sessions) writer.wake.publish('journal', one);
  await arrived(writer, [reader, other]);
  for (const { heard } of [reader, other]) heard.length = 0;
  return { writer, reader, other };
}

test('hints of text reach only the nodes that follow the session or its environment, those of transitions all', async () => {
  const [followed, inEnvironment, alone] = [journalHint(), journalHint(), journalHint()];
  const sessions = [followed, inEnvironment, alone];
  const { writer, reader, other } = await threeNodes(sessions);
  reader.wake.follow(followed, writer.nodeId);
  const { organizationId, environment } = inEnvironment;
  other.wake.follow({ organizationId, environment }, writer.nodeId);
  await Promise.all([reader, other].map((one) => arrived(one, [writer])));
  for (let commits = 0; commits < 5; commits += 1) await commitText(writer, sessions, [reader, other]);
  expect(sessions.map((one) => [countOf(reader, one), countOf(other, one)])).toEqual([
    [5, 0],
    [0, 5],
    [0, 0],
  ]);
  for (const one of sessions) writer.wake.publish('journal', one);
  await arrived(writer, [reader, other]);
  expect(sessions.map((one) => [countOf(reader, one), countOf(other, one)])).toEqual([
    [6, 1],
    [1, 6],
    [1, 1],
  ]);
});

test('a node that begins to follow gets at once a hint of each session whose text it may lack', async () => {
  const [one, another] = [journalHint(), journalHint()];
  const { writer, reader, other } = await threeNodes([one, another]);
  await commitText(writer, [one, another], [reader, other]);
  reader.wake.follow(one, writer.nodeId);
  // To every node, as a listener does.
  other.wake.follow({ organizationId: another.organizationId, environment: another.environment }, undefined);
  await expect.poll(() => [countOf(reader, one), countOf(other, another)]).toEqual([1, 1]);
  expect([countOf(reader, another), countOf(other, one)]).toEqual([0, 0]);
});

test('a node that does not repeat that it follows is forgotten, and now and then every node gets a hint of text', async () => {
  const clock = createManualClock();
  const session = journalHint();
  const { writer, reader, other } = await threeNodes([session], clock);
  reader.wake.follow(session, writer.nodeId);
  await arrived(reader, [writer]);
  const heardAfter = async (ms: number) => {
    const before = [reader, other].map((one) => countOf(one, session));
    await clock.advance(ms);
    await commitText(writer, [session], [reader, other]);
    return [reader, other].map((one, index) => countOf(one, session) - before[index]!);
  };
  expect(await heardAfter(0)).toEqual([1, 0]);
  expect(await heardAfter(20_000)).toEqual([1, 1]);
  expect(await heardAfter(9_000)).toEqual([1, 0]);
  expect(await heardAfter(60_000)).toEqual([1, 1]);
  expect(await heardAfter(0)).toEqual([0, 0]);
});

test('beside a node of release 0.1, which only listens to the channel of all, each hint goes there; its own are heard', async () => {
  const clock = createManualClock();
  const session = journalHint();
  const { writer, reader, other } = await threeNodes([session], clock);
  const heard: { hint: unknown }[] = [];
  const older = await world.platform.db.connect();
  older.on('notification', ({ payload = '' }) => heard.push(...readPayload(payload).hints));
  await older.query('listen signalbox_wake');
  const heardByOlder = async () => {
    await commitText(writer, [session], [reader, other]);
    return heard.filter(({ hint }) => isOf(hint, session)).length;
  };
  expect(await heardByOlder()).toBe(0);
  await clock.advance(10_000);
  await expect.poll(heardByOlder).toBeGreaterThan(3);

  const [theirs, ours] = [journalHint(), new HintBatch()];
  ours.add('journal', theirs);
  const [payload = ''] = ours.payloads('3k9x2abc', 7_900);
  reader.wake.subscribe('journal', (hint, from) => hint && from && reader.wake.follow(hint, from));
  await older.query(`select pg_notify('signalbox_wake', '${payload}')`);
  await expect.poll(() => countOf(reader, theirs)).toBe(1);
  await older.end();

  await clock.advance(10_000);
  await expect
    .poll(async () => {
      const before = countOf(other, session);
      await commitText(writer, [session], [reader, other]);
      return countOf(other, session) - before;
    })
    .toBe(0);
});
