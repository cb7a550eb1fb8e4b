// Sessions on nodes in the process of the test, with a model and tools that the test scripts; and ways to read the journal.
import type { Chunk as ReceivedChunk } from '@signalbox/client';
import type { Chunk, Input, Tool } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { createAgent } from '../../src/agents/agents.ts';
import type { Db } from '../../src/db/db.ts';
import { beginning } from '../../src/journal/cursor.ts';
import { readSegments } from '../../src/journal/read.ts';
import { chunksOf } from '../../src/journal/segment.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import type { AskModel, ModelCall, ModelEvent } from '../../src/models/model/model.ts';
import { createSessionRunner, type SessionRunner } from '../../src/node/session-runner.ts';
import type { Platform } from '../../src/platform.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import type { ListTools, RunTool } from '../../src/tools/tool/tool.ts';
import { ownTools } from '../../src/tools/tool/turn-tool.ts';
import type { Prices } from '../../src/usage/prices.ts';
import { until } from './idle.ts';
import { createTestPlatform, type TestPlatform } from './platform.ts';

type CreateAgent = Input<'createAgent'>;

export interface World extends TestPlatform {
  /** Starts a node on this platform, which stops with the world. */
  work(options: Partial<WorkOptions>): Promise<SessionRunner & { nodeId: string }>;
  agent(tools?: Tool[], more?: Partial<CreateAgent>): Promise<string>;
  open(agentId: string, more?: object): Promise<string>;
  chunks(sessionId: string): Promise<Chunk[]>;
  /** Resolves with all chunks once one of them matches. */
  until(sessionId: string, condition: (chunk: Chunk, all: Chunk[]) => boolean): Promise<Chunk[]>;
  /** Makes a node look dead to the others, as if its process had stopped. */
  expireLease(nodeId: string): Promise<void>;
}

interface WorkOptions {
  platform: Platform;
  ask: AskModel;
  run: RunTool;
  /** Default: the tools of the agent. */
  list: ListTools;
  graceMs: number;
  maxCrashes: number;
  /** Whether its text goes through the tail. */
  tail: boolean;
}

export async function createWorld(options: { clock?: Clock; prices?: Prices } = {}): Promise<World> {
  const node = await createTestPlatform(options);
  const { platform, organizationId, ctx } = node;
  const runners: SessionRunner[] = [];
  /** The latest renewal of each node's lease. */
  const renewals = new Map<string, Promise<unknown>>();

  async function chunks(sessionId: string): Promise<Chunk[]> {
    const segments = await readSegments(platform.db, organizationId, uuidOf('ses', sessionId), beginning, 100_000);
    return segments.flatMap((segment) => chunksOf(segment, beginning));
  }

  return {
    ...node,
    chunks,
    async work({
      platform: on = platform,
      ask = answering([]),
      run = async () => ({ output: null }),
      list = listOwn,
      graceMs = 0,
      maxCrashes,
      tail = process.env.SIGNALBOX_TEST_TAIL === 'on',
    }) {
      const nodeId = newUuid();
      const db: Db = {
        ...on.db,
        query<Row>(statement: Sql) {
          const rows = on.db.query<Row>(statement);
          if (statement.text.includes('insert into nodes')) renewals.set(nodeId, Promise.allSettled([rows]));
          return rows;
        },
      };
      const use = tail ? { isAllowed: () => true, look: async () => {} } : undefined;
      const runner = createSessionRunner(
        { ...on, db },
        { nodeId, ask, tools: { list, run }, graceMs, maxCrashes, tail: use },
      );
      runners.push(runner);
      await runner.start();
      return { ...runner, nodeId };
    },
    async agent(tools = [], more = {}) {
      const { agent } = await createAgent(ctx, { name: 'Agent', model: 'scripted/test', tools, ...more });
      return agent.agentId;
    },
    async open(agentId, more = {}) {
      const { session } = await openSession(ctx, { agentId, environment: 'production', input: 'go', ...more });
      return session.sessionId;
    },
    async until(sessionId, condition) {
      let all: Chunk[] = [];
      await until(async () => {
        all = await chunks(sessionId);
        return all.some((chunk) => condition(chunk, all));
      });
      return all;
    },
    async expireLease(nodeId) {
      // A renewal in progress would extend the lease again.
      await renewals.get(nodeId);
      await platform.db.execute(sql`
        update nodes set lease_expires_at = now() - interval '1 minute' where node_id = ${nodeId}`);
    },
    async close() {
      await Promise.all(runners.map((runner) => runner.stop()));
      await node.close();
    },
  };
}

