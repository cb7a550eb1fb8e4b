// How session_search follows the event log: in short transactions, on any number of nodes, while sessions are deleted.
import { channel } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Db, Tx } from '../../src/db/db.ts';
import { sequenceEvents } from '../../src/events/sequencer.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { createSearchUpdates, updateSearch } from '../../src/sessions/search/update.ts';
import { deleteSession, updateSession } from '../../src/sessions/sessions.ts';
import { createWorld, type World } from '../support/session-world.ts';

let world: World;
let agentId: string;
beforeEach(async () => {
  world = await createWorld();
  agentId = await world.agent();
  await pass();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

/** Until nothing is left to do. */
async function pass(db: Db = world.platform.db): Promise<void> {
  await sequenceEvents(world.platform.db, world.organizationId);
  while ((await updateSearch(db, world.organizationId)) === 'more');
}

/** Calls `first` before each transaction begins. */
function before(first: () => Promise<void>): Db {
  const { db } = world.platform;
  return {
    ...db,
    async transaction<T>(fn: (tx: Tx) => Promise<T>) {
      await first();
      return db.transaction(fn);
    },
  };
}

const open = (input: string) => world.open(agentId, { input });

/** With the transaction that wrote each row. */
async function rows() {
  const found = await world.platform.db.query<{ sessionId: string; document: string; version: string }>(sql`
    select x.session_id as "sessionId", x.document::text as document, x.xmin::text as version from session_search x
    where x.organization_id = ${world.organizationId}`);
  return new Map(found.map((row) => [row.sessionId, row]));
}

async function isDone(): Promise<boolean> {
  const [row] = await world.platform.db.query<{ isDone: boolean }>(sql`
    select p.sequence = h.sequence and p.added_from is null as "isDone" from session_search_progress p
    join event_heads h on h.organization_id = p.organization_id where p.organization_id = ${world.organizationId}`);
  return row!.isDone;
}

test('messages are read, and their words collected, while no transaction is open', async () => {
  const { db } = world.platform;
  const sessionId = await open('Ünïque words');
  let isOpen = false;
  const within: string[] = [];
  const normalize = String.prototype.normalize;
  let normalized = 0;
  vi.spyOn(String.prototype, 'normalize').mockImplementation(function normalizeSeen(this: string, form?: string) {
    normalized += 1;
    if (isOpen) within.push(String(this));
    return normalize.call(this, form);
  });
  const onStatement = (text: unknown) =>
    void (isOpen && /from messages/.test(String(text)) && within.push(String(text)));
  channel('signalbox.statement').subscribe(onStatement);
  try {
    await pass({
      ...db,
      transaction: (fn) =>
        db.transaction(async (tx) => {
          isOpen = true;
          return fn(tx).finally(() => {
            isOpen = false;
          });
        }),
    });
  } finally {
    channel('signalbox.statement').unsubscribe(onStatement);
  }
  expect(within).toEqual([]);
  expect(normalized).toBeGreaterThan(0);
  expect((await rows()).get(uuidOf('ses', sessionId))!.document).toContain("'unique'");
});

test('of two nodes at the same position one writes, and the other discards what it has', async () => {
  const sessionId = uuidOf('ses', await open('first'));
  await sequenceEvents(world.platform.db, world.organizationId);
  let written: Awaited<ReturnType<typeof rows>> | undefined;
  const slower = before(async () => {
    if (written) return;
    await pass();
    written = await rows();
  });
  expect(await updateSearch(slower, world.organizationId)).toBe('overtaken');
  expect(written!.get(sessionId)!.document).toContain("'first'");
  expect(await rows()).toEqual(written);
  expect(await isDone()).toBe(true);
});

test('a node leaves an organization to a faster one for ten seconds', async () => {
  let elapsedMs = 0;
  const clock = { elapsedMs: () => elapsedMs };
  const { signal } = new AbortController();
  let isOvertaken = false;
  const overtake = async () => {
    if (isOvertaken) return;
    isOvertaken = true;
    await pass();
  };
  const slower = createSearchUpdates({ clock, db: before(overtake) });
  await open('first');
  await sequenceEvents(world.platform.db, world.organizationId);
  await slower.update(world.organizationId, signal);

  const sessionId = uuidOf('ses', await open('second'));
  await sequenceEvents(world.platform.db, world.organizationId);
  elapsedMs = 9_999;
  await slower.update(world.organizationId, signal);
  expect((await rows()).get(sessionId)).toBeUndefined();
  elapsedMs = 10_000;
  await slower.update(world.organizationId, signal);
  expect((await rows()).get(sessionId)!.document).toContain("'second'");
});

test.each([
  ['for the first time', false],
  ['again', true],
])('a session that is deleted while it is read %s has no row, and the others have theirs', async (_, isKnown) => {
  const { ctx } = world;
  const deleted = await open('gone');
  if (isKnown) await pass();
  await updateSession(ctx, { sessionId: deleted, metadata: { some: 'thing' } });
  const kept = await open('kept');
  let isDeleted = false;
  await pass(
    before(async () => {
      if (isDeleted) return;
      isDeleted = true;
      await cancelSession(ctx, { sessionId: deleted });
      await deleteSession(ctx, { sessionId: deleted });
    }),
  );
  expect(isDeleted).toBe(true);
  expect([...(await rows()).keys()]).toEqual([uuidOf('ses', kept)]);
  await pass();
  expect(await isDone()).toBe(true);
});

test('a transaction writes a few sessions at most, and how far they are', async () => {
  const { db } = world.platform;
  const ids = await Promise.all(Array.from({ length: 45 }, (_, index) => open(`number ${index}`)));
  const sizes: number[] = [];
  await pass({
    ...db,
    async transaction(fn) {
      const had = (await rows()).size;
      const result = await db.transaction(fn);
      sizes.push((await rows()).size - had);
      return result;
    },
  });
  expect(sizes).toEqual([20, 20, 5]);
  expect(new Set((await rows()).keys())).toEqual(new Set(ids.map((id) => uuidOf('ses', id))));
  expect(await isDone()).toBe(true);
});
