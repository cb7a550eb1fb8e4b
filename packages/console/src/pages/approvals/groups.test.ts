import type { Approval } from '@signalbox/client';
import { expect, test } from 'vitest';
import { differencesOf, groupsOf, inputLine } from './groups.ts';

test('approvals are grouped by agent and tool, in the order of the oldest of each', () => {
  const approval = (operationId: string, agentId: string, name: string) => ({ operationId, agentId, name }) as Approval;
  const groups = groupsOf([
    approval('op_1', 'agt_b', 'refund'),
    approval('op_2', 'agt_a', 'refund'),
    approval('op_3', 'agt_b', 'refund'),
    approval('op_4', 'agt_b', 'send'),
  ]);
  expect(
    groups.map(({ agentId, name, approvals }) => [agentId, name, approvals.map((one) => one.operationId)]),
  ).toEqual([
    ['agt_b', 'refund', ['op_1', 'op_3']],
    ['agt_a', 'refund', ['op_2']],
    ['agt_b', 'send', ['op_4']],
  ]);
});

test('a field that one input lacks, or has with another type or value, differs; the others are the same', () => {
  expect(
    differencesOf([
      { order: '1', cents: 100, currency: 'EUR', to: { iban: 'x' } },
      { order: 1, cents: 100, currency: 'EUR', to: { iban: 'y' }, note: 'hi' },
    ]),
  ).toEqual({
    same: [
      ['cents', 100],
      ['currency', 'EUR'],
    ],
    differing: ['order', 'to', 'note'],
  });
  expect(differencesOf([{ a: 1 }, [1]])).toBeUndefined();
  expect(differencesOf([{}, {}])).toEqual({ same: [], differing: [] });
});

test('an input is one line, however its texts are broken and however long they are', () => {
  expect(inputLine({ order: '1042\n x', cents: 9900, deep: { a: [1] }, none: null })).toBe(
    'order 1042 x · cents 9900 · deep {"a":[1]} · none null',
  );
  expect(inputLine(['a'])).toBe('["a"]');
  expect(inputLine({ note: 'x'.repeat(5000) }).length).toBeLessThan(300);
});
