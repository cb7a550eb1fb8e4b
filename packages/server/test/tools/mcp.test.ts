// Sessions with the tools of an MCP server, from the list to the result, with approvals and interrupts.
import type { EventType, Tool } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { setSecret } from '../../src/environments/secrets.ts';
import { listEvents } from '../../src/events/events.ts';
import type { ModelCall } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { createTools, type Tools } from '../../src/tools/tools.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { answering, clientTool, createWorld, is, outline, type World } from '../support/session-world.ts';

let world: World;
let server: McpTestServer;
let tools: Tools;
beforeEach(async () => {
  world = await createWorld();
  tools = createTools(world.platform);
  const inputSchema = { type: 'object', properties: { room: { type: 'integer' } } };
  server = await startMcpServer({
    tools: [
      { name: 'look', inputSchema, annotations: { readOnlyHint: true } },
      { name: 'book', inputSchema },
    ],
  });
});
afterEach(async () => {
  await world.close();
  await tools.close();
  await server.close();
});

const hotel = (): Tool => ({ type: 'mcp', name: 'hotel', url: server.url });
const sessionsOfCalls = () => server.of('tools/call').map(({ headers }) => headers['mcp-session-id']);

const lookAndBook = () =>
  answering([{ calls: [['hotel__look', { room: 7 }]] }, { calls: [['hotel__book', { room: 7 }]] }, { text: 'Booked' }]);

test('a tool that only reads runs, others wait for an approval, and all calls share one connection', async () => {
  await world.work({ ask: lookAndBook(), ...tools });
  const agentId = await world.agent([hotel()]);
  const [one, other] = [await world.open(agentId), await world.open(agentId)];
  for (const sessionId of [one, other]) {
    await world.until(sessionId, is('waiting'));
    const [approval] = (await listApprovals(world.ctx, { sessionId })).data;
    expect(approval).toMatchObject({ name: 'hotel__book', input: { room: 7 } });
    await resolveApproval(world.ctx, { operationId: approval!.operationId, decision: 'approved', input: { room: 8 } });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual([
      'running',
      'tool.call',
      'tool.result',
      'approval.requested',
      'waiting',
      'approval.resolved approved',
      'running',
      'tool.call',
      'tool.result',
      '"Booked"',
      'turn.completed endTurn',
      'idle',
    ]);
    expect(chunks.filter(({ type }) => type === 'tool.result')).toMatchObject([
      { output: '{"room":7}' },
      { output: '{"room":8}' },
    ]);
    expect(server.of('tools/call').at(-1)?.headers['idempotency-key']).toBe(approval!.operationId);
  }
  const sessions = sessionsOfCalls();
  expect(sessions).toHaveLength(4);
  expect(new Set(sessions).size).toBe(2);
});

test('if a server is unavailable, the model gets a note and its other tools, and the turn continues', async () => {
  const calls: ModelCall[] = [];
  server.on('initialize', ({ response }) => response.writeHead(503).end('back soon'));
  await world.work({ ask: answering([{ text: 'Hello' }], (call) => calls.push(call)), ...tools });
  const sessionId = await world.open(await world.agent([hotel(), clientTool('ring')], { instructions: 'Be kind.' }));
  expect(outline(await world.until(sessionId, is('idle')))).toContain('"Hello"');
  expect(calls[0]?.instructions).toContain('Be kind.');
  expect(calls[0]?.instructions).toContain('The tools of "hotel" are not available at present: HTTP 503: back soon');
  expect(calls[0]?.tools.map(({ name }) => name)).toEqual(['ring']);
});

test('if the server lacks a tool that needs approval, its other tools are not offered, and the turn says which name is wrong', async () => {
  const calls: ModelCall[] = [];
  await world.work({
    ask: answering([{ calls: [['hotel__look', {}]] }, { text: 'Hello' }], (call) => calls.push(call)),
    ...tools,
  });
  // Meant was `look`, which the server says only reads.
  const approval = { looks: 'always' };
  const sessionId = await world.open(await world.agent([{ ...hotel(), approval } as Tool]));
  await world.until(sessionId, is('idle'));
  const reason = 'The agent’s approval names tools that the server does not have: "looks". It has: "book", "look".';
  expect((await listTurns(world.ctx, { sessionId })).data[0]?.unavailableToolServers).toEqual([
    { name: 'hotel', reason },
  ]);
  expect(calls[0]?.tools).toEqual([]);
  expect(calls[0]?.instructions).toContain(`The tools of "hotel" are not available at present: ${reason}`);
  expect(server.of('tools/call')).toEqual([]);
  const { data } = await listEvents(world.ctx, { type: 'tool_server.unavailable' });
  expect(data).toMatchObject([{ changes: { reason: [null, reason] } }]);
});

