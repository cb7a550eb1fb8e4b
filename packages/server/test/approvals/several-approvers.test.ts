// Approvals that need several approvers: they count each approver once, run nothing before the last, and lose no decision.
import type { Approvers, Chunk, Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { updateAgent } from '../../src/agents/agents.ts';
import { getApproval } from '../../src/approvals/approvals.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { listEvents } from '../../src/events/events.ts';
import { deleteKey, rotateKey, updateKey } from '../../src/keys/keys.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, uuidOf } from '../../src/lib/ids.ts';
import { updateMember } from '../../src/people/members.ts';
import { runDue } from '../../src/schedules/run.ts';
import { createSchedule, getSchedule, updateSchedule } from '../../src/schedules/schedules.ts';
import { cancelSession, interruptSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { getSession, openSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import { claimWorkerTurn, completeWorkerTurn } from '../../src/workers/worker-turns.ts';
import { asKeyOf, asPerson, via } from '../support/callers.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import {
  answering,
  byModel,
  clientTool,
  createWorld,
  httpTool,
  is,
  outline,
  type World,
} from '../support/session-world.ts';

let clock: ManualClock;
let world: World;
let [ann, bob, cat]: PoolContext[] = [];
/** The inputs of the calls that ran. */
let ran: unknown[];
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
  ran = [];
  [ann, bob, cat] = await Promise.all(['ann', 'bob', 'cat'].map((name) => asPerson(world.ctx, name, 'admin')));
});
afterEach(() => clock.passWhile(world.close()));

const pay = (by: Approvers, policy: 'always' | 'once' = 'always', name = 'pay') =>
  httpTool(name, { approval: { policy, by } });
const two = pay({ count: 2 });
const payment = (...amounts: number[]) => ({ calls: amounts.map((amount): [string, unknown] => ['pay', { amount }]) });
const isType = (type: Chunk['type']) => (chunk: Chunk) => chunk.type === type;
const ofType = (type: Chunk['type'], chunks: Chunk[]) => chunks.filter(isType(type));

/** A node, whose model requests these payments step after step. */
function work(...steps: number[][]) {
  return world.work({
    ask: answering([...steps.map((amounts) => payment(...amounts)), { text: 'ok' }]),
    run: async ({ input }) => {
      ran.push(input);
      return { output: 'paid' };
    },
  });
}

/** Opens a session and waits until it waits; the operation ids of its approvals. */
async function waiting(agentId: string, by: PoolContext = world.ctx): Promise<{ sessionId: string; ids: string[] }> {
  const { session } = await openSession(by, { agentId, environment: 'production', input: 'go' });
  await clock.passWhile(world.until(session.sessionId, is('waiting')));
  return { sessionId: session.sessionId, ids: await pendingOf(session.sessionId) };
}

async function pendingOf(sessionId: string): Promise<string[]> {
  const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
  return data.map(({ operationId }) => operationId);
}

type More = Partial<Input<'resolveApproval'>>;
const decide = async (caller: PoolContext | undefined, operationId: string, more: More = {}) =>
  (await resolveApproval(caller!, { operationId, decision: 'approved', ...more })).approval;
const deny = (caller: PoolContext | undefined, operationId: string) =>
  decide(caller, operationId, { decision: 'denied', reason: 'no' });
const idle = (sessionId: string) => clock.passWhile(world.until(sessionId, is('idle')));

