// Forks: what they inherit, and that they and their origin do not change each other.
import type { Chunk, Input, Message } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { archiveAgent, updateAgent } from '../../src/agents/agents.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { cancelSession, closeSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { trimDueTranscripts } from '../../src/sessions/retention/kept-transcripts.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { deleteSession, getSession, updateSession } from '../../src/sessions/sessions.ts';
import {
  agentTool,
  answering,
  byModel,
  clientTool,
  createWorld,
  httpTool,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;
const turnOver = (turn: number) => (chunk: Chunk) => chunk.type === 'turn.completed' && chunk.turn === turn;

/** A session with this many finished turns, whose messages are `message N`. */
async function conversation(turns: number, agentId?: string, more: object = {}): Promise<string> {
  const sessionId = await world.open(agentId ?? (await world.agent()), { input: 'message 1', ...more });
  await world.until(sessionId, turnOver(1));
  for (let turn = 2; turn <= turns; turn++) await say(sessionId, turn);
  return sessionId;
}

async function say(sessionId: string, turn: number, content = `message ${turn}`): Promise<void> {
  await sendMessage(world.ctx, { sessionId, content });
  await world.until(sessionId, turnOver(turn));
}

const fork = async (sessionId: string, input: Partial<Input<'forkSession'>> = {}) =>
  (await forkSession(world.ctx, { sessionId, ...input })).session;

/** Every page of the transcript, each message as `TURN ROLE TEXT`. */
async function transcript(sessionId: string, order: 'asc' | 'desc' = 'asc', limit = 3): Promise<string[]> {
  const all: Message[] = [];
  for (let cursor = ''; ; ) {
    const { data, page } = await listMessages(world.ctx, { sessionId, order, limit, cursor });
    all.push(...data);
    if (!page.hasMore) break;
    cursor = page.nextCursor;
  }
  return all.map(
    ({ turn, role, content }) => `${turn} ${role} ${JSON.stringify(content).match(/"text":"([^"]*)"/)?.[1]}`,
  );
}

const rowsOf = async (table: 'messages' | 'kept_transcripts' | 'inherited_turns' | 'session_forks') => {
  const statements = {
    messages: sql`select count(*)::int as n from messages where organization_id = ${world.organizationId}`,
    kept_transcripts: sql`select count(*)::int as n from kept_transcripts where organization_id = ${world.organizationId}`,
    inherited_turns: sql`select count(*)::int as n from inherited_turns where organization_id = ${world.organizationId}`,
    session_forks: sql`select count(*)::int as n from session_forks where organization_id = ${world.organizationId}`,
  };
  return (await world.platform.db.query<{ n: number }>(statements[table]))[0]!.n;
};

const gone = async (sessionId: string) => {
  await cancelSession(world.ctx, { sessionId }).catch(() => {});
  await deleteSession(world.ctx, { sessionId });
};

describe('what a fork inherits', () => {
  test('a fork continues the conversation after the turn: its model gets the transcript up to there', async () => {
    const calls: ModelCall[] = [];
    await world.work({ ask: answering([{ text: 'ok' }], (call) => calls.push(call)) });
    const origin = await conversation(3);
    const session = await fork(origin, { atTurn: 2, input: 'another way' });
    expect(session).toMatchObject({
      status: 'running',
      turn: 3,
      forkedFrom: { sessionId: origin, turn: 2 },
      usage: { steps: 0, inputTokens: 0 },
    });
    const chunks = await world.until(session.sessionId, is('idle'));
    expect(outline(chunks)).toEqual(['running', '"ok"', 'turn.completed endTurn', 'idle']);
    expect(chunks.every(({ turn }) => turn === 3)).toBe(true);
    expect(calls.at(-1)!.transcript.map(({ role, content }) => [role, content])).toEqual([
      ['user', [{ type: 'text', text: 'message 1' }]],
      ['assistant', [{ type: 'text', text: 'ok' }]],
      ['user', [{ type: 'text', text: 'message 2' }]],
      ['assistant', [{ type: 'text', text: 'ok' }]],
      ['user', [{ type: 'text', text: 'another way' }]],
    ]);
    const expected = [
      '1 user message 1',
      '1 assistant ok',
      '2 user message 2',
      '2 assistant ok',
      '3 user another way',
      '3 assistant ok',
    ];
    expect(await transcript(session.sessionId)).toEqual(expected);
    expect(await transcript(session.sessionId, 'desc')).toEqual(expected.toReversed());
    const { data } = await listTurns(world.ctx, { sessionId: session.sessionId });
    expect(data.map(({ turn }) => turn)).toEqual([3]);
    expect((await getSession(world.ctx, { sessionId: session.sessionId })).session).toMatchObject({
      cursor: 'turn_3:seq_6',
      usage: { steps: 1 },
    });
  });

  test('without input it is idle after its origin’s turn, and its first turn has the next number', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const origin = await conversation(2);
    const session = await fork(origin);
    expect(session).toMatchObject({ status: 'idle', turn: 2, cursor: null, agentVersion: null, stopReason: null });
    expect((await listTurns(world.ctx, { sessionId: session.sessionId })).data).toEqual([]);
    await say(session.sessionId, 3);
    expect((await transcript(session.sessionId)).length).toBe(6);
    expect((await transcript(origin)).length).toBe(4);
  });

  test('at turn 0 it inherits nothing', async () => {
    const calls: ModelCall[] = [];
    await world.work({ ask: answering([{ text: 'ok' }], (call) => calls.push(call)) });
    const { sessionId } = await fork(await conversation(1), { atTurn: 0, input: 'anew' });
    await world.until(sessionId, turnOver(1));
    expect(calls.at(-1)!.transcript).toHaveLength(1);
    expect(await transcript(sessionId)).toEqual(['1 user anew', '1 assistant ok']);
  });

  test('agent, environment, version, budget and metadata are those of the origin, unless the request has others', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const agentId = await world.agent();
    await updateAgent(world.ctx, { agentId, expectedVersion: 1, instructions: 'Be brief.' });
    const budget = { maxSteps: 50 };
    const metadata = { order: 'A-1' };
    const origin = await conversation(1, agentId, { agentVersion: 1, budget, metadata, environment: 'staging' });
    const same = await fork(origin, { input: 'more' });
    expect(same).toMatchObject({ agentId, agentVersion: 1, environment: 'staging', budget, metadata });
    const other = await fork(origin, { input: 'more', agentVersion: 2, budget: null, metadata: { try: 2 } });
    expect(other).toMatchObject({ agentVersion: 2, budget: null, metadata: { try: 2 } });
    const found = await listSessions(world.ctx, { metadata: { order: 'A-1' } });
    expect(found.data.map(({ sessionId }) => sessionId)).toEqual([same.sessionId, origin]);
  });

  test('a summary of older messages is inherited if it covers no later ones', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const origin = await conversation(4);
    const { db } = world.platform;
    for (const [turn, position] of [
      [2, 0],
      [3, 1],
      [4, 0],
    ])
      await db.execute(sql`
        insert into compactions (organization_id, session_id, from_turn, from_position, operation_id, turn, summary, tokens_before,
          tokens_after, created_at)
        values (${world.organizationId}, ${uuidOf('ses', origin)}, ${turn}, ${position}, ${newUuid()}, ${turn}, ${`before ${turn}`},
          9, 1, now())`);
    const summaries = async (sessionId: string) =>
      (
        await db.query<{ summary: string }>(sql`
          select summary from compactions
          where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`)
      ).map(({ summary }) => summary);
    // It replaces the messages before a place, which may be the beginning of the fork's first own turn.
    expect(await summaries((await fork(origin, { atTurn: 3 })).sessionId)).toEqual(['before 4']);
    expect(await summaries((await fork(origin, { atTurn: 2 })).sessionId)).toEqual(['before 2']);
    expect(await summaries((await fork(origin, { atTurn: 0 })).sessionId)).toEqual([]);
  });

  test('a tool that was approved for the rest of the origin is asked about again in the fork', async () => {
    const ask = answering([{ calls: [['pay', {}]] }, { text: 'paid' }, { calls: [['pay', {}]] }, { text: 'paid' }]);
    await world.work({ ask });
    const agentId = await world.agent([httpTool('pay', { approval: 'once' })]);
    const origin = await world.open(agentId);
    await world.until(origin, is('waiting'));
    const [approval] = (await listApprovals(world.ctx, { sessionId: origin })).data;
    await resolveApproval(world.ctx, { operationId: approval!.operationId, decision: 'approved' });
    await world.until(origin, turnOver(1));
    await say(origin, 2);
    expect((await listApprovals(world.ctx, { sessionId: origin })).data).toHaveLength(1);
    const { sessionId } = await fork(origin, { input: 'again' });
    await world.until(sessionId, is('waiting'));
    expect((await listApprovals(world.ctx, { sessionId })).data).toMatchObject([{ status: 'pending' }]);
  });

  test('a node that claims a fork loads what it inherits', async () => {
    const origin = await parkedConversation();
    const calls: ModelCall[] = [];
    const { sessionId } = await fork(origin, { input: 'more' });
    // No node was running when the fork was created: one claims it.
    await world.work({ ask: answering([{ text: 'ok' }], (call) => calls.push(call)) });
    await world.until(sessionId, turnOver(2));
    expect(calls.at(-1)!.transcript).toHaveLength(3);
  });

  /** One turn, on a node that stops then. */
  async function parkedConversation(): Promise<string> {
    const node = await world.work({ ask: answering([{ text: 'ok' }]) });
    const sessionId = await conversation(1);
    await node.stop();
    return sessionId;
  }
});

