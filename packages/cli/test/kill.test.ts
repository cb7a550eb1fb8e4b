// Three nodes on one database, and kill -9 of one of them again and again while Sessions stream, call tools and are approved:
// what clients saw, and what the tool's server saw, is judged by support/history.ts. (P1–P4, P7, P8)
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Chunk, type CreateAgent, Signalbox } from '@signalbox/client';
import { afterEach, expect, test } from 'vitest';
import { brokenPromises, type SeenCall } from '../../server/test/support/history.ts';
import { createTestDatabase } from '../../server/test/support/postgres.ts';
import { killing, numbersFrom, startNodes } from './support/nodes.ts';

const NODES = 3;
const AT_ONCE = 12;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (let last = undo.pop(); last; last = undo.pop()) await last();
});

interface Followed {
  sessionId: string;
  streamed: Chunk[];
}

/** A server of tools that counts its calls by their idempotency key, and takes its time. */
async function startTools(calls: Map<string, SeenCall>): Promise<string> {
  const server: Server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key']);
    const seen = calls.get(key) ?? { tool: request.url!.slice(1), times: 0, answered: 0 };
    calls.set(key, seen);
    seen.times += 1;
    setTimeout(() => {
      if (!response.closed) seen.answered += 1;
      response.setHeader('content-type', 'application/json').end('{"ok":true}');
    }, 60);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  undo.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answers = ['one two three four five six ', 'seven eight nine ten eleven twelve ', 'and the end.'];

function agentOn(tools: string): CreateAgent {
  const http = (name: string, more: object = {}) => ({
    type: 'http' as const,
    name,
    description: name,
    inputSchema: { type: 'object' },
    request: { method: 'POST' as const, url: `${tools}/${name}` },
    approval: 'never' as const,
    ...more,
  });
  const both = [{ name: 'pay' }, { name: 'look' }];
  return {
    name: 'killed',
    model: {
      provider: 'scripted',
      model: 'any',
      settings: {
        script: [
          { text: answers[0]!, tokenDelayMs: 20, toolCalls: both },
          { text: answers[1]!, tokenDelayMs: 20, toolCalls: [...both, { name: 'refund' }] },
          { text: answers[2]!, tokenDelayMs: 20 },
        ],
      },
    },
    tools: [http('pay'), http('look', { idempotent: true }), http('refund', { approval: 'always' })],
  };
}

test('kill -9 of any node, again and again: nothing shown is lost, no effect is repeated, every session ends', {
  timeout: 120_000 + killing.times * 15_000,
}, async () => {
  const { seed, times } = killing;
  const random = numbersFrom(seed);
  const database = await createTestDatabase();
  undo.push(() => database.drop());
  const calls = new Map<string, SeenCall>();
  const tools = await startTools(calls);
  const nodes = await startNodes(NODES, database);
  undo.push(() => nodes.end());
  const { apiKey } = nodes;
  const clients = nodes.urls.map((baseUrl) => new Signalbox({ apiKey, baseUrl, maxRetries: 30 }));
  const anyClient = () => clients[random(NODES)]!;
  const { agentId } = await anyClient().agents.create(agentOn(tools));

  let shown = 0;
  let onShown = () => {};
  async function follow(): Promise<Followed> {
    const { sessionId } = await anyClient().sessions.open({
      agentId,
      environment: 'production',
      input: 'go',
      closeOnIdle: true,
    });
    const streamed: Chunk[] = [];
    for await (const { chunks } of anyClient().sessions.stream(sessionId)) {
      streamed.push(...chunks);
      shown += chunks.length;
      onShown();
      for (const chunk of chunks) {
        if (chunk.type === 'approval.requested') await anyClient().approvals.approve(chunk.operationId);
      }
    }
    return { sessionId, streamed };
  }

  let kills = 0;
  async function killNodes(): Promise<void> {
    for (; kills < times; kills += 1) {
      // Some chunks later, in the middle of whatever is going on then.
      const at = shown + 20 + random(60);
      await new Promise<void>((resolve) => {
        onShown = () => {
          if (shown >= at) resolve();
        };
      });
      await nodes.kill(random(NODES));
    }
  }

  /** One Session after another, for as long as there is somebody to disturb them. */
  async function keepFollowing(): Promise<Followed[]> {
    const all = [await follow()];
    while (kills < times) all.push(await follow());
    return all;
  }

  const lanes = Promise.all(Array.from({ length: AT_ONCE }, keepFollowing));
  const [histories] = await Promise.all([lanes.then((each) => each.flat()), killNodes()]);

  const broken: string[] = [];
  for (const { sessionId, streamed } of histories) {
    const stored: Chunk[] = [];
    for await (const { chunks } of anyClient().sessions.chunks(sessionId)) stored.push(...chunks);
    const own = new Set(stored.flatMap((chunk) => ('toolCallId' in chunk ? [chunk.toolCallId.slice(5)] : [])));
    const ownCalls = new Map([...calls].filter(([operationId]) => own.has(operationId.slice(3))));
    const history = {
      stored,
      readings: [{ chunks: streamed }],
      sent: [{ text: 'go', isAcknowledged: true }],
      transcript: [
        { role: 'user' as const, text: 'go' },
        { role: 'assistant' as const, text: answers.join('') },
      ],
      decisions: new Map(),
      calls: ownCalls,
      isTextOfTurn: (_: number, text: string) => text === answers.join(''),
      repeatable: new Set(['look']),
    };
    broken.push(...brokenPromises(history).map((promise) => `${sessionId}: ${promise}`));
  }
  expect(broken, `seed ${seed}`).toEqual([]);
});