describe('the count', () => {
  test('a call runs once two people have approved it, and everyone sees that one has', async () => {
    await work([3]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    const first = await decide(ann, id, { reason: 'fine' });
    expect(first).toMatchObject({
      status: 'pending',
      by: { count: 2 },
      progress: { approved: 1, required: 2 },
      decisions: [{ decision: 'approved', actor: { type: 'user', name: 'ann' }, reason: 'fine', scope: 'once' }],
      refusal: { code: 'already_decided_by_you' },
      resolvedBy: null,
    });
    expect((await getApproval(bob!, { operationId: id })).approval.refusal).toBeNull();
    expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
      status: 'waiting',
      waitingFor: { operationIds: [id] },
    });
    expect(ran).toEqual([]);

    expect(await decide(bob, id)).toMatchObject({
      status: 'approved',
      progress: { approved: 2, required: 2 },
      refusal: null,
      resolvedBy: { name: 'bob' },
    });
    const chunks = await idle(sessionId);
    expect(ran).toEqual([{ amount: 3 }]);
    expect(outline(chunks)).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.decided',
      'approval.resolved approved',
      'running',
      'tool.call',
      'tool.result',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
    expect(ofType('approval.requested', chunks)).toMatchObject([{ by: { count: 2 } }]);
    expect(ofType('approval.decided', chunks)).toMatchObject([
      { operationId: id, decision: 'approved', progress: { approved: 1, required: 2 } },
    ]);
    const { data } = await listEvents(world.ctx, { type: 'approval.requested,approval.decided,approval.resolved' });
    expect(data.map(({ type, actor, changes }) => [type, actor.name, changes])).toEqual([
      ['approval.resolved', 'bob', { status: ['pending', 'approved'], progress: [null, { approved: 2, required: 2 }] }],
      ['approval.decided', 'ann', { progress: [null, { approved: 1, required: 2 }] }],
      ['approval.requested', 'Agent', { by: [null, { count: 2 }] }],
    ]);
  });

  test('a person, their keys, and the keys of these count once', async () => {
    await work([3]);
    const { ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    const key = await asKeyOf(ann!, 'first');
    const grandchild = await asKeyOf(await asKeyOf(ann!, 'second'), 'third');
    await decide(key, id);
    for (const caller of [key, ann, grandchild]) {
      await expect(decide(caller, id)).rejects.toMatchObject({ code: 'already_decided_by_you', status: 409 });
    }
    expect((await getApproval(cat!, { operationId: id })).approval).toMatchObject({
      status: 'pending',
      progress: { approved: 1, required: 2 },
    });
    expect(ran).toEqual([]);
    expect((await decide(await asKeyOf(bob!, 'other'), id)).status).toBe('approved');
  });

  test('who rotates a key counts as the same approver', async () => {
    await work([3]);
    const { ids } = await waiting(await world.agent([two]));
    const key = await asKeyOf(ann!, 'bot');
    await rotateKey(bob!, { keyId: formatId('key', key.keyId!) });
    const [row] = await world.platform.db.query<{ createdBy: string[] }>(sql`
      select created_by as "createdBy" from api_keys
      where organization_id = ${world.organizationId} and key_id = ${key.keyId}`);
    await decide(bob, ids[0]!);
    const rotated = { ...key, keyCreatedBy: row!.createdBy };
    await expect(decide(rotated, ids[0]!)).rejects.toMatchObject({ code: 'already_decided_by_you' });
  });

  test.each([
    ['another approver', 1],
    ['the one who had approved', 0],
  ])('a denial by %s is final', async (_, denier) => {
    await work([3]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    await decide(ann, id);
    expect((await deny([ann, bob][denier], id)).status).toBe('denied');
    await expect(decide(cat, id)).rejects.toMatchObject({ code: 'approval_already_resolved' });
    const chunks = await idle(sessionId);
    expect(outline(chunks)).toContain('approval.resolved denied');
    expect(ran).toEqual([]);
  });

  test('a repeated decision that completed the approval gets what was recorded', async () => {
    await work([3]);
    const { ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    await decide(ann, id);
    const last = await decide(bob, id);
    expect(await decide(bob, id)).toEqual(last);
    expect(await decide(ann, id)).toEqual(last);
  });

  test('each approval of a step is counted by itself', async () => {
    await work([1, 2]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [first = '', second = ''] = ids;
    await decide(ann, first);
    await decide(bob, second);
    await decide(bob, first);
    expect(await pendingOf(sessionId)).toEqual([second]);
    await decide(ann, second);
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 1 }, { amount: 2 }]);
  });

  test('the approval of a child session counts its own approvers', async () => {
    const agentId = await world.agent([pay({ count: 2, notRequester: true })], { model: 'scripted/child' });
    const parent = await world.agent([{ type: 'agent', name: 'ask', description: '', agentId }], {
      model: 'scripted/parent',
    });
    await world.work({
      ask: (call, signal) =>
        call.config.model === 'parent'
          ? answering([{ calls: [['ask', { input: 'pay' }]] }, { text: 'done' }])(call, signal)
          : answering([payment(3), { text: 'ok' }])(call, signal),
      run: async ({ input }) => {
        ran.push(input);
        return { output: null };
      },
    });
    const { session } = await openSession(ann!, { agentId: parent, environment: 'production', input: 'go' });
    await clock.passWhile(world.until(session.sessionId, is('waiting')));
    const pending = async () => (await listApprovals(world.ctx, { status: 'pending' })).data;
    await clock.passUntil(async () => (await pending()).length > 0);
    const [approval] = await pending();
    const id = approval!.operationId;
    // Ann opened the parent, so the child is hers as well.
    await expect(decide(ann, id)).rejects.toMatchObject({ code: 'not_an_approver' });
    await decide(bob, id);
    await decide(cat, id);
    await idle(session.sessionId);
    expect(ran).toEqual([{ amount: 3 }]);
  });
});

