// One operation in full: the prompt and the request that are built again are those that were sent, and nothing in them is secret.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Model, OperationDetails, Tool } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { setSecret } from '../../src/environments/secrets.ts';
import { getOperation } from '../../src/inspect/get-operation.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { createModels } from '../../src/models/models.ts';
import { compactSession } from '../../src/sessions/compact.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { createTools } from '../../src/tools/tools.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { type ProviderServer, refuse, startProviderServer, type Wire } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { answering, createWorld, type World } from '../support/session-world.ts';

const SECRET = 'sk_live/9f+8a=b7';

let world: World;
const closing: (() => unknown)[] = [];
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.close();
  for (const close of closing.splice(0)) await close();
});

async function operations(sessionId: string): Promise<OperationDetails[]> {
  const { data } = await listTurns(world.ctx, { sessionId, limit: 100 });
  const lines = data
    .toReversed()
    .flatMap(({ operations }) => operations)
    .filter(({ kind }) => kind !== 'approval');
  return Promise.all(
    lines.map(async ({ operationId }) => (await getOperation(world.ctx, { sessionId, operationId })).operation),
  );
}

const ended = (turn: number) => (chunk: { type: string; turn: number }) =>
  chunk.type === 'turn.completed' && chunk.turn === turn;

const lookUp: Tool = {
  type: 'http',
  name: 'look_up',
  description: 'Looks up.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  request: { method: 'GET', url: 'http://127.0.0.1:1/{{input.id}}' },
};

const providers: [Model['provider'], string, Wire][] = [
  ['openai-compatible', 'small', chatCompletions],
  ['openai', 'gpt-5', responses],
  ['anthropic', 'claude-sonnet-4-5', anthropicMessages],
  ['google', 'gemini-2.5-flash', generateContent],
];

describe.each(providers)('%s', (provider, model, wire) => {
  let server: ProviderServer;
  beforeEach(async () => {
    server = await startProviderServer(wire.basePath);
    closing.push(() => server.close());
    await setSecret(world.ctx, { env: 'production', name: 'MODEL_KEY', value: SECRET, allowedHosts: [server.host] });
    const run = async () => ({ output: { state: 'sent' } });
    await world.work({ ask: createModels(world.platform), run });
  });

  test('every request of a session is built again to the byte: with tools, over turns, after a retry, a summary and in a fork', async () => {
    const text = (...words: string[]) => wire.respond({ parts: [{ text: words }] });
    server.next(
      wire.respond({ parts: [{ text: ['Let me see'] }, { call: 'look_up', input: { id: 'ü"😀' } }] }),
      text('It was ', 'sent'),
      refuse(403),
      text('Now it works'),
    );
    const agentId = await world.agent([lookUp], {
      model: {
        provider,
        model,
        baseUrl: `${server.url}?api-version=7`,
        apiKeySecret: 'MODEL_KEY',
        settings: { temperature: 0.5, stopSequences: ['END'] },
      },
      instructions: 'Be brief. Say {{secrets.MODEL_KEY}} literally.',
      limits: { maxOutputTokens: 500 },
    });
    const sessionId = await world.open(agentId);
    await world.until(sessionId, ended(1));
    await sendMessage(world.ctx, { sessionId, content: 'And again' });
    await world.until(sessionId, ended(2));
    await retrySession(world.ctx, { sessionId });
    await world.until(sessionId, (_, all) => all.filter(ended(2)).length === 2);
    server.next(text('They talked.'), text('After the summary'), text('In the fork'));
    await compactSession(world.ctx, { sessionId });
    await world.until(sessionId, ended(3));
    await sendMessage(world.ctx, { sessionId, content: 'What now?' });
    await world.until(sessionId, ended(4));
    const { session: fork } = await forkSession(world.ctx, { sessionId, atTurn: 1, input: 'Otherwise' });
    await world.until(fork.sessionId, ended(2));

    const found = [...(await operations(sessionId)), ...(await operations(fork.sessionId))];
    const calls = found.filter(({ kind }) => kind === 'model' || kind === 'compaction');
    const sent = server.requests;
    expect(calls.map(({ kind }) => kind)).toEqual([...Array(4).fill('model'), 'compaction', 'model', 'model']);
    for (const [index, { request, exact, notes, prompt }] of calls.entries()) {
      expect([exact, notes], `call ${index}`).toEqual([true, []]);
      const isSummary = index === 4;
      const { text, headers, path } = sent[index]!;
      expect(request!.body, `call ${index}`).toBe(text);
      expect(new URL(request!.url).pathname + new URL(request!.url).search).toBe(path);
      const { shownAs } = request!.secrets[0]!;
      // The agent's instructions have the usual placeholder, so the key is shown as another one.
      expect(shownAs).toBe(isSummary ? '{{secrets.MODEL_KEY}}' : '{{secrets.MODEL_KEY#2}}');
      const shown = Object.fromEntries(
        request!.headers.map(({ name, value }) => [name, value.replace(shownAs, SECRET)]),
      );
      expect(headers).toMatchObject(shown);
      expect(prompt!.instructions).toContain(isSummary ? 'You shorten a conversation' : 'Be brief.');
    }
    expect(JSON.stringify(calls[4]!.prompt!.messages)).toContain('And again');
    expect(calls.map(({ response }) => response?.stopReason ?? null)).toEqual([
      'toolCalls',
      'endTurn',
      null,
      'endTurn',
      null,
      'endTurn',
      'endTurn',
    ]);
    expect(calls[2]).toMatchObject({
      status: 'failed',
      attempts: [{ error: { code: expect.stringContaining('model_') } }],
    });
    expect(calls[5]!.prompt!.messages[0]!.content).toContainEqual({
      type: 'text',
      text: expect.stringContaining('They talked.'),
    });
    expect(JSON.stringify(found)).not.toContain(SECRET);
  });
});

