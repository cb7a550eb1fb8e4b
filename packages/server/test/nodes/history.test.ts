// Tests the checker itself: it accepts a correct history, and detects each kind of violation.
import type { Chunk } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { brokenPromises, type History, type SeenDelivery } from '../support/history.ts';

type Loose = Record<string, unknown> & { type: string };
type Change = (history: { -readonly [Key in keyof History]: History[Key] } & { stored: Chunk[] }) => void;

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, steps: 1, toolCalls: 1, costUsd: null };
const [pay, look] = ['01h455vb4pex5vsknk084sn02q', '01h455vb4pex5vsknk084sn02r'];

/** Numbers the chunks: `next` begins another turn, and is its `running`. */
function numbered(chunks: Loose[]): Chunk[] {
  let [turn, seq] = [1, 0];
  return chunks.map((chunk) => {
    if (chunk.type === 'next') [turn, seq] = [turn + 1, 0];
    seq += 1;
    const { type, ...rest } = chunk.type === 'next' ? status('running') : chunk;
    return { type, ...rest, turn, seq } as unknown as Chunk;
  });
}
const status = (value: string): Loose => ({ type: 'session.status', status: value, waitingFor: null });
const says = (delta: string): Loose => ({ type: 'message.chunk', delta });
const completed: Loose = { type: 'turn.completed', stopReason: 'endTurn', usage };

