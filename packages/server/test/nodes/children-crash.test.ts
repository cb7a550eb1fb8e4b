// Parents and children when nodes die: the child is opened once, and its end reaches the parent once (P3, P7, P8).
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { reportToParent } from '../../src/sessions/children.ts';
import { cancelSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { childOf, childrenOf, openFamily } from '../support/family.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import {
  answering,
  byModel,
  createWorld,
  hanging,
  httpTool,
  is,
  never,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
let halting: HaltingNode[];
beforeEach(async () => {
  world = await createWorld();
  halting = [];
});
afterEach(async () => {
  for (const node of halting) node.release();
  await world.close();
});

const ask = byModel({
  parent: answering([{ calls: [['helper', { input: 'help' }]] }, { text: 'Done' }]),
  child: answering([{ text: 'Helped' }]),
});
const hangingChild = byModel({
  parent: answering([{ calls: [['helper', { input: 'help' }]] }, { text: 'Done' }]),
  child: hanging('Hm'),
});
const whole = ['running', 'tool.call', 'waiting', 'tool.result', 'running', '"Done"', 'turn.completed endTurn', 'idle'];

async function haltingNode(statement: RegExp, when: 'before' | 'after'): Promise<HaltingNode> {
  const node = haltingAt(await world.anotherNode(), statement, when);
  halting.push(node);
  return node;
}

async function outputsOf(sessionId: string): Promise<unknown[]> {
  const { data } = await listMessages(world.ctx, { sessionId });
  const parts = data.flatMap(({ content }) => content);
  return parts.flatMap((part) => (part.type === 'tool_result' ? [part.output ?? part.error] : []));
}

test.each<[string, RegExp, 'before' | 'after']>([
  ['before the child is opened', /^select version, archived_at is not null as "isArchived"/, 'before'],
  ['before the opening is committed', /insert into sessions/, 'before'],
  ['after the opening was committed', /insert into sessions/, 'after'],
  ['before the parent is parked', /status = 'waiting'/, 'before'],
  ['after the parent was parked', /status = 'waiting'/, 'after'],
  ['before the child ends', /parent_due = true/, 'before'],
  ['after the child ended, before its parent is notified', /parent_due = true/, 'after'],
  ['while the parent is notified', /set parent_due = false/, 'before'],
  ['after the parent was notified', /set parent_due = false/, 'after'],
])(
  'killed %s: the child is opened once, its end reaches the parent once, and the parent continues',
  async (_, statement, when) => {
    const node = await haltingNode(statement, when);
    const dying = await world.work({ platform: node.platform, ask });
    const sessionId = await openFamily(world);
    await node.halted;
    await world.expireLease(dying.nodeId);
    await world.work({ platform: await world.anotherNode(), ask });

    const words = outline(await world.until(sessionId, is('idle')));
    expect(words.filter((word) => word !== 'waiting' && word !== 'running')).toEqual(
      whole.filter((word) => word !== 'waiting' && word !== 'running'),
    );
    expect(await outputsOf(sessionId)).toEqual(['Helped']);
    expect(await childrenOf(world, sessionId)).toMatchObject([{ status: 'completed' }]);
  },
);

test('a child whose node dies continues on another node, and its parent keeps waiting', async () => {
  const begun = Promise.withResolvers<void>();
  const dying = await world.work({
    ask: byModel({
      parent: answering([{ calls: [['helper', { input: 'help' }]] }]),
      child: hanging('half', begun.resolve),
    }),
  });
  const sessionId = await openFamily(world);
  const { sessionId: childId } = await childOf(world, sessionId);
  await world.until(childId, (chunk) => chunk.type === 'message.chunk');
  await begun.promise;
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask });
  expect(outline(await world.until(sessionId, is('idle')))).toEqual(whole);
  expect(outline(await world.chunks(childId))).toContain('message.reset 2');
  expect(await outputsOf(sessionId)).toEqual(['Helped']);
});

