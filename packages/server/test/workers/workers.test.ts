// Bring your own loop: agents run by a worker, through the client, on a real service.
import { channel } from 'node:diagnostics_channel';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Chunk,
  type CreateAgent,
  type OpenSession,
  type RunOptions,
  type Session,
  ToolDeniedError,
  ToolFailedError,
  type Turn,
  TurnFailedError,
  TurnLostError,
} from '@signalbox/client';
import type { Tool } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { formatId, uuidOf } from '../../src/lib/ids.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { addOrganization } from '../support/organization.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { clientTool, outline } from '../support/session-world.ts';

let service: TestService;
let shop: Server;
/** The requests that the shop received, and what it awaits before it responds. */
const asked: string[] = [];
let respondInShop: (path: string) => Promise<unknown> = async (path) => ({ path });

beforeAll(async () => {
  // Without a price, budgets in money would fail the turns.
  service = await startTestService({ config: { prices: createPrices({ 'worker/*': { inputUsd: 0, outputUsd: 0 } }) } });
  shop = createServer(async (request, response) => {
    asked.push(request.url!);
    const body = await respondInShop(request.url!);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
});
afterAll(() => void shop.close());

let queue = '';
let number = 0;
let programs: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  programs = [];
});

function shopTool(name: string, more: object = {}): Tool {
  const { port } = shop.address() as AddressInfo;
  const request = { method: 'POST' as const, url: `http://127.0.0.1:${port}/${name}` };
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

/** Each test has its own queue. */
async function open(
  tools: Tool[] = [],
  more: Partial<CreateAgent> = {},
  session: Omit<Partial<OpenSession>, 'draft' | 'agentId'> = {},
) {
  number += 1;
  queue = `queue-${number}`;
  const { agentId } = await service.client.agents.create({
    name: 'Own',
    model: { provider: 'worker', queue },
    instructions: 'Be brief.',
    tools,
    ...more,
  });
  return service.client.sessions.open({ agentId, environment: 'production', input: 'go', ...session });
}

function program(options: Partial<RunOptions> & Pick<RunOptions, 'onTurn'>) {
  const stopping = new AbortController();
  const errors: unknown[] = [];
  const done = service.client.workers.run({
    queue,
    signal: stopping.signal,
    graceMs: 0,
    onError: (error) => errors.push(error),
    ...options,
  });
  const stop = async () => {
    stopping.abort();
    await done;
  };
  const one = { done, stop, errors };
  programs.push(one);
  return one;
}

/** Resolves with all chunks once one of them matches. */
async function until({ sessionId }: Session, condition: (chunk: Chunk) => boolean): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    all.push(...chunks);
    if (chunks.some(condition)) return all;
  }
  throw new Error(`The session ended without it: ${JSON.stringify(all)}`);
}
const isIdle = (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === 'idle';
const isFailed = (chunk: Chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'error';
const isRequested = (chunk: Chunk) => chunk.type === 'approval.requested';
const textOf = (chunks: readonly Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'message.chunk' ? chunk.delta : '')).join('');
const statusOf = async ({ sessionId }: Session) => service.client.sessions.get(sessionId);
const claim = (more: object = {}) => service.client.workers.claim({ queue, waitSeconds: 10, ...more });

async function approvalOf(session: Session): Promise<string> {
  const chunks = await until(session, isRequested);
  const requested = chunks.find(isRequested);
  return (requested as Extract<Chunk, { type: 'approval.requested' }>).operationId;
}

/** Makes a worker look dead, as if its process had stopped. */
async function expireLease(workerTurnId: string): Promise<void> {
  await service.db.execute(sql`
    update nodes set lease_expires_at = now() - interval '1 minute'
    where node_id = ${uuidOf('wtn', workerTurnId)}`);
}

async function lost(call: Promise<unknown>): Promise<void> {
  await expect(call).rejects.toMatchObject({ status: 409, code: 'turn_lost' });
}

// ── Turns ────────────────────────────────────────────────────────────────────────────────────────────────────────────

test('a worker runs a turn: its text is streamed and in the transcript, and its usage is on the session', async () => {
  const session = await open();
  let seen: Pick<Turn, 'instructions' | 'messages' | 'tools' | 'step' | 'turn'> | undefined;
  program({
    onTurn: async (turn) => {
      // Without its functions.
      seen = JSON.parse(JSON.stringify(turn));
      await turn.append('Hel');
      await turn.append('lo 👋');
      turn.usage({ inputTokens: 7, outputTokens: 3, cachedTokens: 2, costUsd: 0.25 });
    },
  });
  const chunks = await until(session, isIdle);
  expect(textOf(chunks)).toBe('Hello 👋');
  expect(outline(chunks).slice(-2)).toEqual(['turn.completed endTurn', 'idle']);
  expect(seen).toMatchObject({
    turn: 1,
    step: 1,
    instructions: 'Be brief.',
    tools: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'go' }] }],
  });
  expect(await statusOf(session)).toMatchObject({
    status: 'idle',
    stopReason: 'endTurn',
    usage: { inputTokens: 7, outputTokens: 3, cachedTokens: 2, steps: 1, toolCalls: 0, costUsd: 0.25 },
  });
  const { data } = await service.client.sessions.messages(session.sessionId);
  expect(data.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text', text: 'Hello 👋' }] });
});

