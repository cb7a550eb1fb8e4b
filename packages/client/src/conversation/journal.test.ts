// What a page shows does not depend on how the journal was cut into reads: the state is a function of the chunks.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cursorOf, positionOf } from '../cursor.ts';
import type { Chunk } from '../types.generated.ts';
import { applyChunk, type JournalState, journalAfter } from './journal.ts';

type Body<T = Chunk> = T extends unknown ? Omit<T, 'turn' | 'seq'> : never;

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, steps: 1, toolCalls: 0, costUsd: null };
const word = fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '\n'), minLength: 1, maxLength: 3 });
const text = word.map((delta): Body => ({ type: 'message.chunk', delta }));
const reasoning = word.map((delta): Body => ({ type: 'reasoning.chunk', delta }));
const callId = fc.constantFrom('call_1', 'call_2', 'call_3');
const toolInput = fc
  .tuple(callId, word)
  .map(([toolCallId, delta]): Body => ({ type: 'tool.input.chunk', toolCallId, toolName: 'refund', delta }));
const waitingFor = (ids: string[]) => ({
  type: 'toolResult' as const,
  operationIds: [],
  toolCallIds: ids,
  sessionIds: [],
  expiresAt: null,
});
const other = fc.oneof(
  callId.map((id): Body => ({ type: 'tool.call', tool: 'refund', toolCallId: id, input: { euros: 90 } })),
  callId.map(
    (id): Body => ({
      type: 'approval.requested',
      operationId: id.replace('call', 'op'),
      name: 'refund',
      input: { euros: 5 },
      toolCallId: id,
      expiresAt: null,
    }),
  ),
  fc.tuple(callId, fc.constantFrom('approved', 'denied', 'expired', 'cancelled')).map(
    ([id, decision]): Body => ({
      type: 'approval.resolved',
      operationId: id.replace('call', 'op'),
      toolCallId: id,
      decision: decision as 'approved',
    }),
  ),
  callId.map((toolCallId): Body => ({ type: 'tool.result', toolCallId, output: { ok: true } })),
  callId.map((toolCallId): Body => ({ type: 'tool.result', toolCallId, error: 'It failed', notRun: true })),
  fc.subarray(['call_1', 'call_2']).map(
    (ids): Body => ({
      type: 'session.status',
      status: ids.length ? 'waiting' : 'running',
      waitingFor: ids.length ? waitingFor(ids) : null,
    }),
  ),
  fc.constant<Body>({ type: 'message.started', messageId: 'msg_1', step: 1 }),
  fc.constant<Body>({ type: 'step.started', model: 'scripted/demo', step: 1 }),
);
/** `n` of 0 to 1: how far back from the end of the turn a reset reaches. */
const reset = fc.double({ min: 0, max: 1, noNaN: true }).map((back) => ({ back }));
const turnBodies = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: text },
    { weight: 2, arbitrary: reasoning },
    { weight: 2, arbitrary: toolInput },
    { weight: 4, arbitrary: other },
    { weight: 1, arbitrary: reset },
  ),
  { maxLength: 25 },
);

/** Any journal, also ones that no service writes: from turn 1, each turn begun by its status and possibly ended. */
const journals = fc.array(fc.tuple(turnBodies, fc.boolean()), { minLength: 1, maxLength: 4 }).map((turns) => {
  const chunks: Chunk[] = [];
  for (const [index, [bodies, ends]] of turns.entries()) {
    const turn = index + 1;
    const all: (Body | { back: number })[] = [
      { type: 'session.status', status: 'running', waitingFor: null },
      ...bodies,
    ];
    if (ends) all.push({ type: 'turn.completed', stopReason: 'endTurn', usage });
    for (const [at, body] of all.entries()) {
      const seq = at + 1;
      const what: Body = 'back' in body ? { type: 'message.reset', fromSeq: Math.ceil(seq * body.back) } : body;
      chunks.push({ ...what, turn, seq } as Chunk);
    }
  }
  return chunks;
});

function read(chunks: readonly Chunk[], from: JournalState = journalAfter({ turn: 0, seq: 0 })): JournalState {
  return chunks.reduce((state, chunk) => frozen(applyChunk(state, chunk)), from);
}

/** So that a test fails if a state is changed instead of replaced. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const one of Object.values(value)) frozen(one);
  }
  return value;
}

test('resuming at any cursor, with any overlap, gives the state of a read from the start', () => {
  fc.assert(
    fc.property(journals, fc.nat(), fc.nat(), (chunks, end, back) => {
      const whole = read(chunks);
      const to = end % (chunks.length + 1);
      const from = Math.max(0, to - (back % 10));
      expect(read(chunks.slice(from), read(chunks.slice(0, to)))).toEqual(whole);
      // A service sends what is after the cursor.
      const before = read(chunks.slice(0, to));
      const { turn, seq } = positionOf(cursorOf(before.at));
      const after = chunks.filter((chunk) => chunk.turn > turn || (chunk.turn === turn && chunk.seq > seq));
      expect(read(after, before)).toEqual(whole);
    }),
  );
});

test('a page that is loaded in the middle of a turn shows this and later turns as one that was there before', () => {
  fc.assert(
    fc.property(journals, fc.nat(), (chunks, at) => {
      const { turn } = chunks[at % chunks.length]!;
      const loaded = read(
        chunks.filter((chunk) => chunk.turn >= turn),
        journalAfter({ turn, seq: 0 }),
      );
      const whole = read(chunks);
      expect(loaded.turns).toEqual(whole.turns.filter((one) => one.turn >= turn));
      expect(loaded.status).toEqual(whole.status);
    }),
  );
});

test('the text of a turn is exactly its deltas without those that were reset', () => {
  fc.assert(
    fc.property(journals, (chunks) => {
      for (const { turn, parts } of read(chunks).turns) {
        let deltas: { seq: number; delta: string }[] = [];
        for (const chunk of chunks.filter((one) => one.turn === turn)) {
          if (chunk.type === 'message.chunk') deltas.push(chunk);
          if (chunk.type === 'message.reset') deltas = deltas.filter(({ seq }) => seq < chunk.fromSeq);
        }
        const shown = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
        expect(shown.join('')).toBe(deltas.map(({ delta }) => delta).join(''));
        expect(shown).not.toContain('');
        expect(new Set(parts.map(({ id }) => id)).size).toBe(parts.length);
      }
    }),
  );
});

test('a chunk of an unknown type changes nothing but the position', () => {
  const chunks = [
    { type: 'message.chunk', delta: 'Hello', turn: 1, seq: 1 },
    { type: 'future.chunk', anything: [1], turn: 1, seq: 2 },
  ] as Chunk[];
  const state = read(chunks);
  expect(state.at).toEqual({ turn: 1, seq: 2 });
  expect(state.turns[0]!.parts).toMatchObject([{ text: 'Hello' }]);
});
