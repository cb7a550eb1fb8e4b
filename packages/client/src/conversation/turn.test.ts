// The parts of a turn, from the chunks that a service writes.

import { describe, expect, test } from 'vitest';
import type { Chunk } from '../types.generated.ts';
import { applyToTurn, newTurn, type TurnState } from './turn.ts';
import type { ToolPart } from './types.ts';

type Body<T = Chunk> = T extends unknown ? Omit<T, 'turn' | 'seq'> : never;

function turnOf(...bodies: Body[]): TurnState {
  return bodies.reduce(
    (turn, body, index) => applyToTurn(turn, { ...body, turn: 1, seq: index + 1 } as Chunk),
    newTurn(1),
  );
}

const running: Body = { type: 'session.status', status: 'running', waitingFor: null };
const asked: Body = {
  type: 'approval.requested',
  operationId: 'op_1',
  toolCallId: 'call_1',
  name: 'refund',
  input: { euros: 90 },
  expiresAt: null,
};
const resolved = (decision: 'approved' | 'denied'): Body => ({
  type: 'approval.resolved',
  operationId: 'op_1',
  toolCallId: 'call_1',
  decision,
  ...(decision === 'denied' && { reason: 'Too much' }),
});
const call = (input: unknown = { euros: 90 }): Body => ({
  type: 'tool.call',
  toolCallId: 'call_1',
  tool: 'refund',
  input,
});
const say = (delta: string): Body => ({ type: 'message.chunk', delta });
const toolIn = (turn: TurnState) => turn.parts.find((part): part is ToolPart => part.type === 'tool')!;

describe('text', () => {
  test('grows until something else begins', () => {
    const turn = turnOf(running, say('One '), say('moment.'));
    expect(turn.parts).toEqual([{ type: 'text', id: 'text_0', text: 'One moment.', isStreaming: true }]);
    expect(applyToTurn(turn, { ...call(), turn: 1, seq: 4 } as Chunk).parts[0]).toMatchObject({ isStreaming: false });
  });

  test('of another response is a part of its own, as it is in the transcript', () => {
    const started: Body = { type: 'message.started', messageId: 'msg_2', step: 2 };
    const parts = [say('One'), say(''), say(' moment.'), started, say('Done.')];
    expect(turnOf(running, ...parts).parts.map((part) => part.type === 'text' && part.text)).toEqual([
      'One moment.',
      'Done.',
    ]);
  });

  test('has its sources once it is complete, and loses them with a reset', () => {
    const sources = [{ url: 'https://example.com/' }];
    const cited: Body = { type: 'message.chunk', delta: '', sources };
    const search: Body = { type: 'tool.call', toolCallId: 'call_1', tool: 'web_search', input: {}, by: 'provider' };
    const found: Body = { type: 'tool.result', toolCallId: 'call_1', output: [], by: 'provider' };
    const turn = turnOf(running, say('One.'), cited, search, found);
    expect(turn.parts).toMatchObject([
      { type: 'text', text: 'One.', sources },
      { type: 'tool', by: 'provider', state: 'done' },
    ]);
    const started: Body = { type: 'message.started', messageId: 'msg_2', step: 2 };
    expect(turnOf(running, say('One.'), started, cited).parts).toMatchObject([{ text: 'One.' }, { text: '', sources }]);
    const reset = (fromSeq: number): Body => ({ type: 'message.reset', fromSeq });
    expect(turnOf(running, say('One.'), cited, search, found, reset(2)).parts.map(({ type }) => type)).toEqual([
      'tool',
    ]);
    expect(turnOf(running, say('One.'), cited, reset(3)).parts).toEqual([
      { type: 'text', id: 'text_0', text: 'One.', isStreaming: false },
    ]);
  });

  test('of a call that a provider ran under the name of a client tool is never one to run', () => {
    const ran: Body = { type: 'tool.result', toolCallId: 'call_1', tool: 'look', input: {}, output: 1, by: 'provider' };
    expect(turnOf(running, ran).parts).toMatchObject([{ type: 'tool', tool: 'look', by: 'provider', state: 'done' }]);
  });

  test('after a call is a part of its own', () => {
    const { parts } = turnOf(running, say('Before'), call(), say('After'));
    expect(parts.map(({ id }) => id)).toEqual(['text_0', 'call_1', 'text_1']);
  });

  test('of a response that is void disappears, and that of the next attempt is in its place', () => {
    const before = turnOf(running, say('Kept'), call(), { type: 'tool.result', toolCallId: 'call_1', output: 1 });
    const steps: Body[] = [say('Lost'), say(' too'), { type: 'message.reset', fromSeq: 5 }, say('New')];
    const turn = steps.reduce(
      (state, body, index) => applyToTurn(state, { ...body, turn: 1, seq: index + 5 } as Chunk),
      before,
    );
    expect(turn.parts).toMatchObject([{ text: 'Kept' }, { type: 'tool' }, { id: 'text_1', text: 'New' }]);
  });
});

