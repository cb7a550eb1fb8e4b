// Fallbacks over the wire: for every provider, one of another provider takes over, in the format that it expects.
import type { Chunk, Model, ModelRef } from '@signalbox/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createModels } from '../../src/models/models.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { type ProviderServer, type Reply, refuse, startProviderServer, type Wire } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { createWorld, httpTool, type World } from '../support/session-world.ts';

const wires = {
  openai: responses,
  anthropic: anthropicMessages,
  google: generateContent,
  'openai-compatible': chatCompletions,
} satisfies Partial<Record<Model['provider'], Wire>>;
type Name = keyof typeof wires;
const names = Object.keys(wires) as Name[];
const pairs = names.map((name, index): [Name, Name] => [name, names[(index + 1) % names.length]!]);

let clock: ManualClock;
let world: World;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(() => clock.passWhile(world.close()));

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;

describe.each(pairs)('%s, with a fallback of %s', (name, other) => {
  let server: ProviderServer;
  let spare: ProviderServer;
  beforeEach(async () => {
    server = await startProviderServer(wires[name].basePath);
    spare = await startProviderServer(
      wires[other].basePath,
      wires[other].respond({ parts: [{ text: ['from the fallback'] }] }) as Reply,
    );
    await world.work({ ask: createModels(world.platform), run: async () => ({ output: { found: true } }) });
  });
  afterEach(() => Promise.all([server.close(), spare.close()]));

  const ref = (provider: Name, { url }: ProviderServer): ModelRef => ({ provider, model: 'm', baseUrl: url });
  async function open(baseUrl = server.url): Promise<string> {
    const model = { ...ref(name, server), baseUrl, fallbacks: [ref(other, spare)] };
    return world.open(await world.agent([httpTool('look', { idempotent: true })], { model }));
  }
  async function expectFallback(sessionId: string): Promise<void> {
    const chunks = await world.until(sessionId, (chunk) => is('idle')(chunk) || is('failed')(chunk));
    const text = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
    expect(text).toBe('from the fallback');
    const { data: turns } = await listTurns(world.ctx, { sessionId });
    expect(turns[0]!.operations.at(-1)).toMatchObject({ name: `${other}/m`, status: 'succeeded' });
    expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({ stopReason: 'endTurn', error: null });
  }

  test.each<[string, Reply]>([
    ['responds with 503', refuse(503)],
    ['responds with 529', refuse(529)],
    ['responds with 429 and Retry-After', refuse(429, { headers: { 'retry-after': '600' } })],
    ['rejects the key', refuse(401)],
    ['resets the connection', (response) => void response.destroy()],
  ])('which responds at once if the first %s', async (_, reply) => {
    server.next(reply);
    await expectFallback(await open());
    expect(server.requests).toHaveLength(1);
    expect(spare.requests).toHaveLength(1);
  });

  test('which responds if the connection is refused', async () => {
    const closed = await startProviderServer('/v1');
    await closed.close();
    await expectFallback(await open(closed.url));
    expect(spare.requests).toHaveLength(1);
  });

  test('which responds if the first times out, and is used at once by the next session', async () => {
    const arrived = Promise.withResolvers<void>();
    server.next(() => arrived.resolve());
    const sessionId = await open();
    await arrived.promise;
    await clock.advance(300_000);
    await expectFallback(sessionId);
    await expectFallback(await open());
    expect(server.requests).toHaveLength(1);
  });

  test('which does not get the first one’s reasoning, and none of its text that was void', async () => {
    server.next(
      wires[name].respond({
        parts: [
          { reasoning: ['secret thought'], seal: 'seal-of-reasoning' },
          { text: ['One moment. '], seal: 'seal-of-text' },
          { call: 'look', input: { q: 'x' }, seal: 'seal-of-call' },
        ],
      }) as Reply,
      wires[name].respond({ parts: [{ text: ['void'] }], end: 'reset' }) as Reply,
    );
    const sessionId = await open();
    const chunks = await world.until(sessionId, is('idle'));
    expect(spare.requests).toHaveLength(1);
    const { text } = spare.requests[0]!;
    expect(text).toContain('One moment.');
    expect(text).toContain('look');
    for (const part of ['seal-of', 'secret thought', 'void']) expect(text).not.toContain(part);
    const shown = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
    expect(shown).toMatch(/^One moment\. (void)?from the fallback$/);
    if (shown.includes('void')) expect(chunks.some(({ type }) => type === 'message.reset')).toBe(true);
  });
});

test('a fallback of Anthropic that reasons takes over within a turn, whose tool calls came without its reasoning', async () => {
  const openai = await startProviderServer(responses.basePath);
  const anthropic = await startProviderServer(anthropicMessages.basePath, async (response, request) => {
    // As Anthropic does: "When `thinking` is enabled, a final `assistant` message must start with a thinking block".
    const reply = anthropicMessages.respond({ parts: [{ text: ['from the fallback'] }] });
    await (request.body.thinking ? refuse(400) : reply)(response, request);
  });
  openai.next(responses.respond({ parts: [{ call: 'look', input: {} }] }) as Reply, refuse(503));
  await world.work({ ask: createModels(world.platform), run: async () => ({ output: { found: true } }) });
  const model = {
    provider: 'openai' as const,
    model: 'm',
    baseUrl: openai.url,
    fallbacks: [
      {
        provider: 'anthropic' as const,
        model: 'claude-sonnet-4-5',
        baseUrl: anthropic.url,
        settings: { reasoning: 'low' as const, temperature: 0.5 },
      },
    ],
  };
  const sessionId = await world.open(await world.agent([httpTool('look')], { model }));
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.filter(({ type }) => type === 'turn.completed')).toMatchObject([{ stopReason: 'endTurn' }]);
  expect(anthropic.requests.map(({ body }) => [body.thinking !== undefined, body.temperature])).toEqual([
    [true, undefined],
    [false, 0.5],
  ]);
  await Promise.all([openai.close(), anthropic.close()]);
});
