// The live stream (P4): complete and in order from any cursor, whatever happens in the meantime.
import type { Chunk, Envelope } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { streamSession } from '../../src/journal/live.ts';
import { listChunks, readSome } from '../../src/journal/read.ts';
import type { StreamPart } from '../../src/journal/stream.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { cancelSession, closeSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { deleteSession } from '../../src/sessions/sessions.ts';
import { createWorld, usage, type World } from '../support/session-world.ts';
import { partsOf, wholeOf } from '../support/stream-parts.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const deltas = 60;

/** A model that sends many small pieces, each in its own commit as far as the journal allows. */
async function* talkative() {
  for (let n = 0; n < deltas; n += 1) {
    yield { type: 'text' as const, delta: `${n} ` };
    await new Promise<void>((resolve) => setTimeout(resolve, n % 7 === 0 ? 4 : 0));
  }
  yield { type: 'finish' as const, reason: 'endTurn' as const, usage };
}

async function read(
  ctx: PoolContext,
  sessionId: string,
  query: { cursor?: string; types?: string } = {},
): Promise<Envelope[]> {
  const stream = await streamSession(ctx, { sessionId, ...query });
  const envelopes: Envelope[] = [];
  for await (const { cursor, json } of wholeOf(partsOf(stream!, new AbortController().signal))) {
    const envelope = JSON.parse(json) as Envelope;
    expect(envelope.cursor).toBe(cursor);
    envelopes.push(envelope);
  }
  return envelopes;
}

const chunksIn = (envelopes: Envelope[]): Chunk[] => envelopes.flatMap(({ chunks }) => chunks);

test('readers that connect at any time, on any node, read the same: every chunk, in order, once', async () => {
  await world.work({ ask: talkative });
  const elsewhere = { ...world.ctx, ...(await world.anotherNode()) };
  const sessionId = await world.open(await world.agent(), { closeOnIdle: true });
  const readers: Promise<Envelope[]>[] = [];
  for (let n = 0; n < 20; n += 1) {
    readers.push(read(n % 2 === 0 ? world.ctx : elsewhere, sessionId));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const all = await world.until(sessionId, (chunk) => chunk.type === 'session.status' && chunk.status === 'completed');
  for (const reader of readers) expect(chunksIn(await reader)).toEqual(all);
});

test('a stream resumed at any cursor is the rest of the list, and the list is the same envelopes', async () => {
  await world.work({ ask: talkative });
  const sessionId = await world.open(await world.agent(), { closeOnIdle: true });
  const live = await read(world.ctx, sessionId);
  const all = chunksIn(live);
  const listed = await listChunks(world.ctx, { sessionId, limit: 1000 });
  expect(chunksIn(listed.data)).toEqual(all);
  expect(listed.data.map(({ timestamp, cursor }) => [cursor, timestamp])).toEqual(
    live.map(({ timestamp, cursor }) => [cursor, timestamp]),
  );
  for (const [index, { turn, seq }] of all.slice(0, -1).entries()) {
    const rest = await read(world.ctx, sessionId, { cursor: `turn_${turn}:seq_${seq}` });
    expect(chunksIn(rest)).toEqual(all.slice(index + 1));
  }
});

test('pages of any size add up to the journal', async () => {
  await world.work({ ask: talkative });
  const sessionId = await world.open(await world.agent(), { closeOnIdle: true });
  const all = chunksIn(await read(world.ctx, sessionId));
  for (const limit of [1, 7, 1000]) {
    const found: Chunk[] = [];
    let cursor: string | undefined;
    for (let more = true; more; ) {
      const { data, page } = await listChunks(world.ctx, { sessionId, limit, ...(cursor && { cursor }) });
      expect(chunksIn(data).length).toBeLessThanOrEqual(limit);
      found.push(...chunksIn(data));
      cursor = page.nextCursor;
      more = page.hasMore;
    }
    expect(found).toEqual(all);
  }
});

test('types filter chunks, cursors stay correct, and readers of text get resets', async () => {
  await world.work({ ask: talkative });
  const sessionId = await world.open(await world.agent(), { closeOnIdle: true });
  const all = chunksIn(await read(world.ctx, sessionId));
  const statuses = await read(world.ctx, sessionId, { types: 'session.status' });
  expect(chunksIn(statuses)).toEqual(all.filter(({ type }) => type === 'session.status'));
  const rest = await read(world.ctx, sessionId, { types: 'session.status', cursor: statuses[0]!.cursor });
  expect(chunksIn(rest)).toEqual(chunksIn(statuses).slice(1));
});

test('a stream of types that the last chunks are not of ends with their position, after which nothing can follow', async () => {
  await world.work({ ask: talkative });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'session.status' && chunk.status === 'idle');
  await closeSession(world.ctx, { sessionId });
  const stream = await streamSession(world.ctx, { sessionId, types: 'message.chunk' });
  const parts: StreamPart[] = [];
  for await (const part of partsOf(stream!, new AbortController().signal)) parts.push(part);
  const last = chunksIn(await read(world.ctx, sessionId)).at(-1)!;
  const cursor = `turn_${last.turn}:seq_${last.seq}`;
  expect(parts.at(-1)).toMatchObject({ cursor, json: '' });
  expect(parts.filter(({ json }) => json === '')).toHaveLength(1);
  expect(await streamSession(world.ctx, { sessionId, types: 'message.chunk', cursor })).toBeUndefined();
});

