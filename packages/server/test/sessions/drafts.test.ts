// Drafts: definitions that sessions run without being saved, and mocks of their tools.
import type { Chunk, Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveAgent, getAgent, listAgents, listAgentVersions, updateAgent } from '../../src/agents/agents.ts';
import { getSessionDraft } from '../../src/agents/drafts.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { formatId, uuidOf } from '../../src/lib/ids.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { dropOldSessions } from '../../src/sessions/retention/retention.ts';
import { deleteSession, getSession, openSession } from '../../src/sessions/sessions.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { createManualClock } from '../support/manual-clock.ts';
import {
  agentTool,
  answering,
  byModel,
  clientTool,
  createWorld,
  httpTool,
  is,
  never,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

type Draft = NonNullable<Input<'openSession'>['draft']>;

const clock = createManualClock(new Date());
let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const definition = (more: Partial<Draft['definition']> = {}): Draft['definition'] => ({
  name: 'Tried',
  model: 'scripted/draft',
  ...more,
});
const isOver = (turn: number) => (chunk: Chunk) => chunk.type === 'turn.completed' && chunk.turn === turn;

async function open(draft: Draft, more: Partial<Input<'openSession'>> = {}) {
  const { session } = await openSession(world.ctx, { draft, environment: 'production', input: 'go', ...more });
  return session;
}

const draftRows = () =>
  world.platform.db.query<{ version: number }>(sql`
    select version from agent_drafts where organization_id = ${world.organizationId} order by version`);
const drop = (at: Date) =>
  dropOldSessions(
    { ...world.platform, clock: { ...clock, now: () => at }, metrics: createMetrics() },
    world.organizationId,
    undefined,
    new AbortController().signal,
  );
const inAnHour = () => new Date(world.platform.clock.now().getTime() + 3_601_000);

test('a draft of an agent runs instead of its version, and does not become one', async () => {
  await world.work({
    ask: byModel({ draft: answering([{ text: 'as drafted' }]), test: answering([{ text: 'as saved' }]) }),
  });
  const agentId = await world.agent();
  const { sessionId, ...opened } = await open({ definition: definition() }, { agentId });
  expect(opened).toMatchObject({ agentId, draft: true, agentVersion: 0 });
  expect(outline(await world.until(sessionId, is('idle')))).toContain('"as drafted"');
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  expect(outline(await world.until(sessionId, isOver(2))).filter((one) => one === '"as drafted"')).toHaveLength(2);

  expect((await listAgentVersions(world.ctx, { agentId })).data.map(({ version }) => version)).toEqual([1]);
  expect((await listTurns(world.ctx, { sessionId })).data[0]).toMatchObject({
    agentVersion: 0,
    operations: [{ name: 'scripted/draft' }],
  });
  const { draft } = await getSessionDraft(world.ctx, { sessionId });
  expect(draft).toMatchObject({ definition: { name: 'Tried', model: { model: 'draft' } }, mocks: {} });
  // It can be sent again as it is.
  const again = await open(draft, { agentId });
  expect((await world.until(again.sessionId, is('idle'))).length).toBeGreaterThan(0);
  expect(await draftRows()).toHaveLength(1);
  // Code that does not know drafts finds no definition, and releases the session.
  const versions = await world.platform.db.query(sql`select 1 from agent_versions where version <= 0`);
  expect(versions).toEqual([]);
});

test('an agent that changes or is archived does not change its drafts', async () => {
  await world.work({ ask: byModel({ draft: answering([{ text: 'as drafted' }]) }) });
  const agentId = await world.agent();
  const { sessionId } = await open({ definition: definition() }, { agentId });
  await world.until(sessionId, is('idle'));
  await updateAgent(world.ctx, { agentId, instructions: 'other' });
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  expect(outline(await world.until(sessionId, isOver(2)))).toContain('"as drafted"');
  await archiveAgent(world.ctx, { agentId });
  await expect(sendMessage(world.ctx, { sessionId, content: 'again' })).rejects.toMatchObject({
    code: 'agent_archived',
  });
  await expect(open({ definition: definition() }, { agentId })).rejects.toMatchObject({ code: 'agent_archived' });
});

test('a draft without an agent runs, and leaves no agent to list, read or open', async () => {
  await world.work({ ask: answering([{ text: 'hello' }]) });
  const { sessionId, agentId } = await open({ definition: definition() });
  await world.until(sessionId, is('idle'));
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, isOver(2));
  expect(agentId).toBe(formatId('agt', world.organizationId));
  expect((await listAgents(world.ctx, {})).data).toEqual([]);
  await expect(getAgent(world.ctx, { agentId })).rejects.toMatchObject({ code: 'not_found' });
  await expect(openSession(world.ctx, { agentId, environment: 'production' })).rejects.toMatchObject({
    code: 'not_found',
  });
  await expect(world.agent([agentTool('ask', agentId)])).rejects.toMatchObject({ code: 'invalid_request' });
  await expect(forkSession(world.ctx, { sessionId, agentVersion: 1, input: 'as version 1' })).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('no call of a mocked tool is run, whatever its type, and each call gets the next result', async () => {
  const ran: string[] = [];
  const run: RunTool = async ({ tool }) => {
    ran.push(tool.name);
    return { output: 'really' };
  };
  const asked = ['pay', 'look', 'ask', 'pay', 'pay', 'real'].map((name): [string, unknown] => [name, { input: 'x' }]);
  await world.work({
    run,
    ask: answering([{ calls: asked.slice(0, 4) }, { calls: asked.slice(4) }, { text: 'done' }]),
  });
  const other = await world.agent();
  const tools = [
    httpTool('pay', { approval: 'always' }),
    clientTool('look'),
    agentTool('ask', other),
    httpTool('real', { approval: 'never' }),
  ];
  const { sessionId } = await open({
    definition: definition({ tools }),
    mocks: {
      pay: { results: [{ output: { paid: 1 } }, { error: 'No money.' }] },
      look: { results: [{ output: 'seen' }] },
      ask: { results: [{ output: 'answered' }] },
    },
  });
  const chunks = await world.until(sessionId, is('idle'));
  const calls = chunks.flatMap((chunk) => (chunk.type === 'tool.call' ? [chunk] : []));
  const resultOf = (toolCallId: string) => {
    const found = chunks.find((chunk) => chunk.type === 'tool.result' && chunk.toolCallId === toolCallId);
    return found?.type === 'tool.result' ? (found.error ?? found.output) : undefined;
  };
  const { data } = await listMessages(world.ctx, { sessionId });
  const parts = data.flatMap(({ content }) => content).filter(({ type }) => type === 'tool_call');
  const inOrder = parts.flatMap((part) => (part.type === 'tool_call' ? [part] : []));
  expect(inOrder.map(({ tool, toolCallId, mocked }) => [tool, resultOf(toolCallId), mocked])).toEqual([
    ['pay', { paid: 1 }, true],
    ['look', 'seen', true],
    ['ask', 'answered', true],
    ['pay', 'No money.', true],
    ['pay', 'No money.', true],
    ['real', 'really', undefined],
  ]);
  expect(calls.filter(({ mocked }) => mocked)).toHaveLength(5);
  const [turn] = (await listTurns(world.ctx, { sessionId })).data;
  expect(turn!.operations.filter(({ toolType }) => toolType === 'mock').map(({ name }) => name)).toHaveLength(5);
  expect(ran).toEqual(['real']);
  expect((await listSessions(world.ctx, {})).data).toHaveLength(1);
});

test('a mocked tool asks for its approvals only if the mock keeps them', async () => {
  await world.work({ ask: answering([{ calls: [['pay', {}]] }, { text: 'done' }]) });
  const tools = [httpTool('pay', { approval: 'always' })];
  const results = [{ output: 'paid' }];
  const skipped = await open({ definition: definition({ tools }), mocks: { pay: { results } } });
  await world.until(skipped.sessionId, is('idle'));
  expect((await listApprovals(world.ctx, { status: 'pending' })).data).toEqual([]);

  const kept = await open({ definition: definition({ tools }), mocks: { pay: { results, approval: 'keep' } } });
  await world.until(kept.sessionId, is('waiting'));
  const [approval] = (await listApprovals(world.ctx, { status: 'pending' })).data;
  expect(approval).toMatchObject({ sessionId: kept.sessionId, name: 'pay' });
  await resolveApproval(world.ctx, { operationId: approval!.operationId, decision: 'approved' });
  const chunks = await world.until(kept.sessionId, is('idle'));
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: 'paid' });
});

