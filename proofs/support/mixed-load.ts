// Sessions as in everyday use, with a model that responds at once in 20 words: most are opened and read to the end with one request.
// Other clients leave early, send a second message, decide an approval, use a session token, or send their request twice. A webhook
// receiver that sometimes fails gets every chunk. Some requests are invalid, and pages are read in between.
import { type Chunk, Signalbox, SignalboxError } from '@signalbox/client';
import { chunkTypes } from '../../packages/contract/src/chunks.ts';
import { createReceiver } from '../../packages/server/test/support/receiver.ts';
import { startToolServer } from './tool-server.ts';

export interface MixedLoad {
  /** The number of sessions that were opened so far, and of those whose clients are not done. */
  readonly opened: number;
  readonly inProgress: number;
  /** What went wrong for a client or for the receiver. */
  readonly failures: readonly string[];
  /** Opens the next session of the mix; resolves when its clients are done, also if they failed. */
  next(): Promise<void>;
  /** Sessions whose chunks the receiver does not have completely. */
  undelivered(): number;
  close(): Promise<void>;
}

/** A session that its clients are done with, and how many turns it has. */
interface Conversation {
  sessionId: string;
  turns: number;
}

/** What the receiver has of a session: the position of its last chunk, and its last turn that ended. */
interface Received {
  turn: number;
  seq: number;
  turnsDone: number;
}

const environment = 'production';
const words = Array.from({ length: 20 }, (_, at) => `word${at}`).join(' ');
const EVERY = { invalid: 10, read: 100, scrape: 750, failedDelivery: 1000 };

