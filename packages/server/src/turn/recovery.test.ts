import { describe, expect, test } from 'vitest';
import { newModelCall, type Operation, type OperationStatus, releasedCall } from '../session-rows/operations.ts';
import type { RunsAs } from '../tools/tool/tool.ts';
import { type AfterCrash, type AfterStop, afterCrash, afterStop } from './recovery.ts';

const statuses: OperationStatus[] = [
  'pending',
  'awaiting_approval',
  'ready',
  'running',
  'awaiting_result',
  'awaiting_session',
  'succeeded',
  'failed',
  'denied',
  'cancelled',
  'unknown',
];

function call(status: OperationStatus, repeatable: boolean): Operation {
  return { ...newModelCall(1, 1, 1), kind: 'tool', index: 1, tool: 'a_tool', status, repeatable };
}

describe('after a crash', () => {
  test.each<[string, OperationStatus, boolean, RunsAs | undefined, AfterCrash]>([
    ['a call that waits for an approval keeps waiting', 'awaiting_approval', false, 'here', 'awaited'],
    ['a call that had not started may start', 'ready', false, 'here', 'started'],
    ['a call with an effect, run by a node, is not repeated', 'running', false, 'here', 'unknown'],
    ['a call with an effect, run by a worker, is not repeated', 'running', false, 'client', 'unknown'],
    ['a call with an effect is unknown even if its tool is gone', 'running', false, undefined, 'unknown'],
    ['a repeatable call, run by a node, is retried', 'running', true, 'here', 'retried'],
    ['a repeatable call, run by a worker, waits for a worker again', 'running', true, 'client', 'awaited'],
    ['a repeatable call fails if its tool is gone', 'running', true, undefined, 'failed'],
    ['a call of a client tool keeps waiting for its result', 'awaiting_result', false, 'client', 'awaited'],
    ['a call of an agent tool keeps waiting for the child session', 'awaiting_session', false, 'session', 'awaited'],
    ['a result is reused', 'succeeded', true, 'here', 'reused'],
    ['a failure is reused', 'failed', true, 'here', 'reused'],
    ['a denial is reused', 'denied', true, 'here', 'reused'],
    ['an unknown outcome stays unknown and is not retried', 'unknown', true, 'here', 'reused'],
  ])('%s', (_, status, repeatable, runsAs, expected) => {
    expect(afterCrash(call(status, repeatable), runsAs)).toBe(expected);
  });

  test('a model call without a response is retried, and one with a worker’s submission is not', () => {
    const modelCall = newModelCall(1, 1, 1);
    expect(afterCrash(modelCall, undefined)).toBe('retried');
    expect(afterCrash({ ...modelCall, output: { toolCalls: [] } }, undefined)).toBe('reused');
  });
});

describe('when a turn is stopped', () => {
  test.each<[string, OperationStatus, boolean, AfterStop]>([
    ['a call with an effect that runs has an unknown outcome', 'running', false, 'unknown'],
    ['a repeatable call that runs is cancelled', 'running', true, 'cancelled'],
    ['a call that waits for an approval is cancelled', 'awaiting_approval', false, 'cancelled'],
    ['a call that waits for its client is cancelled', 'awaiting_result', false, 'cancelled'],
    ['a call that waits for a child session is cancelled', 'awaiting_session', false, 'cancelled'],
    ['a call that had not started is cancelled', 'ready', false, 'cancelled'],
    ['a model call is cancelled', 'pending', false, 'cancelled'],
    ['a result is kept', 'succeeded', false, 'reused'],
  ])('%s', (_, status, repeatable, expected) => {
    expect(afterStop(call(status, repeatable))).toBe(expected);
  });
});

test('every operation that can be stored has a rule', () => {
  for (const status of statuses)
    for (const repeatable of [false, true])
      for (const runsAs of ['here', 'client', 'session', undefined] as const) {
        expect(afterCrash(call(status, repeatable), runsAs)).toBeTypeOf('string');
        expect(afterStop(call(status, repeatable))).toBeTypeOf('string');
      }
});

test('only a call with an effect that was running has an unknown outcome', () => {
  const unknown = statuses.flatMap((status) =>
    [false, true].flatMap((repeatable) =>
      afterCrash(call(status, repeatable), 'here') === 'unknown' ? [`${status}, repeatable: ${repeatable}`] : [],
    ),
  );
  expect(unknown).toEqual(['running, repeatable: false']);
});

test('a call that a worker releases is one that workers can claim', () => {
  expect(releasedCall).toEqual({ from: 'running', to: 'awaiting_result' });
  expect(afterCrash(call(releasedCall.to, false), 'client')).toBe('awaited');
});