test('the result of a child reaches a parent whose node died, through the next node', async () => {
  const calls: [string, unknown][] = [
    ['slow', {}],
    ['helper', { input: 'help' }],
  ];
  const node = await haltingNode(/from session_inbox/, 'before');
  const dying = await world.work({
    platform: node.platform,
    ask: byModel({ parent: answering([{ calls }]), child: answering([{ text: 'Helped' }]) }),
    run: (_, signal) => never(signal),
  });
  const sessionId = await openFamily(world, { tools: [httpTool('slow', { idempotent: true })] });
  await node.halted;
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask, run: async () => ({ output: 'ran' }) });
  const words = outline(await world.until(sessionId, is('idle')));
  expect(words.filter((word) => word === 'tool.result')).toHaveLength(2);
  expect(await outputsOf(sessionId)).toEqual(['ran', 'Helped']);
});

test('an end that two nodes see at the same moment reaches the parent once', async () => {
  const node = await haltingNode(/parent_due = true/, 'after');
  const first = await world.work({ platform: node.platform, ask });
  const sessionId = await openFamily(world);
  await node.halted;
  node.release();
  await first.stop();
  const { sessionId: childId } = await childOf(world, sessionId);
  // Delivered or not, mark it as undelivered.
  const child = { organizationId: world.organizationId, sessionId: uuidOf('ses', childId) };
  const nodes = await Promise.all([1, 2, 3].map(() => world.anotherNode()));
  await Promise.all(nodes.map((platform) => reportToParent(platform, child)));
  expect(outline(await world.chunks(sessionId)).filter((word) => word === 'tool.result')).toHaveLength(1);
  const due = await world.platform.db.query(sql`select 1 from sessions where parent_due`);
  expect(due).toEqual([]);
  await world.work({ ask });
  expect(outline(await world.until(sessionId, is('idle')))).toEqual(whole);
});

test('an end without a wake-up is found by the poll', async () => {
  await world.work({ platform: await world.anotherNode(), ask: hangingChild });
  const sessionId = await openFamily(world);
  const { sessionId: childId } = await childOf(world, sessionId);
  await world.until(sessionId, is('waiting'));
  // Ended by a node that runs no sessions and whose wake-ups reach no other.
  await cancelSession(world.ctx, { sessionId: childId });
  await world.until(sessionId, is('idle'));
  expect(await outputsOf(sessionId)).toEqual(["The agent's session was cancelled."]);
});

test('if a parent is interrupted and its node is killed before it notices, the next node cancels the child', async () => {
  const node = await haltingNode(/set stop = 'cancel'/, 'after');
  const dying = await world.work({ platform: node.platform, ask: hangingChild });
  const sessionId = await openFamily(world);
  const { sessionId: childId } = await childOf(world, sessionId);
  await world.until(childId, (chunk) => chunk.type === 'message.chunk');
  await world.until(sessionId, is('waiting'));
  await interruptSession(world.ctx, { sessionId });
  await node.halted;
  expect(outline(await world.chunks(sessionId)).slice(-3)).toEqual([
    'tool.result error',
    'turn.completed interrupted',
    'idle',
  ]);
  expect(await childOf(world, sessionId)).toMatchObject({ status: 'running' });
  await world.expireLease(dying.nodeId);
  await world.work({ platform: await world.anotherNode(), ask: hangingChild });
  expect(outline(await world.until(childId, is('cancelled')))).toEqual(['running', '"Hm"', 'cancelled']);
});

test('many families on two nodes without wake-ups between them: each parent has its results once, in order', async () => {
  const calls = ['a', 'b', 'c'].map((input): [string, unknown] => ['helper', { input }]);
  const many = byModel({
    parent: answering([{ calls }, { text: 'Done' }]),
    child: async function* ({ transcript }) {
      const [part] = transcript[0]!.content;
      yield { type: 'text', delta: part?.type === 'text' ? part.text : '' };
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  await world.work({ platform: await world.anotherNode(), ask: many });
  await world.work({ platform: await world.anotherNode(), ask: many });
  const sessions = await Promise.all(Array.from({ length: 15 }, () => openFamily(world)));
  for (const sessionId of sessions) {
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => index + 1));
    expect(outline(chunks).filter((word) => word === 'tool.result')).toHaveLength(3);
    expect(await outputsOf(sessionId)).toEqual(['a', 'b', 'c']);
  }
});
