import type { FilePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { formatId, newUuid } from '../lib/ids.ts';
import { tokensOfEntry } from './context-size.ts';

test('a file counts with what a model reads of it, in a message and in the result of a tool', () => {
  const photo: FilePart = {
    type: 'file',
    fileId: formatId('file', newUuid()),
    mediaType: 'image/png',
    bytes: 1_000_000,
  };
  const message = tokensOfEntry({ role: 'user', content: [photo] });
  const result = (output: unknown) =>
    tokensOfEntry({ role: 'tool', content: [{ type: 'tool_result', toolCallId: 'call_1', output }] });
  expect(message).toBeGreaterThan(1_500);
  expect(message).toBeLessThan(3_000);
  expect(result(photo)).toBeGreaterThan(1_500);
  expect(result(['See:', photo, photo])).toBeGreaterThan(3_000);
  expect(result(['See:', { type: 'file', note: 'not a file' }])).toBeLessThan(100);
  // What a tool makes up takes no more room than its text, and no less.
  for (const bytes of [-1e12, 0, 0.5, 1e300]) {
    const made = result({ ...photo, mediaType: 'text/plain', bytes });
    expect(made).toBeGreaterThan(10);
    expect(made).toBeLessThan(100);
  }
});
