// One session, shown by everything that shows sessions: wherever its journal is cut and read on, and however much of it is read from the
// transcript, all show the same conversation.
import {
  type Chunk,
  ConnectionError,
  type Envelope,
  type Message,
  type Session,
  type Signalbox,
} from '@signalbox/client';
import { toUIMessageChunks } from '@signalbox/client/ai-sdk';
import { type AssistantPart, createSessionStore, cursorOf, isAfter } from '@signalbox/client/conversation';
import { isToolUIPart, readUIMessageStream, type UIMessage } from 'ai';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyChunk, journalAfter } from '../packages/client/src/conversation/journal.ts';
import { Following } from '../packages/console/src/pages/sessions/follow.ts';
import { RunEvents } from '../packages/react/src/ag-ui/run-events.ts';

type Body<T = Chunk> = T extends unknown ? Omit<T, 'turn' | 'seq'> : never;
type Kind = 'plain' | 'failed' | 'approved' | 'edited' | 'denied';
interface Step {
  words: string[];
  /** What an attempt wrote before, which is void. */
  lost: string[];
  calls: Kind[];
}

const word = fc.constantFrom('one ', 'two ', 'é', '😀');
const kind = fc.constantFrom<Kind>('plain', 'failed', 'approved', 'edited', 'denied');
const step: fc.Arbitrary<Step> = fc.record({
  words: fc.array(word, { minLength: 1, maxLength: 3 }),
  lost: fc.array(word, { maxLength: 2 }),
  calls: fc.array(kind, { maxLength: 3 }),
});
const turns = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, steps: 1, toolCalls: 0, costUsd: null };
const running: Body = { type: 'session.status', status: 'running', waitingFor: null };
const inputOf = (kind: Kind) => (kind === 'edited' ? { euros: 45 } : { euros: 90 });

/** What a service writes, with calls that begin in another order than the model's. */
function journalOf(all: Step[][]): Chunk[] {
  return all.flatMap((steps, index) => {
    const turn = index + 1;
    const bodies: Body[] = [running];
    for (const [number, { words, lost, calls }] of steps.entries()) {
      const begin = (id: string): Body[] => [
        { type: 'step.started', step: number + 1, model: 'scripted/demo' },
        { type: 'message.started', messageId: id, step: number + 1 },
      ];
      const id = `${turn}_${number}`;
      if (lost.length > 0) {
        const fromSeq = bodies.length + 1;
        bodies.push(...begin(`msg_lost_${id}`), ...lost.map((delta): Body => ({ type: 'message.chunk', delta })));
        bodies.push({ type: 'tool.input.chunk', toolCallId: `call_${id}_9`, toolName: 'refund', delta: '{' });
        bodies.push({ type: 'message.reset', fromSeq });
      }
      bodies.push(...begin(`msg_${id}`), ...words.map((delta): Body => ({ type: 'message.chunk', delta })));
      bodies.push(...callsOf(id, calls));
    }
    bodies.push({ type: 'turn.completed', stopReason: 'endTurn', usage });
    bodies.push({ type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'endTurn' });
    return bodies.map((body, at) => ({ ...body, turn, seq: at + 1 }) as Chunk);
  });
}

function callsOf(step: string, kinds: Kind[]): Body[] {
  const calls = kinds.map((kind, at) => ({ kind, toolCallId: `call_${step}_${at}`, operationId: `op_${step}_${at}` }));
  const isAsked = ({ kind }: { kind: Kind }) => kind === 'approved' || kind === 'edited' || kind === 'denied';
  const asked = calls.filter(isAsked).reverse();
  const started = (toolCallId: string, kind: Kind): Body => ({
    type: 'tool.call',
    tool: 'refund',
    toolCallId,
    input: inputOf(kind),
  });
  const bodies = calls
    .filter((call) => !isAsked(call))
    .reverse()
    .map(({ toolCallId, kind }) => started(toolCallId, kind));
  for (const { toolCallId, operationId } of asked)
    bodies.push({
      type: 'approval.requested',
      operationId,
      toolCallId,
      name: 'refund',
      input: { euros: 90 },
      expiresAt: null,
    });
  if (asked.length > 0) {
    const operationIds = asked.map(({ operationId }) => operationId);
    const waitingFor = { type: 'approval' as const, operationIds, toolCallIds: [], sessionIds: [], expiresAt: null };
    bodies.push({ type: 'session.status', status: 'waiting', waitingFor });
    for (const { kind, toolCallId, operationId } of asked)
      bodies.push({
        type: 'approval.resolved',
        operationId,
        toolCallId,
        decision: kind === 'denied' ? 'denied' : 'approved',
      });
    bodies.push(running);
    bodies.push(...asked.filter(({ kind }) => kind !== 'denied').map((one) => started(one.toolCallId, one.kind)));
  }
  for (const { kind, toolCallId } of calls) bodies.push({ type: 'tool.result', toolCallId, ...resultOf(kind) } as Body);
  return bodies;
}

