// A node that dies, is paused or loses a session: P3, P7 and P8 on real PostgreSQL.
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import type { AskModel } from '../../src/models/model/model.ts';
import { createSessionRunner } from '../../src/node/session-runner.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import { getSession, openSession } from '../../src/sessions/sessions.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, httpTool, is, outline, usage, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

/** Ends when the node that waits for it is stopped. */
const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

/** Yields text, and then neither ends nor reacts to an abort, like a paused process. */
function stuckAfter(text: string, resume: Promise<void>): AskModel {
  return async function* () {
    yield { type: 'text', delta: text };
    await resume;
    yield { type: 'text', delta: ' from the grave' };
    yield { type: 'finish', reason: 'endTurn', usage };
  };
}

test('a node paused past its lease writes nothing when it resumes, and another node continues the session', async () => {
  const resume = Promise.withResolvers<void>();
  const paused = await world.work({ ask: stuckAfter('half', resume.promise) });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');

  await world.expireLease(paused.nodeId);
  await world.work({ platform: await world.anotherNode(), ask: answering([{ text: 'whole' }]) });
  await world.until(sessionId, is('idle'));
  resume.resolve();
  await paused.stop();
  expect(outline(await world.chunks(sessionId))).toEqual([
    'running',
    '"half"',
    'message.reset 2',
    '"whole"',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('a node that lost the session can’t end its turn, even if the next node has written nothing yet', async () => {
  const [asked, resume, taken, proceed, tried] = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const { platform } = world;
  const sessionId = await world.open(await world.agent());
  // This clock does not advance, so the first node does not check its active sessions.
  const clock = createManualClock(new Date());
  let isResumed = false;
  const batch: typeof platform.db.batch = async (statements) => {
    const outcome = platform.db.batch(statements);
    if (isResumed) await Promise.allSettled([outcome]).then(() => tried!.resolve());
    return outcome as never;
  };
  const paused = await world.work({
    platform: { ...platform, clock, db: { ...platform.db, batch } },
    ask: async function* () {
      asked!.resolve();
      await resume!.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  await asked!.promise;
  await world.expireLease(paused.nodeId);
  await world.work({
    platform: await world.anotherNode(),
    ask: async function* (call, signal) {
      taken!.resolve();
      await proceed!.promise;
      yield* answering([{ text: 'whole' }])(call, signal);
    },
  });
  await taken!.promise;
  isResumed = true;
  resume!.resolve();
  await tried!.promise;
  proceed!.resolve();
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"whole"',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('finished operations are not repeated after a crash, and the model is called just once more', async () => {
  const runs: string[] = [];
  const hang = Promise.withResolvers<void>();
  const run = async ({ tool }: { tool: { name: string } }) => {
    runs.push(tool.name);
    return { output: 1 };
  };
  const dying = await world.work({
    run,
    ask: async function* (call, signal) {
      if (call.callsBefore === 0) return yield* answering([{ calls: [['effect', {}]] }])(call, signal);
      hang.resolve();
      await never(signal);
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('effect')]));
  await hang.promise;
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), run, ask: answering([{}, { text: 'after' }]) });
  const chunks = await world.until(sessionId, is('idle'));
  expect(runs).toEqual(['effect']);
  expect(outline(chunks)).toEqual(['running', 'tool.call', 'tool.result', '"after"', 'turn.completed endTurn', 'idle']);
});

async function crashInTool(tool: ReturnType<typeof httpTool>): Promise<{ chunks: Chunk[]; runsAfter: number }> {
  const began = Promise.withResolvers<void>();
  const dying = await world.work({
    ask: answering([{ calls: [['effect', {}]] }]),
    run: async (_, signal) => {
      began.resolve();
      return never(signal);
    },
  });
  const sessionId = await world.open(await world.agent([tool]));
  await began.promise;
  await world.expireLease(dying.nodeId);
  let runsAfter = 0;
  await world.work({
    platform: await world.anotherNode(),
    ask: answering([{}, { text: 'after' }]),
    run: async () => {
      runsAfter += 1;
      return { output: 'again' };
    },
  });
  return { chunks: await world.until(sessionId, is('idle')), runsAfter };
}

test('a call with an effect that ran in a crash is not repeated: its outcome is unknown, and is reported as such', async () => {
  const { chunks, runsAfter } = await crashInTool(httpTool('effect'));
  expect(runsAfter).toBe(0);
  expect(outline(chunks)).toEqual([
    'running',
    'tool.call',
    'tool.result unknown',
    '"after"',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('an idempotent tool is called again after a crash, with the same idempotency key', async () => {
  const { chunks, runsAfter } = await crashInTool(httpTool('effect', { idempotent: true }));
  expect(runsAfter).toBe(1);
  expect(outline(chunks).filter((word) => word === 'tool.call')).toHaveLength(1);
  expect(outline(chunks)).toContain('tool.result');
});

test('a parked session is only a row, and can be approved while no node runs sessions', async () => {
  const first = await world.work({ ask: answering([{ calls: [['pay', {}]] }]) });
  const sessionId = await world.open(await world.agent([httpTool('pay', { approval: 'always' })]));
  await world.until(sessionId, is('waiting'));
  await first.stop();
  const held = await world.platform.db.query(sql`select 1 from sessions where node_id is not null`);
  expect(held).toEqual([]);
  const { data } = await listApprovals(world.ctx, { sessionId });
  await resolveApproval(world.ctx, { operationId: data[0]!.operationId, decision: 'approved' });
  expect((await getSession(world.ctx, { sessionId })).session.status).toBe('running');
  await world.work({ ask: answering([{}, { text: 'done' }]) });
  await world.until(sessionId, is('idle'));
});

test('an approval that arrives while the session still names a dead node takes effect on the next node', async () => {
  const began = Promise.withResolvers<void>();
  const tools = [httpTool('slow', { idempotent: true }), httpTool('pay', { approval: 'always' })];
  const dying = await world.work({
    ask: answering([
      {
        calls: [
          ['slow', {}],
          ['pay', {}],
        ],
      },
    ]),
    run: async (_, signal) => {
      began.resolve();
      return never(signal);
    },
  });
  const sessionId = await world.open(await world.agent(tools));
  await began.promise;
  const otherNode = { ...world.ctx, ...(await world.anotherNode()) };
  const { data } = await listApprovals(world.ctx, { sessionId });
  await resolveApproval(otherNode, { operationId: data[0]!.operationId, decision: 'approved' });
  await world.expireLease(dying.nodeId);
  await world.work({ platform: otherNode, ask: answering([{}, { text: 'done' }]), run: async () => ({ output: 1 }) });
  const words = outline(await world.until(sessionId, is('idle')));
  expect(words.filter((word) => word === 'approval.resolved approved')).toHaveLength(1);
  expect(words.filter((word) => word === 'tool.call')).toHaveLength(2);
});

test('a node stops although a tool ignores its abort signal, and the late result is not written', async () => {
  const [began, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const deaf = await world.work({
    ask: answering([{ calls: [['effect', {}]] }]),
    run: async () => {
      began.resolve();
      await ends.promise;
      return { output: 'late' };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('effect')]));
  await began.promise;
  await deaf.stop();
  await world.work({ ask: answering([{}, { text: 'after' }]) });
  await world.until(sessionId, is('idle'));
  ends.resolve();
  expect(outline(await world.chunks(sessionId))).toContain('tool.result unknown');
});

test('a turn that fails each time it is resumed ends at its deadline', async () => {
  const clock = createManualClock();
  const timed = await createWorld({ clock });
  let asked = 0;
  await timed.work({
    // biome-ignore lint/correctness/useYield: it always throws first.
    ask: async function* () {
      asked += 1;
      throw new Error('Not foreseen');
    },
  });
  const sessionId = await timed.open(await timed.agent([], { limits: { turnTimeoutSeconds: 7 } }));
  const chunks = await clock.passWhile(timed.until(sessionId, is('idle')));
  expect(outline(chunks)).toEqual(['running', 'turn.completed timedOut', 'idle']);
  expect(asked).toBeGreaterThan(1);
  await clock.passWhile(timed.close());
});

test('a node that stops releases its sessions, and none is left without a node', async () => {
  const begun = Promise.withResolvers<void>();
  const stopping = await world.work({
    ask: async function* (_, signal) {
      begun.resolve();
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      yield { type: 'text', delta: 'never' };
    },
  });
  const sessionId = await world.open(await world.agent());
  await begun.promise;
  await stopping.stop();
  await world.work({ ask: answering([{ text: 'handed over' }]) });
  expect(outline(await world.until(sessionId, is('idle')))).toContain('"handed over"');
});

test('a node that stops lets a turn finish its step, and releases it then', async () => {
  const [began, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let asked = 0;
  const stopping = await world.work({
    graceMs: 60_000,
    ask: answering([{ text: 'first', calls: [['effect', {}]] }, { text: 'not here' }], () => {
      asked += 1;
    }),
    run: async () => {
      began.resolve();
      await ends.promise;
      return { output: 'in time' };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('effect')]));
  await began.promise;
  const stopped = stopping.stop();
  const waits = await world.open(await world.agent());
  ends.resolve();
  await stopped;
  expect(asked).toBe(1);
  const [row] = await world.platform.db.query(sql`
    select node_id, status, runnable_at <= now() as "isRunnable" from sessions
    where session_id = ${uuidOf('ses', sessionId)}`);
  expect(row).toEqual({ node_id: null, status: 'running', isRunnable: true });
  expect(outline(await world.chunks(waits)), 'claimed by nobody that stops').toEqual(['running']);

  await world.work({ platform: await world.anotherNode(), ask: answering([{}, { text: 'second' }]) });
  expect(outline(await world.until(sessionId, is('idle')))).toEqual([
    'running',
    '"first"',
    'tool.call',
    'tool.result',
    '"second"',
    'turn.completed endTurn',
    'idle',
  ]);
});

test('many sessions on two nodes: each chunk of each session is stored once, in order, with every wake-up lost', async () => {
  const deaf = await world.anotherNode();
  await world.work({ platform: deaf, ask: answering([{ text: 'x', calls: [['a', {}]] }, { text: 'y' }]) });
  await world.work({
    platform: await world.anotherNode(),
    ask: answering([{ text: 'x', calls: [['a', {}]] }, { text: 'y' }]),
  });
  const agentId = await world.agent([httpTool('a')]);
  const sessions = await Promise.all(Array.from({ length: 40 }, () => world.open(agentId)));
  for (const sessionId of sessions) {
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => index + 1));
    expect(outline(chunks)).toEqual([
      'running',
      '"x"',
      'tool.call',
      'tool.result',
      '"y"',
      'turn.completed endTurn',
      'idle',
    ]);
  }
});

test('an organization whose tools and models hang leaves room on a node for others', async () => {
  const other = await world.platform.db.transaction((tx) => createOrganization(tx, 'Other', new Date()));
  const nodeId = newUuid();
  const worker = createSessionRunner(world.platform, {
    nodeId,
    maxActive: 10,
    graceMs: 0,
    ask: async function* (call, signal) {
      if (call.organizationId === world.organizationId) await never(signal);
      yield* answering([{ text: 'ok' }])(call, signal);
    },
    tools: { list: async () => ({ tools: [], unavailable: [] }), run: async () => ({ output: null }) },
  });
  const agentId = await world.agent();
  for (let count = 0; count < 12; count += 1) await world.open(agentId);
  const held = () => world.platform.db.execute(sql`select from sessions where node_id = ${nodeId}`);
  await worker.start();
  while ((await held()) === 0);
  const { localRunners } = world.platform;
  while (localRunners.withRoom(world.organizationId)) await held();
  expect(localRunners.withRoom(other.organizationId)?.nodeId).toBe(nodeId);
  const ctx = { ...world.ctx, organizationId: other.organizationId };
  const { agent } = await createAgent(ctx, { name: 'Agent', model: 'scripted/test' });
  const opened = await openSession(ctx, { agentId: agent.agentId, environment: 'production', input: 'go' });
  const sessionId = uuidOf('ses', opened.session.sessionId);
  let status: string | undefined;
  while (status !== 'idle') {
    const rows = await world.platform.db.query<{ status: string }>(sql`
      select status from sessions where organization_id = ${other.organizationId} and session_id = ${sessionId}`);
    status = rows[0]?.status;
  }
  expect(await held()).toBe(9);
  await worker.stop();
});