export async function startMixedLoad(service: { url: string; adminKey: string }): Promise<MixedLoad> {
  // A retry would hide a failure.
  const options = { baseUrl: service.url, maxRetries: 0 };
  const client = new Signalbox({ ...options, apiKey: service.adminKey });
  const tools = await startToolServer(async () => ({ ok: true }));
  const [chat, refunds] = await Promise.all([
    client.agents.create({
      name: 'Chat',
      model: { provider: 'scripted', model: 'instant', settings: { script: [{ text: words }] } },
    }),
    client.agents.create({
      name: 'Refunds',
      model: {
        provider: 'scripted',
        model: 'instant',
        settings: { script: [{ text: 'One moment.', toolCalls: [{ name: 'refund' }] }, { text: words }] },
      },
      tools: [tools.tool('refund', { approval: 'always' })],
    }),
  ]);

  const failures: string[] = [];
  const received = new Map<string, Received>();
  const conversations: Conversation[] = [];
  let deliveries = 0;
  const receiver = await createReceiver(({ envelope: { sessionId, chunks } }) => {
    // Otherwise it keeps all of them.
    receiver.received.length = 0;
    deliveries += 1;
    if (deliveries % EVERY.failedDelivery === 0) return deliveries % (2 * EVERY.failedDelivery) === 0 ? 'reset' : 503;
    const position = received.get(sessionId) ?? { turn: 0, seq: 0, turnsDone: 0 };
    received.set(sessionId, position);
    for (const chunk of chunks) receive(sessionId, position, chunk);
    return 200;
  });
  await client.webhookSubscriptions.create({ environment, url: receiver.url, chunkTypes: [...chunkTypes] });

  function receive(sessionId: string, position: Received, chunk: Chunk): void {
    const { turn, seq } = chunk;
    if (turn < position.turn || (turn === position.turn && seq <= position.seq)) return;
    const isNext = turn === position.turn ? seq === position.seq + 1 : turn === position.turn + 1 && seq === 1;
    if (!isNext) failures.push(`${sessionId}: after ${position.turn}:${position.seq} the receiver got ${turn}:${seq}`);
    Object.assign(position, { turn, seq });
    if (chunk.type === 'session.status' && (chunk.status === 'idle' || chunk.status === 'completed')) {
      position.turnsDone = turn;
    }
  }

  const input = 'Hello';
  const session = { agentId: chat.agentId, environment, input };

  async function readToEnd(): Promise<Conversation> {
    const { session: opened, stream } = await client.sessions.openAndStream(session);
    requireText(await textOf(stream));
    return { sessionId: opened.sessionId, turns: 1 };
  }

  async function leaveEarly(): Promise<Conversation> {
    const { session: opened, stream } = await client.sessions.openAndStream(session);
    for await (const _ of stream) break;
    return { sessionId: opened.sessionId, turns: 1 };
  }

  async function writeTwice(): Promise<Conversation> {
    const { sessionId, turns } = await readToEnd();
    const { stream } = await client.sessions.sendAndStream(sessionId, { content: 'And then?' });
    requireText(await textOf(stream));
    return { sessionId, turns: turns + 1 };
  }

  async function approve(): Promise<Conversation> {
    const { sessionId } = await client.sessions.open({ ...session, agentId: refunds.agentId });
    let text = '';
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      for (const chunk of chunks) {
        if (chunk.type === 'message.chunk') text += chunk.delta;
        if (chunk.type === 'approval.requested') await client.approvals.approve(chunk.operationId);
      }
      if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'idle')) break;
    }
    requireText(text);
    return { sessionId, turns: 1 };
  }

  async function inBrowser(): Promise<Conversation> {
    const of = { agentId: chat.agentId, environment, endUser: { id: `user-${load.opened}` } };
    const browser = new Signalbox({
      ...options,
      token: async () => (await client.sessionTokens.create({ ...of, scopes: ['open', 'read', 'send'] })).token!,
    });
    const { session: opened, stream } = await browser.sessions.openAndStream(session);
    requireText(await textOf(stream));
    return { sessionId: opened.sessionId, turns: 1 };
  }

  async function sendAgain(): Promise<Conversation> {
    const idempotencyKey = crypto.randomUUID();
    const { session: opened, stream } = await client.sessions.openAndStream(session, { idempotencyKey });
    requireText(await textOf(stream));
    const again = await client.sessions.openAndStream(session, { idempotencyKey });
    requireText(await textOf(again.stream));
    if (again.session.sessionId !== opened.sessionId) throw new Error('a request sent twice opened two sessions');
    return { sessionId: opened.sessionId, turns: 1 };
  }

  /** Retention will delete it. */
  async function complete(): Promise<Conversation> {
    const { session: opened, stream } = await client.sessions.openAndStream({ ...session, closeOnIdle: true });
    requireText(await textOf(stream));
    return { sessionId: opened.sessionId, turns: 1 };
  }

  const mix = [
    readToEnd,
    inBrowser,
    readToEnd,
    leaveEarly,
    inBrowser,
    readToEnd,
    approve,
    inBrowser,
    writeTwice,
    readToEnd,
    inBrowser,
    complete,
    readToEnd,
    sendAgain,
    inBrowser,
    leaveEarly,
    readToEnd,
    inBrowser,
    writeTwice,
    complete,
  ];

  async function sendInvalid(): Promise<void> {
    await requireStatus(400, client.sessions.open({ agentId: 'none', environment, input: '' }));
    await requireStatus(404, client.sessions.get('ses_00000000000000000000000000'));
  }

  async function readPages({ sessionId }: Conversation): Promise<void> {
    await client.sessions.get(sessionId);
    await client.sessions.messages(sessionId);
    await client.sessions.turns(sessionId);
    await client.sessions.chunks(sessionId);
    await client.sessions.list({ limit: 50 });
    await client.approvals.list({ order: 'desc', limit: 20 });
    await client.events.list({ limit: 50 });
    await client.usage.get();
  }

  async function scrape(): Promise<void> {
    const metrics = await fetch(`${service.url}/metrics`);
    if (!(await metrics.text()).includes('signalbox_turns_total')) throw new Error('A scrape had no metrics');
  }

  let opened = 0;
  let inProgress = 0;
  const load: MixedLoad = {
    get opened() {
      return opened;
    },
    get inProgress() {
      return inProgress;
    },
    failures,
    async next() {
      const at = opened;
      opened += 1;
      inProgress += 1;
      const converse = mix[at % mix.length]!;
      try {
        const conversation = await converse();
        conversations.push(conversation);
        if (at % EVERY.invalid === 0) await sendInvalid();
        if (at % EVERY.read === 0) await readPages(conversation);
        if (at % EVERY.scrape === 0) await scrape();
      } catch (error) {
        failures.push(`${converse.name}: ${describe(error)}`);
      } finally {
        inProgress -= 1;
      }
    },
    undelivered: () =>
      conversations.filter(({ sessionId, turns }) => received.get(sessionId)?.turnsDone !== turns).length,
    async close() {
      await Promise.all([tools.close(), receiver.close()]);
    },
  };
  return load;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${describe(error.cause)}`;
}

async function textOf(stream: AsyncIterable<{ chunks: readonly Chunk[] }>): Promise<string> {
  let text = '';
  for await (const { chunks } of stream) {
    for (const chunk of chunks) if (chunk.type === 'message.chunk') text += chunk.delta;
  }
  return text;
}

function requireText(text: string): void {
  if (!text.endsWith(words)) throw new Error(`The stream had the text ${JSON.stringify(text)}`);
}

async function requireStatus(status: number, request: Promise<unknown>): Promise<void> {
  const outcome = await request.then(
    () => 'no error',
    (error) => (error instanceof SignalboxError ? error.status : error),
  );
  if (outcome !== status) throw new Error(`An invalid request had ${outcome} instead of ${status}`);
}
