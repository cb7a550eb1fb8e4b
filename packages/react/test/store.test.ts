// The store of a session against a real service, over a network that is cut.
import { type CreateAgent, Signalbox, type Sleep } from '@signalbox/client';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { chatCompletions } from '../../server/test/support/openai-server.ts';
import { createTestDatabase } from '../../server/test/support/postgres.ts';
import { refuse, startProviderServer } from '../../server/test/support/provider-server.ts';
import { startTestService, type TestService } from '../../server/test/support/service.ts';
import {
  type AssistantPart,
  createSessionStore,
  type FileMessagePart,
  type SessionStore,
  type SessionStoreOptions,
} from '../src/index.ts';
import { createNetwork, type Network } from './support/network.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

type Script = {
  text?: string;
  tokenDelayMs?: number;
  toolCalls?: { name: string; input?: object }[];
  failWith?: string;
}[];

async function agentOf(script: Script, tools: CreateAgent['tools'] = []): Promise<string> {
  const settings = { script } as NonNullable<Extract<CreateAgent['model'], { provider: 'scripted' }>['settings']>;
  const model = { provider: 'scripted' as const, model: 'demo', settings };
  return (await service.client.agents.create({ name: 'Talker', model, tools, limits: { modelOutageSeconds: 0 } }))
    .agentId;
}

const refund = {
  type: 'client' as const,
  name: 'refund',
  description: 'Refunds an order.',
  inputSchema: { type: 'object' },
  approval: 'always' as const,
};
const look = { ...refund, name: 'look_up', approval: 'never' as const };

/** Pauses for a fraction of the time, so that a test need not wait for them. */
const briefly: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms / 50);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

interface Page {
  store: SessionStore;
  network: Network;
  close: () => void;
  /** Each message in a line. */
  lines: () => string[];
}

function openPage(options: Omit<SessionStoreOptions, 'client'>, network = createNetwork()): Page {
  const client = new Signalbox({
    apiKey: service.adminKey,
    baseUrl: service.url,
    fetch: network.fetch,
    sleep: briefly,
  });
  const store = createSessionStore({ client, sleep: briefly, ...options });
  const close = store.subscribe(() => {});
  return { store, network, close, lines: () => linesOf(store) };
}

function linesOf(store: SessionStore): string[] {
  return store.getSnapshot().messages.map((message) => {
    const parts = message.parts.map((part) => {
      if (part.type === 'tool') return `<${part.tool} ${part.state}${part.error === null ? '' : `: ${part.error}`}>`;
      return part.type === 'file' ? part.file.fileId : part.text;
    });
    return `${message.role}: ${parts.join(' ')}`;
  });
}

const open = (agentId: string) => ({ open: { agentId, environment: 'production' } });
const isIdle = ({ store }: Page) =>
  expect.poll(() => store.getSnapshot()).toMatchObject({ status: 'idle', isBusy: false });
/** The call of this tool whose result is awaited. */
const awaited = ({ store }: Page, tool: string) =>
  store
    .getSnapshot()
    .messages.flatMap(({ parts }): readonly (AssistantPart | FileMessagePart)[] => parts)
    .find((part) => part.type === 'tool' && part.tool === tool && part.state === 'result')?.id;
const textOf = (count: number) => Array.from({ length: count }, (_, index) => `w${index + 1}`).join(' ');

test('the first message opens a session, and later ones continue it', async () => {
  const page = openPage(open(await agentOf([{ text: 'You said: {{input}}' }])));
  expect(page.store.getSnapshot()).toMatchObject({
    sessionId: null,
    status: 'new',
    connection: 'closed',
    isBusy: false,
  });
  // What is copied from a PDF can have NULs.
  const sending = page.store.send('Hel\0lo');
  // Shown at once.
  expect(page.lines()).toEqual(['user: Hello']);
  expect(page.store.getSnapshot()).toMatchObject({ isBusy: true, messages: [{ status: 'sending' }] });
  const { id } = page.store.getSnapshot().messages[0]!;
  expect(await sending).toBe(true);
  await expect.poll(page.lines).toEqual(['user: Hello', 'assistant: You said: Hello']);
  await isIdle(page);
  await page.store.send([{ type: 'text', text: 'Again\0' }]);
  await expect.poll(page.lines).toHaveLength(4);
  await isIdle(page);
  expect(page.lines()[3]).toBe('assistant: You said: Again');
  // The user's message is read from the transcript, perhaps after its turn is over.
  await expect.poll(() => page.store.getSnapshot().messages.map(({ turn }) => turn)).toEqual([1, 1, 2, 2]);
  const { messages } = page.store.getSnapshot();
  const stored = (await service.client.sessions.messages(page.store.getSnapshot().sessionId!)).data;
  // The key of a message does not change when the transcript has it.
  expect(messages[0]).toMatchObject({ id, messageId: stored[0]!.messageId, turn: 1, status: 'sent' });
  expect(messages[2]).toMatchObject({ messageId: stored[2]!.messageId, turn: 2, status: 'sent' });
  expect(new Set(messages.map((message) => message.id)).size).toBe(4);
  page.close();
});