describe('which turn', () => {
  test('the running turn can’t be forked, turns before it can; one that does not exist is not found', async () => {
    await world.work({ ask: answering([{ text: 'ok' }, { calls: [['where', {}]] }]) });
    const origin = await conversation(1, await world.agent([clientTool('where')]));
    await sendMessage(world.ctx, { sessionId: origin, content: 'and now?' });
    await world.until(origin, is('waiting'));
    await expect(fork(origin, { atTurn: 2 })).rejects.toMatchObject({ code: 'turn_not_finished' });
    await expect(fork(origin, { atTurn: 3 })).rejects.toMatchObject({ code: 'not_found' });
    expect(await fork(origin)).toMatchObject({ turn: 1, forkedFrom: { turn: 1 } });
    await cancelSession(world.ctx, { sessionId: origin });
    const { sessionId } = await fork(origin);
    const messages = (await listMessages(world.ctx, { sessionId })).data;
    // The result of the cancelled call is there: providers refuse a call without one.
    expect(messages.at(-1)).toMatchObject({ turn: 2, role: 'tool', content: [{ type: 'tool_result' }] });
  });

  test('a session that has ended can be forked, one whose agent is archived can’t', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const agentId = await world.agent();
    const origin = await conversation(1, agentId);
    await closeSession(world.ctx, { sessionId: origin });
    const { sessionId } = await fork(origin, { input: 'go on' });
    await world.until(sessionId, turnOver(2));
    await expect(fork(origin, { agentVersion: 2 })).rejects.toMatchObject({ code: 'not_found' });
    await archiveAgent(world.ctx, { agentId });
    await expect(fork(origin)).rejects.toMatchObject({ code: 'agent_archived' });
  });

  test('a turn that failed can be forked, and its retry adds nothing to the fork', async () => {
    const calls: ModelCall[] = [];
    let isDown = true;
    await world.work({
      async *ask(call) {
        calls.push(structuredClone(call));
        const isFirst = call.transcript.at(-1)!.role === 'user' && isDown;
        if (!isFirst && isDown) throw new ModelFailure('model_rejected', 'It refuses.', { retryable: false });
        if (isFirst) yield { type: 'toolCall', name: 'look', input: {} };
        else yield { type: 'text', delta: 'ok' };
        yield { type: 'finish', reason: isFirst ? 'toolCalls' : 'endTurn', usage };
      },
    });
    const origin = await world.open(await world.agent([httpTool('look')]), { input: 'go' });
    await world.until(origin, turnOver(1));
    const before = await transcript(origin);
    expect(before.map((line) => line.split(' ')[1])).toEqual(['user', 'assistant', 'tool']);
    const { sessionId } = await fork(origin);
    isDown = false;
    await retrySession(world.ctx, { sessionId: origin });
    await world.until(origin, (chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'endTurn');
    expect(await transcript(origin)).toHaveLength(4);
    expect(await transcript(sessionId)).toEqual(before);
    await gone(origin);
    expect(await rowsOf('messages')).toBe(3);
    await say(sessionId, 2, 'what was that?');
    expect(calls.at(-1)!.transcript).toHaveLength(4);
    expect(await transcript(sessionId)).toHaveLength(5);
  });

  test('a child session can be forked: the fork is a root session with the budget of the root', async () => {
    const budget = { maxSteps: 40 };
    const helper = await world.agent([], { name: 'Helper', model: 'scripted/helper' });
    const chief = await world.agent([agentTool('help', helper, { approval: 'never' })], { model: 'scripted/chief' });
    await world.work({
      ask: byModel({
        chief: answering([{ calls: [['help', { input: 'please' }]] }, { text: 'done' }]),
        helper: answering([{ text: 'ok' }]),
      }),
    });
    const parent = await world.open(chief, { budget });
    await world.until(parent, turnOver(1));
    const [child] = (await listSessions(world.ctx, { parentSessionId: parent })).data;
    const session = await fork(child!.sessionId);
    expect(session).toMatchObject({ agentId: helper, parentSessionId: null, budget, turn: 1 });
    await gone(parent);
    expect(await transcript(session.sessionId)).toEqual(['1 user please', '1 assistant ok']);
  });

  test('a session without turns can be forked at turn 0', async () => {
    const origin = await world.open(await world.agent(), { input: undefined });
    expect(await fork(origin)).toMatchObject({ turn: 0, forkedFrom: { sessionId: origin, turn: 0 } });
    await expect(fork(origin, { atTurn: 1 })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a session that is not there can’t be forked', async () => {
    await expect(fork(formatId('ses', world.organizationId))).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('forks of forks', () => {
  test('a fork of a fork has the turns of both, up to its own', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const first = await conversation(3);
    const second = await fork(first, { atTurn: 2 });
    await say(second.sessionId, 3, 'second 3');
    await say(second.sessionId, 4, 'second 4');
    const third = await fork(second.sessionId, { atTurn: 3 });
    await say(third.sessionId, 4, 'third 4');
    const texts = async (sessionId: string) =>
      (await transcript(sessionId)).filter((line) => line.includes('user')).map((line) => line.replace(' user', ''));
    expect(await texts(third.sessionId)).toEqual(['1 message 1', '2 message 2', '3 second 3', '4 third 4']);
    // Before the turn at which its origin was forked.
    const fourth = await fork(third.sessionId, { atTurn: 1 });
    expect(fourth.forkedFrom).toEqual({ sessionId: third.sessionId, turn: 1 });
    await say(fourth.sessionId, 2, 'fourth 2');
    expect(await texts(fourth.sessionId)).toEqual(['1 message 1', '2 fourth 2']);
    expect(await texts(second.sessionId)).toEqual(['1 message 1', '2 message 2', '3 second 3', '4 second 4']);
    const forksOf = async (sessionId: string) =>
      (await listSessions(world.ctx, { forkedFromSessionId: sessionId })).data.map((one) => one.sessionId);
    expect(await forksOf(first)).toEqual([second.sessionId]);
    expect(await forksOf(third.sessionId)).toEqual([fourth.sessionId]);
  });

  test('after 100 forks of forks another is refused', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    let sessionId = await conversation(1);
    for (let turn = 2; turn <= 101; turn++) {
      ({ sessionId } = await fork(sessionId));
      await say(sessionId, turn);
    }
    await expect(fork(sessionId)).rejects.toMatchObject({ code: 'conflict' });
    expect(await transcript(sessionId, 'asc', 50)).toHaveLength(2 * 101);
    expect(await transcript(sessionId, 'desc', 7)).toEqual((await transcript(sessionId, 'asc', 50)).toReversed());
    expect(await fork(sessionId, { atTurn: 100 })).toMatchObject({ turn: 100 });
  });
});

describe('deleting', () => {
  test('a fork keeps what it inherits when its origin is deleted; the rest of the origin’s messages are deleted', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const origin = await conversation(4);
    const [two, three] = [await fork(origin, { atTurn: 2 }), await fork(origin, { atTurn: 3 })];
    await gone(origin);
    await expect(listMessages(world.ctx, { sessionId: origin })).rejects.toMatchObject({ code: 'not_found' });
    expect(await rowsOf('messages')).toBe(6);
    expect(await transcript(three.sessionId)).toHaveLength(6);
    expect(await transcript(two.sessionId)).toHaveLength(4);
    expect(await getSession(world.ctx, { sessionId: two.sessionId })).toMatchObject({
      session: { forkedFrom: { sessionId: origin, turn: 2 } },
    });
    await say(two.sessionId, 3, 'own 3');
    expect(await transcript(two.sessionId)).toHaveLength(6);
    await gone(three.sessionId);
    expect(await rowsOf('messages')).toBe(4 + 2);
    const last = await fork(two.sessionId, { atTurn: 3 });
    await gone(two.sessionId);
    expect(await transcript(last.sessionId)).toEqual([
      '1 user message 1',
      '1 assistant ok',
      '2 user message 2',
      '2 assistant ok',
      '3 user own 3',
      '3 assistant ok',
    ]);
    await gone(last.sessionId);
    for (const table of ['messages', 'kept_transcripts', 'inherited_turns', 'session_forks'] as const)
      expect(await rowsOf(table), table).toBe(0);
  });

  test('sessions and their forks that are deleted at once leave nothing behind', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    for (let round = 0; round < 8; round++) {
      const origin = await conversation(1);
      const forks = await Promise.all(Array.from({ length: 6 }, () => fork(origin, { input: 'more' })));
      for (const { sessionId } of forks) await world.until(sessionId, turnOver(2));
      const forksOfForks = await Promise.all(forks.map(({ sessionId }) => fork(sessionId)));
      const all = [origin, ...[...forks, ...forksOfForks].map(({ sessionId }) => sessionId)];
      for (const sessionId of all) await cancelSession(world.ctx, { sessionId });
      await Promise.all(
        all.toSorted(() => Math.random() - 0.5).map((sessionId) => deleteSession(world.ctx, { sessionId })),
      );
      for (const table of ['messages', 'kept_transcripts', 'inherited_turns', 'session_forks'] as const)
        expect(await rowsOf(table), table).toBe(0);
    }
  });

  test('a fork is created before its origin is deleted, or not at all', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    for (let round = 0; round < 10; round++) {
      const origin = await conversation(1);
      await cancelSession(world.ctx, { sessionId: origin });
      const tries = await Promise.allSettled([
        ...Array.from({ length: 4 }, () => fork(origin)),
        deleteSession(world.ctx, { sessionId: origin }),
        ...Array.from({ length: 4 }, () => fork(origin)),
      ]);
      for (const one of tries) {
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'not_found' });
        else if ('sessionId' in one.value && 'forkedFrom' in one.value)
          expect(await transcript(one.value.sessionId)).toHaveLength(2);
      }
      expect(tries[4]!.status).toBe('fulfilled');
    }
  });

  test('an origin that is deleted while it is forked waits for the fork', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const origin = await conversation(1);
    await cancelSession(world.ctx, { sessionId: origin });
    const { db } = world.platform;
    let deletion: Promise<unknown> | undefined;
    const sessionId = await db.transaction(async (tx) => {
      const { session } = await forkSession({ ...world.ctx, db: tx }, { sessionId: origin });
      let isDeleted = false;
      deletion = deleteSession(world.ctx, { sessionId: origin }).then(() => {
        isDeleted = true;
      });
      const isBlocked = async () =>
        (
          await db.query(sql`
            select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
        ).length > 0;
      await expect.poll(async () => isDeleted || (await isBlocked())).toBe(true);
      return session.sessionId;
    });
    await deletion;
    expect(await transcript(sessionId)).toEqual(['1 user message 1', '1 assistant ok']);
  });

  test('messages that a crash left are deleted by the next pass', async () => {
    const { db } = world.platform;
    const { organizationId } = world;
    const sessionId = uuidOf('ses', await world.open(await world.agent()));
    await db.batch([
      sql`insert into kept_transcripts (organization_id, session_id, due) values (${organizationId}, ${sessionId}, true)`,
      sql`delete from sessions where organization_id = ${organizationId} and session_id = ${sessionId}`,
    ]);
    expect(await rowsOf('messages')).toBe(1);
    await trimDueTranscripts(db, organizationId, new AbortController().signal);
    expect([await rowsOf('messages'), await rowsOf('kept_transcripts')]).toEqual([0, 0]);
  });

  test('metadata of a fork can be changed, and its origin keeps its own', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const origin = await conversation(1, undefined, { metadata: { a: 1 } });
    const { sessionId } = await fork(origin);
    await updateSession(world.ctx, { sessionId, metadata: { a: 2 } });
    expect((await getSession(world.ctx, { sessionId: origin })).session.metadata).toEqual({ a: 1 });
  });
});