test('an unavailable server is shown on each turn, and recorded once in the event log and the log until it is back', async () => {
  await world.close();
  // With this clock a failure takes no time, so it is not cached.
  world = await createWorld({ clock: createManualClock() });
  tools = createTools(world.platform);
  const lines: object[] = [];
  const note = (fields: object, message: string) => {
    if (message.startsWith('tool server')) lines.push({ ...fields, message });
  };
  const log = { ...world.platform.log, warn: note, info: note, error() {}, debug() {} } as never;
  await world.work({ platform: { ...world.platform, log }, ask: answering([{ text: 'Hello' }]), ...tools });
  const secret = 'sk-mcp-4711-secret';
  const allowedHosts = [new URL(server.url).host];
  await setSecret(world.ctx, { env: 'production', name: 'TOKEN', value: secret, allowedHosts });
  let isUnavailable = true;
  server.on('tools/list', (exchange) => {
    if (!isUnavailable) return exchange.result({ tools: server.tools });
    exchange.response.writeHead(403).end(`no ${exchange.headers.authorization} here`);
  });
  const tool: Tool = { ...hotel(), headers: { Authorization: 'Bearer {{secrets.TOKEN}}' } } as Tool;
  const agentId = await world.agent([tool]);
  const eventsOf = async (type: EventType) => (await listEvents(world.ctx, { type })).data;
  const turnOf = async (agent = agentId) => {
    const sessionId = await world.open(agent);
    await world.until(sessionId, is('idle'));
    return (await listTurns(world.ctx, { sessionId })).data[0]!;
  };

  const reason = 'HTTP 403: no Bearer [secret TOKEN] here';
  const turns = await Promise.all([turnOf(), turnOf(), turnOf()]);
  for (const turn of [...turns, await turnOf()])
    expect(turn.unavailableToolServers).toEqual([{ name: 'hotel', reason }]);
  expect(await eventsOf('tool_server.unavailable')).toMatchObject([
    {
      outcome: 'failure',
      environment: 'production',
      resource: { type: 'tool_server', id: `${agentId}/hotel` },
      changes: { reason: [null, reason] },
    },
  ]);
  expect(lines).toMatchObject([{ server: 'hotel', reason, message: 'tool server unavailable' }]);

  isUnavailable = false;
  for (const turn of [await turnOf(), await turnOf()]) expect(turn.unavailableToolServers).toEqual([]);
  expect(await eventsOf('tool_server.available')).toMatchObject([{ changes: { reason: [reason, null] } }]);
  expect(lines).toHaveLength(2);
  const shown = JSON.stringify([turns, lines, (await listEvents(world.ctx, {})).data]);
  expect(shown).not.toContain(secret);

  await server.close();
  const other = await world.agent([{ ...hotel(), name: 'inn' } as Tool]);
  const [refused] = (await turnOf(other)).unavailableToolServers;
  expect(refused).toEqual({ name: 'inn', reason: 'The host could not be connected to (ECONNREFUSED).' });
  expect(await eventsOf('tool_server.unavailable')).toHaveLength(2);
  server = await startMcpServer({ tools: [] });
});

test('a call of a tool whose server is unavailable fails with the reason', async () => {
  server.on('initialize', ({ response }) => response.writeHead(503).end('back soon'));
  await world.work({ ask: answering([{ calls: [['hotel__book', {}]] }, { text: 'Sorry' }]), ...tools });
  const sessionId = await world.open(await world.agent([hotel()]));
  await world.until(sessionId, is('idle'));
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.find(({ role }) => role === 'tool')?.content).toMatchObject([
    {
      error: expect.stringMatching(
        /^There is no tool named "hotel__book"\. The tools of "hotel" are not available .*503/,
      ),
    },
  ]);
});

test('a call with an effect whose connection breaks is not repeated: its outcome is unknown in the stream and in the event log', async () => {
  const arrived = server.next('tools/call');
  server.on('tools/call', ({ request }) => request.socket.resetAndDestroy());
  await world.work({ ask: lookAndBook(), ...tools });
  const sessionId = await world.open(await world.agent([{ ...hotel(), approval: 'never' } as Tool]));
  await arrived;
  const results = (await world.until(sessionId, is('idle'))).filter(({ type }) => type === 'tool.result');
  const cutOff = 'The connection was closed before the response was complete. The request may have taken effect.';
  // A tool that only reads has no effect that could be unknown.
  expect(results).toMatchObject([{ error: cutOff }, { error: cutOff, outcomeUnknown: true }]);
  expect(results[0]).not.toHaveProperty('outcomeUnknown');
  const { data } = await listEvents(world.ctx, { sessionId, type: 'tool_call.outcome_unknown' });
  expect(data).toMatchObject([{ outcome: 'failure', changes: { tool: [null, 'hotel__book'] } }]);
  expect(server.of('tools/call').filter(({ message }) => message.params?.name === 'book')).toHaveLength(1);
});

test('an interrupt cancels a running call at the server, and its outcome is unknown', async () => {
  const arrived = server.next('tools/call');
  const cancelled = server.next('notifications/cancelled');
  server.on('tools/call', () => {});
  await world.work({ ask: answering([{ calls: [['hotel__book', {}]] }]), ...tools });
  const agentId = await world.agent([{ ...hotel(), approval: 'never' } as Tool]);
  const sessionId = await world.open(agentId);
  const { message } = await arrived;
  await interruptSession(world.ctx, { sessionId });
  expect(outline(await world.until(sessionId, is('idle')))).toContain('tool.result unknown');
  expect((await cancelled).message.params?.requestId).toBe(message.id);
});