function resultOf(kind: Kind): { output: unknown } | { error: string; notRun?: true } {
  if (kind === 'denied') return { error: 'It was denied', notRun: true };
  return kind === 'failed' ? { error: 'No such order' } : { output: { done: kind } };
}

/** The transcript when the journal is as long: turns that are over, and the message that began the current one. */
function transcriptOf(all: Step[][], chunks: readonly Chunk[]): Message[] {
  const over = new Set(chunks.filter(({ type }) => type === 'turn.completed').map(({ turn }) => turn));
  const latest = chunks.at(-1)?.turn ?? 0;
  return all.slice(0, latest).flatMap((steps, index) => {
    const turn = index + 1;
    const message = (id: string, role: Message['role'], content: Message['content']): Message => ({
      messageId: `msg_${id}`,
      role,
      turn,
      content,
      createdAt: '2026-01-01T00:00:00.000Z',
    });
    const messages = [message(`user_${turn}`, 'user', [{ type: 'text', text: `Question ${turn}` }])];
    for (const [number, { words, calls }] of over.has(turn) ? steps.entries() : []) {
      const id = `${turn}_${number}`;
      const requested = calls.map((_, at) => ({
        type: 'tool_call' as const,
        toolCallId: `call_${id}_${at}`,
        tool: 'refund',
        input: { euros: 90 },
      }));
      messages.push(message(id, 'assistant', [{ type: 'text', text: words.join('') }, ...requested]));
      const results = calls.map((kind, at) => ({
        type: 'tool_result' as const,
        toolCallId: `call_${id}_${at}`,
        ...(kind === 'edited' && { input: inputOf(kind) }),
        ...resultOf(kind),
      }));
      if (results.length > 0) messages.push(message(`${id}_results`, 'tool', results as Message['content']));
    }
    return messages;
  });
}

/** A service whose stream breaks off after each of these numbers of chunks, and whose lists have short pages. */
function clientOf(
  all: Step[][],
  chunks: Chunk[],
  read: number,
  cuts: number[],
): { client: Signalbox; session: Session } {
  let written = read;
  const remaining = [...cuts];
  const stream = (
    _: string,
    { cursor, onConnection }: { cursor: string | null; onConnection: (s: 'open') => void },
  ) => ({
    async *[Symbol.asyncIterator]() {
      onConnection('open');
      const rest = chunks.filter((chunk) => isAfter(chunk, cursor));
      const length = remaining.shift() ?? rest.length;
      for (const chunk of rest.slice(0, length)) {
        written = Math.max(written, chunks.indexOf(chunk) + 1);
        yield { chunks: [chunk] };
      }
      if (length < rest.length) throw new ConnectionError({ status: 0, code: 'connection_error', detail: 'away' });
    },
  });
  const messages = async (_: string, { cursor, limit }: { cursor?: string; limit: number }) => {
    const settled = transcriptOf(all, chunks.slice(0, written));
    const end = cursor === undefined ? settled.length : Number(cursor);
    const begin = Math.max(0, end - limit);
    return { data: settled.slice(begin, end).reverse(), hasMore: begin > 0, nextCursor: String(begin) };
  };
  const at = chunks[read - 1];
  const status = chunks.slice(0, read).findLast(({ type }) => type === 'session.status') as {
    status?: Session['status'];
  };
  const session = {
    sessionId: 'ses_1',
    turn: at?.turn ?? 0,
    cursor: at ? cursorOf(at) : null,
    status: status?.status ?? 'idle',
    stopReason: null,
    forkedFrom: null,
    waitingFor: null,
  } as unknown as Session;
  return { client: { sessions: { stream, messages, get: async () => session } } as unknown as Signalbox, session };
}

interface Call {
  id: string;
  tool: string;
  input: unknown;
  output: unknown;
  error: string | null;
  state: string;
}

function lineOf({ id, tool, input, output, error, state }: Call): string {
  // Each shows the beginning of an input in its own way.
  const written = state === 'input' || state === 'input-streaming' ? '…' : JSON.stringify(input);
  return `${id} ${tool} ${written} ${error ?? JSON.stringify(output) ?? ''}`;
}

function linesOf(parts: readonly AssistantPart[]): string[] {
  return parts.map((part) => (part.type === 'tool' ? lineOf(part) : part.text));
}