test('a page that is loaded in the middle of a word shows the text to its end, with nothing lost or twice', async () => {
  const agentId = await agentOf([{ text: textOf(120), tokenDelayMs: 5 }]);
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'Go' });
  const first = openPage({ sessionId });
  await expect.poll(() => first.lines()[1]).toContain('w10 ');
  const second = openPage({ sessionId });
  await expect.poll(() => second.lines()[1]).toContain('w40');
  // The component is removed, and shown again: what was there stays, and the stream resumes at the cursor.
  first.close();
  const before = first.lines();
  const closeAgain = first.store.subscribe(() => {});
  expect(first.lines()).toEqual(before);
  for (const page of [first, second]) {
    await isIdle(page);
    expect(page.lines()).toEqual(['user: Go', `assistant: ${textOf(120)}`]);
  }
  closeAgain();
  second.close();
});

test('a store without subscribers ends its stream, and resumes at its cursor with the next one', async () => {
  const agentId = await agentOf([{ text: 'One two' }]);
  const page = openPage(open(agentId));
  await page.store.send('Hello');
  await isIdle(page);
  const { sessionId } = page.store.getSnapshot();
  expect(page.network.openStreams).toBe(1);
  page.close();
  await expect.poll(() => page.network.openStreams).toBe(0);
  const { cursor } = await service.client.sessions.get(sessionId!);
  await service.client.sessions.sendMessage(sessionId!, { content: 'From elsewhere' });
  page.store.subscribe(() => {});
  await expect
    .poll(page.lines)
    .toEqual(['user: Hello', 'assistant: One two', 'user: From elsewhere', 'assistant: One two']);
  expect(page.network.requests).toContain(`GET /sessions/${sessionId}/stream?cursor=${encodeURIComponent(cursor!)}`);
});

test('wherever its streams are cut, a page shows what one with a steady stream shows', async () => {
  const script = [
    { text: 'Let me see. 😀é', toolCalls: [{ name: 'look_up' }, { name: 'refund' }] },
    { text: textOf(30), failWith: 'broken_stream', tokenDelayMs: 1 },
    { text: `Found: {{lastToolResult}} ${textOf(60)}`, tokenDelayMs: 1 },
  ];
  const agentId = await agentOf(script, [refund, look]);
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'Go' });
  const steady = openPage({ sessionId });
  await expect.poll(() => steady.store.getSnapshot().pendingApprovals.length).toBe(1);
  const pages = fc.sample(fc.infiniteStream(fc.integer({ min: 300, max: 6_000 })), 8).map((lengths) => {
    const network = createNetwork();
    network.cutStreamsAfter(() => lengths.next().value);
    return openPage({ sessionId }, network);
  });
  const [approval] = steady.store.getSnapshot().pendingApprovals;
  await steady.store.decide(approval!.operationId, 'approved');
  // An approved call starts when everything that the session waits for has arrived.
  for (const tool of ['look_up', 'refund']) {
    await expect.poll(() => awaited(steady, tool)).toBeDefined();
    await steady.store.toolResult(awaited(steady, tool)!, { output: `result of ${tool}` });
  }
  await isIdle(steady);
  expect(steady.lines()[1]).toBe(
    `assistant: Let me see. 😀é <look_up done> <refund done> Found: result of refund ${textOf(60)}`,
  );
  for (const page of pages) {
    await isIdle(page);
    expect(page.store.getSnapshot().messages).toEqual(steady.store.getSnapshot().messages);
    page.close();
  }
  const streams = pages.flatMap(({ network }) => network.requests.filter((one) => one.includes('/stream')));
  expect(streams.length).toBeGreaterThan(2 * pages.length);
  // A page that is loaded afterwards reads the transcript, which has the same texts and calls.
  const later = openPage({ sessionId });
  await isIdle(later);
  expect(later.lines()).toEqual(steady.lines());
  later.close();
  steady.close();
});