const listOwn: ListTools = async (_owner, tools) => ({
  tools: ownTools(tools),
  unavailable: [],
});

/** What the model produces in one call: text, and tool calls by name with their inputs. */
export interface ScriptedResponse {
  text?: string;
  calls?: [name: string, input: unknown][];
}

/** A model that gives these responses in order and then repeats the last one; `seen` collects the calls. */
export function answering(answers: ScriptedResponse[], seen: (call: ModelCall) => void = () => {}): AskModel {
  return async function* ask(call): AsyncGenerator<ModelEvent> {
    seen(structuredClone(call));
    const { text = '', calls = [] } = answers[Math.min(call.callsBefore, answers.length - 1)] ?? { text: 'ok' };
    if (text) yield { type: 'text', delta: text };
    for (const [name, input] of calls) yield { type: 'toolCall', name, input };
    yield { type: 'finish', reason: calls.length > 0 ? 'toolCalls' : 'endTurn', usage };
  };
}

/** A model for each agent, by the name of its model: `scripted/NAME`. */
export function byModel(models: Record<string, AskModel>): AskModel {
  return (call, signal) => {
    const ask = models[call.config.model!];
    if (!ask) throw new Error(`No answers for the model ${call.config.model}`);
    return ask(call, signal);
  };
}

/** Whether a chunk shows this status; with `turn`, in that turn. */
export const is =
  (status: string, turn?: number) =>
  (chunk: Chunk): boolean =>
    chunk.type === 'session.status' && chunk.status === status && chunk.turn === (turn ?? chunk.turn);

/** A model that gives a text, if there is one, calls `onText`, and then runs until it is aborted. */
export function hanging(text: string, onText: () => void = () => {}): AskModel {
  return async function* ask(_call, signal) {
    if (text !== '') yield { type: 'text', delta: text };
    onText();
    await never(signal);
  };
}

/** Ends only when its signal aborts. */
export const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

export const usage = { inputTokens: 3, outputTokens: 2, cachedTokens: 1 };

export function httpTool(name: string, more: object = {}): Tool {
  const request = { method: 'POST' as const, url: 'https://example.com/' };
  return {
    type: 'http',
    name,
    description: name,
    inputSchema: { type: 'object' },
    request,
    approval: 'never',
    ...more,
  };
}

export function clientTool(name: string, more: object = {}): Tool {
  return { type: 'client', name, description: name, inputSchema: { type: 'object' }, ...more };
}

export function agentTool(name: string, agentId: string, more: object = {}): Tool {
  return { type: 'agent', name, description: name, agentId, ...more };
}

/** The same platform, but calls `answered` with the rows of each query before the caller gets them. */
export function queryingBy(platform: Platform, answered: (statement: Sql, rows: unknown[]) => Promise<void>): Platform {
  const { db } = platform;
  return {
    ...platform,
    db: {
      ...db,
      async query<Row>(statement: Sql) {
        const rows = await db.query<Row>(statement);
        await answered(statement, rows);
        return rows;
      },
    },
  };
}

/** Each chunk as one word, for comparing their order. */
export function outline(chunks: readonly ReceivedChunk[]): string[] {
  return chunks.flatMap((chunk) => {
    switch (chunk.type) {
      // Every response begins with these (response-chunks.test.ts).
      case 'step.started':
      case 'message.started':
        return [];
      case 'session.status':
        return chunk.status;
      case 'message.chunk':
        return `"${chunk.delta}"`;
      case 'approval.resolved':
        return `${chunk.type} ${chunk.decision}`;
      case 'message.reset':
        return `${chunk.type} ${chunk.fromSeq}`;
      case 'turn.completed':
        return `${chunk.type} ${chunk.stopReason}`;
      case 'tool.result':
        if (chunk.notRun) return 'tool.result not run';
        return chunk.outcomeUnknown
          ? 'tool.result unknown'
          : chunk.error === undefined
            ? 'tool.result'
            : 'tool.result error';
      case 'tool.call':
        return chunk.notRun ? 'tool.call not run' : 'tool.call';
      default:
        return chunk.type;
    }
  });
}