test('what a worker’s provider ran is shown with its response, and not in the messages of its next steps', async () => {
  const session = await open();
  const seen: string[] = [];
  program({
    onTurn: async (turn) => {
      seen.push(JSON.stringify(turn.messages));
      await turn.append('Ada won.');
      turn.providerCall({ tool: 'web_search', input: { query: 'who won' }, output: ['found'] });
      turn.source({ url: 'https://example.com/a', title: 'A' });
      turn.source({ url: 'https://example.com/a', title: 'A again' });
    },
  });
  const chunks = await until(session, isIdle);
  expect(chunks).toContainEqual(expect.objectContaining({ type: 'tool.call', by: 'provider', tool: 'web_search' }));
  expect(chunks).toContainEqual(expect.objectContaining({ sources: [{ url: 'https://example.com/a', title: 'A' }] }));
  await service.client.sessions.sendMessage(session.sessionId, { content: 'again' });
  await until(session, (chunk) => isIdle(chunk) && chunk.turn === 2);
  expect(seen[1]).toContain('Ada won.');
  expect(seen[1]).not.toContain('web_search');
  const { data } = await service.client.sessions.messages(session.sessionId);
  expect(data[1]!.content.map(({ type }) => type)).toEqual(['text', 'tool_call', 'tool_result']);
});

test('simultaneous calls are one step and run together; their results have the order of the calls', async () => {
  const session = await open([shopTool('apples'), shopTool('pears')]);
  const both = Promise.withResolvers<void>();
  let under = 0;
  respondInShop = async (path) => {
    under += 1;
    if (under === 2) both.resolve();
    await both.promise;
    return { path };
  };
  const steps: number[] = [];
  let after: Turn['messages'] = [];
  program({
    onTurn: async (turn) => {
      await turn.append('I look. ');
      steps.push(turn.step);
      const results = await Promise.all([turn.callTool('pears', { n: 1 }), turn.callTool('apples', { n: 2 })]);
      steps.push(turn.step);
      after = turn.messages;
      await turn.append(JSON.stringify(results));
    },
  });
  const chunks = await until(session, isIdle);
  respondInShop = async (path) => ({ path });
  expect(steps).toEqual([1, 2]);
  expect(textOf(chunks)).toBe('I look. [{"path":"/pears"},{"path":"/apples"}]');
  expect(after.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect(after[1]!.content).toMatchObject([
    { type: 'text', text: 'I look. ' },
    { type: 'tool_call', tool: 'pears', input: { n: 1 } },
    { type: 'tool_call', tool: 'apples', input: { n: 2 } },
  ]);
  expect(after[2]!.content).toMatchObject([{ output: { path: '/pears' } }, { output: { path: '/apples' } }]);
});

test('a call that needs approval resolves after it was approved and has run, with the approver’s input', async () => {
  const session = await open([shopTool('refund', { approval: 'always' })]);
  program({ onTurn: async (turn) => turn.append(JSON.stringify(await turn.callTool('refund', { amount: 90 }))) });
  const operationId = await approvalOf(session);
  asked.length = 0;
  await service.client.approvals.approve(operationId, { input: { amount: 60 } });
  const chunks = await until(session, isIdle);
  expect(asked).toEqual(['/refund']);
  expect(textOf(chunks)).toBe('{"path":"/refund"}');
  expect(chunks.find(({ type }) => type === 'tool.call')).toMatchObject({ input: { amount: 60 } });
});

test('a denied call rejects with the reason and a failed one with its error; the transcript has both results', async () => {
  const session = await open([shopTool('refund', { approval: 'always' })]);
  const caught: unknown[] = [];
  program({
    onTurn: async (turn) => {
      await turn.callTool('refund', {}).catch((error) => caught.push(error));
      await turn.callTool('nothing_such', {}).catch((error) => caught.push(error));
      await turn.append('Sorry.');
    },
  });
  await service.client.approvals.deny(await approvalOf(session), { reason: 'too much' });
  await until(session, isIdle);
  expect(caught).toHaveLength(2);
  expect(caught[0]).toBeInstanceOf(ToolDeniedError);
  expect(caught[0]).toMatchObject({ tool: 'refund', message: 'The approver denied this call: too much' });
  expect(caught[1]).toBeInstanceOf(ToolFailedError);
  expect(caught[1]).toMatchObject({ message: 'There is no tool named "nothing_such".', outcomeUnknown: false });
  const { data } = await service.client.sessions.messages(session.sessionId);
  const errors = data.flatMap(({ content }) => content).filter((part) => part.type === 'tool_result');
  expect(errors.map(({ error }) => error)).toEqual(caught.map((error) => (error as Error).message));
});

test("a worker's own function runs after approval, with the approver's input, and is shown like any tool", async () => {
  const session = await open([clientTool('send_mail', { approval: 'always' }), clientTool('today')]);
  const ran: unknown[] = [];
  program({
    tools: { today: () => 'Monday' },
    onTurn: async (turn) => {
      const results = await Promise.all([
        turn.callTool('send_mail', { to: 'a' }, { run: (input) => void ran.push(input) }),
        turn.callTool('today', {}),
      ]);
      await turn.append(JSON.stringify(results));
    },
  });
  const operationId = await approvalOf(session);
  expect(ran).toEqual([]);
  await service.client.approvals.approve(operationId, { input: { to: 'b' } });
  const chunks = await until(session, isIdle);
  expect(ran).toEqual([{ to: 'b' }]);
  expect(textOf(chunks)).toBe('[null,"Monday"]');
  const { data } = await service.client.sessions.messages(session.sessionId);
  expect(data.at(-2)).toMatchObject({ role: 'tool', content: [{ output: null }, { output: 'Monday' }] });
});

test('an error that a worker’s own function throws is the result of its call', async () => {
  const session = await open([clientTool('broken')]);
  let caught: unknown;
  const run = () => {
    throw new Error('no paper');
  };
  program({
    onTurn: async (turn) => {
      await turn.callTool('broken', {}, { run }).catch((error) => {
        caught = error;
      });
    },
  });
  const chunks = await until(session, isIdle);
  expect(caught).toBeInstanceOf(ToolFailedError);
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ error: 'no paper' });
});

