// Sessions that get too long for their model: over the wire against a server that refuses what it can't read, after crashes, while
// they are stopped, and as their readers see them.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, describe, expect, test } from 'vitest';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { loadTranscripts } from '../../src/session-rows/load-transcripts.ts';
import { compactSession } from '../../src/sessions/compact.ts';
import { cancelSession, interruptSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { getUsage } from '../../src/usage/usage.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { openAiError, respond, startOpenAiServer } from '../support/openai-server.ts';
import { refuse, startProviderServer, type Wire } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { searched, searchRefusal } from '../support/searches.ts';
import { startTestService } from '../support/service.ts';
import { answering, createWorld, never, type World } from '../support/session-world.ts';

const WINDOW_TOKENS = 8_000;
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

// ── Over the wire ────────────────────────────────────────────────────────────────────────────────────────────────────

/** A server with a window of 8,000 tokens, of four characters each. It calls the tool once in each turn. */
async function startSmallModel() {
  const sizes: number[] = [];
  const refused: number[] = [];
  const server = await startOpenAiServer((response, request) => {
    const { messages, tools = [] } = request.body;
    const tokens = Math.ceil(JSON.stringify([messages, tools]).length / 4);
    sizes.push(tokens);
    if (tokens > WINDOW_TOKENS) {
      refused.push(tokens);
      const sentence = `This model's maximum context length is ${WINDOW_TOKENS} tokens. However, you requested ${tokens}.`;
      response.writeHead(400, { 'Content-Type': 'application/json' });
      return void response.end(JSON.stringify(openAiError(400, sentence)));
    }
    const usage = { prompt: tokens, completion: 10 };
    const isSummary = tools.length === 0;
    const wantsTool = !isSummary && messages.at(-1)!.role === 'user';
    const reply = wantsTool
      ? respond({ toolCalls: [{ name: 'fetch_report', arguments: {} }], usage })
      : respond({ text: isSummary ? 'They talk about reports.' : 'Read it.', usage });
    return reply(response, request);
  });
  const report = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end('r'.repeat(1024 * 1024 - 100));
  }).listen(0, '127.0.0.1');
  await once(report, 'listening');
  closing.push(
    () => server.close(),
    () => report.close(),
  );
  const reportUrl = `http://127.0.0.1:${(report.address() as AddressInfo).port}/`;
  return { server, sizes, refused, reportUrl };
}