test('a node that takes a session over has the draft, its mocks, and the result whose turn it is', async () => {
  const first = await world.work({
    ask: async function* (call, signal) {
      if (call.callsBefore > 0) await never(signal);
      yield { type: 'toolCall', name: 'pay', input: {} };
      yield { type: 'finish', reason: 'toolCalls', usage };
    },
  });
  const { sessionId } = await open({
    definition: definition({ tools: [httpTool('pay')] }),
    mocks: { pay: { results: [{ output: 'one' }, { output: 'two' }] } },
  });
  await world.until(sessionId, ({ type }) => type === 'tool.result');
  await world.expireLease(first.nodeId);
  await world.work({
    platform: await world.anotherNode(),
    ask: answering([{}, { calls: [['pay', {}]] }, { text: 'done' }]),
  });
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.flatMap((chunk) => (chunk.type === 'tool.result' ? [chunk.output] : []))).toEqual(['one', 'two']);
});

test('a conversation is continued with a draft, and that of a draft with the same one, another one or a version', async () => {
  const text = (name: string) => answering([{ text: name }]);
  await world.work({ ask: byModel({ test: text('saved'), draft: text('drafted'), other: text('other') }) });
  const agentId = await world.agent();
  const origin = await world.open(agentId);
  await world.until(origin, is('idle'));
  const next = async (sessionId: string, more: Partial<Input<'forkSession'>>) => {
    const { session } = await forkSession(world.ctx, { sessionId, input: 'next', ...more });
    const chunks = await world.until(session.sessionId, isOver(session.turn));
    const shown = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : []));
    return { ...session, shown: shown.join('') };
  };
  const draft = await next(origin, { draft: { definition: definition() } });
  expect(draft).toMatchObject({ agentId, draft: true, turn: 2, shown: 'drafted' });
  expect(await next(draft.sessionId, {})).toMatchObject({ draft: true, turn: 3, shown: 'drafted' });
  const other = { definition: definition({ model: 'scripted/other' }) };
  expect(await next(draft.sessionId, { draft: other })).toMatchObject({ draft: true, shown: 'other' });
  expect(await next(draft.sessionId, { agentVersion: 1 })).toMatchObject({ draft: false, shown: 'saved' });
  expect((await getSession(world.ctx, { sessionId: origin })).session).toMatchObject({ draft: false, turn: 1 });
  await expect(next(origin, { draft: other, agentVersion: 1 })).rejects.toMatchObject({
    errors: [{ path: 'agentVersion' }],
  });
});

