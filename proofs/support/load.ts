// The load of the fault tests. Sessions stream, call tools, get messages and are approved by two approvers on two nodes. One reader
// moves from node to node, another joins later, and a webhook receiver gets the chunks too. The server's support/history.ts checks
// what all of them saw. (P1–P5, P7, P8)
import type { Chunk, Signalbox } from '@signalbox/client';
import { chunkTypes } from '../../packages/contract/src/chunks.ts';
import { leftoversIn } from '../../packages/server/test/support/database-state.ts';
import {
  brokenPromises,
  cursorOf,
  type History,
  isEnd,
  operationOf,
  type Position,
  type Reading,
  type SeenDelivery,
} from '../../packages/server/test/support/history.ts';
import type { Random } from '../../packages/server/test/support/random.ts';
import { createReceiver, type Received } from '../../packages/server/test/support/receiver.ts';
import { agentWith, isTextOfTurn, openByRequest, openBySchedule, startWorkers } from './loaded-agent.ts';
import { faults, type Nodes } from './nodes.ts';
import { startToolServer } from './tool-server.ts';

export interface Load {
  /** Resolves when readers have received this many more chunks. */
  shown(chunks: number): Promise<void>;
  /**
   * Runs sessions one after another on a few lanes while `trouble` runs, and waits for the last to end. Returns
   * all violated guarantees.
   */
  during(trouble: () => Promise<void>): Promise<string[]>;
  close(): Promise<void>;
}

export interface LoadOptions {
  nodes: Nodes;
  random: Random;
  /** A direct connection to the database, unaffected by faults of the nodes' connections. */
  databaseUrl: () => string;
  /** Schedules open some of the sessions, and workers run some; otherwise a request opens each, and nodes run it. */
  isVaried?: boolean;
  /** Checks a delivery as a receiver does; throws if it is not valid. */
  verify?: (received: Received, secret: string) => Promise<unknown>;
}

const AT_ONCE = faults.isLong ? 8 : 4;
const TOOL_TAKES_MS = 60;
// The number of chunks after which another message is sent, or another reader joins.
const EARLY_CHUNKS = 20;
const HOPS = 0.04;

