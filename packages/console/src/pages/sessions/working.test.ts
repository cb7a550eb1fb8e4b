import type { SessionTurn } from '@signalbox/client';
import { expect, test } from 'vitest';
import { workingMs } from './working.ts';

type Operation = SessionTurn['operations'][number];
const at = (second: number) => new Date(second * 1000).toISOString();
const ran = (from: number | null, until: number | null, more: Partial<Operation> = {}) => ({
  kind: 'tool',
  status: until === null ? 'running' : 'succeeded',
  startedAt: from === null ? null : at(from),
  endedAt: until === null ? null : at(until),
  ...more,
});
const worked = (operations: object[], now = 100) =>
  workingMs([{ operations: operations as Operation[] } as SessionTurn], now * 1000) / 1000;

test('models and tools count while they run, and once if they run at the same time', () => {
  expect(worked([ran(0, 2, { kind: 'model' }), ran(2, 6), ran(3, 5), ran(5, 8)])).toBe(8);
  expect(worked([ran(0, 2, { kind: 'model' }), ran(90, null)])).toBe(12);
});

test('waits do not count: for an approval, a client tool, a model that is unavailable, and what has not started', () => {
  expect(worked([ran(0, 50, { kind: 'approval' })])).toBe(0);
  expect(worked([ran(0, 50, { toolType: 'client' }), ran(0, null, { toolType: 'client' })])).toBe(0);
  expect(worked([ran(0, null, { kind: 'model', status: 'waiting' }), ran(null, null, { status: 'pending' })])).toBe(0);
});
