// Checks what clients saw of a session, which responses they got, and which calls the tools' server received, against the promises
// of the service (P1–P5, P7). It knows only the API, not how the service works.
import type { Chunk } from '@signalbox/client';

/** What the tools' server received of one call. */
export interface SeenCall {
  tool: string;
  /** The number of requests for this call. */
  times: number;
  /** The number of requests whose response the caller still received. */
  answered: number;
}

/** What a reader saw who resumed after every failure, up to the end of the session. */
export interface Reading {
  /** The last chunk that it had seen before; undefined if it read from the beginning. */
  after?: Position | undefined;
  chunks: readonly Chunk[];
}

export interface Position {
  turn: number;
  seq: number;
}

/** A user message. `isAcknowledged`: the service accepted it; otherwise the outcome is unknown. */
export interface SentMessage {
  text: string;
  isAcknowledged: boolean;
}

/** What a webhook receiver got of one attempt of a delivery, in order of arrival. */
export interface SeenDelivery {
  deliveryId: string;
  /** The exact bytes. */
  body: string;
  /** Whether the receiver acknowledged it. */
  isTaken: boolean;
}

export interface History {
  /** The final journal. */
  stored: readonly Chunk[];
  readings: readonly Reading[];
  /** In order; each was sent after the response to the previous one. */
  sent: readonly SentMessage[];
  /** The text of the model's input and responses, in order. */
  transcript: readonly { role: 'user' | 'assistant' | 'tool'; text: string }[];
  /** Decisions that the service acknowledged, by operation id. */
  decisions: ReadonlyMap<string, readonly string[]>;
  /** By operation id. */
  calls: ReadonlyMap<string, SeenCall>;
  /** Whether these are responses of the model in that turn, each from one model call. */
  isTextOfTurn(turn: number, text: string): boolean;
  /** Tools whose calls may be repeated. */
  repeatable: ReadonlySet<string>;
  /** Deliveries of all types of this session's chunks; undefined without a subscription. */
  deliveries?: readonly SeenDelivery[] | undefined;
}

type Check = (kept: boolean, promise: string) => void;

/** A sentence for every promise that the history breaks; empty if it keeps them all. */
export function brokenPromises(history: History): string[] {
  const broken: string[] = [];
  const check: Check = (kept, promise) => {
    if (!kept) broken.push(promise);
  };
  checkJournal(history, check);
  checkReadings(history, check);
  checkMessages(history, check);
  checkApprovals(history, check);
  checkCalls(history, check);
  checkDeliveries(history, check);
  return broken;
}

/** P2: one order without gaps, one end, and between them what the model said. */
function checkJournal({ stored, transcript, isTextOfTurn }: History, check: Check): void {
  const isNext = (chunk: Chunk, before: Chunk | undefined) =>
    before === undefined
      ? chunk.turn === 1 && chunk.seq === 1
      : (chunk.turn === before.turn && chunk.seq === before.seq + 1) ||
        (chunk.turn === before.turn + 1 && chunk.seq === 1);
  const gap = stored.find((chunk, index) => !isNext(chunk, stored[index - 1]));
  check(gap === undefined, `the journal has no gaps and no doubles, as before ${gap && cursorOf(gap)}`);
  const ends = stored.filter((chunk) => chunk.type === 'session.status' && isEnd(chunk.status));
  check(ends.length === 1 && ends[0] === stored.at(-1), 'a session ends once, and last');
  for (const [turn, chunks] of Map.groupBy(stored, (chunk) => chunk.turn)) {
    const completed = chunks.filter((chunk) => chunk.type === 'turn.completed');
    check(completed.length === 1, `turn ${turn} is completed once, not ${completed.length} times`);
    check(
      completed.every(({ stopReason }) => stopReason === 'endTurn'),
      `turn ${turn} ends by itself, not by ${completed.map(({ stopReason }) => stopReason)}`,
    );
    const text = textOf(chunks);
    check(isTextOfTurn(turn, text), `turn ${turn} says what the model said, not ${JSON.stringify(text)}`);
    const known = answersIn(transcript, turn);
    check(text === known, `the model knows what it said in turn ${turn}, which is not ${JSON.stringify(known)}`);
  }
}

/** P1 and P4: what was shown once never changes, and a reader gets everything after its cursor, in order. */
function checkReadings({ stored, readings }: History, check: Check): void {
  for (const { after, chunks } of readings) {
    const from = after ? stored.findIndex(({ turn, seq }) => turn === after.turn && seq === after.seq) + 1 : 0;
    check(!after || from > 0, `what a reader saw at ${after && cursorOf(after)} is in the journal`);
    const rest = stored.slice(from);
    const wrong = Array.from({ length: Math.max(rest.length, chunks.length) }).findIndex(
      (_, index) => JSON.stringify(chunks[index]) !== JSON.stringify(rest[index]),
    );
    const place = chunks[wrong] ?? rest[wrong];
    check(
      wrong < 0,
      `a stream from ${after ? cursorOf(after) : 'the beginning'} is the journal, also at ${place && cursorOf(place)}`,
    );
  }
}