describe('edited inputs', () => {
  test('approvals count together only if their inputs are equal', async () => {
    await work([300]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    await decide(ann, id, { input: { amount: 30 } });
    // Bob has not seen the edit.
    expect(await decide(bob, id)).toMatchObject({ status: 'pending', progress: { approved: 1, required: 2 } });
    expect(ran).toEqual([]);
    const last = await decide(bob, id, { input: { amount: 30 } });
    expect(last).toMatchObject({ status: 'approved', editedInput: { amount: 30 }, input: { amount: 300 } });
    expect(last.decisions.map(({ actor, input }) => [actor.name, input])).toEqual([
      ['ann', { amount: 30 }],
      ['bob', { amount: 30 }],
    ]);
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 30 }]);
  });

  test('an edit that only one approver wanted does not change what the others approved', async () => {
    await work([300]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    await decide(ann, id, { input: { amount: 30 } });
    await decide(bob, id);
    expect(await decide(cat, id)).toMatchObject({ status: 'approved', editedInput: null });
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 300 }]);
  });

  test('at most three different inputs can be approved at a time', async () => {
    await work([300]);
    const { ids } = await waiting(await world.agent([pay({ count: 5 })]));
    const [id = ''] = ids;
    for (const amount of [1, 2, 3]) {
      await decide(await asPerson(world.ctx, `p${amount}`, 'member'), id, { input: { amount } });
    }
    await expect(decide(ann, id)).rejects.toMatchObject({ code: 'conflict' });
    expect(await decide(ann, id, { input: { amount: 2 } })).toMatchObject({ progress: { approved: 2, required: 5 } });
  });
});

describe('grants for the session', () => {
  test('with the policy once, the last of several approvals allows later calls', async () => {
    await work([1], [2]);
    const { sessionId, ids } = await waiting(await world.agent([pay({ count: 2 }, 'once')]));
    await decide(ann, ids[0]!);
    expect((await getSession(world.ctx, { sessionId })).session.status).toBe('waiting');
    await decide(bob, ids[0]!);
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 1 }, { amount: 2 }]);
  });

  test.each([
    ['one approver alone', 'once', 2],
    ['all approvers', 'session', 1],
  ] as const)('%s with the scope session', async (_, scope, approvals) => {
    await work([1], [2]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    await decide(ann, ids[0]!, { scope: 'session' });
    await decide(bob, ids[0]!, { scope });
    await clock.passWhile(
      world.until(sessionId, (chunk, all) => is('idle')(chunk) || all.filter(is('waiting')).length > 1),
    );
    expect((await listApprovals(world.ctx, { sessionId })).data).toHaveLength(approvals);
  });
});

