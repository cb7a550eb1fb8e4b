// What the page shows of a session if the transcript and the journal overlap. The client in these tests reads from two lists.
import { type Chunk, ConnectionError, type Message, type Session, type Signalbox } from '@signalbox/client';
import { expect, test } from 'vitest';
import { Following } from './follow.ts';

type Journal = AsyncGenerator<Chunk[], void, undefined>;

function clientOf(messages: () => Message[], journals: ((cursor: string | null) => Journal)[]) {
  const cursors: (string | null)[] = [];
  const requests: { order: 'desc'; cursor?: string; limit: number }[] = [];
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
  // Newest first; a cursor is the number of settled messages before it.
  const list = async (_: string, request: { order: 'desc'; cursor?: string; limit: number }) => {
    requests.push(request);
    const all = messages();
    const settled = all.filter(({ turn }) => turn !== null);
    const end = request.cursor === undefined ? settled.length : Number(request.cursor);
    const begin = Math.max(0, end - request.limit);
    const queued = request.cursor === undefined ? all.filter(({ turn }) => turn === null) : [];
    return { data: [...settled.slice(begin, end), ...queued].reverse(), hasMore: begin > 0, nextCursor: String(begin) };
  };
  return { client: { sessions: { stream, messages: list } } as unknown as Signalbox, cursors, requests };
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

const noWait = async () => {};

function follow(client: Signalbox, session: Session) {
  const following = new Following(client, session, noWait);
  const stop = following.start();
  const lines = () =>
    following.snapshot().entries.map((entry) => (entry.kind === 'call' ? entry.tool : `${entry.kind}: ${entry.text}`));
  return { following, lines, stop };
}

const ended = (following: Following) => expect.poll(() => following.snapshot().connection).toBe('closed');

test('a turn that failed is shown from its chunks, continues on the page when it is retried, and is shown once', async () => {
  const transcript = [message('user', 1, text('Hi')), message('assistant', 1, text('Looking. '))];
  const retried = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const status = (status: 'running' | 'idle', seq: number): Chunk => ({
    type: 'session.status',
    status,
    waitingFor: null,
    turn: 1,
    seq,
  });
  const { client, cursors } = clientOf(
    () => transcript,
    [
      async function* () {
        yield [said(1, 2, 'Looking. '), { ...completed(1, 3), stopReason: 'error' } as Chunk, status('idle', 4)];
        await retried.promise;
        yield [status('running', 5), said(1, 6, 'Found')];
        await goOn.promise;
        transcript.push(message('assistant', 1, text('Found.')));
        yield [said(1, 7, '.'), completed(1, 8), status('idle', 9)];
      },
    ],
  );
  const session = { ...sessionAt('idle', 1, 4), stopReason: 'error' } as Session;
  const { following, lines, stop } = follow(client, session);
  await expect.poll(lines).toEqual(['user: Hi', 'text: Looking. ']);
  expect(cursors).toEqual(['turn_1:seq_0']);
  expect(following.snapshot().growing.size).toBe(0);
  retried.resolve();
  await expect.poll(lines).toEqual(['user: Hi', 'text: Looking. Found']);
  expect(following.snapshot().growing.size).toBe(1);
  goOn.resolve();
  await ended(following);
  await expect.poll(lines).toEqual(['user: Hi', 'text: Looking. ', 'text: Found.']);
  stop();
});

test('a running turn is shown from its chunks, a finished one from the transcript: each text once, under one key', async () => {
  const transcript = [
    message('user', 1, text('Hi')),
    message('assistant', 1, text('Hello.')),
    message('user', 2, text('And?')),
  ];
  const proceed = Promise.withResolvers<void>();
  const { client, cursors } = clientOf(
    () => transcript,
    [
      async function* () {
        yield [said(2, 1, 'Good'), said(2, 2, ' day')];
        await proceed.promise;
        transcript.push(message('assistant', 2, text('Good day.')), message('user', null, text('Later')));
        yield [said(2, 3, '.'), completed(2, 4)];
      },
    ],
  );
  const { following, lines } = follow(client, sessionAt('running', 2, 2));
  await expect.poll(lines).toEqual(['user: Hi', 'text: Hello.', 'user: And?', 'text: Good day']);
  expect(cursors).toEqual(['turn_2:seq_0']);
  expect(following.snapshot()).toMatchObject({ isCaughtUp: true, growing: new Set(['2:text_0']) });
  const keys = following.snapshot().entries.map(({ key }) => key);
  proceed.resolve();
  await ended(following);
  await expect.poll(() => following.snapshot().queued).toHaveLength(1);
  expect(lines()).toEqual(['user: Hi', 'text: Hello.', 'user: And?', 'text: Good day.']);
  expect(following.snapshot().entries.map(({ key }) => key)).toEqual(keys);
  expect(following.snapshot().growing.size).toBe(0);
});

test('only the newest turns of a long transcript are read, earlier ones on demand, and an update reads only what is new', async () => {
  const turnOf = (turn: number) => [
    message('user', turn, text(`Question ${turn}`)),
    message('assistant', turn, text(`Answer ${turn}`)),
    message('assistant', turn, text(`More of ${turn}.`)),
  ];
  const transcript = Array.from({ length: 80 }, (_, index) => turnOf(index + 1)).flat();
  const { client, requests } = clientOf(() => transcript, []);
  const { following, lines } = follow(client, sessionAt('idle', 99, 9));
  await expect.poll(() => following.snapshot().isCaughtUp).toBe(true);
  // 50 messages are 16 turns and the end of another one, which is not shown until its start is loaded.
  expect(lines()).toHaveLength(48);
  expect(lines()[0]).toBe('user: Question 65');
  expect(following.snapshot()).toMatchObject({ hasOlder: true, isReadingOlder: false });
  expect(requests.length).toBeLessThanOrEqual(2);

  const keys = following.snapshot().entries.map(({ key }) => key);
  await Promise.all([following.readOlder(), following.readOlder()]);
  await expect.poll(() => lines()[0]).toBe('user: Question 48');
  expect(
    following
      .snapshot()
      .entries.map(({ key }) => key)
      .slice(-48),
  ).toEqual(keys);
  requests.length = 0;
  transcript.push(...turnOf(81));
  await following.refresh();
  await expect.poll(() => lines().at(-1)).toBe('text: More of 81.');
  expect(requests).toEqual([{ order: 'desc', limit: 20 }]);
  while (following.snapshot().hasOlder) await following.readOlder();
  await expect.poll(() => lines()).toHaveLength(243);
  expect(new Set(lines()).size).toBe(243);
});

test('updates longer than a page and turns longer than a page are read completely', async () => {
  const long = Array.from({ length: 250 }, (_, index) =>
    message('assistant', 2, text(`Step ${index}`.padEnd(300 + index))),
  );
  const transcript = [message('user', 1, text('One')), message('user', 2, text('Two')), ...long];
  const { client } = clientOf(() => transcript, []);
  const { following, lines } = follow(client, sessionAt('idle', 9, 900));
  await expect.poll(() => following.snapshot().isCaughtUp).toBe(true);
  expect([lines()[0], lines().length]).toEqual(['user: One', 252]);
  const since = Array.from({ length: 50 }, (_, index) =>
    message('assistant', 3, text(`Later ${index}`.padEnd(700 + index))),
  );
  transcript.push(message('user', 3, text('Three')), ...since, message('user', null, text('Four')));
  await following.refresh();
  await expect.poll(lines).toHaveLength(303);
  expect(lines()[252]).toBe('user: Three');
  expect(following.snapshot().queued).toHaveLength(1);
});

test('a failure to read older messages is reported, and can be retried', async () => {
  const transcript = Array.from({ length: 90 }, (_, index) => message('user', index + 1, text(`${index}`)));
  let isAway = false;
  const { client } = clientOf(() => {
    if (isAway) throw new ConnectionError({ status: 0, code: 'connection_error', detail: 'away' });
    return transcript;
  }, []);
  const { following, lines } = follow(client, sessionAt('idle', 90, 1));
  await expect.poll(() => following.snapshot().isCaughtUp).toBe(true);
  isAway = true;
  await following.readOlder();
  await expect.poll(() => following.snapshot().olderError).toBeInstanceOf(ConnectionError);
  expect(lines()).toHaveLength(49);
  isAway = false;
  await following.readOlder();
  await expect.poll(lines).toHaveLength(90);
  expect(following.snapshot().olderError).toBeUndefined();
});

test('message.reset drops exactly the text from its position on, also after a call', async () => {
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

test('after the client gives up, the stream resumes after the last chunk', async () => {
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

test('the shown part of an interrupted turn stays, because the transcript does not have it', async () => {
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

test('an edited input, a decision and an outcome are shown at their call', async () => {
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
          {
            type: 'approval.resolved',
            operationId: 'op_1',
            toolCallId: 'call_1',
            decision: 'approved',
            reason: 'fine',
            ...position(2),
          },
          { type: 'tool.call', tool: 'pay', toolCallId: 'call_1', input: { cents: 2 }, ...position(3) },
          { type: 'tool.result', toolCallId: 'call_1', error: 'cut off', outcomeUnknown: true, ...position(4) },
        ];
      },
    ],
  );
  const { following } = follow(client, sessionAt('running', 1, 4));
  await ended(following);
  expect(following.snapshot().entries).toMatchObject([
    {
      kind: 'call',
      key: 'call_1',
      turn: 1,
      tool: 'pay',
      state: 'unknown',
      input: { cents: 2 },
      isEdited: true,
      modelInput: { cents: 1 },
      isStarted: true,
      approval: { decision: 'approved', reason: 'fine' },
      error: 'cut off',
    },
  ]);
});

test('reasoning, and the input of a call while it is written, are shown until they are void or complete', async () => {
  const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const input = (seq: number, delta: string): Chunk => ({
    type: 'tool.input.chunk',
    toolCallId: 'call_1',
    toolName: 'look',
    delta,
    turn: 1,
    seq,
  });
  const thought = (seq: number, delta: string): Chunk => ({ type: 'reasoning.chunk', delta, turn: 1, seq });
  const { client } = clientOf(
    () => [message('user', 1, text('Hi'))],
    [
      async function* () {
        yield [thought(2, 'Half '), thought(3, 'a thought'), input(4, '{"q"')];
        await steps[0]!.promise;
        yield [
          { type: 'message.reset', fromSeq: 3, turn: 1, seq: 5 },
          thought(6, 'one'),
          input(7, '{"q":'),
          input(8, '1}'),
        ];
        await steps[1]!.promise;
        yield [{ type: 'tool.call', tool: 'look', toolCallId: 'call_1', input: { q: 1 }, turn: 1, seq: 9 }];
      },
    ],
  );
  const { following, lines, stop } = follow(client, sessionAt('running', 1, 3));
  const call = () => following.snapshot().entries.find((entry) => entry.kind === 'call');
  await expect.poll(lines).toEqual(['user: Hi', 'reasoning: Half a thought', 'look']);
  expect(call()).toMatchObject({ inputText: '{"q"', isStarted: false });
  const { news } = following.snapshot();
  steps[0]!.resolve();
  await expect.poll(lines).toEqual(['user: Hi', 'reasoning: Half one', 'look']);
  expect(call()).toMatchObject({ inputText: '{"q":1}' });
  expect(following.snapshot().news).toBe(news);
  steps[1]!.resolve();
  await expect.poll(() => call()?.isStarted).toBe(true);
  expect(call()).toMatchObject({ input: { q: 1 }, inputText: null, isEdited: false });
  stop();
});

test('calls stand in the order of their ids, and none is running after its turn has ended', async () => {
  const call = (toolCallId: string, seq: number): Chunk => ({
    type: 'tool.call',
    tool: toolCallId,
    toolCallId,
    input: {},
    turn: 1,
    seq,
  });
  const asked: Chunk = {
    type: 'approval.requested',
    operationId: 'op_3',
    name: 'call_3',
    input: {},
    toolCallId: 'call_3',
    expiresAt: null,
    turn: 1,
    seq: 4,
  };
  const progress = { approved: 1, required: 2 };
  const decided = {
    type: 'approval.decided',
    operationId: 'op_3',
    toolCallId: 'call_3',
    decision: 'approved',
    progress,
  };
  const cancelled: Chunk = { type: 'session.status', status: 'cancelled', waitingFor: null, turn: 1, seq: 6 };
  const goOn = Promise.withResolvers<void>();
  const { client } = clientOf(
    () => [message('user', 1, text('Hi'))],
    [
      async function* () {
        yield [
          said(1, 1, 'Two'),
          call('call_2', 2),
          call('call_1', 3),
          asked,
          { ...decided, turn: 1, seq: 5 } as Chunk,
        ];
        await goOn.promise;
        yield [cancelled];
      },
    ],
  );
  const { following, lines, stop } = follow(client, sessionAt('running', 1, 5));
  const calls = () => following.snapshot().entries.filter((entry) => entry.kind === 'call');
  await expect.poll(lines).toEqual(['user: Hi', 'text: Two', 'call_1', 'call_2', 'call_3']);
  expect(calls()[2]!.approval).toMatchObject({ decision: 'pending', progress });
  expect(following.snapshot().growing.size).toBe(0);
  goOn.resolve();
  await expect.poll(() => calls().map(({ state }) => state)).toEqual(['unknown', 'unknown', 'denied']);
  stop();
});