const noWait = async () => {};
/** Until everything that is in progress has ended. */
async function settle(isOver: () => boolean): Promise<void> {
  for (let rounds = 0; rounds < 30 || !isOver(); rounds += 1) {
    if (rounds > 2_000) throw new Error('It does not end');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function shownByStore(client: Signalbox): Promise<string[]> {
  const store = createSessionStore({ client, sessionId: 'ses_1', sleep: noWait });
  const close = store.subscribe(() => {});
  await settle(() => store.getSnapshot().connection === 'closed');
  close();
  return store.getSnapshot().messages.flatMap((one) => (one.role === 'assistant' ? linesOf(one.parts) : []));
}

async function shownByConsole(client: Signalbox, session: Session): Promise<string[]> {
  const following = new Following(client, session, noWait);
  const stop = following.start();
  await settle(() => following.snapshot().connection === 'closed');
  stop();
  return following.snapshot().entries.flatMap((entry) => {
    if (entry.kind === 'user') return [];
    return entry.kind === 'call' ? lineOf({ id: entry.key, ...entry }) : entry.text;
  });
}

async function shownByAiSdk(chunks: readonly Chunk[]): Promise<string[]> {
  const lines: string[] = [];
  for (const turn of new Set(chunks.map((chunk) => chunk.turn))) {
    async function* envelopes() {
      yield { sessionId: 'ses_1', chunks: chunks.filter((chunk) => chunk.turn === turn) } as unknown as Envelope;
    }
    const stream = ReadableStream.from(toUIMessageChunks(envelopes(), { turn, decides: () => false }));
    let message: UIMessage = { id: '', role: 'assistant', parts: [] };
    for await (const next of readUIMessageStream({ stream, terminateOnError: true })) message = next;
    for (const part of message.parts) {
      if (part.type === 'text') lines.push(part.text);
      if (!isToolUIPart(part)) continue;
      const { toolCallId: id, input, output, errorText, state } = part;
      // The AI SDK has no text of an output that was denied.
      const error = state === 'output-denied' ? 'It was denied' : (errorText ?? null);
      lines.push(lineOf({ id, tool: part.type.slice('tool-'.length), input, output, error, state }));
    }
  }
  return lines;
}

/** `read`: a run that the client had before has shown the chunks up to there. */
function shownByAgUi(chunks: readonly Chunk[], read: number): string[] {
  const before = new RunEvents([]);
  for (const chunk of chunks.slice(0, read)) before.push(chunk);
  const events = new RunEvents(before.messages);
  for (const [index, chunk] of chunks.entries()) events.push(chunk, { isReplay: index < read });
  const results = new Map(events.messages.flatMap((one) => (one.role === 'tool' ? [[one.toolCallId, one]] : [])));
  return events.messages.flatMap((message) => {
    if (message.role !== 'assistant') return [];
    const calls = (message.toolCalls ?? []).map(({ id, function: { name: tool, arguments: input } }) => {
      const result = results.get(id);
      return `${id} ${tool} ${input === '{' ? '…' : input} ${result?.content ?? ''}`;
    });
    return [...(message.content ? [message.content as string] : []), ...calls];
  });
}

/** Streams can't put a call before one that was shown: within a response, calls count as a set. */
function sorted(lines: readonly string[]): string[] {
  const result: string[] = [];
  let calls: string[] = [];
  for (const line of [...lines, '']) {
    if (line.startsWith('call_')) calls.push(line);
    else {
      result.push(...calls.sort(), line);
      calls = [];
    }
  }
  return result.slice(0, -1);
}

test('the store, the console, the AI SDK and AG-UI show what the reducer makes of the whole journal', async () => {
  await fc.assert(
    fc.asyncProperty(
      turns,
      fc.nat(),
      fc.nat(),
      fc.array(fc.nat({ max: 9 }), { maxLength: 3 }),
      async (all, to, at, cuts) => {
        const whole = journalOf(all);
        // It ends anywhere, and was read when it was as long as `read`.
        const chunks = whole.slice(0, 1 + (to % whole.length));
        const read = at % (chunks.length + 1);
        const expected = chunks
          .reduce(applyChunk, journalAfter({ turn: 0, seq: 0 }))
          .turns.flatMap(({ parts }) => linesOf(parts));
        const lengths = cuts.map((length) => length + 1);
        const forStore = clientOf(all, chunks, read, lengths);
        expect(await shownByStore(forStore.client)).toEqual(expected);
        const forConsole = clientOf(all, chunks, read, lengths);
        expect(await shownByConsole(forConsole.client, forConsole.session)).toEqual(expected);
        expect(sorted(await shownByAiSdk(chunks))).toEqual(sorted(expected));
        expect(sorted(shownByAgUi(chunks, read))).toEqual(sorted(expected));
      },
    ),
    { numRuns: 100 },
  );
});