describe('a call that was granted for the session, with a later version of the agent', () => {
  test.each([
    ['is asked for if the tool has other approvers', {}, { roles: ['owner'] }, true],
    ['is asked for if the tool needs more of them', { people: true }, { people: true, count: 2 }, true],
    ['is asked for if the tool excludes requesters', {}, { notRequester: true }, true],
    [
      'is not asked for if the approvers are the same',
      { roles: ['owner', 'admin'] },
      { roles: ['admin', 'owner'], count: 1 },
      false,
    ],
  ] as [string, Approvers, Approvers, boolean][])('%s', async (_, before, after, asks) => {
    await world.work({ ask: answering([payment(1), { text: 'ok' }, payment(2), { text: 'ok' }]) });
    const agentId = await world.agent([pay(before)]);
    const { sessionId, ids } = await waiting(agentId);
    await decide(ann, ids[0]!, { scope: 'session' });
    await idle(sessionId);
    await updateAgent(ann!, { agentId, tools: [pay(after)] });
    await sendMessage(bob!, { sessionId, content: 'again' });
    const chunks = await clock.passWhile(
      world.until(sessionId, (chunk) => chunk.turn === 2 && (is('waiting')(chunk) || is('idle')(chunk))),
    );
    expect(outline(chunks).at(-1)).toBe(asks ? 'waiting' : 'idle');
  });
});