/** Counts what has happened; `reaches` resolves when the count is reached. */
export function createCounter() {
  const waiting = new Set<() => void>();
  const counter = {
    count: 0,
    add(more: number): void {
      counter.count += more;
      for (const check of waiting) check();
    },
    reaches(count: number): Promise<void> {
      return new Promise((resolve) => {
        const check = () => {
          if (counter.count < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      });
    },
  };
  return counter;
}

export async function startLoad({ nodes, random, databaseUrl, isVaried = false, verify }: LoadOptions): Promise<Load> {
  const tools = await startToolServer(async () => {
    await new Promise((resolve) => setTimeout(resolve, TOOL_TAKES_MS));
    return { ok: true };
  });
  const deliveries: (SeenDelivery & { sessionId: string })[] = [];
  const delivered = createCounter();
  const secret = Promise.withResolvers<string>();
  const refused: string[] = [];
  const receiver = await createReceiver(async (received) => {
    const { deliveryId, body, envelope } = received;
    const { sessionId } = envelope;
    await verify?.(received, await secret.promise).catch((error) => refused.push(`${sessionId}: ${error}`));
    deliveries.push({ sessionId, deliveryId, body, isTaken: true });
    delivered.add(1);
    return 200;
  });
  const shown = createCounter();
  const laneFailed = Promise.withResolvers<never>();
  laneFailed.promise.catch(() => {});
  const [first] = nodes.clients;
  const agent = agentWith(tools);
  const { agentId } = await first!.agents.create(agent);
  const workers = isVaried ? await startWorkers(nodes.clients, agent) : undefined;
  const openings = workers ? [openByRequest, openBySchedule, workers.open] : [openByRequest];
  const subscription = await first!.webhookSubscriptions.create({
    environment: 'production',
    url: receiver.url,
    chunkTypes: [...chunkTypes],
  });
  secret.resolve(subscription.signingSecret!);

  const any = (chances: Random): Signalbox => chances.pick(nodes.clients);

  /** Reads to the end of the session, on changing nodes. */
  async function read(
    sessionId: string,
    after: Position | undefined,
    chances: Random,
    see: (chunks: readonly Chunk[]) => void = () => {},
  ): Promise<Reading> {
    const chunks: Chunk[] = [];
    let cursor = after ? cursorOf(after) : null;
    for (let hops = true; hops; ) {
      hops = false;
      const stream = any(chances).sessions.stream(sessionId, { cursor });
      for await (const { chunks: more } of stream) {
        chunks.push(...more);
        shown.add(more.length);
        see(more);
        hops = chances.chance(HOPS) && !more.some(isLast);
        if (hops) break;
      }
      cursor = stream.cursor;
    }
    return { after, chunks };
  }

  /** The decision that the service accepted; undefined if another approver had decided otherwise. */
  async function decide(operationId: string, chances: Random): Promise<string | undefined> {
    const decision = chances.chance(0.6) ? 'approved' : 'denied';
    try {
      await any(chances).approvals.resolve(operationId, { decision });
      return decision;
    } catch (error) {
      // An error of the client of any release.
      if ((error as { status?: number }).status === 409) return undefined;
      throw error;
    }
  }

  /** Opens a session, sends messages and reads it to its end. Resolves with what is checked at the end. */
  async function converse(chances: Random): Promise<() => Promise<string[]>> {
    const messages = Array.from({ length: 1 + chances.below(2) }, (_, index) => `message ${index + 1}`);
    const input = messages[0]!;
    const open = chances.pick(openings);
    const sessionId = await open(any(chances), agentId, input);
    const seen: Chunk[] = [];
    const early = createCounter();
    const decisions = new Map<string, string[]>();
    const deciding: Promise<void>[] = [];
    const clicks = chances.fork();
    const whole = read(sessionId, undefined, chances.fork(), (chunks) => {
      seen.push(...chunks);
      early.add(chunks.some(isIdle) ? EARLY_CHUNKS : chunks.length);
      for (const chunk of chunks) {
        if (chunk.type !== 'approval.requested') continue;
        const { operationId } = chunk;
        decisions.set(operationId, []);
        // Two approvers, who may disagree.
        for (const person of [clicks.fork(), clicks.fork()]) {
          deciding.push(
            decide(operationId, person).then((told) => void (told && decisions.get(operationId)!.push(told))),
          );
        }
      }
    });
    async function readLate(): Promise<Reading> {
      await early.reaches(1 + chances.below(EARLY_CHUNKS));
      const { turn, seq } = chances.pick(seen);
      return read(sessionId, { turn, seq }, chances.fork());
    }
    async function talk(): Promise<void> {
      for (const content of messages.slice(1)) {
        await early.reaches(1 + chances.below(EARLY_CHUNKS));
        await any(chances).sessions.sendMessage(sessionId, { content });
      }
      await any(chances).sessions.close(sessionId);
    }
    const [readings] = await Promise.all([Promise.all([whole, readLate()]), talk()]);
    await Promise.all(deciding);

    return async () => {
      const stored: Chunk[] = [];
      for await (const { chunks } of any(chances).sessions.chunks(sessionId, { limit: 1000 })) stored.push(...chunks);
      await deliveredToEnd(sessionId);
      const transcript: History['transcript'][number][] = [];
      for await (const { role, content } of any(chances).sessions.messages(sessionId)) {
        transcript.push({ role, text: content.map((part) => (part.type === 'text' ? part.text : '')).join('') });
      }
      const own = new Set(stored.flatMap((chunk) => ('toolCallId' in chunk ? [operationOf(chunk.toolCallId)] : [])));
      const broken = brokenPromises({
        stored,
        readings,
        sent: messages.map((text) => ({ text, isAcknowledged: true })),
        transcript,
        decisions,
        calls: new Map([...tools.calls].filter(([operationId]) => own.has(operationId))),
        isTextOfTurn,
        repeatable: new Set(['look']),
        deliveries: deliveries.filter((delivery) => delivery.sessionId === sessionId),
      });
      return broken.map((promise) => `${sessionId}: ${promise}`);
    };
  }

  async function deliveredToEnd(sessionId: string): Promise<void> {
    while (!deliveries.some((delivery) => delivery.sessionId === sessionId && lastOf(delivery.body))) {
      await delivered.reaches(delivered.count + 1);
    }
  }

  return {
    // Otherwise a test whose sessions all failed would wait for more of them until its timeout.
    shown: (chunks) => Promise.race([shown.reaches(shown.count + chunks), laneFailed.promise]),
    async during(trouble) {
      let isOver = false;
      async function lane(chances: Random): Promise<(() => Promise<string[]>)[]> {
        const all = [await converse(chances.fork())];
        while (!isOver) all.push(await converse(chances.fork()));
        return all;
      }
      const lanes = Promise.all(Array.from({ length: AT_ONCE }, () => lane(random.fork())));
      lanes.catch(laneFailed.reject);
      const troubled = trouble().finally(() => {
        isOver = true;
      });
      const [judgements] = await Promise.all([lanes, troubled]);
      const broken = await Promise.all(judgements.flat().map((judge) => judge()));
      return [...broken.flat(), ...refused, ...(await leftoversIn(databaseUrl()))];
    },
    async close() {
      await workers?.stop();
      await Promise.all([tools.close(), receiver.close()]);
    },
  };
}

const isIdle = (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === 'idle';
const isLast = (chunk: Chunk) => chunk.type === 'session.status' && isEnd(chunk.status);
const lastOf = (body: string) => (JSON.parse(body) as { chunks: Chunk[] }).chunks.some(isLast);