test('an error that onTurn throws fails the turn', async () => {
  const session = await open();
  const { errors } = program({
    onTurn: async (turn) => {
      await turn.append('I try');
      throw new Error('the provider is away');
    },
  });
  await until(session, isFailed);
  expect(await statusOf(session)).toMatchObject({
    status: 'idle',
    stopReason: 'error',
    error: {
      code: 'worker_failed',
      message: 'The program that runs this turn failed (Error). Its log has the reason.',
    },
  });
  expect(errors).toHaveLength(1);
});

test('what a step used before its worker failed is on the session and in the report, and uses up the budget', async () => {
  const session = await open([], {}, { budget: { maxTokens: 100 } });
  const failing: RunOptions['onTurn'] = (turn) => {
    turn.usage({ inputTokens: 60, outputTokens: 50, costUsd: 0.5 });
    throw new Error('too late');
  };
  program({ onTurn: failing });
  const chunks = await until(session, isFailed);
  const used = { inputTokens: 60, outputTokens: 50, steps: 1, costUsd: 0.5 };
  expect(await statusOf(session)).toMatchObject({ stopReason: 'error', usage: used });
  expect(chunks.find(({ type }) => type === 'turn.completed')).toMatchObject({ usage: used });
  const { agentId } = session;
  expect((await service.client.usage.get({ agentId })).total).toMatchObject(used);
  await service.client.sessions.retry(session.sessionId);
  await until(session, (chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'budgetReached');
  expect(await statusOf(session)).toMatchObject({ stopReason: 'budgetReached', usage: used });
});

test('a worker turn ends whatever the worker submits, even if the submission is refused', async () => {
  const deep = JSON.parse('['.repeat(100) + ']'.repeat(100));
  const tools = {
    nul: () => 'a\0b',
    deep: () => deep,
    thrown: () => {
      throw new Error('a\0\ud83d');
    },
  };
  const ends: [RunOptions['onTurn'], object][] = [
    [() => ({ stopReason: 'stop' as 'endTurn' }), { error: { code: 'worker_failed' } }],
    [
      () => Promise.reject(new TurnFailedError('out_of_paper', `a\0${'x'.repeat(1_997)}👋`)),
      { error: { code: 'out_of_paper', message: `a${'x'.repeat(1_997)}\ufffd` } },
    ],
    [async (turn) => turn.append(await turn.callTool('nul', {})), { stopReason: 'endTurn' }],
    [
      (turn) => turn.callTool('deep', {}),
      { error: { message: expect.stringMatching(/^The call has ended, but its result/) } },
    ],
    [(turn) => turn.callTool('thrown', {}), { error: { message: 'a\ufffd' } }],
    [(turn) => turn.callTool('nul', { a: '\0' }), { error: { message: expect.stringContaining('NUL') } }],
    [(turn) => turn.callTool('nul', 'x'.repeat(1_100_000)), { error: { message: expect.stringContaining('1 MiB') } }],
    [
      async (turn) => turn.usage({ inputTokens: Number.NaN, outputTokens: 0 }),
      { error: { message: expect.any(String) } },
    ],
  ];
  for (const [onTurn, expected] of ends) {
    const session = await open(Object.keys(tools).map((name) => clientTool(name)));
    program({ tools, onTurn });
    await until(session, (chunk) => isIdle(chunk) || isFailed(chunk));
    expect(await statusOf(session)).toMatchObject(expected);
  }
});

test.each(['refusal', 'maxOutputTokens'] as const)(
  'a worker can end its turn with the stop reason %s',
  async (stopReason) => {
    const session = await open();
    program({ onTurn: () => ({ stopReason }) });
    await until(session, isIdle);
    expect((await statusOf(session)).stopReason).toBe(stopReason);
  },
);

test('a response that does not match outputSchema is corrected once, like a model’s', async () => {
  const session = await open([], { outputSchema: { type: 'object', required: ['n'] } });
  const received: string[] = [];
  program({
    onTurn: async (turn) => {
      const last = turn.messages.at(-1)!.content[0]!;
      received.push(last.type === 'text' ? last.text : '');
      await turn.append(received.length === 1 ? 'seven' : '{"n":7}');
    },
  });
  const chunks = await until(session, isIdle);
  expect(received[0]).toBe('go');
  expect(received[1]).toMatch(/does not match the required JSON Schema/);
  expect(chunks.find(({ type }) => type === 'turn.completed')).toMatchObject({ output: { n: 7 } });
});

test('the budget and the limit of steps are checked before a step is offered', async () => {
  const looping = async (turn: Turn) => {
    while (true) await turn.callTool('apples', {});
  };
  const byBudget = await open([shopTool('apples')], {}, { budget: { maxSteps: 2 } });
  program({ onTurn: looping });
  await until(byBudget, isIdle);
  expect(await statusOf(byBudget)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 2 } });

  const byLimit = await open([shopTool('apples')], { limits: { maxStepsPerTurn: 3 } });
  program({ onTurn: looping });
  await until(byLimit, isIdle);
  expect(await statusOf(byLimit)).toMatchObject({ stopReason: 'maxSteps', usage: { steps: 3 } });
});

