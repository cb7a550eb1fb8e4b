// What the page shows of a Session, from a transcript and a journal that overlap. The client here answers from two lists.
import { type Chunk, ConnectionError, type Message, type Session, type Signalbox } from '@signalbox/client';
import { expect, test } from 'vitest';
import { Following } from './follow.ts';

type Journal = AsyncGenerator<Chunk[], void, undefined>;

function clientOf(messages: () => Message[], journals: ((cursor: string | null) => Journal)[]) {
  const cursors: (string | null)[] = [];
  const stream = (_: string, params: { cursor: string | null; onConnection: (state: 'open' | 'lost') => void }) => {
    cursors.push(params.cursor);
    const journal = journals.shift();
    const one = {
      cursor: params.cursor,
      async *[Symbol.asyncIterator]() {
        if (!journal) return;
        params.onConnection('open');
        for await (const chunks of journal(params.cursor)) {
          const { turn, seq } = chunks.at(-1)!;
          one.cursor = `turn_${turn}:seq_${seq}`;
          yield { chunks };
        }
      },
    };
    return one;
  };
  const list = async (_: string, { cursor = '0', limit }: { cursor?: string; limit: number }) => {
    const all = messages();
    const settled = all.filter(({ turn }) => turn !== null);
    const end = Math.min(settled.length, Number(cursor) + limit);
    const hasMore = end < settled.length;
    const data = [...settled.slice(Number(cursor), end), ...(hasMore ? [] : all.filter(({ turn }) => turn === null))];
    return { data, hasMore, nextCursor: String(end) };
  };
  return { client: { sessions: { stream, messages: list } } as unknown as Signalbox, cursors };
}

const sessionAt = (status: Session['status'], turn: number, seq: number) =>
  ({ sessionId: 'ses_1', status, turn, cursor: turn === 0 ? null : `turn_${turn}:seq_${seq}` }) as Session;

const message = (role: Message['role'], turn: number | null, content: Message['content']): Message => ({
  messageId: `msg_${role}_${turn}_${JSON.stringify(content).length}`,
  role,
  turn,
  content,
  createdAt: '2026-01-01T00:00:00.000Z',
});
const text = (words: string) => [{ type: 'text' as const, text: words }];
const said = (turn: number, seq: number, delta: string): Chunk => ({ type: 'message.chunk', delta, turn, seq });
const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, steps: 1, toolCalls: 0, costUsd: null };
const completed = (turn: number, seq: number): Chunk => ({
  type: 'turn.completed',
  stopReason: 'endTurn',
  usage,
  turn,
  seq,
});

const pacing = { gather: (draw: () => void) => void queueMicrotask(draw), pause: async () => {} };

function follow(client: Signalbox, session: Session) {
  const following = new Following(client, session, pacing);
  const stop = following.start();
  const lines = () =>
    following.snapshot().entries.map((entry) => (entry.kind === 'call' ? entry.tool : `${entry.kind}: ${entry.text}`));
  return { following, lines, stop };
}

const ended = (following: Following) => expect.poll(() => following.snapshot().connection).toBe('over');

test('a turn under way is shown from its chunks, and from the transcript when it is over: each text once, under one key', async () => {
  const transcript = [
    message('user', 1, text('Hi')),
    message('assistant', 1, text('Hello.')),
    message('user', 2, text('And?')),
  ];
  const goOn = Promise.withResolvers<void>();
  const { client, cursors } = clientOf(
    () => transcript,
    [
      async function* () {
        yield [said(2, 1, 'Good'), said(2, 2, ' day')];
        await goOn.promise;
        transcript.push(message('assistant', 2, text('Good day.')), message('user', null, text('Later')));
        yield [said(2, 3, '.'), completed(2, 4)];
      },
    ],
  );
  const { following, lines } = follow(client, sessionAt('running', 2, 2));
  await expect.poll(lines).toEqual(['user: Hi', 'text: Hello.', 'user: And?', 'text: Good day']);
  expect(cursors).toEqual(['turn_2:seq_0']);
  expect(following.snapshot()).toMatchObject({ isCaughtUp: true, growing: new Set(['2:0']) });
  const keys = following.snapshot().entries.map(({ key }) => key);
  goOn.resolve();
  await ended(following);
  await expect.poll(() => following.snapshot().queued).toHaveLength(1);
  expect(lines()).toEqual(['user: Hi', 'text: Hello.', 'user: And?', 'text: Good day.']);
  expect(following.snapshot().entries.map(({ key }) => key)).toEqual(keys);
  expect(following.snapshot().growing.size).toBe(0);
});

