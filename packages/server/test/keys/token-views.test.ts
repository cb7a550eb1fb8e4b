// What an end user reads of a session: its conversation, and nothing of how the agent is built or of what is the integrator's.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk, Envelope } from '@signalbox/client';
import { type Route, routes } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** In everything that no end user may see. */
const HIDDEN = 'hidden-from-end-users';

let service: TestService;
let failing: ReturnType<typeof createServer>;
let sessionId: string;
let operationId: string;
let token: string;
beforeAll(async () => {
  // The end of a failed call is in the model's transcript with what the server said.
  failing = createServer((_, response) => void response.writeHead(500).end(HIDDEN));
  await new Promise<void>((resolve) => failing.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(failing.address() as AddressInfo).port}/${HIDDEN}`;
  service = await startTestService({ config: { rateLimits: { tokens: 1_000_000 } } });
  const { client } = service;
  const script = [
    { text: 'I look it up.', toolCalls: [{ name: 'look_up', input: { order: 1041 } }] },
    { toolCalls: [{ name: 'refund', input: { order: 1041 } }] },
  ];
  const schema = { type: 'object', description: HIDDEN };
  const { agentId } = await client.agents.create({
    name: HIDDEN,
    description: HIDDEN,
    model: { provider: 'scripted', model: HIDDEN, settings: { script } },
    instructions: HIDDEN,
    tools: [
      {
        type: 'http',
        name: 'look_up',
        description: HIDDEN,
        inputSchema: schema,
        request: { method: 'POST', url, headers: { 'x-hidden': HIDDEN } },
        approval: 'never',
      },
      {
        type: 'client',
        name: 'refund',
        description: HIDDEN,
        inputSchema: schema,
        approval: { policy: 'always', by: { roles: ['owner'] } },
      },
    ],
    metadata: { HIDDEN },
  });
  const session = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'Refund order 1041.',
    metadata: { internal: HIDDEN },
    budget: { maxSteps: 77 },
    endUser: { id: 'user_1', name: 'Mara' },
  });
  ({ sessionId } = session);
  for await (const { chunks } of client.sessions.stream(sessionId))
    if (chunks.some(({ type }) => type === 'approval.requested')) break;
  operationId = (await client.approvals.list({ sessionId })).data[0]!.operationId;
  token = (await client.sessions.createToken(sessionId, { scopes: ['read', 'send'] })).token!;
});
afterAll(async () => {
  await service.stop();
  failing.closeAllConnections();
  await new Promise((resolve) => failing.close(resolve));
});

const get = async (path: string, key: string) => {
  const { status, text } = await send(service.url, 'GET', path, { key });
  expect(status).toBe(200);
  return text;
};

/** The stream up to the approval. */
async function streamed(key: string): Promise<Chunk[]> {
  const seen: Chunk[] = [];
  for await (const { chunks } of service.clientWith(key).sessions.stream(sessionId)) {
    seen.push(...chunks);
    if (chunks.some(({ type }) => type === 'approval.requested')) break;
  }
  return seen;
}

test('a key reads what is hidden from a token, so the canary is where it should be', async () => {
  const key = service.adminKey;
  expect(await get(`/sessions/${sessionId}`, key)).toContain(HIDDEN);
  expect(await get(`/sessions/${sessionId}/messages`, key)).toContain(HIDDEN);
  expect(await get(`/sessions/${sessionId}/turns`, key)).toContain(HIDDEN);
  expect(await get(`/sessions/${sessionId}/chunks`, key)).toContain(HIDDEN);
});

test('no response to a token has it, and each is valid by the contract', async () => {
  const paths = Object.values<Route>(routes)
    .filter((route) => route.method === 'GET' && route.token === 'read' && !route.stream && !/fileId/.test(route.path))
    .map(({ path }) => path.replace('{sessionId}', sessionId).replace('{operationId}', operationId));
  expect(paths.length).toBe(6);
  // The service compares every response with the contract, also what a token reads.
  // Nor who in the organization may decide.
  for (const path of paths) expect(await get(path, token)).not.toMatch(new RegExp(`${HIDDEN}|"owner"`));
  expect(JSON.stringify(await streamed(token))).not.toContain(HIDDEN);
  const sent = await send(service.url, 'POST', `/sessions/${sessionId}/messages`, {
    key: token,
    body: { content: 'Are you there?' },
  });
  expect(sent.status).toBe(202);
  expect(sent.text).not.toContain(HIDDEN);
});

test('the conversation is shown: texts, calls of tools with their inputs, and approvals', async () => {
  const chunks = await streamed(token);
  expect(chunks.filter(({ type }) => type === 'message.chunk').length).toBeGreaterThan(0);
  expect(chunks.find(({ type }) => type === 'tool.call')).toMatchObject({ tool: 'look_up', input: { order: 1041 } });
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ error: 'The call failed.' });
  expect(chunks.find(({ type }) => type === 'approval.requested')).toMatchObject({ name: 'refund' });
  const session = JSON.parse(await get(`/sessions/${sessionId}`, token)).session;
  expect(session).toMatchObject({
    sessionId,
    metadata: {},
    budget: null,
    usage: { costUsd: null },
    endUser: { id: 'user_1', name: 'Mara' },
  });
  const { approval } = JSON.parse(await get(`/approvals/${operationId}`, token));
  expect(approval).toMatchObject({ name: 'refund', input: { order: 1041 }, resolvedBy: null, decisions: [] });
});

test('a token reads which messages outputSchema rejected, in either order, of a turn that succeeded and of one that failed', async () => {
  const { client } = service;
  const script = [{ text: 'no' }, { text: '{"total":3}' }, { text: 'no' }, { text: 'no again' }];
  const { agentId } = await client.agents.create({
    name: 'Counts',
    model: { provider: 'scripted', model: 'any', settings: { script } },
    outputSchema: { type: 'object', required: ['total'] },
  });
  const opened = await client.sessions.open({ agentId, environment: 'production', input: 'count' });
  const own = (await client.sessions.createToken(opened.sessionId, { scopes: ['read', 'send'] })).token!;
  const { sessions } = service.clientWith(own);
  const isOver = async () => (await client.sessions.get(opened.sessionId)).status;
  await expect.poll(isOver).toBe('idle');
  await sessions.sendMessage(opened.sessionId, { content: 'again' });
  await expect.poll(isOver).toBe('idle');
  const read = async (of: typeof sessions, order: 'asc' | 'desc') =>
    (await of.messages(opened.sessionId, { order })).data.map(({ role, rejected = false }) => [role, rejected]);
  const expected = [
    ['user', false],
    ['assistant', true],
    ['user', true],
    ['assistant', false],
    ['user', false],
    ['assistant', true],
    ['user', true],
    ['assistant', true],
  ];
  expect(await read(sessions, 'asc')).toEqual(expected);
  expect(await read(sessions, 'desc')).toEqual(expected.toReversed());
  expect(await read(client.sessions, 'asc')).toEqual(expected);
});

test('the stream and the list of a token have the same chunks at the same cursors as those of a key', async () => {
  const [ofKey, ofToken] = [await streamed(service.adminKey), await streamed(token)];
  const place = ({ type, turn, seq }: Chunk) => ({ type, turn, seq });
  expect(ofToken.map(place)).toEqual(ofKey.map(place));
  const listed = (JSON.parse(await get(`/sessions/${sessionId}/chunks`, token)).data as Envelope[]).flatMap(
    ({ chunks }) => chunks,
  );
  expect(listed.slice(0, ofToken.length)).toEqual(ofToken);
});