test('a budget that is used up while a step waits in its queue ends the turn when the step is claimed, and another step is claimed', async () => {
  const byBudget = await open();
  const { agentId } = byBudget;
  const { budgets, sessions, workers } = service.client;
  await budgets.set('waited', { limitUsd: 5, period: 'month', environment: 'production', agentId, stop: true });
  const first = (await claim())!;
  const waiting = await sessions.open({ agentId, environment: 'production', input: 'go' });
  await expect.poll(async () => (await statusOf(waiting)).status).toBe('running');
  const elsewhere = await sessions.open({ agentId, environment: 'staging', input: 'go' });
  await workers.complete(first.workerTurnId, { usage: { inputTokens: 1, outputTokens: 1, costUsd: 5 } });
  await until(byBudget, isIdle);
  expect((await claim())!.sessionId).toBe(elsewhere.sessionId);
  await until(waiting, isIdle);
  expect(await statusOf(waiting)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 0 } });
  await budgets.delete('waited');
});

test('a worker runs as many turns at once as it is configured to, and one that waits for an approval does not count', async () => {
  const session = await open([shopTool('refund', { approval: 'always' })]);
  const { agentId } = session;
  let working = 0;
  let most = 0;
  program({
    concurrency: 1,
    onTurn: async (turn) => {
      working += 1;
      most = Math.max(most, working);
      await turn.append('.');
      working -= 1;
      if (turn.sessionId === session.sessionId) await turn.callTool('refund', {});
    },
  });
  const operationId = await approvalOf(session);
  const others = await Promise.all(
    Array.from({ length: 3 }, () => service.client.sessions.open({ agentId, environment: 'production', input: 'go' })),
  );
  await Promise.all(others.map((other) => until(other, isIdle)));
  expect(most).toBe(1);
  await service.client.approvals.approve(operationId);
  await until(session, isIdle);
});

// ── Claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────

test('each step goes to one of several simultaneous claims', async () => {
  const { agentId } = await open();
  const others = Array.from({ length: 7 }, () =>
    service.client.sessions.open({ agentId, environment: 'production', input: 'go' }),
  );
  await Promise.all(others);
  const claims = await Promise.all(Array.from({ length: 12 }, () => claim({ waitSeconds: 1 })));
  const sessions = claims.flatMap((one) => (one ? [one.sessionId] : []));
  expect(sessions).toHaveLength(8);
  expect(new Set(sessions).size).toBe(8);
});

test('a worker that was paused past its lease writes nothing: its text is reset and the step is offered again', async () => {
  const session = await open();
  const first = (await claim())!;
  await service.client.workers.append(first.workerTurnId, { deltas: ['I was', ' here'] });
  await expireLease(first.workerTurnId);
  const second = (await claim())!;
  expect(second).toMatchObject({ sessionId: session.sessionId, turn: 1, step: 1 });
  const { workerTurnId } = first;
  await lost(service.client.workers.append(workerTurnId, { deltas: ['!'] }));
  await lost(service.client.workers.heartbeat(workerTurnId));
  await lost(service.client.workers.complete(workerTurnId, { toolCalls: [{ tool: 'x', input: {} }] }));
  await lost(service.client.workers.release(workerTurnId));

  await service.client.workers.append(second.workerTurnId, { deltas: ['Me'] });
  await service.client.workers.complete(second.workerTurnId, {});
  const chunks = await until(session, isIdle);
  expect(outline(chunks)).toEqual([
    'running',
    '"I was"',
    '" here"',
    'message.reset 2',
    '"Me"',
    'turn.completed endTurn',
    'idle',
  ]);
  const { data } = await service.client.sessions.messages(session.sessionId);
  expect(data.at(-1)!.content).toEqual([{ type: 'text', text: 'Me' }]);
});

test('a heartbeat renews the claim', async () => {
  await open();
  const { workerTurnId, leaseExpiresAt } = (await claim())!;
  await service.db.execute(sql`
    update nodes set lease_expires_at = now() + interval '1 second' where node_id = ${uuidOf('wtn', workerTurnId)}`);
  expect((await service.client.workers.heartbeat(workerTurnId)) >= leaseExpiresAt).toBe(true);
});

test('text that is repeated after a lost response is appended once; text for another position is refused', async () => {
  const session = await open();
  const { workerTurnId, cursor } = (await claim())!;
  const send = () => service.client.workers.append(workerTurnId, { deltas: ['a', 'b'], after: cursor });
  const after = await send();
  expect(after).toBe('turn_1:seq_5');
  expect(await send()).toBe(after);
  const other = service.client.workers.append(workerTurnId, { deltas: ['c', 'd'], after: cursor });
  await expect(other).rejects.toMatchObject({ status: 409, code: 'conflict' });
  await service.client.workers.complete(workerTurnId);
  expect(textOf(await until(session, isIdle))).toBe('ab');
});