describe('requesters', () => {
  const notRequester = pay({ notRequester: true });

  test('who opened the session, sent it a message, or whose key they created can’t decide; others can', async () => {
    await work([3]);
    const backend = await asKeyOf(ann!, 'backend');
    const { ids } = await waiting(await world.agent([notRequester]), backend);
    const [id = ''] = ids;
    for (const caller of [backend, await asKeyOf(backend, 'child')]) {
      await expect(decide(caller, id)).rejects.toMatchObject({ code: 'not_an_approver', status: 403 });
      await expect(deny(caller, id)).rejects.toMatchObject({ code: 'not_an_approver' });
    }
    const bot = await asKeyOf(ann!, 'bot');
    expect((await getApproval(bot, { operationId: id })).approval.refusal).toBeNull();
    expect((await decide(bot, id)).status).toBe('approved');
  });

  /** Runs the session to its approval; which of the three may decide it. */
  async function admitted(sessionId: string): Promise<string[]> {
    await clock.passWhile(world.until(sessionId, isType('approval.requested')));
    const [id = ''] = await pendingOf(sessionId);
    const names: string[] = [];
    for (const caller of [ann!, bob!, cat!]) {
      const { approval } = await getApproval(caller, { operationId: id });
      if (approval.refusal === null) names.push(caller.actor.name);
      else expect(approval.refusal.code).toBe('not_an_approver');
    }
    return names;
  }
  const open = async (caller: PoolContext, agentId: string, more: Partial<Input<'openSession'>> = {}) =>
    (await openSession(caller, { agentId, environment: 'production', ...more })).session.sessionId;

  test('a message that arrives later makes no one a requester of an approval that is pending', async () => {
    await work([3]);
    const { sessionId, ids } = await waiting(await world.agent([notRequester]), ann);
    await sendMessage(bob!, { sessionId, content: 'and then?', onBusy: 'queue' });
    expect(await admitted(sessionId)).toEqual(['bob', 'cat']);
    expect((await decide(bob, ids[0]!)).status).toBe('approved');
  });

  test('the sender of a message, even in an earlier turn, is a requester', async () => {
    await world.work({ ask: answering([{ text: 'hello' }, payment(3), { text: 'ok' }]) });
    const sessionId = await open(ann!, await world.agent([notRequester]));
    await sendMessage(bob!, { sessionId, content: 'hello' });
    await idle(sessionId);
    await sendMessage(ann!, { sessionId, content: 'pay' });
    expect(await admitted(sessionId)).toEqual(['cat']);
  });

  test('who sends the result of a call is a requester', async () => {
    await world.work({ ask: answering([{ calls: [['look', {}]] }, payment(3), { text: 'ok' }]) });
    const sessionId = await open(ann!, await world.agent([clientTool('look'), notRequester]), { input: 'go' });
    const chunks = await clock.passWhile(world.until(sessionId, isType('tool.call')));
    const [call] = chunks.filter((chunk) => chunk.type === 'tool.call');
    await clock.passWhile(world.until(sessionId, is('waiting')));
    await sendToolResult(bob!, { sessionId, toolCallId: call!.toolCallId, output: 'pay 3' });
    expect(await admitted(sessionId)).toEqual(['cat']);
  });

  test('who sends a child session the result of a call is a requester of its parent', async () => {
    const agentId = await world.agent([clientTool('look')], { model: 'scripted/child' });
    const parent = await world.agent([{ type: 'agent', name: 'ask', description: '', agentId }, notRequester], {
      model: 'scripted/parent',
    });
    const models = {
      parent: answering([{ calls: [['ask', { input: 'look' }]] }, payment(3), { text: 'ok' }]),
      child: answering([{ calls: [['look', {}]] }, { text: 'pay 3' }]),
    };
    await world.work({ ask: byModel(models) });
    const sessionId = await open(ann!, parent, { input: 'go' });
    await clock.passWhile(world.until(sessionId, isType('tool.call')));
    const [child] = await world.platform.db.query<{ id: string }>(sql`
      select session_id as id from sessions
      where organization_id = ${world.organizationId} and parent_session_id is not null`);
    const childId = formatId('ses', child!.id);
    const chunks = await clock.passWhile(world.until(childId, isType('tool.call')));
    const { toolCallId } = chunks.find((chunk) => chunk.type === 'tool.call')!;
    await clock.passWhile(world.until(childId, is('waiting')));
    await sendToolResult(bob!, { sessionId: childId, toolCallId, output: 'pay 3' });
    expect(await admitted(sessionId)).toEqual(['cat']);
  });

  test('a worker whose step requests the call is a requester', async () => {
    await world.work({});
    const model = { provider: 'worker' as const, queue: 'q' };
    const sessionId = await open(ann!, await world.agent([notRequester], { model }), { input: 'go' });
    const worker = await asKeyOf(bob!, 'worker');
    const claim = claimWorkerTurn(worker, { queue: 'q', waitSeconds: 20 });
    const { workerTurn } = await clock.passWhile(claim);
    await completeWorkerTurn(worker, {
      workerTurnId: workerTurn!.workerTurnId,
      toolCalls: [{ tool: 'pay', input: { amount: 3 } }],
    });
    expect(await admitted(sessionId)).toEqual(['bob', 'cat']);
    const [id = ''] = await pendingOf(sessionId);
    await expect(decide(worker, id)).rejects.toMatchObject({ code: 'not_an_approver' });
  });

  test('a fork has the requesters of its origin, and who forked it', async () => {
    await world.work({
      ask: (call, signal) => answering([call.transcript.length === 1 ? { text: 'hello' } : payment(3)])(call, signal),
    });
    const origin = await open(ann!, await world.agent([notRequester]), { input: 'hello' });
    await idle(origin);
    const { session } = await forkSession(bob!, { sessionId: origin, input: 'pay' });
    expect(await admitted(session.sessionId)).toEqual(['cat']);
  });

  test('who created or changed a schedule is a requester of its sessions', async () => {
    await work([3]);
    const agentId = await world.agent([notRequester]);
    const { schedule } = await createSchedule(ann!, {
      agentId,
      environment: 'production',
      input: 'go',
      cron: '* * * * *',
    });
    const { scheduleId } = schedule;
    await updateSchedule(bob!, { scheduleId, input: 'pay' });
    const nextAt = new Date((await getSchedule(ann!, { scheduleId })).schedule.nextAt!);
    await clock.advance(60_000);
    const due = { organizationId: world.organizationId, scheduleId: uuidOf('sch', scheduleId), nextAt };
    const ran = await runDue(world.platform, due);
    expect(ran?.outcome.status).toBe('opened');
    const { sessionId } = ran!.outcome as { sessionId: string };
    expect(await admitted(sessionId)).toEqual(['cat']);
  });
});

