import type { FilePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { tokensOfEntry } from './context-size.ts';

test('a file counts with what a model reads of it, in a message and in the result of a tool', () => {
  const photo: FilePart = { type: 'file', fileId: 'file_1', mediaType: 'image/png', bytes: 1_000_000 };
  const message = tokensOfEntry({ role: 'user', content: [photo] });
  const result = (output: unknown) =>
    tokensOfEntry({ role: 'tool', content: [{ type: 'tool_result', toolCallId: 'call_1', output }] });
  expect(message).toBeGreaterThan(1_500);
  expect(message).toBeLessThan(3_000);
  expect(result(photo)).toBeGreaterThan(1_500);
  expect(result(['See:', photo, photo])).toBeGreaterThan(3_000);
  expect(result(['See:', { type: 'file', note: 'not a file' }])).toBeLessThan(100);
});
