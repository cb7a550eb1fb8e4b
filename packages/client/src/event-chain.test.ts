import { describe, expect, test } from 'vitest';
import { chainOf, recordOf, sealed } from '../test/event-records.ts';
import { canonicalJson } from './canonical.ts';
import { type Event, verifyEvents } from './index.ts';

test('canonical JSON follows RFC 8785', () => {
  // The RFC's example in 3.2.3, and its sorting by UTF-16 code units.
  const value = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, -0],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false],
    "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7
  }`);
  expect(canonicalJson(value)).toBe(
    String.raw`{"\r":2,"1":4,"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],"string":"€$\u000f\nA'B\"\\\\\"/",` +
      '"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
  );
});

describe('a chain', () => {
  test.each([0, 1, 255, 256, 257, 1000])('of %i records is valid, as records and as lines', async (length) => {
    const events = chainOf(length);
    const ends = events.length
      ? [events[0], events.at(-1)].map((one) => ({ sequence: one!.sequence, hash: one!.hash }))
      : [null, null];
    const expected = { ok: true, count: length, first: ends[0], last: ends[1] };
    expect(await verifyEvents(events)).toEqual(expected);
    expect(await verifyEvents(events.map((event) => JSON.stringify(event)))).toEqual(expected);
  });

  test('can start anywhere: the first record names the hash before it', async () => {
    const events = chainOf(20).slice(7);
    expect(await verifyEvents(events)).toMatchObject({ ok: true, count: 13, first: { sequence: 8 } });
  });

  const changed = (change: Partial<Event>) => (events: Event[]) => events.with(299, { ...events[299]!, ...change });
  const rewritten = (events: Event[]) =>
    events.with(299, sealed({ ...recordOf(300), type: 'agent.archived' }, events[298]!.hash));
  const tampered: [
    what: string,
    tamper: (events: Event[]) => unknown[],
    sequence: number | null,
    problem: string,
    count: number,
  ][] = [
    ['a field was changed', changed({ type: 'agent.archived' }), 300, 'changed', 299],
    [
      'a field deep within was changed',
      changed({ actor: { type: 'api_key', id: 'key_2', name: 'x' } }),
      300,
      'changed',
      299,
    ],
    ['a field was added', changed({ extra: 1 } as Partial<Event>), 300, 'changed', 299],
    ['the hash was changed', changed({ hash: 'ab'.repeat(32) }), 300, 'changed', 299],
    ['the previous hash was changed', changed({ previousHash: 'ab'.repeat(32) }), 300, 'changed', 299],
    ['a record was rewritten with its hash', rewritten, 301, 'not_linked', 300],
    ['a record was taken out', (events) => events.toSpliced(299, 1), 301, 'records_missing', 299],
    ['some were taken out', (events) => events.toSpliced(99, 200), 300, 'records_missing', 99],
    ['a record is there twice', (events) => events.toSpliced(299, 0, events[298]!), 299, 'out_of_order', 299],
    [
      'two changed places',
      (events) => events.with(299, events[300]!).with(300, events[299]!),
      301,
      'records_missing',
      299,
    ],
    [
      'a line is cut',
      (events) => events.map((event, at) => JSON.stringify(event).slice(at === 299 ? 9 : 0)),
      null,
      'not_a_record',
      299,
    ],
    ['a line is something else', (events) => (events as unknown[]).with(299, null), null, 'not_a_record', 299],
    ['the first does not begin', (events) => events.with(0, sealed(recordOf(1), 'ab'.repeat(32))), 1, 'not_linked', 0],
  ];
  test.each(tampered)('is invalid if %s', async (_, tamper, sequence, problem, count) => {
    expect(await verifyEvents(tamper(chainOf(600)))).toMatchObject({ ok: false, sequence, problem, count });
  });
});

describe('a checkpoint', () => {
  const events = chainOf(30);
  const at = (sequence: number) => ({ sequence, hash: events[sequence - 1]!.hash });
  /** Everything rewritten with one record changed: a valid chain of its own. */
  const another = () => {
    const made: Event[] = [];
    for (const { sequence } of events) {
      const name = sequence === 5 ? 'another' : `agent ${sequence}`;
      const record = { ...recordOf(sequence), changes: { name: [null, name] as [unknown, unknown] } };
      made.push(sealed(record, made.at(-1)?.hash ?? '0'.repeat(64)));
    }
    return made;
  };

  test('is accepted if the log has the record, and if it starts right after it', async () => {
    for (const sequence of [1, 12, 30]) {
      expect(await verifyEvents(events, { checkpoint: at(sequence) })).toMatchObject({ ok: true });
    }
    expect(await verifyEvents(events.slice(10), { checkpoint: at(10) })).toMatchObject({ ok: true });
  });

  test('detects a log that was rewritten with a valid chain of its own', async () => {
    expect(await verifyEvents(another())).toMatchObject({ ok: true });
    expect(await verifyEvents(another(), { checkpoint: at(12) })).toMatchObject({
      problem: 'other_history',
      sequence: 12,
    });
    expect(await verifyEvents(another().slice(12), { checkpoint: at(12) })).toMatchObject({
      problem: 'other_history',
      sequence: 13,
    });
  });

  test('detects a log that was cut short', async () => {
    const found = await verifyEvents(events.slice(0, 20), { checkpoint: at(21) });
    expect(found).toMatchObject({ ok: false, problem: 'cut_short', sequence: null, count: 20 });
    expect(await verifyEvents([], { checkpoint: at(1) })).toMatchObject({ problem: 'cut_short', count: 0 });
  });

  test('that is invalid is a TypeError', async () => {
    await expect(verifyEvents(events, { checkpoint: { sequence: 1, hash: 'x' } })).rejects.toThrow(TypeError);
  });
});