/** P1: every accepted message has exactly one turn, in order. */
function checkMessages({ stored, sent, transcript }: History, check: Check): void {
  const messages = transcript.filter(({ role }) => role === 'user').map(({ text }) => text);
  let at = 0;
  for (const { text, isAcknowledged } of sent) {
    if (messages[at] === text) at += 1;
    else check(!isAcknowledged, `"${text}" was taken, so it has its turn`);
  }
  check(at === messages.length, `each message has one turn, in order: ${messages.join(', ')}`);
  const turns = new Set(stored.map(({ turn }) => turn)).size;
  check(turns === messages.length, `${messages.length} messages have as many turns, not ${turns}`);
}

/** P7: an approval has one decision, the acknowledged one, and its call runs neither before the decision nor after a denial. */
function checkApprovals({ stored, decisions }: History, check: Check): void {
  for (const [index, request] of stored.entries()) {
    if (request.type !== 'approval.requested') continue;
    const { operationId, toolCallId, name } = request;
    const resolved = stored.filter((chunk) => chunk.type === 'approval.resolved' && chunk.operationId === operationId);
    check(resolved.length === 1, `the approval of ${name} is resolved once, not ${resolved.length} times`);
    const [first] = resolved;
    if (first?.type !== 'approval.resolved') continue;
    for (const given of decisions.get(operationId) ?? []) {
      check(
        given === first.decision,
        `the approval of ${name} is ${first.decision}, though an approver was told ${given}`,
      );
    }
    const decidedAt = stored.indexOf(first);
    check(decidedAt > index, `the approval of ${name} is resolved after it was requested`);
    check(first.toolCallId === toolCallId, `the approval of ${name} names its call when it is resolved`);
    const isOfCall = (chunk: Chunk) => 'toolCallId' in chunk && chunk.toolCallId === toolCallId;
    const started = stored.findIndex((chunk) => chunk.type === 'tool.call' && !chunk.notRun && isOfCall(chunk));
    const results = stored.filter((chunk) => chunk.type === 'tool.result' && isOfCall(chunk));
    check(results.length === 1, `${name}, which was ${first.decision}, has one result, not ${results.length}`);
    if (first.decision === 'approved') check(started > decidedAt, `${name} runs once it is approved, and not before`);
    else check(started < 0, `${name} was ${first.decision}, and does not run`);
  }
}

/** P7: an effect happens at most once unless its tool may be repeated, and every place reports the same known outcome. */
function checkCalls({ stored, calls, repeatable }: History, check: Check): void {
  const started = stored.filter((chunk) => chunk.type === 'tool.call');
  for (const { toolCallId, tool, notRun } of started) {
    const results = stored.filter((chunk) => chunk.type === 'tool.result' && chunk.toolCallId === toolCallId);
    const [result] = results;
    check(results.length === 1, `${tool} has one result, not ${results.length}`);
    if (result?.type !== 'tool.result') continue;
    const { times, answered } = calls.get(operationOf(toolCallId)) ?? { times: 0, answered: 0 };
    check(!!result.notRun === !!notRun, `${tool} ran for its result as for its call`);
    if (notRun) {
      check(times === 0, `${tool} was shown as not run, and did not run ${times} times`);
      continue;
    }
    if (!repeatable.has(tool)) check(times <= 1, `${tool} runs at most once, not ${times} times`);
    if (result.outcomeUnknown) check(!repeatable.has(tool), `${tool} may be repeated, so its outcome is known`);
    else check(answered > 0, `${tool} has a result that it gave, or one that says that nobody knows`);
  }
  const shown = new Set(started.map(({ toolCallId }) => operationOf(toolCallId)));
  check(
    [...calls.keys()].every((operationId) => shown.has(operationId)),
    'nothing runs that was not shown to start',
  );
}

/** P5: the acknowledged deliveries, without duplicates, equal the journal; every attempt of a delivery has the same bytes. */
function checkDeliveries({ stored, deliveries }: History, check: Check): void {
  if (!deliveries) return;
  const taken = new Map<string, string>();
  for (const { deliveryId, body, isTaken } of deliveries) {
    check((taken.get(deliveryId) ?? body) === body, `delivery ${deliveryId} is the same bytes each time`);
    if (isTaken) taken.set(deliveryId, body);
  }
  const chunks = [...taken.values()].flatMap((body) => (JSON.parse(body) as { chunks: Chunk[] }).chunks);
  const same = JSON.stringify(chunks) === JSON.stringify(stored);
  check(same, `the deliveries add up to the journal: ${chunks.map(cursorOf).join(' ')}`);
}

/** The same id with another prefix. */
export function operationOf(toolCallId: string): string {
  return toolCallId.replace(/^call_/, 'op_');
}

export function cursorOf({ turn, seq }: Position): string {
  return `turn_${turn}:seq_${seq}`;
}

export function isEnd(status: string): boolean {
  return ['completed', 'failed', 'cancelled'].includes(status);
}

/** The model's responses between the message that began the turn and the next message. */
function answersIn(transcript: History['transcript'], turn: number): string {
  let at = 0;
  return transcript
    .filter(({ role }) => {
      if (role === 'user') at += 1;
      return at === turn && role === 'assistant';
    })
    .map(({ text }) => text)
    .join('');
}

/** The text of a turn, without what was reset. */
function textOf(chunks: readonly Chunk[]): string {
  let kept: { seq: number; delta: string }[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'message.reset') kept = kept.filter(({ seq }) => seq < chunk.fromSeq);
    if (chunk.type === 'message.chunk') kept.push(chunk);
  }
  return kept.map(({ delta }) => delta).join('');
}
