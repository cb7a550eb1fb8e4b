import { type ChunkType, chunkTypes, defaultChunkTypes } from '@signalbox/contract';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { beginning, comparePositions, type Position } from '../journal/cursor.ts';
import { chunksOf, encodeItems, envelopeOf, type Item, type Segment, typeSet } from '../journal/segment.ts';
import { maxBodyBytes, maxChunks, nextStep, rebuildBody } from './batch.ts';

const owner = {
  sessionId: '0198c0de-0000-7000-8000-000000000001',
  agentId: '0198c0de-0000-7000-8000-000000000002',
  environment: 'production',
};
const status: Item = { type: 'session.status', status: 'running', waitingFor: null };
const result: Item = { type: 'tool.result', toolCallId: 'call_1', output: { ok: true } };
const at = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n));

/** Consecutive segments; `null` starts a turn. */
function journal(...runs: (Item[] | null)[]): { segments: Segment[]; head: Position } {
  const segments: Segment[] = [];
  let [turn, seq] = [1, 0];
  for (const [index, items] of runs.entries()) {
    if (items === null) {
      [turn, seq] = [turn + 1, 0];
    } else {
      segments.push({
        turn,
        seqFrom: seq + 1,
        seqTo: seq + items.length,
        body: encodeItems(items),
        createdAt: at(index),
      });
      seq += items.length;
    }
  }
  return { segments, head: { turn, seq } };
}

function step(
  runs: (Item[] | null)[],
  { after = beginning, waitedMs = 0, types = defaultChunkTypes as readonly ChunkType[] } = {},
) {
  return nextStep({ owner, after, ...journal(...runs) }, types, waitedMs);
}

const shown = (body: Buffer) => JSON.parse(body.toString()).chunks.map((c: Position) => `${c.turn}:${c.seq}`);

test('text waits up to 100 ms for more text', () => {
  expect(step([['a'], ['b']], { waitedMs: 99 })).toEqual({ kind: 'wait' });
  expect(step([['a'], ['b']], { waitedMs: 100 })).toMatchObject({ kind: 'send', more: false });
});

test('any other chunk is sent at once, together with the text around it', () => {
  const next = step([['a'], [status], ['b']]);
  expect(next.kind === 'send' && shown(next.body)).toEqual(['1:1', '1:2', '1:3']);
});

test('a full delivery does not wait', () => {
  const next = step([Array.from({ length: maxChunks + 1 }, () => 'x')]);
  expect(next).toMatchObject({ kind: 'send', more: true, content: { to: { turn: 1, seq: maxChunks } } });
});

test('a chunk that is larger than a delivery is sent alone', () => {
  const next = step([[status], ['x'.repeat(maxBodyBytes)], [status]], { after: { turn: 1, seq: 1 } });
  expect(next.kind === 'send' && shown(next.body)).toEqual(['1:2']);
});

test('chunks that do not match the filter are skipped, after the wait for more text', () => {
  expect(step([[result], [result]])).toEqual({ kind: 'wait' });
  expect(step([[result], [result]], { waitedMs: 100 })).toEqual({ kind: 'skip', through: { turn: 1, seq: 2 } });
});

test('a turn without chunks is skipped', () => {
  expect(step([[status], null], { after: { turn: 1, seq: 1 }, waitedMs: 100 })).toMatchObject({ kind: 'skip' });
  expect(
    nextStep({ owner, after: { turn: 1, seq: 1 }, segments: [], head: { turn: 2, seq: 0 } }, chunkTypes, 100),
  ).toEqual({
    kind: 'skip',
    through: { turn: 2, seq: 0 },
  });
});

test('the range ends at the last chunk that matches the filter, and later chunks that do not match need no delivery', () => {
  expect(step([[result, status, result]])).toMatchObject({
    kind: 'send',
    content: { from: { turn: 1, seq: 1 }, to: { turn: 1, seq: 2 }, occurredAt: at(0) },
    through: { turn: 1, seq: 3 },
    more: false,
  });
});

test.each(chunkTypes.filter((type) => type !== 'message.reset'))(
  'message.reset is sent with %s if it voids it',
  (type) => {
    const voided = ['step.started', 'message.started', 'message.chunk', 'reasoning.chunk', 'tool.input.chunk'];
    const reset: Item = { type: 'message.reset', fromSeq: 1 };
    const sends = step([['a'], [reset]], { types: [type] }).kind === 'send';
    expect(sends).toBe(voided.includes(type));
  },
);

const item = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
  fc.constant(status),
  fc.constant(result),
  fc.integer({ min: 1, max: 40_000 }).map((n) => 'ü'.repeat(n)),
);
const runs = fc.array(
  fc.oneof({ weight: 8, arbitrary: fc.array(item, { minLength: 1, maxLength: 60 }) }, fc.constant(null)),
  {
    minLength: 1,
    maxLength: 12,
  },
);
const filter = fc.subarray([...chunkTypes], { minLength: 1 });

describe('whatever a journal holds', () => {
  test('each chunk that matches the filter is delivered once, in order, within the limits, and each body can be rebuilt', () => {
    fc.assert(
      fc.property(runs, filter, (written, types) => {
        const { segments, head } = journal(...written);
        const delivered: string[] = [];
        let after: Position = beginning;
        for (;;) {
          const rest = segments.filter(({ turn, seqTo }) => comparePositions({ turn, seq: seqTo }, after) > 0);
          // Read in pages, as from the database.
          const next = nextStep({ owner, after, head, segments: rest.slice(0, 5) }, types, 100);
          if (next.kind === 'nothing') break;
          expect(next.kind).not.toBe('wait');
          if (next.kind === 'wait') break;
          expect(comparePositions(next.through, after)).toBeGreaterThan(0);
          if (next.kind === 'send') {
            const { body, content } = next;
            const chunks = shown(body);
            expect(chunks.length).toBeLessThanOrEqual(maxChunks);
            if (chunks.length > 1) expect(body.length).toBeLessThanOrEqual(maxBodyBytes);
            expect(comparePositions(content.from, after)).toBeGreaterThanOrEqual(0);
            expect(comparePositions(next.through, content.to)).toBeGreaterThanOrEqual(0);
            expect(rebuildBody(owner, content, segments).equals(body)).toBe(true);
            const envelope = JSON.parse(body.toString());
            expect(JSON.stringify(envelopeOf(owner, content.to, content.occurredAt, envelope.chunks))).toBe(
              body.toString(),
            );
            delivered.push(...chunks);
          }
          after = next.through;
        }
        const wanted = segments.flatMap((segment) => chunksOf(segment, beginning, typeSet(types)));
        expect(delivered).toEqual(wanted.map(({ turn, seq }) => `${turn}:${seq}`));
      }),
    );
  });
});

test('a delivery whose chunks were deleted cannot be rebuilt from the rest', () => {
  const { segments } = journal([status], [status]);
  const content = { from: beginning, to: { turn: 1, seq: 2 }, chunkTypes, occurredAt: at(0) };
  expect(() => rebuildBody(owner, content, segments.slice(0, 1))).toThrow('whole');
});
