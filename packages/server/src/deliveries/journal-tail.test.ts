import { expect, test } from 'vitest';
import type { Segment } from '../journal/segment.ts';
import { newDelivery } from './delivery.ts';
import { JournalTail } from './journal-tail.ts';
import type { DeliveryProgress } from './progress.ts';

const segment = (seq: number, characters = 10): Segment => ({
  turn: 1,
  seqFrom: seq,
  seqTo: seq,
  body: 'x'.repeat(characters),
  createdAt: new Date(0),
});
const at = (seq: number) => ({ turn: 1, seq });

function readOf(...segments: Segment[]): DeliveryProgress {
  return {
    epoch: 1,
    owner: { sessionId: 's', agentId: 'a', environment: 'production' },
    after: at(0),
    head: at(segments.length),
    acknowledgedCursor: '',
    traceParent: null,
    segments,
    delivery: undefined,
    isTooLong: false,
  };
}

const kept = (tail: JournalTail) => tail.progress?.segments.map(({ seqTo }) => seqTo) ?? [];

test('large segments are not kept while the receiver takes its time, whether they were read or committed', () => {
  const tail = new JournalTail(readOf(segment(1, 1_000_000), segment(2, 1_000_000)));
  expect(kept(tail)).toEqual([]);
  const small = new JournalTail(readOf(segment(1), segment(2, 16_000), segment(3, 16_000)));
  expect(kept(small)).toEqual([1, 2]);
  expect(small.isPartial).toBe(true);
  small.passed(at(2));
  small.add({ previous: at(3), segments: [segment(4)] });
  expect(kept(small)).toEqual([]);
  const growing = new JournalTail(readOf(segment(1)));
  growing.add({ previous: at(1), segments: [segment(2, 1_000_000)] });
  expect(kept(growing)).toEqual([1]);
  expect(growing.isPartial).toBe(true);
});

test('what is being sent is not kept, and neither is a stored body', () => {
  const content = { from: at(0), to: at(1), chunkTypes: [], occurredAt: new Date(0) };
  const stored = { ...newDelivery('s', content, ''), body: 'x'.repeat(1_000_000) };
  const tail = new JournalTail({ ...readOf(segment(1), segment(2)), delivery: stored });
  tail.passed(at(1));
  expect(kept(tail)).toEqual([2]);
  expect(tail.progress!.delivery).toBeUndefined();
});