test('2,000 messages and results of 1 MiB never fail a model of 8,000 tokens, which gets no request that is longer', {
  timeout: 240_000,
}, async () => {
  const { server, sizes, refused, reportUrl } = await startSmallModel();
  const service = await startTestService();
  closing.push(() => service.stop());
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: 'Analyst',
    model: { provider: 'openai-compatible', model: 'small', baseUrl: server.url, contextTokens: WINDOW_TOKENS },
    tools: [
      {
        type: 'http',
        name: 'fetch_report',
        description: 'Fetches the report',
        inputSchema: { type: 'object' },
        request: { method: 'GET', url: reportUrl },
      },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
  await service.db.execute(sql`
    insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
    select s.organization_id, s.session_id, t, p, gen_random_uuid(), case when p = 0 then 'user' else 'assistant' end,
      json_build_array(json_build_object('type', 'text', 'text', repeat('word ', 20))), now()
    from sessions s cross join generate_series(1, 1000) t cross join generate_series(0, 1) p
    where s.organization_id = ${uuidOf('org', service.organizationId)} and s.session_id = ${uuidOf('ses', sessionId)}`);
  await service.db.execute(sql`
    update sessions set turn = 1000
    where organization_id = ${uuidOf('org', service.organizationId)} and session_id = ${uuidOf('ses', sessionId)}`);

  for (let turn = 1001; turn <= 1005; turn++) {
    await client.sessions.sendMessage(sessionId, { content: `Fetch report ${turn}` });
    await expect
      .poll(async () => (await client.sessions.get(sessionId)).status, { timeout: 120_000, interval: 20 })
      .toBe('idle');
    expect(await client.sessions.get(sessionId)).toMatchObject({ turn, stopReason: 'endTurn', error: null });
  }
  expect(refused).toEqual([]);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(WINDOW_TOKENS);
  // Nothing is missing from the transcript.
  const { data } = await client.sessions.messages(sessionId, { order: 'desc', limit: 3 });
  expect(JSON.stringify(data)).toContain('r'.repeat(1_000_000));
  const turns = (await client.sessions.turns(sessionId, { limit: 5 })).data;
  const compactions = turns.flatMap(({ operations }) => operations.filter(({ kind }) => kind === 'compaction'));
  expect(compactions.length).toBeGreaterThan(10);
  expect(compactions.every(({ status, compaction }) => status === 'succeeded' && compaction!.summary !== '')).toBe(
    true,
  );
});

type Searcher = keyof typeof searched;
const searchers: Record<Searcher, { model: string; keyName: string; wire: Wire }> = {
  anthropic: { model: 'claude-sonnet-5-5', keyName: 'ANTHROPIC_API_KEY', wire: anthropicMessages },
  openai: { model: 'gpt-6.1-terra', keyName: 'OPENAI_API_KEY', wire: responses },
  google: { model: 'gemini-3.8-flash', keyName: 'GOOGLE_GENERATIVE_AI_API_KEY', wire: generateContent },
};

/** A server of all three, which refuses what each does. A request without tools gets a summary, any other a search while it has some. */
async function startSearchers() {
  const refused: string[] = [];
  const world = { refused, searches: 0, left: 0 };
  const server = await startProviderServer('/v1', (response, request) => {
    const { path, body } = request;
    const provider = path.endsWith('/messages') ? 'anthropic' : path.endsWith('/responses') ? 'openai' : 'google';
    const { wire } = searchers[provider];
    const why = searchRefusal(provider, body, path);
    if (why !== undefined) {
      refused.push(why);
      return refuse(400, { body: wire.error(400, why) })(response, request);
    }
    const input = Math.ceil(request.text.length / 3);
    if (body.tools === undefined || world.left === 0) {
      const text = body.tools === undefined ? 'They asked who won.' : 'As said.';
      return wire.respond({ parts: [{ text: [text] }], usage: { input, cached: 0, output: 5 } })(response, request);
    }
    world.left -= 1;
    const n = ++world.searches;
    const found = { url: `https://example.com/${n}`, title: `Page ${n}` };
    return searched[provider]({
      query: `query ${n}`,
      found,
      seal: `seal-${n}-`,
      answer: `Ada ${n} won.`,
      inputTokens: input,
    })(response, request);
  });
  closing.push(() => server.close());
  return { server, world };
}

test.each(['anthropic', 'openai', 'google'] as const)(
  'a conversation with searches of %s is compacted, and continues with every provider, without losing what it ran',
  async (provider) => {
    const { server, world } = await startSearchers();
    const service = await startTestService();
    closing.push(() => service.stop());
    const { client } = service;
    const modelOf = (name: Searcher) => ({ provider: name, model: searchers[name].model, baseUrl: server.url });
    for (const { keyName } of Object.values(searchers))
      await client.environments.secrets.set('production', keyName, {
        value: 'key-of-searchers',
        allowedHosts: [server.host],
      });
    const { agentId } = await client.agents.create({
      name: 'Research',
      model: modelOf(provider),
      tools: [{ type: 'web_search' }],
      limits: { compactAtTokens: 4_000 },
    });
    const { sessionId } = await client.sessions.open({ agentId, environment: 'production' });
    const says = async (content: string) => {
      const before = server.requests.length;
      await client.sessions.sendMessage(sessionId, { content });
      await expect.poll(async () => (await client.sessions.get(sessionId)).status, { interval: 20 }).toBe('idle');
      expect(await client.sessions.get(sessionId)).toMatchObject({ stopReason: 'endTurn', error: null });
      expect(world.refused).toEqual([]);
      return server.requests.slice(before);
    };
    const isSummary = ({ body }: { body: { tools?: unknown } }) => body.tools === undefined;
    const sealed = (text: string) => new Set(text.match(/seal-\d+-/g));

    const asked: Awaited<ReturnType<typeof says>> = [];
    for (let turn = 1; turn <= 8; turn += 1) {
      world.left = 1;
      asked.push(...(await says(`Who won ${turn}?`.padEnd(2_000))));
    }
    const summaries = asked.filter(isSummary);
    expect(summaries.length).toBeGreaterThan(0);
    // It tells the next what was looked for, and where it was found.
    expect(summaries[0]!.text).toContain('query 1');
    expect(summaries[0]!.text).toContain('https://example.com/1');
    for (const { text } of summaries) expect(text).not.toMatch(/seal-/);
    // What stays goes back as it came, and what is cut does not.
    const last = asked.findLast((request) => !isSummary(request))!;
    expect(last.text).toContain('They asked who won.');
    expect(sealed(last.text)).not.toContain('seal-1-');
    expect(sealed(last.text).has('seal-7-')).toBe(provider !== 'openai');

    for (const other of Object.keys(searchers) as Searcher[]) {
      if (other === provider) continue;
      await client.agents.update(agentId, { model: modelOf(other) });
      const [next] = (await says('And before?')).filter((request) => !isSummary(request));
      expect(next!.text).toContain('They asked who won.');
      expect(next!.text).not.toMatch(/seal-|server_tool_use|web_search_call"|toolResponse/);
    }
    // In a summary by another provider, too, and with the first one again.
    world.left = 1;
    await says('Who won 9?');
    await client.sessions.compact(sessionId);
    await expect.poll(async () => (await client.sessions.get(sessionId)).status, { interval: 20 }).toBe('idle');
    const [own] = server.requests.filter(isSummary).slice(-1);
    expect(own!.text).toContain('query 9');
    await client.agents.update(agentId, { model: modelOf(provider) });
    await says('And now?');

    const { data } = await client.sessions.messages(sessionId, { limit: 100 });
    const parts = data.flatMap(({ content }) => content);
    const pages = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `https://example.com/${n}`);
    expect(parts.flatMap((part) => (part.type === 'text' ? (part.sources ?? []) : [])).map(({ url }) => url)).toEqual(
      pages,
    );
    for (const type of ['tool_call', 'tool_result'] as const)
      expect(parts.filter((part) => part.type === type && part.by === 'provider')).toHaveLength(pages.length);
    const chunks = (await client.sessions.chunks(sessionId)).data.flatMap((envelope) => envelope.chunks);
    expect(chunks.filter(({ type }) => type === 'tool.call')).toMatchObject(pages.map(() => ({ by: 'provider' })));
    expect(chunks.filter(({ type }) => type === 'tool.result')).toMatchObject(pages.map(() => ({ by: 'provider' })));
    expect((await client.sessions.get(sessionId)).usage).toMatchObject({ webSearches: pages.length });
  },
);

// ── On nodes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;
const LIMITS = { compactAtTokens: 2_000 };
const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** Responds to steps at once, and to summaries as `summarize` does. */
function model(summarize: AskModel, calls: ModelCall[] = []): AskModel {
  return (call, signal) => {
    calls.push(call);
    return (call.purpose === 'summary' ? summarize : answering([{ text: 'ok' }]))(call, signal);
  };
}

const summary: AskModel = async function* () {
  yield { type: 'text', delta: 'They talked.' };
  yield { type: 'finish', reason: 'endTurn', usage: { ...usage, inputTokens: 100, outputTokens: 10 } };
};
const hanging: AskModel = async function* (_call, signal) {
  yield { type: 'text', delta: 'They' };
  await never(signal);
};

async function worldOf(clock?: ManualClock): Promise<World> {
  const world = await createWorld(clock ? { clock } : {});
  closing.push(() => (clock ? clock.passWhile(world.close()) : world.close()));
  return world;
}

/** An idle session with so many turns of 100 tokens. */
async function conversation(world: World, turns: number, more: object = {}, session: object = {}): Promise<string> {
  const agentId = await world.agent([], { limits: LIMITS, ...more });
  const sessionId = await world.open(agentId, { input: undefined, ...session });
  const ids = [uuidOf('ses', sessionId), world.organizationId];
  for (let turn = 1; turn <= turns; turn++) {
    for (const [position, role] of ['user', 'assistant'].entries())
      await world.platform.db.execute(sql`
        insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
        values (${ids[1]}, ${ids[0]}, ${turn}, ${position}, ${newUuid()}, ${role},
          ${JSON.stringify([{ type: 'text', text: `${turn}`.padEnd(102, '.') }])}, now())`);
  }
  await world.platform.db.execute(sql`
    update sessions set turn = ${turns} where organization_id = ${ids[1]} and session_id = ${ids[0]}`);
  return sessionId;
}

const operationsOf = async (world: World, sessionId: string) =>
  (await listTurns(world.ctx, { sessionId, limit: 1 })).data[0]!.operations;

describe('a session whose transcript is too long', () => {
  test('shows a summary as a chunk and in the timeline, with its usage, and the next node loads only what follows', async () => {
    const world = await worldOf();
    await world.work({ ask: model(summary) });
    const sessionId = await conversation(world, 20);
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    const chunks = await world.until(sessionId, is('idle'));
    const chunk = chunks.find(({ type }) => type === 'context.compacted');
    expect(chunk).toMatchObject({ summary: 'They talked.', model: 'scripted/test', usage: { inputTokens: 100 } });
    expect(await operationsOf(world, sessionId)).toMatchObject([
      { kind: 'compaction', status: 'succeeded', usage: { inputTokens: 100 }, compaction: { summary: 'They talked.' } },
      { kind: 'model', status: 'succeeded' },
    ]);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session.usage).toMatchObject({ steps: 2, inputTokens: 103 });
    expect((await getUsage(world.ctx, {})).total).toMatchObject({ steps: 2, inputTokens: 103 });
    expect((await listMessages(world.ctx, { sessionId, limit: 100 })).data).toHaveLength(42);

    const row = { organizationId: world.organizationId, sessionId: uuidOf('ses', sessionId), leftOut: null };
    const [loaded] = await loadTranscripts(world.platform.db, [row]);
    expect(loaded!.compaction).toMatchObject({ summary: 'They talked.' });
    expect(loaded!.transcript.length).toBeLessThan(20);
    expect(loaded!.transcript[0]).toMatchObject({ turn: 1, position: 0 });
  });

  test('is compacted once by the node that takes it over, if its node dies meanwhile', async () => {
    const world = await worldOf();
    const started = Promise.withResolvers<void>();
    const { nodeId } = await world.work({
      ask: model((call, signal) => {
        started.resolve();
        return hanging(call, signal);
      }),
    });
    const sessionId = await conversation(world, 20);
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    await started.promise;
    await world.expireLease(nodeId);
    const calls: ModelCall[] = [];
    await world.work({ ask: model(summary, calls) });
    const chunks = await world.until(sessionId, is('idle'));
    expect(calls.map(({ purpose }) => purpose)).toEqual(['summary', undefined]);
    expect(chunks.filter(({ type }) => type === 'context.compacted')).toHaveLength(1);
    expect((await operationsOf(world, sessionId)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  });

  test('can be interrupted, steered and cancelled while the summary is written', async () => {
    const world = await worldOf();
    let isHanging = true;
    await world.work({ ask: model((call, signal) => (isHanging ? hanging : summary)(call, signal)) });
    const begun = async () => {
      const sessionId = await conversation(world, 20);
      await sendMessage(world.ctx, { sessionId, content: 'go on' });
      await expect.poll(async () => (await operationsOf(world, sessionId))[0]?.kind).toBe('compaction');
      return sessionId;
    };
    const [interrupted, cancelled, steered] = [await begun(), await begun(), await begun()];
    await interruptSession(world.ctx, { sessionId: interrupted });
    const chunks = await world.until(interrupted, is('idle'));
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'interrupted' });
    expect((await operationsOf(world, interrupted)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    await cancelSession(world.ctx, { sessionId: cancelled });
    expect((await operationsOf(world, cancelled)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    isHanging = false;
    await sendMessage(world.ctx, { sessionId: steered, content: 'rather this', onBusy: 'steer' });
    await world.until(steered, (chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'endTurn');
  });

  test('continues after its model refused a call as too long', async () => {
    const world = await worldOf();
    const calls: ModelCall[] = [];
    const ask: AskModel = (call, signal) => {
      calls.push(call);
      if (call.purpose === 'summary') return summary(call, signal);
      if (JSON.stringify(call.transcript).length < 3_000) return answering([{ text: 'ok' }])(call, signal);
      throw new ModelFailure('model_context_too_long', 'Too long', { retryable: false, httpStatus: 400 });
    };
    await world.work({ ask });
    const sessionId = await conversation(world, 30, { limits: {} });
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'endTurn' });
    expect(chunks.some(({ type }) => type === 'message.reset')).toBe(false);
    expect(calls[0]!.purpose).toBeUndefined();
  });
});

describe('a compaction of several parts', () => {
  /** The model reads so little that it needs several calls. */
  const smallModel = { provider: 'scripted', model: 'test', contextTokens: 3_000 };
  const parts = { limits: { maxOutputTokens: 200 }, model: smallModel };
  const isCompacted = ({ type }: Chunk) => type === 'context.compacted';

  test('ends the turn when the budget is used up, and what it has written is used later', async () => {
    const world = await worldOf();
    const calls: ModelCall[] = [];
    await world.work({ ask: model(summary, calls) });
    const sessionId = await conversation(world, 120, parts, { budget: { maxSteps: 1 } });
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(calls.map(({ purpose }) => purpose)).toEqual(['summary']);
    expect(chunks.filter(isCompacted)).toHaveLength(1);
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'budgetReached' });
    const [first, second, ...more] = await operationsOf(world, sessionId);
    expect([first, second?.kind, second?.status, more.filter(({ status }) => status !== 'cancelled')]).toMatchObject([
      { kind: 'compaction', status: 'succeeded' },
      'compaction',
      'cancelled',
      [],
    ]);
    expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
      status: 'idle',
      stopReason: 'budgetReached',
      usage: { steps: 1 },
    });
    const fork = await forkSession(world.ctx, { sessionId, budget: null, input: 'and now?' });
    await world.until(fork.session.sessionId, is('idle'));
    // It continues from the part that is there.
    expect(JSON.stringify(calls[1])).toContain('They talked.');
    expect(calls.length).toBeGreaterThan(2);
    expect(calls.at(-1)!.purpose).toBeUndefined();
  });

  test('waits while the model is unavailable, and continues with the part that is missing, on any node', async () => {
    const clock = createManualClock();
    const world = await worldOf(clock);
    const calls: ModelCall[] = [];
    let isDown = false;
    let summaries = 0;
    const ask: AskModel = async function* (call, signal) {
      calls.push(call);
      if (call.purpose !== 'summary') return yield* answering([{ text: 'ok' }])({ ...call, callsBefore: 0 }, signal);
      if (isDown) throw new ModelFailure('model_unavailable', 'The provider is down.', { retryable: true });
      summaries += 1;
      isDown = summaries === 1;
      return yield* summary(call, signal);
    };
    const first = await world.work({ ask });
    const sessionId = await conversation(world, 120, parts);
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    const waiting = await clock.passWhile(world.until(sessionId, is('waiting')));
    expect(waiting.filter(isCompacted)).toHaveLength(1);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session).toMatchObject({ status: 'waiting', waitingFor: { type: 'model' }, usage: { steps: 1 } });
    const before = calls.length;

    await clock.passWhile(first.stop());
    isDown = false;
    summaries = 1;
    await world.work({
      ask: async function* (call, signal) {
        calls.push(call);
        if (call.purpose === 'summary') return yield* summary(call, signal);
        return yield* answering([{ text: 'ok' }])({ ...call, callsBefore: 0 }, signal);
      },
    });
    const chunks = await clock.passWhile(world.until(sessionId, is('idle')));
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'endTurn' });
    const later = calls.slice(before);
    expect(JSON.stringify(later[0])).toContain('They talked.');
    const compacted = chunks.filter(isCompacted).length;
    expect(compacted).toBeGreaterThan(1);
    // The first part was not written again.
    expect(later.filter(({ purpose }) => purpose === 'summary')).toHaveLength(compacted - 1);
    expect((await operationsOf(world, sessionId)).map(({ status }) => status)).toEqual(
      Array(compacted + 1).fill('succeeded'),
    );
  });
});