test('a session that a draft opens is a draft of the version that its agent has then', async () => {
  await world.work({
    ask: byModel({
      draft: answering([{ calls: [['ask', { input: 'go' }]] }, { text: 'done' }]),
      test: answering([{ text: 'hi' }]),
    }),
  });
  const childAgent = await world.agent();
  const { sessionId } = await open({ definition: definition({ tools: [agentTool('ask', childAgent)] }) });
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: 'hi' });
  const { data } = await listSessions(world.ctx, { parentSessionId: sessionId });
  expect(data).toMatchObject([{ agentId: childAgent, draft: true, status: 'completed' }]);
  expect((await listSessions(world.ctx, { draft: false })).data).toEqual([]);
  expect((await listSessions(world.ctx, { draft: true })).data).toHaveLength(2);
});

test('lists have drafts only, none of them, or both, with every other filter', async () => {
  await world.work({ ask: answering([{ text: 'hi' }]) });
  const agentId = await world.agent();
  const saved = await world.open(agentId, { metadata: { a: '1' } });
  const draft = await open({ definition: definition() }, { agentId, metadata: { a: '1' } });
  for (const filter of [{}, { agentId }, { environment: 'production' }, { metadata: { a: '1' } }]) {
    const ids = async (drafts?: boolean) => {
      const wanted = drafts === undefined ? {} : { draft: drafts };
      return (await listSessions(world.ctx, { ...filter, ...wanted })).data.map(({ sessionId }) => sessionId);
    };
    expect(await ids(), JSON.stringify(filter)).toEqual([draft.sessionId, saved]);
    expect(await ids(true), JSON.stringify(filter)).toEqual([draft.sessionId]);
    expect(await ids(false), JSON.stringify(filter)).toEqual([saved]);
  }
});

