// Guarantees under concurrent decisions, results, messages, steering, interrupts and closing: requests arrive at two nodes, their
// sessions run on two others, and most wake-ups are lost. A seed repeats the same requests; their timing depends on the machine.
import type { Chunk, Message } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { listEvents } from '../../src/events/events.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import type { AskModel } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { clientTool, createWorld, httpTool, usage, type World } from '../support/session-world.ts';

let clock: ManualClock;
let world: World;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(() => clock.passWhile(world.close()));

const SESSIONS = 12;
const ROUNDS = 14;

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What the service acknowledged. */
interface Acknowledged {
  /** The decision of each approval. */
  decisions: Map<string, string>;
  /** The result of each client tool call. */
  results: Map<string, unknown>;
  messages: Set<string>;
  /** Makes each result unique. */
  tries: number;
}

test.each([1, 2])('each call is decided once, runs at most once, and has one result (seed %i)', async (seed) => {
  const random = randomFrom(seed);
  const runs = new Map<string, number>();
  const run: RunTool = async ({ operationId }, signal) => {
    runs.set(operationId, (runs.get(operationId) ?? 0) + 1);
    await clock.sleep(Math.floor(random() * 400), signal);
    return { output: 'done' };
  };
  // In each turn, first calls of every kind, then a single call, then text.
  const ask: AskModel = async function* ({ transcript }) {
    const step = transcript.length - transcript.findLastIndex(({ role }) => role === 'user');
    const asked = step === 1 ? ['quick', 'pay', 'own', 'pay'] : step === 3 ? ['own'] : [];
    yield { type: 'text', delta: 'x' };
    for (const [n, name] of asked.entries()) yield { type: 'toolCall', name, input: { n } };
    yield { type: 'finish', reason: asked.length > 0 ? 'toolCalls' : 'endTurn', usage };
  };
  for (const platform of [await world.anotherNode(), world.platform]) await world.work({ platform, ask, run });
  const nodes: PoolContext[] = [world.ctx, { ...world.ctx, ...(await world.anotherNode()) }];
  const agentId = await world.agent([httpTool('quick'), httpTool('pay', { approval: 'always' }), clientTool('own')], {
    limits: { approvalTimeoutSeconds: 1 },
  });

  await clock.passWhile(Promise.all(Array.from({ length: SESSIONS }, () => live(agentId))));

  async function live(agent: string): Promise<void> {
    const sessionId = await world.open(agent);
    const known: Acknowledged = { decisions: new Map(), results: new Map(), messages: new Set(), tries: 0 };
    const at = () => nodes[Math.floor(random() * nodes.length)]!;
    for (let round = 0; round < ROUNDS; round += 1) {
      await clock.sleep(Math.floor(random() * 300));
      // Two at a time, often on two nodes.
      await Promise.all([act(at(), sessionId, known, random), act(at(), sessionId, known, random)]);
    }
    await settle(sessionId, known);
    await check(sessionId, known, runs);
  }

  /** Decides and returns results until the session is idle. */
  async function settle(sessionId: string, known: Acknowledged): Promise<void> {
    while ((await getSession(world.ctx, { sessionId })).session.status !== 'idle') {
      await decide(world.ctx, sessionId, known, 'approved');
      await giveResult(world.ctx, sessionId, known);
      await clock.sleep(20);
    }
  }
});

async function act(ctx: PoolContext, sessionId: string, known: Acknowledged, random: () => number): Promise<void> {
  const choice = random();
  if (choice < 0.35) await decide(ctx, sessionId, known, random() < 0.6 ? 'approved' : 'denied');
  else if (choice < 0.6) await giveResult(ctx, sessionId, known);
  else if (choice < 0.75) await say(ctx, sessionId, known, 'queue');
  else if (choice < 0.87) await say(ctx, sessionId, known, 'steer');
  else await interruptSession(ctx, { sessionId });
}

async function decide(ctx: PoolContext, sessionId: string, known: Acknowledged, decision: 'approved' | 'denied') {
  const { data } = await listApprovals(ctx, { sessionId, status: 'pending' });
  const operationId = data[0]?.operationId;
  if (operationId === undefined) return;
  await resolveApproval(ctx, { operationId, decision }).then(
    ({ approval }) => {
      expect(approval.status).toBe(decision);
      expect(known.decisions.get(operationId) ?? decision).toBe(decision);
      known.decisions.set(operationId, decision);
    },
    (error) => expect(error).toMatchObject({ code: 'approval_already_resolved' }),
  );
}