/** Messages and responses in turn. */
const transcriptOf = (...texts: string[]): History['transcript'] =>
  texts.map((text, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', text }));

function goodHistory(): Parameters<Change>[0] {
  const stored = numbered([
    status('running'),
    says('lost'),
    { type: 'message.reset', fromSeq: 2 },
    says('one '),
    says('two'),
    { type: 'approval.requested', operationId: `op_${pay}`, toolCallId: `call_${pay}`, name: 'pay' },
    status('waiting'),
    { type: 'approval.resolved', operationId: `op_${pay}`, toolCallId: `call_${pay}`, decision: 'approved' },
    status('running'),
    { type: 'tool.call', tool: 'pay', toolCallId: `call_${pay}`, input: {} },
    { type: 'tool.call', tool: 'look', toolCallId: `call_${look}`, input: {} },
    { type: 'tool.result', toolCallId: `call_${look}`, output: 1 },
    { type: 'tool.result', toolCallId: `call_${pay}`, output: 1 },
    completed,
    status('idle'),
    { type: 'next' },
    says('three'),
    completed,
    status('completed'),
  ]);
  return {
    stored,
    readings: [
      { chunks: structuredClone(stored) },
      { after: { turn: 1, seq: 9 }, chunks: structuredClone(stored.slice(9)) },
    ],
    sent: [
      { text: 'a', isAcknowledged: true },
      { text: 'b', isAcknowledged: false },
      { text: 'c', isAcknowledged: true },
    ],
    transcript: transcriptOf('a', 'one two', 'c', 'three'),
    decisions: new Map([[`op_${pay}`, ['approved']]]),
    calls: new Map([
      [`op_${pay}`, { tool: 'pay', times: 1, answered: 1 }],
      [`op_${look}`, { tool: 'look', times: 2, answered: 1 }],
    ]),
    isTextOfTurn: (turn, text) => text === ['one two', 'three'][turn - 1],
    repeatable: new Set(['look']),
  };
}

test('a correct history has no violations', () => {
  const history = goodHistory();
  expect(brokenPromises(history)).toEqual([]);
  const deliveries = deliveriesOf(history);
  const twice = deliveries.flatMap((one) => [{ ...one, isTaken: false }, one, one]);
  expect(brokenPromises({ ...history, deliveries: twice })).toEqual([]);
});

/** Five chunks in each. */
function deliveriesOf({ stored }: Pick<History, 'stored'>): SeenDelivery[] {
  const bodies = [0, 5, 10, 15].map((from) => JSON.stringify({ chunks: stored.slice(from, from + 5) }));
  return bodies.map((body, index) => ({ deliveryId: `${index}`, body, isTaken: true }));
}

/** The chunk of that type, in the journal and wherever it was read. */
function everywhere(history: Parameters<Change>[0], change: (chunks: Chunk[]) => void): void {
  change(history.stored);
  for (const { chunks } of history.readings) change(chunks as Chunk[]);
}

const drop = (chunks: Chunk[], type: string) => {
  const index = chunks.findIndex((chunk) => chunk.type === type);
  if (index >= 0) chunks.splice(index, 1);
};

test.each<[string, string, Change]>([
  ['a chunk is missing', 'no gaps', (h) => everywhere(h, (chunks) => drop(chunks, 'message.reset'))],
  ['a chunk is stored twice', 'no doubles', (h) => everywhere(h, (chunks) => chunks.splice(3, 0, chunks[3]!))],
  ['text is duplicated', 'says what the model said', (h) => Object.assign(h.stored[4]!, { delta: 'two two' })],
  ['text is stored that was reset', 'says what the model said', (h) => Object.assign(h.stored[2]!, { fromSeq: 3 })],
  ['text changed after it was shown', 'is the journal', (h) => Object.assign(h.stored[1]!, { delta: 'gone' })],
  ['a reader missed a chunk', 'is the journal', (h) => (h.readings[1]!.chunks as Chunk[]).splice(2, 1)],
  [
    'a reader saw a chunk twice',
    'is the journal',
    (h) => (h.readings[0]!.chunks as Chunk[]).splice(2, 0, h.stored[2]!),
  ],
  ['a reader did not see the end', 'is the journal', (h) => (h.readings[0]!.chunks as Chunk[]).pop()],
  [
    'a chunk that was read is gone',
    'is in the journal',
    (h) => Object.assign(h.readings[1]!, { after: { turn: 1, seq: 99 } }),
  ],
  [
    'the model received other text than was shown',
    'the model knows what it said',
    (h) => Object.assign(h, { transcript: transcriptOf('a', 'one', 'c', 'three') }),
  ],
  ['the session ends twice', 'ends once', (h) => Object.assign(h.stored[14]!, { status: 'completed' })],
  ['the session never ends', 'ends once', (h) => Object.assign(h.stored.at(-1)!, { status: 'idle' })],
  ['a turn fails', 'ends by itself', (h) => Object.assign(h.stored[13]!, { stopReason: 'error' })],
  ['a turn is completed twice', 'completed once', (h) => Object.assign(h.stored[12]!, completed)],
  ['an accepted message has no turn', '"a" was taken', (h) => Object.assign(h, { transcript: transcriptOf('c') })],
  ['a message has two turns', 'one turn', (h) => Object.assign(h, { transcript: transcriptOf('a', '', 'a', '', 'c') })],
  ['messages change their order', 'in order', (h) => Object.assign(h, { transcript: transcriptOf('c', '', 'a') })],
  [
    'a turn has no message',
    'as many turns',
    (h) => Object.assign(h, { transcript: transcriptOf('a'), sent: h.sent.slice(0, 1) }),
  ],
  [
    'two different decisions were accepted',
    'was told',
    (h) => Object.assign(h, { decisions: new Map([[`op_${pay}`, ['approved', 'denied']]]) }),
  ],
  ['an approval is resolved twice', 'resolved once', (h) => Object.assign(h.stored[8]!, h.stored[7])],
  [
    'an approval is resolved for another call',
    'names its call',
    (h) => Object.assign(h.stored[7]!, { toolCallId: `call_${look}` }),
  ],
  [
    'a call runs that was shown as not run',
    'did not run 2 times',
    (h) => [10, 11].map((at) => Object.assign(h.stored[at]!, { notRun: true })),
  ],
  [
    'a call that ran has the result of a call that did not',
    'for its result',
    (h) => Object.assign(h.stored[11]!, { notRun: true }),
  ],
  ['a denied call runs', 'does not run', (h) => Object.assign(h.stored[7]!, { decision: 'denied' })],
  [
    'a call runs before it is approved',
    'and not before',
    (h) => Object.assign(h.stored[6]!, { ...h.stored[9], seq: 7 }),
  ],
  ['an effect happens twice', 'at most once', (h) => Object.assign(h.calls.get(`op_${pay}`)!, { times: 2 })],
  [
    'a result is shown that no tool returned',
    'that it gave',
    (h) => Object.assign(h.calls.get(`op_${pay}`)!, { answered: 0 }),
  ],
  ['a call has no result', 'one result', (h) => Object.assign(h.stored[12]!, { toolCallId: `call_${look}` })],
  [
    'the outcome of a repeatable call is unknown',
    'its outcome is known',
    (h) => Object.assign(h.stored[11]!, { outcomeUnknown: true }),
  ],
  ['a call ran that was not shown', 'not shown to start', (h) => (h.calls as Map<string, object>).set('op_x', {})],
  [
    'a delivery is skipped',
    'add up to the journal',
    (h) => Object.assign(h, { deliveries: deliveriesOf(h).toSpliced(1, 1) }),
  ],
  [
    'a delivery was never accepted',
    'add up to the journal',
    (h) => Object.assign(h, { deliveries: deliveriesOf(h).map((one, index) => ({ ...one, isTaken: index !== 3 })) }),
  ],
  [
    'deliveries change their order',
    'add up to the journal',
    (h) => Object.assign(h, { deliveries: deliveriesOf(h).toReversed() }),
  ],
  [
    'a repeated delivery has changed',
    'the same bytes each time',
    (h) => Object.assign(h, { deliveries: deliveriesOf(h).flatMap((one) => [one, { ...one, body: `${one.body} ` }]) }),
  ],
])('%s: it is detected', (_, promise, change) => {
  const history = goodHistory();
  change(history);
  expect(brokenPromises(history).join('\n')).toContain(promise);
});