describe('approvers who lose their right', () => {
  const limit = async (canDecide: NonNullable<Input<'updateMember'>['canDecide']>) => {
    await world.platform.db.execute(sql`
      insert into users (id, name, email, email_verified, created_at, updated_at)
      values (${ann!.callerId}, 'ann', 'ann@example.com', false, now(), now())`);
    await updateMember(bob!, { userId: formatId('usr', ann!.callerId!), role: 'approver', canDecide });
  };

  test.each([
    [
      'leaves the organization',
      () =>
        world.platform.db.execute(sql`
        delete from members where organization_id = ${world.organizationId} and user_id = ${ann!.callerId}`),
    ],
    [
      'loses the role',
      () =>
        world.platform.db.execute(sql`
        update members set role = 'viewer'
        where organization_id = ${world.organizationId} and user_id = ${ann!.callerId}`),
    ],
    ['may decide no more in this environment', () => limit({ environments: ['staging'] })],
    ['may decide no more for this agent', async () => limit({ agents: [await world.agent([])] })],
  ])('the approval of a person who %s does not count any more', async (_, lose) => {
    await work([3]);
    const { sessionId, ids } = await waiting(await world.agent([two]));
    const [id = ''] = ids;
    await decide(ann, id);
    await lose();
    expect(await decide(bob, id)).toMatchObject({
      status: 'pending',
      progress: { approved: 1, required: 2 },
      decisions: [{ actor: { name: 'bob' } }],
    });
    expect(ran).toEqual([]);
    await decide(cat, id);
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 3 }]);
  });

  test('the approval of a deleted key does not count any more', async () => {
    await work([3]);
    const { ids } = await waiting(await world.agent([two]));
    const key = await asKeyOf(ann!, 'bot');
    await decide(key, ids[0]!);
    await deleteKey(bob!, { keyId: formatId('key', key.keyId!) });
    expect((await decide(bob, ids[0]!)).status).toBe('pending');
    expect((await decide(cat, ids[0]!)).status).toBe('approved');
  });

  test('the approval of an end user does not count any more if the key of the token can’t decide any more', async () => {
    await work([3]);
    const { ids } = await waiting(await world.agent([pay({ people: true, endUser: true, count: 2 })]));
    const key = await asKeyOf(ann!, 'backend');
    const token = { scopes: ['decide'], endUser: { id: 'eve' } } as unknown as NonNullable<PoolContext['token']>;
    const eve = { ...key, token, actor: { type: 'end_user' as const, id: 'eve', name: 'eve' } };
    expect((await decide(eve, ids[0]!)).progress).toMatchObject({ approved: 1 });
    await updateKey(ann!, { keyId: formatId('key', key.keyId!), scopes: ['sessions:run'] });
    expect(await decide(bob, ids[0]!)).toMatchObject({ status: 'pending', decisions: [{ actor: { name: 'bob' } }] });
    expect((await decide(cat, ids[0]!)).status).toBe('approved');
  });

  test('a new version of the agent does not change who may decide what is pending', async () => {
    await work([3]);
    const agentId = await world.agent([two]);
    const { ids } = await waiting(agentId);
    await updateAgent(ann!, { agentId, tools: [pay({ keys: true })] });
    expect((await decide(ann, ids[0]!)).status).toBe('pending');
    expect((await decide(bob, ids[0]!)).status).toBe('approved');
  });
});

