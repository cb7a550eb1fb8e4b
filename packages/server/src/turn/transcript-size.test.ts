import type { MessagePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { JsonText } from '../lib/json/json-text.ts';
import { newModelCall, type Operation } from '../session-rows/operations.ts';
import { dropLeftOut, truncateToFit } from './transcript-size.ts';

const MIB = 1024 * 1024;

test('results that do not fit are replaced by an error that says so, and no others are', () => {
  const results: MessagePart[] = Array.from({ length: 6 }, (_, index) => ({
    type: 'tool_result',
    toolCallId: `call_${index}`,
    output: 'a'.repeat(1024 * 1024),
  }));
  const fitting = truncateToFit(results);
  expect(fitting.slice(0, 3)).toEqual(results.slice(0, 3));
  expect(fitting.slice(3)).toEqual(
    [3, 4, 5].map((index) => ({
      type: 'tool_result',
      toolCallId: `call_${index}`,
      error: 'The result is not shown: the results of this step have more than 4 MiB together.',
    })),
  );
});

test('what will not fit is dropped as soon as it is known, whatever ends first', () => {
  const call = (status: Operation['status'], output: unknown): Operation => ({
    ...newModelCall(1, 1, 1),
    kind: 'tool',
    status,
    output,
  });
  const calls = [
    call('running', null),
    call('succeeded', 'a'.repeat(2 * MIB - 2)),
    call('succeeded', new JsonText(`[${'1,'.repeat(MIB - 2)}1]`)),
    call('running', null),
    call('succeeded', 'a'),
  ];
  dropLeftOut(calls);
  expect(calls.map(({ isLeftOut = false }) => isLeftOut)).toEqual([false, false, false, false, true]);
  expect(calls[4]!.output).toBeNull();
  Object.assign(calls[0]!, { status: 'succeeded', output: 'a' });
  Object.assign(calls[3]!, { status: 'failed', error: 'It failed.' });
  dropLeftOut(calls);
  expect(calls.map(({ isLeftOut = false }) => isLeftOut)).toEqual([false, false, true, true, true]);
});