test('an append that would make a response longer than 4,000,000 characters is refused, and the step can still be completed', async () => {
  const session = await open([], { showReasoning: true });
  const first = (await claim())!;
  const { workers } = service.client;
  const refused = { status: 400, errors: [{ path: 'deltas', message: expect.stringContaining('4000000 characters') }] };
  await service.db.execute(sql`
    update sessions set appended_characters = 3999994 where session_id = ${uuidOf('ses', session.sessionId)}`);
  const after = await workers.append(first.workerTurnId, {
    deltas: [{ type: 'reasoning', delta: 'Hm.' }, 'abc'],
    after: first.cursor,
  });
  await expect(workers.append(first.workerTurnId, { deltas: ['d'], after })).rejects.toMatchObject(refused);
  // The next worker starts anew.
  await expireLease(first.workerTurnId);
  const second = (await claim())!;
  const repeated = { deltas: ['abc'], after: second.cursor };
  const cursor = await workers.append(second.workerTurnId, repeated);
  await service.db.execute(sql`
    update sessions set appended_characters = 4000000 where session_id = ${uuidOf('ses', session.sessionId)}`);
  expect(await workers.append(second.workerTurnId, repeated)).toBe(cursor);
  await expect(workers.append(second.workerTurnId, { deltas: ['d'] })).rejects.toMatchObject(refused);
  await workers.complete(second.workerTurnId);
  expect(textOf(await until(session, isIdle))).toContain('abc');
});

test('a claim that is repeated after a lost response returns the same step', async () => {
  const { agentId } = await open();
  await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const options = { idempotencyKey: `claim-${queue}` };
  const params = { queue, waitSeconds: 10 };
  const first = await service.client.workers.claim(params, options);
  const again = await service.client.workers.claim(params, options);
  expect(again).toMatchObject({ workerTurnId: first!.workerTurnId, sessionId: first!.sessionId });
  // If the step was lost in the meantime, the claim returns null and not another step.
  await expireLease(first!.workerTurnId);
  expect(await claim()).not.toBeNull();
  expect(await claim()).not.toBeNull();
  await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  expect(await service.client.workers.claim(params, options)).toBeNull();
});

test('a claim repeated after its step has ended can get another step, which late requests for the first do not affect', async () => {
  const first = await open();
  const { agentId } = first;
  const second = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const options = { idempotencyKey: `claim-${queue}` };
  const params = { queue, waitSeconds: 10 };
  const before = (await service.client.workers.claim(params, options))!;
  await service.client.workers.complete(before.workerTurnId);
  const after = (await service.client.workers.claim(params, options))!;
  expect([before.sessionId, after.sessionId].sort()).toEqual([first.sessionId, second.sessionId].sort());
  expect(after.workerTurnId).not.toBe(before.workerTurnId);
  const late = service.client.workers.complete(before.workerTurnId, {}, { idempotencyKey: `late-${queue}` });
  await expect(late).rejects.toMatchObject({ status: 409, code: 'turn_lost' });
  expect((await service.client.sessions.get(after.sessionId)).status).toBe('running');
});

test('a repeated submission has one effect', async () => {
  const session = await open([shopTool('apples')]);
  const { workerTurnId } = (await claim())!;
  asked.length = 0;
  const options = { idempotencyKey: `complete-${queue}` };
  const submission = { toolCalls: [{ tool: 'apples', input: {} }] };
  await service.client.workers.complete(workerTurnId, submission, options);
  await service.client.workers.complete(workerTurnId, submission, options);
  const next = (await claim({ sessionId: session.sessionId, turn: 1 }))!;
  expect(next).toMatchObject({ step: 2, outcomes: [{ index: 0, tool: 'apples', status: 'succeeded' }] });
  expect(asked).toEqual(['/apples']);
});

test('a released step is offered again at once', async () => {
  await open();
  const first = (await claim())!;
  const [second] = await Promise.all([claim(), service.client.workers.release(first.workerTurnId)]);
  expect(second).toMatchObject({ sessionId: first.sessionId, step: 1 });
  expect(second!.workerTurnId).not.toBe(first.workerTurnId);
});

test('a claim gets only steps of its queue and its environment', async () => {
  const session = await open([], {}, { environment: 'staging' });
  expect(await service.client.workers.claim({ queue: `${queue}-other`, waitSeconds: 0 })).toBeNull();
  expect(await claim({ environment: 'production', waitSeconds: 0 })).toBeNull();
  await expect(claim({ environment: 'stagin' })).rejects.toMatchObject({ status: 404 });
  expect(await claim({ environment: 'staging' })).toMatchObject({ sessionId: session.sessionId });
});

test('a claim for a turn that has ended is refused, also if it ends while the claim waits', async () => {
  const session = await open();
  const { sessionId } = session;
  const { workerTurnId } = (await claim())!;
  const waits = claim({ sessionId, turn: 1, waitSeconds: 20 });
  await service.client.workers.complete(workerTurnId);
  await lost(waits);
  await lost(claim({ sessionId, turn: 1 }));
  await expect(claim({ turn: 1 })).rejects.toMatchObject({ status: 400 });
});

test('an unknown worker turn is lost, and a key with the permission `read` can claim nothing', async () => {
  await open();
  const { workerTurnId } = (await claim())!;
  const reader = await service.client.keys.create({ name: 'reader', permission: 'read' });
  const reading = service.clientWith(reader.secret!);
  await expect(reading.workers.claim({ queue, waitSeconds: 0 })).rejects.toMatchObject({ status: 403 });
  await expect(reading.workers.heartbeat(workerTurnId)).rejects.toMatchObject({ status: 403 });
  await lost(service.client.workers.heartbeat('wtn_00000000000000000000000000'));
});