test('message.reset drops what was said from there on, also behind a call, and nothing else', async () => {
  const call: Chunk = { type: 'tool.call', tool: 'look_up', toolCallId: 'call_1', input: {}, turn: 1, seq: 3 };
  const { client } = clientOf(
    () => [message('user', 1, text('Hi'))],
    [
      async function* () {
        yield [said(1, 1, 'I '), said(1, 2, 'look.'), call, said(1, 4, 'It'), said(1, 5, ' is')];
        yield [{ type: 'message.reset', fromSeq: 5, turn: 1, seq: 6 }, said(1, 7, ' was'), said(1, 8, ' so')];
        yield [{ type: 'message.reset', fromSeq: 4, turn: 1, seq: 9 }, said(1, 10, 'Again.')];
      },
    ],
  );
  const { following, lines } = follow(client, sessionAt('running', 1, 5));
  await ended(following);
  expect(lines()).toEqual(['user: Hi', 'text: I look.', 'look_up', 'text: Again.']);
});

test('whatever the client gives up on is taken up again after the last chunk', async () => {
  const { client, cursors } = clientOf(
    () => [],
    [
      async function* () {
        yield [said(1, 1, 'one ')];
        throw new ConnectionError({ status: 0, code: 'connection_error', detail: 'away' });
      },
      async function* () {
        yield [said(1, 2, 'two')];
      },
    ],
  );
  const { following, lines } = follow(client, sessionAt('idle', 0, 0));
  await ended(following);
  expect(lines()).toEqual(['text: one two']);
  expect(cursors).toEqual([null, 'turn_1:seq_1']);
});

test('what was shown of a turn that was cut off stays: the transcript does not have it', async () => {
  const { client } = clientOf(
    () => [message('user', 1, text('Hi'))],
    [
      async function* () {
        yield [said(1, 1, 'Half a wo')];
        yield [{ type: 'session.status', status: 'cancelled', waitingFor: null, turn: 1, seq: 2 }];
      },
    ],
  );
  const { following, lines } = follow(client, sessionAt('cancelled', 1, 2));
  await ended(following);
  expect(lines()).toEqual(['user: Hi', 'text: Half a wo']);
  expect(following.snapshot().growing.size).toBe(0);
});

test('an edited input, a decision and an outcome stand at their call', async () => {
  const position = (seq: number) => ({ turn: 1, seq });
  const { client } = clientOf(
    () => [],
    [
      async function* () {
        yield [
          {
            type: 'approval.requested',
            operationId: 'op_1',
            name: 'pay',
            input: { cents: 1 },
            toolCallId: 'call_1',
            expiresAt: null,
            ...position(1),
          },
          { type: 'approval.resolved', operationId: 'op_1', decision: 'approved', reason: 'fine', ...position(2) },
          { type: 'tool.call', tool: 'pay', toolCallId: 'call_1', input: { cents: 2 }, ...position(3) },
          { type: 'tool.result', toolCallId: 'call_1', error: 'cut off', outcomeUnknown: true, ...position(4) },
        ];
      },
    ],
  );
  const { following } = follow(client, sessionAt('running', 1, 4));
  await ended(following);
  expect(following.snapshot().entries).toEqual([
    {
      kind: 'call',
      key: 'call_1',
      turn: 1,
      tool: 'pay',
      input: { cents: 1 },
      editedInput: { cents: 2 },
      started: true,
      decision: 'approved',
      reason: 'fine',
      result: { error: 'cut off', outcomeUnknown: true },
    },
  ]);
});
