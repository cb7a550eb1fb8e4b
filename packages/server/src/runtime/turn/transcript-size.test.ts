import type { MessagePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { thatFit } from './transcript-size.ts';

test('results that do not fit are replaced by an error that says so, and no others are', () => {
  const results: MessagePart[] = Array.from({ length: 6 }, (_, index) => ({
    type: 'tool_result',
    toolCallId: `call_${index}`,
    output: 'a'.repeat(1024 * 1024),
  }));
  const fitting = thatFit(results);
  expect(fitting.slice(0, 3)).toEqual(results.slice(0, 3));
  expect(fitting.slice(3)).toEqual(
    [3, 4, 5].map((index) => ({
      type: 'tool_result',
      toolCallId: `call_${index}`,
      error: 'The result is not shown: the results of this step have more than 4 MiB together.',
    })),
  );
});