test('a request that a provider accepted only without its reasoning is built again without', async () => {
  const server = await startProviderServer(responses.basePath);
  closing.push(() => server.close());
  await world.work({ ask: createModels(world.platform), run: async () => ({ output: 1 }) });
  server.next(
    responses.respond({ parts: [{ text: ['Let me see'] }, { call: 'look_up', input: {} }] }),
    refuse(400),
    responses.respond({ parts: [{ text: ['Done'] }] }),
  );
  const settings = { reasoning: 'low' as const };
  const model = { provider: 'openai' as const, model: 'gpt-5', baseUrl: server.url, settings };
  const sessionId = await world.open(await world.agent([lookUp], { model }));
  await world.until(sessionId, ended(1));
  const last = (await operations(sessionId)).at(-1)!;
  const [, refused, accepted] = server.requests;
  expect(refused!.text).not.toBe(accepted!.text);
  expect(last.request!.body).toBe(accepted!.text);
});

describe('a tool call', () => {
  let host: string;
  let received: { url: string; headers: IncomingHttpHeaders; body: string; method: string }[];
  let status: number;
  beforeEach(async () => {
    received = [];
    status = 200;
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const { url = '', headers, method = '' } = request;
      received.push({ url, headers, body, method });
      const echo = {
        'set-cookie': `k=${SECRET}`,
        'x-echo': encodeURIComponent(SECRET),
        'x-request-id': 'req_17',
        'content-type': 'text/plain',
      };
      response
        .writeHead(status, echo)
        .end(`${'e'.repeat(3000)} ${SECRET} ${Buffer.from(`u:${SECRET}`).toString('base64')}`);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    await setSecret(world.ctx, { env: 'production', name: 'SHOP_KEY', value: SECRET, allowedHosts: [host] });
    closing.push(() => server.close());
  });

  const refund = (): Tool => ({
    type: 'http',
    name: 'refund',
    description: 'Refunds.',
    inputSchema: { type: 'object' },
    request: {
      method: 'POST',
      url: `http://${host}/orders/{{input.id}}?key={{secrets.SHOP_KEY}}&for={{session.endUser.id}}`,
      headers: { Authorization: 'Bearer {{secrets.SHOP_KEY}}' },
      body: { cents: '{{input.cents}}', key: '{{secrets.SHOP_KEY}}', note: '{{input.note}}' },
    },
  });

  async function call(input: object): Promise<{ sessionId: string; found: OperationDetails }> {
    const tools = createTools(world.platform);
    closing.push(() => tools.close());
    await world.work({ ask: answering([{ calls: [['refund', input]] }, { text: 'ok' }]), run: tools.run });
    const sessionId = await world.open(await world.agent([refund()]), { endUser: { id: 'cus 1' } });
    const asked = (await world.until(sessionId, ({ type }) => type === 'approval.requested')).find(
      (chunk) => chunk.type === 'approval.requested',
    );
    const { operationId } = asked as { operationId: string };
    await resolveApproval(world.ctx, { operationId, decision: 'approved', input: { ...input, cents: 18 } });
    await world.until(sessionId, ended(1));
    return { sessionId, found: (await getOperation(world.ctx, { sessionId, operationId })).operation };
  }

  test('shows the request with names in place of secrets, the edited input, who approved it, and the response', async () => {
    status = 502;
    const { sessionId, found } = await call({ id: 'a/b', cents: 17, note: 'say {{secrets.SHOP_KEY}}' });
    const { request, received: response, approval, exact } = found;
    expect(exact).toBe(true);
    expect(request!.secrets).toEqual([{ name: 'SHOP_KEY', shownAs: '{{secrets.SHOP_KEY#2}}' }]);
    const inForm = (text: string | null, form: string) => text!.replaceAll('{{secrets.SHOP_KEY#2}}', form);
    const [sent] = received;
    expect(inForm(request!.url, encodeURIComponent(SECRET))).toBe(`http://${host}${sent!.url}`);
    expect(inForm(request!.body, SECRET)).toBe(sent!.body);
    expect(JSON.parse(sent!.body)).toMatchObject({ cents: 18, note: 'say {{secrets.SHOP_KEY}}' });
    const headers = request!.headers.map(({ name, value }) => [name.toLowerCase(), inForm(value, SECRET)]);
    expect(sent!.headers).toMatchObject(Object.fromEntries(headers));

    expect(approval).toMatchObject({ status: 'approved', editedInput: { cents: 18 } });
    expect(found).toMatchObject({ status: 'failed', input: { cents: 18 }, toolType: 'http' });
    expect(response!.status).toBe(502);
    const head = Object.fromEntries(response!.headers.map(({ name, value }) => [name, value]));
    expect(head).toMatchObject({ 'set-cookie': '[removed]', 'x-echo': '[secret SHOP_KEY]', 'x-request-id': 'req_17' });
    expect(response!.body).toContain('[secret SHOP_KEY]');
    // Neither shown nor stored, in any form.
    const stored = await world.platform.db.query(sql`
      select * from operations
      where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
    for (const text of [JSON.stringify(found), JSON.stringify(stored)]) {
      for (const form of [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString('base64').slice(2, -4)])
        expect(text).not.toContain(form);
    }
  });

  test('that succeeded stores the head of the response and not its body, which is the result', async () => {
    const { found } = await call({ id: '1', cents: 1, note: '' });
    expect(found.received).toMatchObject({ status: 200, body: null });
    expect(found.received!.bytes).toBeGreaterThan(3000);
    expect(found.output).toContain('[secret SHOP_KEY]');
  });
});

describe.each([
  ['of 2025-11-25', false, ['The id of the session with the MCP server is not stored.']],
  ['of 2026-07-28', true, []],
])('a call of a tool of an MCP server %s', (_title, modern, expected) => {
  let server: McpTestServer;
  beforeEach(async () => {
    const properties = { zone: { type: 'string', 'x-mcp-header': 'Zone' }, at: {} };
    server = await startMcpServer({ modern, tools: [{ name: 'look', inputSchema: { type: 'object', properties } }] });
    server.on('tools/list', ({ result }) => result({ tools: server.tools, ttlMs: 0, cacheScope: 'private' }));
    closing.push(() => server.close());
    await setSecret(world.ctx, { env: 'production', name: 'CRM_KEY', value: SECRET, allowedHosts: [server.host] });
  });

  async function call(): Promise<OperationDetails> {
    const tools = createTools(world.platform);
    closing.push(() => tools.close());
    const step = { calls: [['crm__look', { zone: 'eu', at: 1 }]] as [string, object][] };
    await world.work({ ask: answering([step, { text: 'ok' }]), run: tools.run, list: tools.list });
    const crm: Tool = {
      type: 'mcp',
      name: 'crm',
      url: server.url,
      headers: { Authorization: 'Bearer {{secrets.CRM_KEY}}', Accept: 'text/plain' },
      approval: 'never',
    };
    const sessionId = await world.open(await world.agent([crm]));
    await world.until(sessionId, ended(1));
    return (await operations(sessionId)).find(({ kind }) => kind === 'tool')!;
  }

  test('shows the message and the headers that were sent, and the head of the response', async () => {
    server.on('tools/call', ({ response, result }) => {
      response.setHeader('x-request-id', 'req_18').setHeader('x-echo', SECRET);
      result({ content: [{ type: 'text', text: 'here' }], ...(modern && { resultType: 'complete' }) });
    });
    const { request, received, notes, exact } = await call();
    const [sent] = server.of('tools/call');
    expect([exact, notes]).toEqual([expected.length === 0, expected]);
    expect(request!.body).toBe(JSON.stringify(sent!.message));
    const shown = request!.headers.filter(({ value }) => value !== '[removed]');
    for (const { name, value } of shown)
      expect(sent!.headers[name.toLowerCase()], name).toBe(value.replace('{{secrets.CRM_KEY}}', SECRET));
    const protocol = Object.keys(sent!.headers).filter((name) => name.startsWith('mcp-'));
    expect(request!.headers.map(({ name }) => name.toLowerCase())).toEqual(expect.arrayContaining(protocol));
    expect(received).toMatchObject({ status: 200, body: null, bytes: expect.any(Number) });
    expect(received!.bytes).toBeGreaterThan(0);
    const head = Object.fromEntries(received!.headers.map(({ name, value }) => [name, value]));
    expect(head).toMatchObject({ 'x-request-id': 'req_18', 'x-echo': '[secret CRM_KEY]' });
  });

  test('that failed has the beginning of the body, without secrets', async () => {
    server.on('tools/call', ({ response }) => {
      response.writeHead(503).end(`no room for ${SECRET}`);
    });
    const { received, status } = await call();
    expect(status).not.toBe('succeeded');
    expect(received).toMatchObject({ status: 503, body: 'no room for [secret CRM_KEY]' });
  });
});

test('a prompt that is longer than 1 MiB is cut to its newest messages, and says so', async () => {
  await world.work({ ask: answering([{ text: 'ok' }]) });
  const agentId = await world.agent([], { limits: { compactAtTokens: 1_000_000 } });
  const sessionId = await world.open(agentId, { input: 'first' });
  await world.until(sessionId, ended(1));
  for (let turn = 2; turn <= 5; turn += 1) {
    await sendMessage(world.ctx, { sessionId, content: `${turn} `.repeat(200_000) });
    await world.until(sessionId, ended(turn));
  }
  const { prompt, exact, notes, request } = (await operations(sessionId)).at(-1)!;
  expect(exact).toBe(false);
  expect(request).toBeNull();
  expect(prompt!.messagesLeftOut).toBeGreaterThan(0);
  expect(notes[0]).toContain(`${prompt!.messagesLeftOut} oldest messages`);
  expect(prompt!.messages.length + prompt!.messagesLeftOut).toBe(9);
  expect(JSON.stringify(prompt).length).toBeLessThan(1.6 * 1024 * 1024);
}, 60_000);

test('an operation is only found in its own session', async () => {
  await world.work({ ask: answering([{ text: 'ok' }]) });
  const agentId = await world.agent();
  const [one, other] = [await world.open(agentId), await world.open(agentId)];
  await Promise.all([one, other].map((sessionId) => world.until(sessionId, ended(1))));
  const [{ operationId }] = (await operations(one)) as [OperationDetails];
  await expect(getOperation(world.ctx, { sessionId: other, operationId })).rejects.toMatchObject({ code: 'not_found' });
});