test('a page without a network that has not opened its session yet says that the service can’t be reached', async () => {
  const page = openPage({ open: { agentId: await agentOf([{ text: 'Hello' }]), environment: 'production' } });
  page.network.cut();
  const sent = page.store.send('Hi');
  await expect.poll(() => page.store.getSnapshot().connection).toBe('lost');
  page.network.restore();
  expect(await sent).toBe(true);
  await expect.poll(() => page.store.getSnapshot().connection).toBe('open');
  page.close();
});

test('a message of a page without a network is shown as being sent, and is sent once when the network is back', async () => {
  const page = openPage(open(await agentOf([{ text: 'You said: {{input}}' }])));
  await page.store.send('One');
  await isIdle(page);
  page.network.cut();
  await expect.poll(() => page.store.getSnapshot().connection).toBe('lost');
  const sending = page.store.send('Two');
  const alsoSending = page.store.send('Three');
  await expect.poll(() => page.network.requests.filter((one) => one.startsWith('POST')).length).toBeGreaterThan(4);
  expect(page.lines()).toEqual(['user: One', 'assistant: You said: One', 'user: Two', 'user: Three']);
  expect(page.store.getSnapshot()).toMatchObject({ isBusy: true, error: null });
  page.network.restore();
  expect(await Promise.all([sending, alsoSending])).toEqual([true, true]);
  const expected = ['One', 'Two', 'Three'].flatMap((said) => [`user: ${said}`, `assistant: You said: ${said}`]);
  await expect.poll(page.lines).toEqual(expected);
  await isIdle(page);
  expect(page.store.getSnapshot().connection).toBe('open');
  page.close();
});

test.each([
  ['that opens the session', 0],
  ['that continues it', 1],
])('a message %s is one message, also if the response to it was lost', async (_title, before) => {
  const page = openPage(open(await agentOf([{ text: 'You said: {{input}}' }])));
  for (let index = 0; index < before; index += 1) {
    await page.store.send('Same words');
    await isIdle(page);
  }
  const shown: number[] = [];
  page.store.subscribe(() => {
    shown.push(page.store.getSnapshot().messages.filter(({ role }) => role === 'user').length);
  });
  page.network.loseResponse(/^POST \/sessions/);
  expect(await page.store.send('Same words')).toBe(true);
  await expect.poll(page.lines).toHaveLength(2 * before + 2);
  await isIdle(page);
  // Not even for a moment.
  expect(Math.max(...shown)).toBe(before + 1);
  const { sessionId } = page.store.getSnapshot();
  expect((await service.client.sessions.messages(sessionId!)).data).toHaveLength(2 * before + 2);
  page.close();
});

test('a message that is refused says why, and is sent by a retry', async () => {
  const agentId = await agentOf([{ text: 'Working', toolCalls: [{ name: 'look_up' }] }, { text: 'Done' }], [look]);
  const page = openPage(open(agentId));
  await page.store.send('Go');
  await expect.poll(() => page.store.getSnapshot().waitingFor?.toolCallIds).toHaveLength(1);
  expect(await page.store.send('Not now', { onBusy: 'reject' })).toBe(false);
  expect(page.store.getSnapshot()).toMatchObject({ error: { of: 'message', code: 'session_busy' }, isBusy: false });
  expect(page.store.getSnapshot().messages.at(-1)).toMatchObject({ role: 'user', status: 'failed' });
  const [toolCallId = ''] = page.store.getSnapshot().waitingFor!.toolCallIds;
  expect(await page.store.toolResult(toolCallId, { output: 1 })).toBe(true);
  await expect.poll(() => page.store.getSnapshot().status).toBe('idle');
  expect(await page.store.retry()).toBe(true);
  await expect
    .poll(page.lines)
    .toEqual(['user: Go', 'assistant: Working <look_up done> Done', 'user: Not now', 'assistant: Done']);
  expect(page.store.getSnapshot().error).toBeNull();
  page.close();
});