test('a worker turn of another organization is lost to its keys, whatever they do with it, and stays claimed', async () => {
  await open();
  const { workerTurnId } = (await claim())!;
  const { workers } = service.clientWith(await addOrganization(service, 'Other'));
  expect(await workers.claim({ queue, waitSeconds: 0 })).toBeNull();
  await lost(workers.heartbeat(workerTurnId));
  await lost(workers.append(workerTurnId, { deltas: ['mine'] }));
  await lost(workers.complete(workerTurnId));
  await lost(workers.release(workerTurnId));
  await service.client.workers.complete(workerTurnId);
});

test('a submission that does not fit the worker turn is refused and changes nothing', async () => {
  const session = await open([clientTool('own')]);
  const { sessionId } = session;
  const { workers } = service.client;
  const { workerTurnId } = (await claim())!;
  const toolCalls = [{ tool: 'own', input: {} }];
  const wrong = { status: 400, code: 'invalid_request' };
  await expect(workers.complete(workerTurnId, { toolResults: [] })).rejects.toMatchObject(wrong);
  await expect(workers.complete(workerTurnId, { toolCalls, stopReason: 'endTurn' })).rejects.toMatchObject(wrong);
  await expect(workers.complete(workerTurnId, { toolCalls, error: { message: 'x' } })).rejects.toMatchObject(wrong);
  for (const providerCall of [
    { tool: 'x', input: {} },
    { tool: 'x', input: {}, output: 1, error: 'x' },
  ])
    await expect(workers.complete(workerTurnId, { providerCalls: [providerCall] })).rejects.toMatchObject(wrong);
  for (const url of ['javascript:alert(1)', 'example.com', 'ftp://example.com'])
    await expect(workers.complete(workerTurnId, { sources: [{ url }] })).rejects.toMatchObject(wrong);
  await workers.complete(workerTurnId, { toolCalls });

  const running = (await claim({ sessionId }))!;
  const [call] = running.pendingCalls;
  expect(call).toMatchObject({ tool: 'own', index: 0 });
  const { workerTurnId: id } = running;
  await expect(workers.append(id, { deltas: ['x'] })).rejects.toMatchObject({ status: 409, code: 'conflict' });
  await expect(workers.complete(id, {})).rejects.toMatchObject(wrong);
  await expect(workers.complete(id, { toolCalls })).rejects.toMatchObject(wrong);
  const { toolCallId } = call!;
  await expect(workers.complete(id, { toolResults: [{ toolCallId }] })).rejects.toMatchObject(wrong);
  const stranger = 'call_00000000000000000000000000';
  const results = [{ toolCallId, output: 1 }];
  await expect(
    workers.complete(id, { toolResults: [...results, { toolCallId: stranger, output: 2 }] }),
  ).rejects.toMatchObject(wrong);
  await expect(service.client.sessions.sendToolResult(sessionId, results[0]!)).rejects.toMatchObject({ status: 409 });
  await workers.complete(id, { toolResults: results });
  expect(await claim({ sessionId })).toMatchObject({ step: 2, outcomes: [{ toolCallId, output: 1 }] });
});

// ── Interrupts, cancellation and death ───────────────────────────────────────────────────────────────────────────────

test('an interrupt revokes the claim and keeps the shown text', async () => {
  const session = await open();
  const first = (await claim())!;
  await service.client.workers.append(first.workerTurnId, { deltas: ['Half a sent'] });
  await service.client.sessions.interrupt(session.sessionId);
  const chunks = await until(session, isIdle);
  expect(outline(chunks)).toEqual(['running', '"Half a sent"', 'turn.completed interrupted', 'idle']);
  await lost(service.client.workers.append(first.workerTurnId, { deltas: ['ence'] }));
  const { data } = await service.client.sessions.messages(session.sessionId);
  expect(data.at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'Half a sent' }] });
  expect(await claim({ waitSeconds: 0 })).toBeNull();
});

test('a worker’s signal aborts when its turn is stopped, and its later calls are refused', async () => {
  const session = await open([shopTool('refund', { approval: 'always' })]);
  const heard = Promise.withResolvers<unknown>();
  const refused = Promise.withResolvers<unknown>();
  program({
    onTurn: async (turn, { signal }) => {
      signal.addEventListener('abort', () => heard.resolve(signal.reason));
      try {
        await turn.callTool('refund', {});
      } catch (error) {
        refused.resolve(error);
        await turn.append('more');
      }
    },
  });
  await approvalOf(session);
  await service.client.sessions.interrupt(session.sessionId);
  expect(await refused.promise).toBeInstanceOf(TurnLostError);
  expect(await heard.promise).toBeInstanceOf(TurnLostError);
  await until(session, isIdle);
  expect(programs).toHaveLength(1);
});

test('cancelling and steering revoke the claim at once', async () => {
  const cancelled = await open();
  const one = (await claim())!;
  await service.client.sessions.cancel(cancelled.sessionId);
  await lost(service.client.workers.heartbeat(one.workerTurnId));
  expect((await statusOf(cancelled)).status).toBe('cancelled');

  const steered = await open();
  const two = (await claim())!;
  await service.client.sessions.sendMessage(steered.sessionId, { content: 'rather this', onBusy: 'steer' });
  const next = (await claim())!;
  expect(next).toMatchObject({ turn: 2, step: 1 });
  expect(next.messages.at(-1)).toMatchObject({ role: 'user', content: [{ text: 'rather this' }] });
  await lost(service.client.workers.complete(two.workerTurnId));
});

