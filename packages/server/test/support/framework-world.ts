/** Sessions whose turns agents of frameworks run: a service, a model provider's server, and a queue for each test. */
import { setTimeout } from 'node:timers/promises';
import {
  type Chunk,
  type CreateAgent,
  type OpenSession,
  type RunOptions,
  type Session,
  Signalbox,
} from '@signalbox/client';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type OpenAiServer, respond, startOpenAiServer } from './openai-server.ts';
import { startTestService, type TestService } from './service.ts';

export interface FrameworkWorld {
  readonly service: TestService;
  readonly server: OpenAiServer;
  readonly queue: string;
  /** A session whose agent is on the queue of the test. Its first message is `Pay 17`. */
  open(more?: Partial<CreateAgent>, input?: OpenSession['input']): Promise<Session>;
  /** Runs a worker until the end of the test. */
  start(options: Partial<RunOptions> & Pick<RunOptions, 'onTurn'>): Worker;
  /** All chunks up to the first that matches. */
  until(session: Session, condition: (chunk: Chunk) => boolean): Promise<Chunk[]>;
  sessionOf(session: Session): Promise<Session>;
  /** The roles and texts that the model got with its last request. */
  lastPrompt(): string[];
}

export interface Worker {
  readonly errors: unknown[];
  stop(): Promise<void>;
}

export const isEnded = (chunk: Chunk) => chunk.type === 'turn.completed';
export const isRequested = (chunk: Chunk) => chunk.type === 'approval.requested';
export const textOf = (chunks: readonly Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'message.chunk' ? chunk.delta : '')).join('');
export const stopReasonOf = (chunks: readonly Chunk[]) => chunks.find(isEnded)?.stopReason;

/** A `client` tool. */
export const pay = (more: object = {}) => ({
  type: 'client' as const,
  name: 'pay',
  description: 'Pays an order.',
  inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  ...more,
});

/** A response with text and calls of `pay`. */
export const calls = (...orders: string[]) =>
  respond({ text: 'One moment. ', toolCalls: orders.map((order) => ({ name: 'pay', arguments: { order } })) });

/** Heartbeats every 50 ms rather than 5 s, for tests that wait for one. */
const fastHeartbeats = (ms: number, signal?: AbortSignal) =>
  setTimeout(ms === 5_000 ? 50 : ms, undefined, signal && { signal });

/** Call it at the top of a test file. */
export function frameworkWorld(): FrameworkWorld {
  let service: TestService;
  let server: OpenAiServer;
  let workers: Worker[] = [];
  let number = 0;

  beforeAll(async () => {
    service = await startTestService();
  });
  beforeEach(async () => {
    server = await startOpenAiServer();
    number += 1;
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    workers = [];
    await server.close();
  });
  afterAll(() => service.stop());

  return {
    get service() {
      return service;
    },
    get server() {
      return server;
    },
    get queue() {
      return `queue-${number}`;
    },

    async open(more = {}, input = 'Pay 17') {
      const { agentId } = await service.client.agents.create({
        name: 'Framework',
        model: { provider: 'worker', queue: this.queue },
        instructions: 'Be brief.',
        ...more,
      });
      return await service.client.sessions.open({ agentId, environment: 'production', input });
    },

    start(options) {
      const stopping = new AbortController();
      const errors: unknown[] = [];
      const client = new Signalbox({ apiKey: service.adminKey, baseUrl: service.url, sleep: fastHeartbeats });
      const done = client.workers.run({
        queue: this.queue,
        signal: stopping.signal,
        graceMs: 0,
        onError: (error) => errors.push(error),
        ...options,
      });
      const stop = async () => {
        stopping.abort();
        await done;
      };
      const worker = { errors, stop };
      workers.push(worker);
      return worker;
    },

    async until({ sessionId }, condition) {
      const all: Chunk[] = [];
      for await (const { chunks } of service.client.sessions.stream(sessionId)) {
        all.push(...chunks);
        if (chunks.some(condition)) return all;
      }
      throw new Error(`The session ended without it: ${JSON.stringify(all)}`);
    },

    sessionOf: ({ sessionId }) => service.client.sessions.get(sessionId),

    lastPrompt: () =>
      server.requests.at(-1)!.body.messages.map(({ role, content, tool_calls }) => {
        const parts = typeof content === 'string' ? [{ text: content }] : ((content ?? []) as { text: string }[]);
        const asked = (tool_calls ?? []).map(({ function: { name, arguments: input } }) => ` ${name}${input}`);
        return `${role}: ${parts.map(({ text }) => text).join('')}${asked.join('')}`;
      }),
  };
}
