// The messages before a call, which a list of approvals can include.
import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

async function waiting(sessionId: string, count: number): Promise<string> {
  let seen = 0;
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    for (const chunk of chunks) {
      if (chunk.type === 'approval.requested' && ++seen === count) return chunk.operationId;
    }
  }
  throw new Error('It ended without asking.');
}

test('an approval has the last messages before its call with text, also after the session went on', async () => {
  const { client } = service;
  const script = [
    { text: 'I look.', toolCalls: [{ name: 'look', input: {} }] },
    { text: `I refund. ${'x'.repeat(600)}`, toolCalls: [{ name: 'pay', input: {} }] },
    { text: 'Refunded.' },
  ];
  const tool = { type: 'client' as const, description: 'Does it.', inputSchema: { type: 'object' } };
  const { agentId } = await client.agents.create({
    name: 'Refunds',
    model: { provider: 'scripted', model: 'x', settings: { script } },
    tools: [
      { ...tool, name: 'look', effectful: false },
      { ...tool, name: 'pay', approval: 'always' },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'Hello.' });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    const call = chunks.find((chunk) => chunk.type === 'tool.call');
    if (call?.type !== 'tool.call') continue;
    await client.sessions.sendToolResult(sessionId, { toolCallId: call.toolCallId, output: 'a secret of the shop' });
    break;
  }
  const operationId = await waiting(sessionId, 1);
  const expected = [
    { role: 'user', text: 'Hello.', isCut: false },
    { role: 'assistant', text: 'I look.', isCut: false },
    { role: 'assistant', text: `I refund. ${'x'.repeat(490)}`, isCut: true },
  ];
  const { context } = await client.approvals.get(operationId, { include: 'context' });
  expect(context).toMatchObject(expected);
  for (const { createdAt } of context!) expect(new Date(createdAt).toISOString()).toBe(createdAt);
  for (const query of [{ sessionId }, { status: 'pending' as const }, { environment: 'production' }]) {
    const { data } = await client.approvals.list({ ...query, include: 'context' });
    expect(data.find((one) => one.operationId === operationId)?.context).toEqual(context);
  }
  expect((await client.approvals.get(operationId)).context).toBeUndefined();
  expect((await client.approvals.list({ sessionId })).data[0]).not.toHaveProperty('context');

  await client.approvals.approve(operationId);
  await client.sessions.sendMessage(sessionId, { content: 'Thanks!' });
  const later = await client.approvals.get(operationId, { include: 'context' });
  expect(later.context).toEqual(context);

  // A message that is stored as a large value is not read, however many approvals a page has.
  await service.db.query(sql`
    update messages set content = json_build_array(json_build_object('type', 'text', 'text', (
      select string_agg(md5(n::text), '') from generate_series(1, 5000) n)))
    where session_id = ${uuidOf('ses', sessionId)} and turn = 1 and position = 0`);
  const large = await client.approvals.get(operationId, { include: 'context' });
  expect(large.context?.[0]).toMatchObject({ role: 'user', text: '', isCut: true });
});

test('a session token can’t ask for the context', async () => {
  const { data } = await service.client.approvals.list();
  const [{ sessionId = '', operationId = '' } = {}] = data;
  const { token } = await service.client.sessions.createToken(sessionId, { scopes: ['read'] });
  for (const path of [`/approvals/${operationId}`, `/approvals?sessionId=${sessionId}`]) {
    const plain = await send(service.url, 'GET', path, { key: token! });
    expect(plain.status).toBe(200);
    const asked = await send(service.url, 'GET', `${path}${path.includes('?') ? '&' : '?'}include=context`, {
      key: token!,
    });
    expect(asked.status).toBe(400);
  }
});