test('a worker that stops releases its claims, and another continues', async () => {
  const session = await open();
  const begun = Promise.withResolvers<void>();
  const first = program({
    onTurn: async (turn, { signal }) => {
      await turn.append('One mo');
      begun.resolve();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  await begun.promise;
  await until(session, ({ type }) => type === 'message.chunk');
  await first.stop();
  expect(first.errors).toEqual([]);
  program({ onTurn: (turn) => turn.append('Here you are') });
  const chunks = await until(session, isIdle);
  expect(outline(chunks)).toEqual([
    'running',
    '"One mo"',
    'message.reset 2',
    '"Here you are"',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('if a worker dies between two steps, another continues from the transcript', async () => {
  const session = await open([shopTool('apples')]);
  const { workerTurnId } = (await claim())!;
  await service.client.workers.complete(workerTurnId, { toolCalls: [{ tool: 'apples', input: { n: 1 } }] });
  let roles: string[] = [];
  program({
    onTurn: async (turn) => {
      roles = turn.messages.map(({ role }) => role);
      await turn.append(`step ${turn.step}`);
    },
  });
  expect(textOf(await until(session, isIdle))).toBe('step 2');
  expect(roles).toEqual(['user', 'assistant', 'tool']);
});

test('if a worker dies during its own calls, an effectful call is not repeated and another one is', async () => {
  const session = await open([clientTool('pay', { effectful: true, approval: 'never' }), clientTool('look')]);
  const { sessionId } = session;
  const { workerTurnId } = (await claim())!;
  const toolCalls = ['pay', 'look'].map((tool) => ({ tool, input: {} }));
  await service.client.workers.complete(workerTurnId, { toolCalls });
  const running = (await claim({ sessionId }))!;
  expect(running.pendingCalls.map(({ tool }) => tool)).toEqual(['pay', 'look']);
  await expireLease(running.workerTurnId);
  const ran: string[] = [];
  let outcomes: unknown;
  program({
    tools: { pay: () => ran.push('pay'), look: () => ran.push('look') },
    onTurn: (turn) => {
      outcomes = turn.messages.at(-1)!.content;
    },
  });
  const chunks = await until(session, isIdle);
  expect(ran).toEqual(['look']);
  expect(outcomes).toMatchObject([{ outcomeUnknown: true }, { output: 1 }]);
  expect(outline(chunks)).toEqual([
    'running',
    'tool.call',
    'tool.call',
    'tool.result unknown',
    'tool.result',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('the next worker runs calls that were released before they started', async () => {
  const session = await open([clientTool('pay', { effectful: true, approval: 'never' })]);
  const { workerTurnId } = (await claim())!;
  await service.client.workers.complete(workerTurnId, { toolCalls: [{ tool: 'pay', input: {} }] });
  const running = (await claim({ sessionId: session.sessionId }))!;
  await service.client.workers.release(running.workerTurnId);
  program({ tools: { pay: () => 'paid' }, onTurn: (turn) => turn.append('done') });
  const chunks = await until(session, isIdle);
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: 'paid' });
});

test('a decision takes effect while the worker’s own calls are offered or run', async () => {
  const session = await open([clientTool('look'), shopTool('refund', { approval: 'always' })]);
  const { sessionId } = session;
  const { workerTurnId } = (await claim())!;
  const toolCalls = ['look', 'refund'].map((tool) => ({ tool, input: {} }));
  await service.client.workers.complete(workerTurnId, { toolCalls });
  const running = (await claim({ sessionId }))!;
  expect(running.pendingCalls.map(({ tool }) => tool)).toEqual(['look']);
  await service.client.approvals.approve(await approvalOf(session));
  const { toolCallId } = running.pendingCalls[0]!;
  await service.client.workers.complete(running.workerTurnId, { toolResults: [{ toolCallId, output: 'seen' }] });
  const next = (await claim({ sessionId }))!;
  expect(next.outcomes.map(({ tool, status }) => [tool, status])).toEqual([
    ['look', 'succeeded'],
    ['refund', 'succeeded'],
  ]);
});

test('a node that stops responds to its waiting claims', async () => {
  const other = await startTestService({ database: service.database });
  const looked = lookedFor();
  const waits = other.client.workers.claim({ queue: 'nobody', waitSeconds: 20 }, { maxRetries: 0 });
  await looked;
  await other.stop();
  expect(await waits).toBeNull();
});

test('a claim whose client has disconnected claims nothing', async () => {
  const { agentId } = await open();
  const { sessionId } = (await claim())!;
  const gone = new AbortController();
  const looked = lookedFor();
  const waits = service.client.workers.claim({ queue, waitSeconds: 20 }, { signal: gone.signal });
  await looked;
  gone.abort(new Error('gone'));
  await expect(waits).rejects.toThrow('gone');
  const next = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const claimed = await claim();
  expect(claimed).toMatchObject({ sessionId: next.sessionId });
  expect(claimed!.sessionId).not.toBe(sessionId);
});

/** Resolves when a node has searched for offered steps. */
function lookedFor(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const statements = channel('signalbox.statement');
  const hear = (text: unknown) => {
    if (!/x\.queue = h\.queue and x\.node_id is null/.test(String(text))) return;
    statements.unsubscribe(hear);
    resolve();
  };
  statements.subscribe(hear);
  return promise;
}

test('an endless response that nodes of a release without this limit stored fails the turn and is not read into memory', async () => {
  const session = await open();
  const { workerTurnId } = (await claim())!;
  const deltas = Array.from({ length: 9 }, () => 'a'.repeat(100_000));
  for (let at = 0; at < 5; at += 1) {
    await service.db.execute(sql`
      update sessions set appended_characters = 0 where session_id = ${uuidOf('ses', session.sessionId)}`);
    await service.client.workers.append(workerTurnId, { deltas });
  }
  await service.client.workers.complete(workerTurnId, {});
  await until(session, isFailed);
  expect((await statusOf(session)).error).toEqual({
    code: 'worker_failed',
    message: 'The response is longer than 4000000 characters.',
  });
});

test('the id of a node is not accepted as the id of a worker turn', async () => {
  const hold = Promise.withResolvers<void>();
  respondInShop = async () => hold.promise;
  const { agentId } = await service.client.agents.create({
    name: 'Served',
    model: {
      provider: 'scripted',
      model: 'test',
      settings: { script: [{ toolCalls: [{ name: 'slow', input: {} }] }] },
    },
    tools: [shopTool('slow')],
  });
  const session = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  await until(session, (chunk) => chunk.type === 'tool.call');
  const [row] = await service.db.query<{ nodeId: string }>(sql`
    select node_id as "nodeId" from sessions where session_id = ${uuidOf('ses', session.sessionId)}`);
  const id = formatId('wtn', row!.nodeId);
  await lost(service.client.workers.append(id, { deltas: ['forged'] }));
  await lost(service.client.workers.complete(id, { toolResults: [] }));
  await lost(service.client.workers.release(id));
  hold.resolve();
  await service.client.sessions.cancel(session.sessionId);
});

// ── Timeouts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

test('a turn times out both while it is offered and while a worker has claimed it', async () => {
  const clock = createManualClock();
  const late = await startTestService({ clock });
  const { client } = late;
  const { agentId } = await client.agents.create({
    name: 'Slow',
    model: { provider: 'worker', queue: 'slow' },
    limits: { turnTimeoutSeconds: 60 },
  });
  const openLate = () => client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const endOf = async ({ sessionId }: Session) => {
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      if (chunks.some(isIdle)) return (await client.sessions.get(sessionId)).stopReason;
    }
  };

  const held = await openLate();
  const claimed = (await client.workers.claim({ queue: 'slow' }))!;
  expect(claimed.deadlineAt).toBe(new Date(clock.now().getTime() + 60_000).toISOString());
  await client.workers.append(claimed.workerTurnId, { deltas: ['so far'] });
  await clock.advance(59_000);
  await client.workers.heartbeat(claimed.workerTurnId);
  await clock.advance(1_000);
  await lost(client.workers.heartbeat(claimed.workerTurnId));
  expect(await endOf(held)).toBe('timedOut');
  const { data } = await client.sessions.messages(held.sessionId);
  expect(data.at(-1)!.content).toEqual([{ type: 'text', text: 'so far' }]);

  const offered = await openLate();
  // Once it was claimed and released, it is certainly offered.
  await client.workers.release((await client.workers.claim({ queue: 'slow' }))!.workerTurnId);
  await clock.advance(60_000);
  expect(await endOf(offered)).toBe('timedOut');
  expect(await client.workers.claim({ queue: 'slow', waitSeconds: 0 })).toBeNull();
  await clock.advance(1_000); // sends the pending wake-ups to other nodes
});

test('an effect that a worker runs when the turn times out has an unknown outcome', async () => {
  const clock = createManualClock();
  const late = await startTestService({ clock });
  const { client } = late;
  const { agentId } = await client.agents.create({
    name: 'Slow',
    model: { provider: 'worker', queue: 'slow-effect' },
    tools: [clientTool('pay', { effectful: true, approval: 'never' })],
    limits: { turnTimeoutSeconds: 60 },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  const { workerTurnId } = (await client.workers.claim({ queue: 'slow-effect' }))!;
  await client.workers.complete(workerTurnId, { toolCalls: [{ tool: 'pay', input: {} }] });
  const running = (await client.workers.claim({ queue: 'slow-effect' }))!;
  expect(running.pendingCalls).toHaveLength(1);
  await clock.advance(60_000);
  await lost(client.workers.heartbeat(running.workerTurnId));
  for await (const { chunks } of client.sessions.stream(sessionId)) if (chunks.some(isIdle)) break;
  const { data } = await client.sessions.messages(sessionId);
  expect(data.at(-1)!.content).toMatchObject([{ type: 'tool_result', outcomeUnknown: true }]);
  await clock.advance(1_000); // sends the pending wake-ups to other nodes
});

test('a turn that a worker failed is offered again when it is retried, with the results of the calls that ended', async () => {
  const session = await open([clientTool('print')]);
  const seen: string[][] = [];
  let prints = 0;
  program({
    tools: { print: () => ++prints },
    onTurn: async (turn) => {
      seen.push(turn.messages.map(({ role }) => role));
      if (seen.length === 1) {
        await turn.callTool('print', {});
        throw new Error('password=hunter2');
      }
      turn.append('Printed.');
    },
  });
  await until(session, isFailed);
  expect(JSON.stringify(await statusOf(session))).not.toContain('hunter2');
  expect((await service.client.sessions.retry(session.sessionId)).turn).toBe(1);
  const chunks = await until(session, (chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'endTurn');
  expect(prints).toBe(1);
  expect(seen).toEqual([['user'], ['user', 'assistant', 'tool']]);
  expect(chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : []))).toEqual(['Printed.']);
});