test('an approval is pending until it is decided, and is decided once however often it is pressed', async () => {
  const script = [{ text: 'I will ask.', toolCalls: [{ name: 'refund', input: { euros: 90 } }] }, { text: 'I see.' }];
  const page = openPage(open(await agentOf(script, [refund])));
  await page.store.send('Go');
  await expect
    .poll(() => page.store.getSnapshot().pendingApprovals)
    .toMatchObject([{ tool: 'refund', input: { euros: 90 } }]);
  const { operationId } = page.store.getSnapshot().pendingApprovals[0]!;
  const deciding = [1, 2].map(() => page.store.decide(operationId, 'denied', { reason: 'Too much' }));
  expect(page.store.getSnapshot().pendingApprovals).toMatchObject([{ isDeciding: true }]);
  expect(await Promise.all(deciding)).toEqual([true, false]);
  await isIdle(page);
  expect(page.store.getSnapshot().pendingApprovals).toEqual([]);
  const part = page.store.getSnapshot().messages[1]!.parts[1];
  expect(part).toMatchObject({ type: 'tool', state: 'denied', approval: { decision: 'denied', reason: 'Too much' } });
  expect(page.network.requests.filter((one) => one.includes('/approvals/'))).toHaveLength(1);
  // Decided meanwhile: the page says so.
  expect(await page.store.decide(operationId, 'approved')).toBe(false);
  expect(page.store.getSnapshot().error).toMatchObject({ of: 'action', code: 'approval_already_resolved' });
  page.close();
});

test('a turn that was stopped says so, and one that failed is retried', async () => {
  const page = openPage(open(await agentOf([{ text: textOf(400), tokenDelayMs: 20 }])));
  await page.store.send('Go');
  await expect.poll(() => page.lines()[1]).toContain('w3');
  expect(await page.store.stop()).toBe(true);
  await isIdle(page);
  expect(page.store.getSnapshot().messages[1]).toMatchObject({ status: 'done', stopReason: 'interrupted' });
  page.close();

  const failing = openPage(open(await agentOf([{ failWith: 'rejected' }, { text: 'Now it works' }])));
  await failing.store.send('Go');
  await expect.poll(() => failing.store.getSnapshot().error).toMatchObject({ of: 'turn', code: 'model_rejected' });
  expect(await failing.store.retry()).toBe(true);
  await expect.poll(failing.lines).toEqual(['user: Go', 'assistant: Now it works']);
  await isIdle(failing);
  expect(failing.store.getSnapshot().error).toBeNull();
  failing.close();
});

test('a turn that its provider refuses says what it can continue without', async () => {
  const error = { error: { message: 'x', type: 'invalid_request_error', param: 'messages[0].content', code: null } };
  const provider = await startProviderServer('/v1', (response, { text, body }) =>
    (text.includes('POISON')
      ? refuse(400, { body: error })
      : chatCompletions.respond({ parts: [{ text: ['Now it works'] }] }))(response, { body } as never),
  );
  const model = { provider: 'openai-compatible' as const, model: 'small', baseUrl: provider.url };
  const { agentId } = await service.client.agents.create({ name: 'Refused', model });
  const page = openPage(open(agentId));
  await page.store.send('POISON');
  await expect.poll(() => page.store.getSnapshot().error?.retryWithout?.messageIds).toHaveLength(1);
  const { retryWithout } = page.store.getSnapshot().error!;
  expect(await page.store.retry({ without: retryWithout })).toBe(true);
  await expect.poll(page.lines).toEqual(['user: POISON', 'assistant: Now it works']);
  await isIdle(page);
  expect(page.store.getSnapshot().error).toBeNull();
  page.close();
  await provider.close();
});

