// Runs sessions on three nodes while the database, processes, models, tools and receivers fail at random, and records the history. It
// uses the real turn machine, journal, live streams and dispatcher, with a fast clock and one seed for every random choice.
//
// A seed determines the faults, but not the order in which the database responds: with the same seed, the same faults occur at
// slightly different times.
import { type Chunk, chunkTypes } from '@signalbox/contract';
import { raw } from 'sql-template-tag';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { DatabaseUnavailable } from '../../src/db/db.ts';
import { createDispatcher } from '../../src/deliveries/dispatcher.ts';
import { createEnvironment } from '../../src/environments/environments.ts';
import { createLive, streamSession } from '../../src/journal/live.ts';
import { ApiError } from '../../src/lib/api-error.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { type AskModel, ModelFailure } from '../../src/models/model/model.ts';
import type { Platform } from '../../src/platform.ts';
import { closeSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { createWebhookSubscription } from '../../src/webhooks/subscriptions.ts';
import { LEFTOVERS } from './database-state.ts';
import { type FaultShares, type FaultyDb, faultyDb, mutatedDb } from './faulty-db.ts';
import {
  brokenPromises,
  cursorOf,
  type History,
  isEnd,
  operationOf,
  type Position,
  type Reading,
  type SeenCall,
  type SeenDelivery,
  type SentMessage,
} from './history.ts';
import { until } from './idle.ts';
import { createManualClock, type ManualClock } from './manual-clock.ts';
import { createRandom, type Random } from './random.ts';
import { createReceiver, type Receiver } from './receiver.ts';
import { createWorld, httpTool, usage, type World } from './session-world.ts';
import { partsOf, wholeOf } from './stream-parts.ts';

export interface SimulationOptions {
  seed: number;
  /** The number of simultaneous sessions. */
  sessions: number;
  /** The number of nodes that are killed or stopped during the run, one after another. */
  disturbances: number;
  /** Text goes through the tail. Webhooks would keep it out: half of the sessions are in an environment without a subscription. */
  tail?: boolean;
  /** Rewrites every statement, to disable a mechanism of the service. */
  mutate?: (text: string) => string;
}

const NODES = 3;
/** An environment without a subscription. */
const QUIET = 'quiet';
const MAX_MESSAGES = 3;
const SHARES: FaultShares = { lost: 0.006, unanswered: 0.012, late: 0.015, slow: 0.1 };
const MODEL_FAILS = 0.04;
const RECEIVER_FAILS = 0.03;
// Time passes at first while the nodes work, so that polls and retries overlap with everything else, and then only while they are
// idle: what is unfinished at the limit never finishes, however slow the machine is.
const HURRIED_MS = 90_000;
const STEP_MS = 10;
const LIMIT_MS = 180_000;
const REPEATABLE = new Set(['look']);
const WORDS = 6;
const STEPS: readonly (readonly string[])[] = [['pay', 'look'], ['refund', 'look'], []];
const REFUND = httpTool('refund', { approval: 'always' });
const TOOLS = [httpTool('pay'), httpTool('look', { idempotent: true }), REFUND];

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

// Each model call produces different text.
let asked = 0;
const wordsOf = (turn: number, step: number, call: number | string) =>
  Array.from({ length: WORDS }, (_, word) => `t${turn}s${step}w${word}#${call} `);

/** Each step is the words of one model call. */
function isTextOfTurn(turn: number, text: string): boolean {
  const words = text.split(/(?<= )/);
  const said = STEPS.flatMap((_, step) => wordsOf(turn, step, /#(\d+)/.exec(words[step * WORDS] ?? '')?.[1] ?? 'none'));
  return said.join('') === text;
}

interface Node {
  base: Platform;
  nodeId: string;
  ctx: PoolContext;
  faults: FaultyDb;
  /** Aborted when the node is killed. */
  gone: AbortController;
  /** Stops what still runs on the node. */
  end(): Promise<unknown>;
}

/** Every broken promise; empty if all were kept. */
export async function simulate(options: SimulationOptions): Promise<string[]> {
  const clock = createManualClock(new Date());
  const world = await createWorld({ clock });
  const simulation = new Simulation(world, options);
  try {
    return await pass(clock, simulation.run(clock));
  } finally {
    await clock.passWhile(simulation.end().then(() => world.close()));
  }
}

async function pass<T>(clock: ManualClock, awaited: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  awaited.then(end, end);
  for (let passed = 0; passed < HURRIED_MS && !isOver; passed += STEP_MS) {
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
    clock.leap(STEP_MS);
  }
  return clock.passWhile(awaited);
}

class Simulation {
  readonly #world: World;
  readonly #options: SimulationOptions;
  readonly #random: Random;
  readonly #nodes: Node[] = [];
  readonly #ended: Promise<unknown>[] = [];
  readonly #over = new AbortController();
  readonly #calls = new Map<string, SeenCall>();
  readonly #decisions = new Map<string, string[]>();
  readonly #deliveries: (SeenDelivery & { sessionId: string })[] = [];
  #receiver: Receiver | undefined;

  constructor(world: World, options: SimulationOptions) {
    this.#world = world;
    this.#options = options;
    this.#random = createRandom(options.seed);
  }

  async run(clock: ManualClock): Promise<string[]> {
    const { ctx } = this.#world;
    this.#receiver = await this.#startReceiver();
    const types = [...chunkTypes];
    await createWebhookSubscription(ctx, { environment: 'production', url: this.#receiver.url, chunkTypes: types });
    for (let index = 0; index < NODES; index += 1) {
      this.#nodes.push(await this.#startNode(await this.#world.anotherNode()));
    }
    const limits = { turnTimeoutSeconds: 3_600 };
    const agentId = await this.#world.agent(TOOLS, { limits });
    for (const { faults } of this.#nodes) faults.breaks(true);
    if (this.#options.tail) await createEnvironment(ctx, { name: QUIET });
    const lanes = Array.from({ length: this.#options.sessions }, (_, index) =>
      this.#session(agentId, this.#random.fork(), !this.#options.tail || index % 2 === 0),
    );
    const disturbed = this.#disturb(this.#random.fork());
    const histories = await Promise.race([Promise.all([Promise.all(lanes), disturbed]), clock.sleep(LIMIT_MS)]);
    if (!histories) return ['every session comes to its end'];
    for (const { faults } of this.#nodes) faults.breaks(false);
    const broken = await Promise.all(histories[0].map(async (history) => this.#judge(await history())));
    return [...broken.flat(), ...(await this.#leftovers())];
  }

  async end(): Promise<void> {
    this.#over.abort(new Error('The simulation is over'));
    for (const { faults, end } of this.#nodes) {
      faults.breaks(false);
      this.#ended.push(end());
    }
    await Promise.allSettled(this.#ended);
    await this.#receiver?.close();
  }

  // ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #startNode(base: Platform): Promise<Node> {
    const random = this.#random.fork();
    const { mutate } = this.#options;
    const faults = faultyDb(mutate ? mutatedDb(base.db, mutate) : base.db, random.fork(), SHARES);
    const live = createLive({ ...base, db: faults.db });
    live.start();
    const platform = { ...base, db: faults.db, live };
    const runner = await this.#world.work({
      platform,
      ask: this.#modelOf(random.fork()),
      run: this.#toolsOf(random),
      // Here one step may lose more nodes than the default limit allows.
      maxCrashes: Number.POSITIVE_INFINITY,
      ...(this.#options.tail && { tail: true }),
    });
    const dispatcher = createDispatcher(platform, { nodeId: runner.nodeId, version: '0', graceMs: 0 });
    dispatcher.start();
    return {
      base,
      nodeId: runner.nodeId,
      ctx: { ...this.#world.ctx, ...platform },
      faults,
      gone: new AbortController(),
      end: () => Promise.all([runner.stop(), dispatcher.stop(), live.stop()]),
    };
  }

  async #disturb(random: Random): Promise<void> {
    for (let count = 0; count < this.#options.disturbances; count += 1) {
      for (let ticks = 20 + random.below(200); ticks > 0; ticks -= 1) await tick();
      const index = random.below(NODES);
      await (random.chance(0.5) ? this.#kill(index) : this.#stop(this.#nodes[index]!, random));
    }
  }

  /** Kills a node and starts another in its place. */
  async #kill(index: number): Promise<void> {
    const { base, nodeId, faults, gone, end } = this.#nodes[index]!;
    faults.cut();
    gone.abort();
    await this.#world.expireLease(nodeId);
    this.#ended.push(end());
    const next = await this.#startNode(base);
    next.faults.breaks(true);
    this.#nodes[index] = next;
  }

  /** Pauses a node for longer than its lease; then it continues without noticing. */
  async #stop({ nodeId, faults }: Node, random: Random): Promise<void> {
    const proceed = faults.stop();
    await this.#world.expireLease(nodeId);
    for (let ticks = 20 + random.below(400); ticks > 0; ticks -= 1) await tick();
    proceed();
  }

  // ── Models, tools and receivers ────────────────────────────────────────────────────────────────────────────────────

  #modelOf(random: Random): AskModel {
    return async function* ask({ transcript }, signal) {
      const turn = transcript.filter(({ role }) => role === 'user').length;
      const told = transcript.findLastIndex(({ role }) => role === 'user');
      const step = transcript.slice(told).filter(({ role }) => role === 'assistant').length;
      const fails = random.chance(MODEL_FAILS);
      asked += 1;
      for (const word of wordsOf(turn, step, asked)) {
        for (let ticks = random.below(30); ticks > 0; ticks -= 1) await tick();
        signal.throwIfAborted();
        yield { type: 'text', delta: word };
        if (fails && random.chance(0.5))
          throw new ModelFailure('model_unavailable', 'It broke off', { retryable: true });
      }
      const names = STEPS[step]!;
      for (const name of names) yield { type: 'toolCall', name, input: { turn } };
      yield { type: 'finish', reason: names.length > 0 ? 'toolCalls' : 'endTurn', usage };
    };
  }

  #toolsOf(random: Random): RunTool {
    return async ({ tool, operationId }, signal) => {
      const call = this.#calls.get(operationId) ?? { tool: tool.name, times: 0, answered: 0 };
      this.#calls.set(operationId, call);
      call.times += 1;
      for (let ticks = random.below(60); ticks > 0; ticks -= 1) await tick();
      signal.throwIfAborted();
      call.answered += 1;
      return { output: call.times };
    };
  }

  #startReceiver(): Promise<Receiver> {
    const random = this.#random.fork();
    return createReceiver(({ deliveryId, body, envelope: { sessionId } }) => {
      const isTaken = !random.chance(RECEIVER_FAILS);
      this.#deliveries.push({ sessionId, deliveryId, body, isTaken });
      return isTaken ? 200 : random.pick([500, 'reset']);
    });
  }

  // ── Clients ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Opens a session, sends it messages and reads it to its end. Resolves with a function that reads its history once all is quiet. */
  async #session(
    agentId: string,
    random: Random,
    isDelivered: boolean,
  ): Promise<() => Promise<History & { sessionId: string }>> {
    const sent: SentMessage[] = [{ text: 'message 1', isAcknowledged: true }];
    const environment = isDelivered ? 'production' : QUIET;
    const sessionId = await this.#world.open(agentId, { input: 'message 1', environment });
    const seen: Chunk[] = [];
    const deciding: Promise<unknown>[] = [];
    const late = Promise.withResolvers<Position>();
    const lateAt = random.below(60);
    const whole = this.#read(sessionId, undefined, random.fork(), (chunk) => {
      seen.push(chunk);
      if (seen.length === lateAt + 1) late.resolve({ turn: chunk.turn, seq: chunk.seq });
      if (chunk.type !== 'approval.requested') return;
      // Two approvers on two nodes, who may agree or not.
      for (const clicks of [random.fork(), random.fork()]) deciding.push(this.#decide(chunk.operationId, clicks));
    });
    void whole.then(({ chunks }) => late.resolve(chunks.at(-1)!)).catch(late.reject);
    const rest = late.promise.then((after) => this.#read(sessionId, after, random.fork()));
    for (let number = 2; number <= 1 + random.below(MAX_MESSAGES); number += 1) {
      for (let ticks = random.below(300); ticks > 0; ticks -= 1) await tick();
      const text = `message ${number}`;
      const isAcknowledged = await this.#tried(sendMessage(this.#any(random).ctx, { sessionId, content: text }));
      sent.push({ text, isAcknowledged });
    }
    while (!(await this.#tried(closeSession(this.#any(random).ctx, { sessionId })))) await tick();
    const readings = await Promise.all([whole, rest]);
    await Promise.all(deciding);
    return async () => {
      if (isDelivered) await this.#delivered(sessionId);
      const { data } = await listMessages(this.#world.ctx, { sessionId, limit: 100 });
      return {
        sessionId,
        stored: await this.#world.chunks(sessionId),
        readings,
        sent,
        transcript: data.map(({ role, content }) => ({
          role,
          text: content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
        })),
        decisions: this.#decisions,
        calls: this.#calls,
        isTextOfTurn,
        repeatable: REPEATABLE,
        deliveries: isDelivered ? this.#deliveries.filter((delivery) => delivery.sessionId === sessionId) : undefined,
      };
    };
  }

  #any(random: Random): Node {
    return random.pick(this.#nodes);
  }

  /** Whether it was acknowledged; false if the outcome is unknown. */
  async #tried(act: Promise<unknown>): Promise<boolean> {
    this.#over.signal.throwIfAborted();
    try {
      await act;
      return true;
    } catch (error) {
      if (error instanceof DatabaseUnavailable) return false;
      throw error;
    }
  }

  async #decide(operationId: string, random: Random): Promise<void> {
    const decision = random.chance(0.6) ? 'approved' : 'denied';
    try {
      while (!(await this.#tried(resolveApproval(this.#any(random).ctx, { operationId, decision })))) await tick();
      this.#decisions.set(operationId, [...(this.#decisions.get(operationId) ?? []), decision]);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** Reads to the end of the session and reconnects to another node after each failure. */
  async #read(
    sessionId: string,
    after: Position | undefined,
    random: Random,
    seen: (chunk: Chunk) => void = () => {},
  ): Promise<Reading> {
    const chunks: Chunk[] = [];
    let at = after;
    let ended = false;
    while (!ended) {
      const { ctx, gone } = this.#any(random);
      const signal = AbortSignal.any([gone.signal, this.#over.signal]);
      await this.#tried(
        (async () => {
          const stream = await streamSession(ctx, { sessionId, ...(at && { cursor: cursorOf(at) }) });
          if (!stream) ended = true;
          for await (const { json } of stream ? wholeOf(partsOf(stream, signal)) : []) {
            for (const chunk of (JSON.parse(json) as { chunks: Chunk[] }).chunks) {
              at = { turn: chunk.turn, seq: chunk.seq };
              chunks.push(chunk);
              ended ||= chunk.type === 'session.status' && isEnd(chunk.status);
              seen(chunk);
            }
            // The reader's connection breaks.
            if (random.chance(0.02)) break;
          }
        })(),
      );
    }
    return { after, chunks };
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #delivered(sessionId: string): Promise<void> {
    const last = (await this.#world.chunks(sessionId)).at(-1)!;
    const end = `"turn":${last.turn},"seq":${last.seq}`;
    await until(() => {
      this.#over.signal.throwIfAborted();
      return this.#deliveries.some((one) => one.sessionId === sessionId && one.isTaken && one.body.includes(end));
    });
  }

  #judge({ sessionId, ...history }: History & { sessionId: string }): string[] {
    const own = new Set(
      history.stored.flatMap((chunk) => ('toolCallId' in chunk ? [operationOf(chunk.toolCallId)] : [])),
    );
    const calls = new Map([...this.#calls].filter(([operationId]) => own.has(operationId)));
    return brokenPromises({ ...history, calls }).map((promise) => `${sessionId}: ${promise}`);
  }

  /** Work that no node will ever finish (P8), and calls without a session. */
  async #leftovers(): Promise<string[]> {
    const { db } = this.#world.platform;
    const rows = await db.query<{ what: string }>(raw(LEFTOVERS));
    return rows.map(({ what }) => what);
  }
}

export const newSeed = () => Number.parseInt(newUuid().slice(-7), 16);