test('after the terminal status nothing can follow, and a cursor ahead of the session is refused', async () => {
  await world.work({ ask: talkative });
  const sessionId = await world.open(await world.agent());
  await cancelSession(world.ctx, { sessionId });
  const last = (await read(world.ctx, sessionId)).at(-1)!;
  expect(await streamSession(world.ctx, { sessionId, cursor: last.cursor })).toBeUndefined();
  for (const cursor of ['turn_1:seq_999', 'turn_2:seq_1', 'turn_x:seq_1', 'turn_01:seq_1', 'turn_1:seq_-1']) {
    await expect(streamSession(world.ctx, { sessionId, cursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
  }
});

test('a slow reader loses nothing, and its backlog is bounded', async () => {
  await world.work({
    ask: async function* () {
      for (let n = 0; n < 400; n += 1) {
        yield { type: 'text', delta: `${n}` };
        if (n % 2 === 0) await new Promise<void>((resolve) => setTimeout(resolve, 0));
      }
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const sessionId = await world.open(await world.agent());
  const stream = wholeOf(partsOf((await streamSession(world.ctx, { sessionId }))!, new AbortController().signal));
  const first = (await stream.next()).value!;
  for (let turn = 2; turn <= 12; turn += 1) await sendMessage(world.ctx, { sessionId, content: 'more' });
  await closeSession(world.ctx, { sessionId });
  const all = await world.until(sessionId, (chunk) => chunk.type === 'session.status' && chunk.status === 'completed');
  const found = [...(JSON.parse(first.json) as Envelope).chunks];
  for await (const { json } of stream) found.push(...(JSON.parse(json) as Envelope).chunks);
  expect(found).toEqual(all);
});

test('the stream of a deleted session ends, also on a node that received no wake-up', async () => {
  await world.work({});
  const elsewhere = { ...world.ctx, ...(await world.anotherNode()) };
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'session.status' && chunk.status === 'idle');
  const stream = await streamSession(elsewhere, { sessionId });
  const reader = partsOf(stream!, new AbortController().signal);
  await reader.next();
  await cancelSession(world.ctx, { sessionId });
  await deleteSession(world.ctx, { sessionId });
  for await (const _ of reader);
});

test('streams end if the database lost chunks that they showed, and new streams show what it has', async () => {
  const sessionId = await world.open(await world.agent(), { input: undefined });
  await sendMessage(world.ctx, { sessionId, content: 'lost' });
  const signal = new AbortController().signal;
  const reader = partsOf((await streamSession(world.ctx, { sessionId }))!, signal);
  const { cursor } = (await reader.next()).value as StreamPart;
  // As after the promotion of a standby that had not received the message.
  const id = uuidOf('ses', sessionId);
  const { organizationId, db } = world.ctx;
  await db.execute(sql`delete from segments where organization_id = ${organizationId} and session_id = ${id}`);
  await db.execute(sql`
    update sessions set turn = 0, next_seq = 1 where organization_id = ${organizationId} and session_id = ${id}`);
  for await (const _ of reader);
  await expect(streamSession(world.ctx, { sessionId, cursor })).rejects.toMatchObject({ code: 'invalid_cursor' });
  await db.execute(sql`
    insert into segments (organization_id, session_id, turn, seq_from, seq_to, body, created_at)
    values (${organizationId}, ${id}, 1, 1, 1, '["new"]', now())`);
  await db.execute(sql`
    update sessions set turn = 1, next_seq = 2 where organization_id = ${organizationId} and session_id = ${id}`);
  const after = partsOf((await streamSession(world.ctx, { sessionId }))!, signal);
  expect(((await after.next()).value as StreamPart).json.toString()).toContain('new');
  await after.return(undefined);
});

test('long chunks are read a few at a time, and lists and streams are still complete', async () => {
  const sessionId = await world.open(await world.agent(), { input: undefined });
  const place = { organizationId: world.ctx.organizationId, sessionId: uuidOf('ses', sessionId) };
  const bodies = Array.from({ length: 12 }, (_, n) => JSON.stringify([`${n}`.repeat(n % 3 === 0 ? 10 : 700_000)]));
  for (const [n, body] of bodies.entries()) {
    await world.ctx.db.execute(sql`
      insert into segments (organization_id, session_id, turn, seq_from, seq_to, body, created_at)
      values (${place.organizationId}, ${place.sessionId}, 0, ${n + 1}, ${n + 1}, ${body}, now())`);
  }
  await world.ctx.db.execute(sql`
    update sessions set next_seq = ${bodies.length + 1}
    where organization_id = ${place.organizationId} and session_id = ${place.sessionId}`);
  let after = { turn: 0, seq: 0 };
  const read: string[] = [];
  for (let isEnd = false; !isEnd; ) {
    const some = await readSome(world.ctx.db, place.organizationId, place.sessionId, after, 200);
    expect(some.segments.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThan(3 * 1024 * 1024);
    read.push(...some.segments.map(({ body }) => body));
    after = { turn: 0, seq: some.segments.at(-1)!.seqTo };
    isEnd = some.isEnd;
  }
  expect(read).toEqual(bodies);
  const sizes: number[] = [];
  const listed: Chunk[] = [];
  for (let cursor = '', hasMore = true; hasMore; ) {
    const { data, page } = await listChunks(world.ctx, { sessionId, limit: 1000, ...(cursor && { cursor }) });
    sizes.push(JSON.stringify(data).length);
    listed.push(...chunksIn(data));
    ({ nextCursor: cursor, hasMore } = page);
  }
  expect(listed.map(({ seq }) => seq)).toEqual(bodies.map((_, n) => n + 1));
  expect(Math.max(...sizes)).toBeLessThan(8 * 1024 * 1024);
  expect(sizes.length).toBeGreaterThan(1);
  await closeSession(world.ctx, { sessionId });
  const stream = (await streamSession(world.ctx, { sessionId }))!;
  const streamed: Chunk[] = [];
  for await (const { json } of wholeOf(partsOf(stream, new AbortController().signal))) {
    streamed.push(...(JSON.parse(json) as Envelope).chunks);
  }
  expect(streamed.slice(0, -1)).toEqual(listed);
});