test('a response that outputSchema rejects is shown neither while it runs nor after a reload', async () => {
  const { client } = service;
  const outputSchema = { type: 'object', required: ['n'] };
  const agent = async (script: object[]) => {
    const model = { provider: 'scripted' as const, model: 'x', settings: { script: script as never } };
    return (await client.agents.create({ name: 'Rejected', model, outputSchema })).agentId;
  };
  const right = '{"n":1}';
  const repaired = openPage(open(await agent([{ text: 'WRONG' }, { text: right }])));
  await repaired.store.send('Go');
  const retried = openPage(open(await agent([{ text: 'WRONG 1' }, { text: 'WRONG 2' }, { text: right }])));
  await retried.store.send('Go');
  await expect.poll(() => retried.store.getSnapshot().error).toMatchObject({ code: 'output_invalid' });
  const failed = openPage({ sessionId: retried.store.getSnapshot().sessionId! });
  await expect.poll(() => failed.store.getSnapshot().error).toMatchObject({ code: 'output_invalid' });
  expect(failed.lines().join()).not.toContain('WRONG');
  failed.close();
  expect(await retried.store.retry()).toBe(true);
  for (const page of [repaired, retried]) {
    await expect.poll(page.lines).toEqual(['user: Go', `assistant: ${right}`]);
    await isIdle(page);
    const reloaded = openPage({ sessionId: page.store.getSnapshot().sessionId! });
    await expect.poll(reloaded.lines).toEqual(['user: Go', `assistant: ${right}`]);
    for (const one of [page, reloaded]) one.close();
  }
});

test('a session that does not exist is an error, and shows nothing', async () => {
  const page = openPage({ sessionId: 'ses_00000000000000000000000000' });
  await expect
    .poll(() => page.store.getSnapshot())
    .toMatchObject({
      error: { of: 'session', code: 'not_found' },
      connection: 'closed',
      messages: [],
    });
  page.close();
});

test('a long conversation is loaded from its end, a page at a time', async () => {
  const agentId = await agentOf([{ text: 'You said: {{input}}' }]);
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const numbers = Array.from({ length: 60 }, (_, index) => index + 1);
  for (const number of numbers) await service.client.sessions.sendMessage(sessionId, { content: `m${number}` });
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).turn).toBe(60);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  const page = openPage({ sessionId });
  await isIdle(page);
  const expected = numbers.flatMap((number) => [`user: m${number}`, `assistant: You said: m${number}`]);
  // Whole turns: the first of the page may have begun before it.
  expect(page.lines()).toEqual(expected.slice(-48));
  expect(page.store.getSnapshot().hasEarlier).toBe(true);
  const [last] = page.store.getSnapshot().messages.slice(-1);
  // At the same time as a new message.
  const [, loaded] = await Promise.all([page.store.send('New'), page.store.loadEarlier()]);
  expect(loaded).toBe(true);
  await expect.poll(() => page.lines().at(-1)).toBe('assistant: You said: New');
  expect(await page.store.loadEarlier()).toBe(true);
  expect(page.lines()).toEqual([...expected, 'user: New', 'assistant: You said: New']);
  expect(page.store.getSnapshot().hasEarlier).toBe(false);
  expect(page.store.getSnapshot().messages).toContainEqual(last);
  page.close();
});

test('a page shows a turn to its end across a restart of the service, with nothing lost or twice', async () => {
  const database = await createTestDatabase();
  // On shutdown the service aborts a step at once, as a crash would.
  const first = await startTestService({ database, config: { graceSeconds: 0 } });
  const settings = { script: [{ text: textOf(80), tokenDelayMs: 20 }] };
  const model = { provider: 'scripted' as const, model: 'demo', settings };
  const { agentId } = await first.client.agents.create({ name: 'Talker', model });
  const network = createNetwork();
  const { adminKey: apiKey, url: baseUrl } = first;
  const client = new Signalbox({ apiKey, baseUrl, fetch: network.fetch, sleep: briefly });
  const store = createSessionStore({ client, sleep: briefly, ...open(agentId) });
  const close = store.subscribe(() => {});
  await store.send('Go');
  await expect.poll(() => linesOf(store)[1]).toContain('w5 ');
  await first.stop();
  await expect.poll(() => store.getSnapshot().connection).toBe('lost');
  expect(linesOf(store)[1]).toContain('w5 ');
  const sending = store.send('Again');
  const second = await startTestService({ database, config: { graceSeconds: 0, port: Number(new URL(baseUrl).port) } });
  expect(await sending).toBe(true);
  const reply = `assistant: ${textOf(80)}`;
  await expect.poll(() => linesOf(store)).toEqual(['user: Go', reply, 'user: Again', reply]);
  const { data } = await second.client.sessions.chunks(store.getSnapshot().sessionId!, { types: ['message.reset'] });
  // The restart did interrupt the model: its text was dropped, and came again.
  expect(data).toHaveLength(1);
  close();
  await second.stop();
  await database.drop();
});
