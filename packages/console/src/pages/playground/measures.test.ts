import type { SessionTurn } from '@signalbox/client';
import { expect, test } from 'vitest';
import { type Measures, measuresOf, shownMeasures } from './measures.ts';

const at = (ms: number) => new Date(ms).toISOString();
const turn = (number: number, from: number, until: number, costUsd: number | null, firstTokenAt: number) =>
  ({
    turn: number,
    startedAt: at(from),
    endedAt: at(until),
    usage: { inputTokens: 10, outputTokens: 2, costUsd },
    operations: [
      { kind: 'model', firstTokenAt: at(firstTokenAt) },
      { kind: 'tool', firstTokenAt: null },
    ],
  }) as unknown as SessionTurn;

test('turns add up, the first token is that of the earliest one, and a cost that is unknown is not zero', () => {
  const [later, first] = [turn(3, 5000, 6000, null, 5900), turn(2, 1000, 1500, 0.02, 1100)];
  expect(measuresOf([later, first])).toEqual({
    firstTokenMs: 100,
    totalMs: 1500,
    inputTokens: 20,
    outputTokens: 4,
    costUsd: 0.02,
    toolCalls: 2,
  });
  expect(measuresOf([later])!.costUsd).toBeNull();
  expect(measuresOf([])).toBeUndefined();
});

test('a change is a share of the baseline, and nothing is said where there is none', () => {
  const base: Measures = {
    firstTokenMs: 100,
    totalMs: 1000,
    inputTokens: 20,
    outputTokens: 0,
    costUsd: null,
    toolCalls: 2,
  };
  const changes = (one: Measures) => shownMeasures(one, base).map(({ change }) => change);
  expect(changes(base)).toEqual(Array(6).fill(undefined));
  expect(changes({ ...base, firstTokenMs: 50, totalMs: 1220, inputTokens: 20, outputTokens: 3, costUsd: 1 })).toEqual([
    '−50%',
    '+22%',
    undefined,
    '+',
    undefined,
    undefined,
  ]);
  expect(shownMeasures(undefined, base).map(({ text }) => text)).toEqual(Array(6).fill('–'));
});