test('reasoning is apart from text', () => {
  const { parts } = turnOf(running, { type: 'reasoning.chunk', delta: 'Hm' }, say('Yes'));
  expect(parts).toMatchObject([
    { type: 'reasoning', text: 'Hm', isStreaming: false },
    { type: 'text', text: 'Yes', isStreaming: true },
  ]);
});

describe('a call', () => {
  test('shows its input while the model writes it', () => {
    const piece = (delta: string): Body => ({
      type: 'tool.input.chunk',
      toolCallId: 'call_1',
      toolName: 'refund',
      delta,
    });
    const writing = turnOf(running, piece('{"eur'), piece('os":'));
    expect(toolIn(writing)).toMatchObject({ tool: 'refund', state: 'input', inputText: '{"euros":', input: undefined });
    const called = applyToTurn(writing, { ...call(), turn: 1, seq: 4 } as Chunk);
    expect(toolIn(called)).toMatchObject({ state: 'running', inputText: null, input: { euros: 90 } });
  });

  test('is where the model wrote it, also if a later one of its step was shown first', () => {
    const second: Body = { type: 'tool.call', toolCallId: 'call_2', tool: 'look_up', input: {} };
    expect(turnOf(running, say('Two'), second, call()).parts.map(({ id }) => id)).toEqual([
      'text_0',
      'call_1',
      'call_2',
    ]);
  });

  test('whose input was being written disappears if the response is void', () => {
    const piece: Body = { type: 'tool.input.chunk', toolCallId: 'call_1', toolName: 'refund', delta: '{' };
    expect(turnOf(running, piece, { type: 'message.reset', fromSeq: 2 }).parts).toEqual([]);
  });

  test('whose input was being written when the turn failed disappears as well, once it is retried', () => {
    const piece: Body = { type: 'tool.input.chunk', toolCallId: 'call_1', toolName: 'refund', delta: '{' };
    const failed: Body = { type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'error' };
    expect(toolIn(turnOf(running, piece, failed)).state).toBe('denied');
    expect(turnOf(running, piece, failed, running, { type: 'message.reset', fromSeq: 2 }).parts).toEqual([]);
  });

  test.each<[string, Body[]]>([
    ['a second request', [asked, { ...asked, input: {} }]],
    ['a second decision', [asked, resolved('denied'), resolved('approved')]],
    [
      'a second result',
      [
        call(),
        { type: 'tool.result', toolCallId: 'call_1', output: 1 },
        { type: 'tool.result', toolCallId: 'call_1', output: 2 },
      ],
    ],
    ['a call after its result', [call(), { type: 'tool.result', toolCallId: 'call_1', output: 1 }, call({})]],
    ['a result of an unknown call', [say('Hm'), { type: 'tool.result', toolCallId: 'call_9', output: 1 }]],
  ])('does not change by %s', (_, bodies) => {
    expect(turnOf(running, ...bodies).parts).toEqual(turnOf(running, ...bodies.slice(0, -1)).parts);
  });

  test('waits for approval, runs and is done', () => {
    expect(toolIn(turnOf(running, asked))).toMatchObject({ state: 'approval', approval: { decision: 'pending' } });
    const done = turnOf(running, asked, resolved('approved'), call(), {
      type: 'tool.result',
      toolCallId: 'call_1',
      output: 'ok',
    });
    expect(toolIn(done)).toMatchObject({
      state: 'done',
      output: 'ok',
      isEdited: false,
      approval: { decision: 'approved', operationId: 'op_1' },
    });
  });

  test('that is approved while others wait has not started', () => {
    expect(toolIn(turnOf(running, asked, resolved('approved')))).toMatchObject({ state: 'running', isStarted: false });
    expect(toolIn(turnOf(running, asked, resolved('approved'), call()))).toMatchObject({ isStarted: true });
  });

  test('with an input that the approver replaced shows that input', () => {
    const turn = turnOf(running, asked, resolved('approved'), call({ euros: 45 }));
    expect(toolIn(turn)).toMatchObject({ input: { euros: 45 }, isEdited: true, modelInput: { euros: 90 } });
  });

  test('that was denied says why', () => {
    const turn = turnOf(running, asked, resolved('denied'), {
      type: 'tool.result',
      toolCallId: 'call_1',
      error: 'The approver denied it',
      notRun: true,
    });
    expect(toolIn(turn)).toMatchObject({
      state: 'denied',
      error: 'The approver denied it',
      approval: { decision: 'denied', reason: 'Too much' },
    });
  });

  test.each([
    ['failed', { error: 'No such order' }],
    ['unknown', { error: 'Interrupted', outcomeUnknown: true }],
    ['failed', { error: 'The input does not match', notRun: true }],
  ] as const)('ends as %s with %o', (state, result) => {
    expect(toolIn(turnOf(running, call(), { type: 'tool.result', toolCallId: 'call_1', ...result }))).toMatchObject({
      state,
      error: result.error,
    });
  });

  test('of a client tool asks for its result once the session waits for it', () => {
    const waitingFor = {
      type: 'toolResult' as const,
      operationIds: [],
      toolCallIds: ['call_1'],
      sessionIds: [],
      expiresAt: null,
    };
    const turn = turnOf(running, call(), { type: 'session.status', status: 'waiting', waitingFor });
    expect(toolIn(turn).state).toBe('result');
    expect(turn.isOver).toBe(false);
  });

  test('without a result has ended with its turn', () => {
    const cancelled: Body = { type: 'session.status', status: 'cancelled', waitingFor: null };
    expect(toolIn(turnOf(running, asked, cancelled))).toMatchObject({
      state: 'denied',
      approval: { decision: 'cancelled' },
    });
    expect(toolIn(turnOf(running, call(), cancelled))).toMatchObject({ state: 'unknown' });
  });

  test('has the files that the tool returned', () => {
    const file = { type: 'file' as const, fileId: 'file_1', filename: 'a.png', mediaType: 'image/png', bytes: 3 };
    const turn = turnOf(running, call(), { type: 'file.created', toolCallId: 'call_1', file });
    expect(toolIn(turn).files).toEqual([file]);
  });
});

test('a turn that failed says why, and continues when it is retried', () => {
  const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, steps: 1, toolCalls: 0, costUsd: null };
  const error = { code: 'model_unavailable', message: 'No response' };
  const failed = turnOf(running, say('Half'), { type: 'turn.completed', stopReason: 'error', usage, error });
  expect(failed).toMatchObject({ isOver: true, stopReason: 'error', error, parts: [{ isStreaming: false }] });
  const chunks = [
    { ...running, turn: 1, seq: 4 },
    { type: 'message.reset', fromSeq: 2, turn: 1, seq: 5 },
  ] as Chunk[];
  const retried = chunks.reduce(applyToTurn, failed);
  expect(retried).toMatchObject({ isOver: false, stopReason: null, error: null, parts: [] });
});
