import { chunkTypes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { type DeliveryRow, deliveryOf, encodeChunkTypes } from './delivery-row.ts';
import { attemptText, parseAttempt } from './stored-attempt.ts';

test('a filter is read from its row as it was written, and the letters of stored rows never change', () => {
  expect(encodeChunkTypes(chunkTypes)).toBe('pbmhiscrfavdxtk');
  for (const types of [chunkTypes, ...chunkTypes.map((type) => [type])]) {
    expect(deliveryOf('', { chunkTypes: encodeChunkTypes(types) } as DeliveryRow).chunkTypes).toEqual(types);
  }
});

test('an attempt is read from its row as it was written, on one line', () => {
  const sent = { hex: 'ab', standard: 'v1,cd=', version: '1.0.0' };
  const attempt = { attempt: 1, at: '2026-01-01T00:00:00.000Z', durationMs: 3, secretVersion: 1, sent };
  for (const answer of [
    { status: 200, error: null, responseBody: null },
    { status: 500, error: 'status', responseBody: 'two\nlines, a "quote" and a \\' },
    { status: null, error: 'timeout', responseBody: null },
  ]) {
    const text = attemptText({ ...attempt, ...answer });
    expect(text).not.toContain('\n');
    expect(parseAttempt(text)).toEqual({ ...attempt, ...answer });
  }
});