describe('a caller can compact a session', () => {
  test('that is idle, as a turn without a message, after which a message continues from the summary', async () => {
    const world = await worldOf();
    const calls: ModelCall[] = [];
    await world.work({ ask: model(summary, calls) });
    const sessionId = await conversation(world, 3);
    const { session } = await compactSession(world.ctx, { sessionId });
    expect(session).toMatchObject({ status: 'running', turn: 4 });
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.map(({ type }) => type)).toEqual([
      'session.status',
      'context.compacted',
      'turn.completed',
      'session.status',
    ]);
    await expect(compactSession(world.ctx, { sessionId })).rejects.toMatchObject({ code: 'conflict' });
    await sendMessage(world.ctx, { sessionId, content: 'and now?' });
    await world.until(sessionId, (chunk) => chunk.type === 'turn.completed' && chunk.turn === 5);
    const [message, ...others] = calls.at(-1)!.transcript;
    expect(others).toEqual([]);
    expect(message!.content).toMatchObject([
      { text: '1'.padEnd(102, '.') },
      { text: expect.stringContaining('They talked.') },
      { text: 'and now?' },
    ]);
    const fork = await forkSession(world.ctx, { sessionId, atTurn: 4, input: 'and in the fork?' });
    await world.until(fork.session.sessionId, is('idle'));
    expect(JSON.stringify(calls.at(-1)!.transcript)).toContain('They talked.');
    expect(JSON.stringify(calls.at(-1)!.transcript)).not.toContain('and now?');
  });

  test('not while it is busy, without messages, or after it has ended', async () => {
    const world = await worldOf();
    await world.work({ ask: model(hanging) });
    const empty = await world.open(await world.agent(), { input: undefined });
    await expect(compactSession(world.ctx, { sessionId: empty })).rejects.toMatchObject({ code: 'conflict' });
    const busy = await conversation(world, 3);
    await compactSession(world.ctx, { sessionId: busy });
    await expect(compactSession(world.ctx, { sessionId: busy })).rejects.toMatchObject({ code: 'session_busy' });
    await cancelSession(world.ctx, { sessionId: busy });
    await expect(compactSession(world.ctx, { sessionId: busy })).rejects.toMatchObject({ code: 'session_ended' });
    const sessionId = formatId('ses', newUuid());
    await expect(compactSession(world.ctx, { sessionId })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('and retry it, if it failed', async () => {
    const world = await worldOf();
    let isBroken = true;
    const broken: AskModel = () => {
      throw new ModelFailure('model_rejected', 'No.', { retryable: false, httpStatus: 400 });
    };
    await world.work({ ask: model((call, signal) => (isBroken ? broken : summary)(call, signal)) });
    const sessionId = await conversation(world, 3);
    await compactSession(world.ctx, { sessionId });
    await world.until(sessionId, is('idle'));
    expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({ error: { code: 'model_rejected' } });
    isBroken = false;
    await retrySession(world.ctx, { sessionId });
    await world.until(sessionId, ({ type }) => type === 'context.compacted');
    await world.until(sessionId, (_, all) => all.filter(is('idle')).length === 2);
    expect((await operationsOf(world, sessionId)).map(({ status }) => status)).toEqual(['failed', 'succeeded']);
  });
});
