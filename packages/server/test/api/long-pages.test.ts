// A page of a list has a maximum size, however large its items are: it has fewer items then, and paging returns each of them once.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

const MANY = 12;
const MESSAGES = 7;
/** The size of an item: 12 of them are more than two pages. */
const LONG = 'ä'.repeat(400_000);
// The maximum of a page, one item more, and the overhead.
const MAX_ANSWER_BYTES = 5.2 * 1024 * 1024;

let service: TestService;
const paths: Record<string, string> = {};

beforeAll(async () => {
  service = await startTestService();
  const { client } = service;
  const times = Array.from({ length: MANY }, (_, index) => index);
  const scripted = (script: object[]) => ({ provider: 'scripted' as const, model: 'test', settings: { script } });
  const tool = (name: string) => ({
    type: 'client' as const,
    name,
    description: 'Pays',
    inputSchema: { type: 'object', description: 'x'.repeat(120_000) },
    approval: 'always' as const,
  });
  const tools = ['pay', 'b', 'c', 'd', 'e', 'f', 'g'].map(tool);

  const talking = await client.agents.create({ name: 'Talking', model: scripted([{ text: 'ok' }]) });
  for (const index of times) {
    await client.agents.create({ name: `Long ${index}`, model: 'scripted/x', tools });
  }
  paths.agents = '/agents';

  // Otherwise the model would get a shorter message.
  const limits = { compactAtTokens: 1_000_000 };
  const { agentId } = await client.agents.create({
    name: 'Asking',
    limits,
    model: scripted([{ toolCalls: [{ name: 'pay', input: { note: '{{input}}' } }] }]),
    tools,
  });
  for (const index of times) await client.agents.update(agentId, { description: String(index) });
  paths.versions = `/agents/${agentId}/versions`;

  for (const _ of times) await client.sessions.open({ agentId, environment: 'production', input: LONG });
  const isWaiting = async () => (await client.sessions.list({ agentId, status: 'waiting' })).data.length === MANY;
  await vi.waitUntil(isWaiting, { timeout: 60_000 });
  paths.approvals = '/approvals';
  paths.pending = '/approvals?status=pending&order=desc';

  const schedule = { agentId: talking.agentId, environment: 'production', status: 'paused' as const };
  for (const _ of times) await client.schedules.create({ ...schedule, cron: '0 0 1 1 *', input: LONG });
  paths.schedules = '/schedules';

  // Its model gets summaries of the older messages; the list has all of them.
  const { agentId: brief } = await client.agents.create({ name: 'Brief', model: scripted([{ text: 'ok' }]), limits });
  const chatty = await client.sessions.open({ agentId: brief, environment: 'production' });
  for (let n = 0; n < MESSAGES; n++) await client.sessions.sendMessage(chatty.sessionId, { content: LONG });
  const isOver = async () => {
    const { status, turn } = await client.sessions.get(chatty.sessionId);
    return status === 'idle' && turn === MESSAGES;
  };
  await vi.waitUntil(isOver, { timeout: 60_000 });
  paths.messages = `/sessions/${chatty.sessionId}/messages`;
  paths.newestMessages = `/sessions/${chatty.sessionId}/messages?order=desc`;

  // An event stores at most 4,096 characters of a value, and each of these has two values for each field.
  const some = (letter: string) => letter.repeat(4_000);
  const text = (index: number) => some(index % 2 === 0 ? 'ä' : 'ö');
  const change = (index: number) => ({
    description: text(index).slice(0, 2_000),
    instructions: text(index),
    metadata: Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`k${n}`, text(index).slice(0, 500)])),
    outputSchema: { type: 'object', description: text(index).slice(100) },
  });
  for (let index = 0; index < 150; index++) await client.agents.update(talking.agentId, change(index));
  paths.events = '/events?type=agent.updated';
  paths.oldestEvents = '/events?type=agent.updated&order=asc';
}, 120_000);
afterAll(() => service?.stop());

test.each([
  ['agents', MANY + 3],
  ['versions', MANY + 1],
  ['approvals', MANY],
  ['pending', MANY],
  ['schedules', MANY],
  ['messages', 2 * MESSAGES],
  ['newestMessages', 2 * MESSAGES],
  ['events', 150 + MANY],
  ['oldestEvents', 150 + MANY],
])('no page of a long list is large, and paging returns each item once: %s', async (name, count) => {
  const path = paths[name]!;
  const limit = name.toLowerCase().includes('events') ? 1000 : 100;
  const seen: string[] = [];
  let pages = 0;
  for (let cursor = '', hasMore = true; hasMore; pages++) {
    const url = `${service.url}/api/v1${path}${path.includes('?') ? '&' : '?'}limit=${limit}&cursor=${cursor}`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${service.adminKey}` } });
    const text = await answer.text();
    expect(answer.status, text.slice(0, 500)).toBe(200);
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_ANSWER_BYTES);
    const { data, page } = JSON.parse(text) as { data: object[]; page: { hasMore: boolean; nextCursor: string } };
    expect(data.length).toBeGreaterThan(0);
    seen.push(...data.map((item) => JSON.stringify(item)));
    cursor = page.nextCursor;
    hasMore = page.hasMore;
  }
  expect(new Set(seen).size).toBe(count);
  expect(seen.length).toBe(count);
  expect(pages).toBeGreaterThan(1);
});

test('queued messages do not make a page large, and the first of them are on it', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: 'Waiting',
    model: { provider: 'worker', queue: 'nobody' },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'first' });
  for (let index = 0; index < MANY; index++) {
    await client.sessions.sendMessage(sessionId, { content: `${index} ${LONG}` });
  }
  const url = `${service.url}/api/v1/sessions/${sessionId}/messages?limit=1`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${service.adminKey}` } });
  const text = await answer.text();
  expect(Buffer.byteLength(text)).toBeLessThan(MAX_ANSWER_BYTES);
  const { data } = JSON.parse(text) as { data: { content: { text: string }[] }[] };
  const beginnings = data.map(({ content }) => content[0]!.text.slice(0, 5).split(' ')[0]);
  expect(beginnings.slice(0, 3)).toEqual(['first', '0', '1']);
  expect(data.length).toBeLessThan(MANY);
});

test('a response may be longer than a message can be', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: 'Twice',
    limits: { compactAtTokens: 1_000_000 },
    model: { provider: 'scripted', model: 'test', settings: { script: [{ text: '{{input}}{{input}}' }] } },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: LONG });
  await vi.waitUntil(async () => (await client.sessions.get(sessionId)).status === 'idle', { timeout: 60_000 });
  const { data } = await client.sessions.messages(sessionId, { order: 'desc', limit: 1 });
  expect(data[0]!.content).toEqual([{ type: 'text', text: LONG + LONG }]);
});