async function giveResult(ctx: PoolContext, sessionId: string, known: Acknowledged): Promise<void> {
  const { session } = await getSession(ctx, { sessionId });
  const toolCallId = session.waitingFor?.toolCallIds[0];
  if (toolCallId === undefined) return;
  known.tries += 1;
  const output = `result ${known.tries}`;
  await sendToolResult(ctx, { sessionId, toolCallId, output }).then(
    () => {
      expect(known.results.has(toolCallId)).toBe(false);
      known.results.set(toolCallId, output);
    },
    (error) => expect(error).toMatchObject({ code: 'conflict' }),
  );
}

async function say(ctx: PoolContext, sessionId: string, known: Acknowledged, onBusy: 'queue' | 'steer'): Promise<void> {
  const { messageId } = await sendMessage(ctx, { sessionId, content: onBusy, onBusy });
  known.messages.add(messageId);
}

async function check(sessionId: string, known: Acknowledged, runs: ReadonlyMap<string, number>): Promise<void> {
  const chunks = await world.chunks(sessionId);
  const of = <T extends Chunk['type']>(type: T) =>
    chunks.filter((chunk): chunk is Extract<Chunk, { type: T }> => chunk.type === type);

  // The journal has no gaps.
  for (const [turn, inTurn] of Map.groupBy(chunks, (chunk) => chunk.turn)) {
    expect(
      inTurn.map(({ seq }) => seq),
      `turn ${turn}`,
    ).toEqual(inTurn.map((_, index) => index + 1));
    expect(inTurn.filter(({ type }) => type === 'turn.completed')).toHaveLength(1);
  }

  // Each approval is decided once: the response, the list, the journal and the event log agree.
  const { data: approvals } = await listApprovals(world.ctx, { sessionId, limit: 100 });
  const { data: events } = await listEvents(world.ctx, { sessionId, type: 'approval.resolved', limit: 1_000 });
  expect(
    of('approval.requested')
      .map(({ operationId }) => operationId)
      .toSorted(),
  ).toEqual(approvals.map(({ operationId }) => operationId).toSorted());
  for (const { operationId, status } of approvals) {
    expect(known.decisions.get(operationId) ?? status).toBe(status);
    expect(status).not.toBe('pending');
    const shown = of('approval.resolved').filter((chunk) => chunk.operationId === operationId);
    expect(shown.map(({ decision }) => decision)).toEqual([status]);
    const recorded = events.filter(({ resource }) => resource.id === operationId);
    expect(recorded.map(({ changes }) => changes!.status)).toEqual([['pending', status]]);
  }

  // Each call has one result. A call that was not approved never ran, and none ran twice.
  const called = of('tool.call').map(({ toolCallId }) => toolCallId);
  expect(new Set(called).size).toBe(called.length);
  // A client tool call that never ran has a result, but no `tool.call`.
  const results = of('tool.result').filter(({ tool }) => tool === undefined);
  expect(results.map(({ toolCallId }) => toolCallId).toSorted()).toEqual(called.toSorted());
  expect(of('tool.result').every(({ tool, notRun }) => tool === undefined || notRun === true)).toBe(true);
  for (const { operationId, status } of approvals) {
    const mayRun = status === 'approved' && called.includes(operationId.replace('op_', 'call_'));
    expect(runs.get(operationId) ?? 0).toBeLessThanOrEqual(mayRun ? 1 : 0);
  }

  // Each accepted message is in the transcript once. Each call has its result, directly after the response that requested it.
  const messages = await transcriptOf(sessionId);
  const ids = messages.map(({ messageId }) => messageId);
  for (const messageId of known.messages) expect(ids.filter((id) => id === messageId)).toHaveLength(1);
  for (const [index, { role, content }] of messages.entries()) {
    const asked = content.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []));
    if (asked.length === 0) continue;
    expect(role).toBe('assistant');
    const results = messages[index + 1]!.content.flatMap((part) => (part.type === 'tool_result' ? [part] : []));
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(asked);
    for (const { toolCallId, output } of results) {
      if (known.results.has(toolCallId)) expect(output).toBe(known.results.get(toolCallId));
    }
  }
}

async function transcriptOf(sessionId: string): Promise<Message[]> {
  const all: Message[] = [];
  for (let cursor = '', hasMore = true; hasMore; ) {
    const { data, page } = await listMessages(world.ctx, { sessionId, limit: 100, ...(cursor && { cursor }) });
    all.push(...data);
    ({ nextCursor: cursor, hasMore } = page);
  }
  return all;
}