describe('half the decisions', () => {
  test.each(['expired', 'interrupted', 'cancelled'])(
    'an approval with one of two is %s like any other',
    async (how) => {
      await work([3]);
      const agentId = await world.agent([two], { limits: { approvalTimeoutSeconds: 60 } });
      const { sessionId, ids } = await waiting(agentId);
      const [id = ''] = ids;
      await decide(ann, id);
      if (how === 'expired') await clock.advance(61_000);
      else if (how === 'interrupted') await interruptSession(bob!, { sessionId });
      else await cancelSession(bob!, { sessionId });
      const status = how === 'expired' ? 'expired' : 'cancelled';
      await clock.passWhile(
        world.until(sessionId, (chunk) => chunk.type === 'approval.resolved' && chunk.decision === status),
      );
      await expect(decide(bob, id)).rejects.toMatchObject({ code: 'approval_already_resolved' });
      expect((await getApproval(bob!, { operationId: id })).approval).toMatchObject({
        status,
        decisions: [{ actor: { name: 'ann' } }],
        progress: { approved: 1, required: 2 },
      });
      expect(ran).toEqual([]);
    },
  );
});

describe('several nodes', () => {
  test('decisions on two nodes at once: exactly as many as needed, and each effect once', async () => {
    const there = await world.anotherNode({ acrossNodes: true });
    await work([1, 2, 3, 4, 5]);
    const agentId = await world.agent([pay({ count: 3 })]);
    const sessions = await Promise.all(Array.from({ length: 6 }, () => waiting(agentId)));
    const callers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => asPerson(world.ctx, `p${index}`, 'member')),
    );
    const outcomes = await clock.passWhile(
      Promise.all(
        sessions.flatMap(({ ids }) =>
          ids.map(async (id) => {
            const settled = await Promise.allSettled(
              callers.flatMap((caller, index) => [
                decide(index % 2 === 0 ? via(there, caller) : caller, id),
                // The same caller on the other node at the same time.
                decide(index % 2 === 0 ? caller : via(there, caller), id),
              ]),
            );
            return { id, settled };
          }),
        ),
      ),
    );
    await Promise.all(sessions.map(({ sessionId }) => idle(sessionId)));
    expect(ran).toHaveLength(30);
    for (const { id, settled } of outcomes) {
      const { approval } = await getApproval(world.ctx, { operationId: id });
      expect(approval).toMatchObject({ status: 'approved', progress: { approved: 3, required: 3 } });
      const names = approval.decisions.map(({ actor }) => actor.name);
      expect(new Set(names).size).toBe(3);
      // Each decision that was acknowledged is stored.
      const told = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(told.filter(({ status }) => status === 'pending')).toHaveLength(2);
      const codes = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
      expect(new Set(codes)).toEqual(new Set(codes.length > 0 ? ['already_decided_by_you'] : []));
    }
    const { data } = await listEvents(world.ctx, { type: 'approval.decided', limit: 100 });
    expect(data).toHaveLength(60);
    for (const { sessionId } of sessions) {
      const chunks = await world.chunks(sessionId);
      expect(ofType('approval.decided', chunks)).toHaveLength(10);
      expect(ofType('tool.call', chunks)).toHaveLength(5);
    }
  });

  test('a node that dies between the last decision and the call leaves it to another, which runs it once', async () => {
    const first = await work([3]);
    const agentId = await world.agent([two]);
    const { sessionId, ids } = await waiting(agentId);
    await clock.passWhile(first.stop());
    await decide(ann, ids[0]!);
    await decide(bob, ids[0]!);
    expect(ran).toEqual([]);
    await work([3]);
    await idle(sessionId);
    expect(ran).toEqual([{ amount: 3 }]);
  });
});

test('the database refuses an approval without its decisions, whatever a node believes', async () => {
  await work([3]);
  const { ids } = await waiting(await world.agent([two]));
  await decide(ann, ids[0]!);
  await expect(
    world.platform.db.execute(sql`
      update approvals set status = 'approved' where organization_id = ${world.organizationId} and status = 'pending'`),
  ).rejects.toThrow(/approvals_approvers_check/);
});