test('a draft is stored once, and deleted when no session runs it any more', async () => {
  await world.work({ ask: answering([{ text: 'hi' }]) });
  const agentId = await world.agent();
  const [a, b] = await Promise.all([
    open({ definition: definition() }, { agentId }),
    open({ definition: definition() }, { agentId }),
  ]);
  const other = await open({ definition: definition({ instructions: 'other' }) }, { agentId });
  expect(await draftRows()).toHaveLength(2);
  for (const { sessionId } of [a!, b!, other]) await world.until(sessionId, is('idle'));
  const remove = async (sessionId: string) => {
    await cancelSession(world.ctx, { sessionId });
    await deleteSession(world.ctx, { sessionId });
  };
  await remove(a!.sessionId);
  await drop(inAnHour());
  expect(await draftRows()).toHaveLength(2);
  const { session: fork } = await forkSession(world.ctx, { sessionId: b!.sessionId });
  await remove(b!.sessionId);
  await drop(inAnHour());
  // The fork runs it.
  expect(await draftRows()).toHaveLength(2);
  await remove(fork.sessionId);
  await drop(world.platform.clock.now());
  // It was used just now, perhaps by a transaction that has not ended.
  expect(await draftRows()).toHaveLength(2);
  await drop(inAnHour());
  expect(await draftRows()).toHaveLength(1);
  const again = await open({ definition: definition() }, { agentId });
  expect(outline(await world.until(again.sessionId, is('idle')))).toContain('"hi"');
});

test('two drafts of an agent whose numbers are the same are two drafts', async () => {
  await world.work({ ask: byModel({ draft: answering([{ text: 'one' }]), other: answering([{ text: 'two' }]) }) });
  const agentId = await world.agent();
  const one = await open({ definition: definition() }, { agentId });
  await world.until(one.sessionId, is('idle'));
  // As if another draft had the number of the next one.
  const two = { definition: definition({ model: 'scripted/other' }) };
  const probe = await open(two, { agentId, input: 'go' });
  await world.until(probe.sessionId, is('idle'));
  const [row] = await world.platform.db.query<{ version: number }>(sql`
    select pinned_version as version from sessions where session_id = ${uuidOf('ses', probe.sessionId)}`);
  await world.platform.db.execute(sql`
    update agent_drafts set sha256 = '' where organization_id = ${world.organizationId} and version = ${row!.version}`);
  const second = await open(two, { agentId });
  expect(outline(await world.until(second.sessionId, is('idle')))).toContain('"two"');
  const versions = (await draftRows()).map(({ version }) => version);
  expect(new Set(versions).size).toBe(3);
});
