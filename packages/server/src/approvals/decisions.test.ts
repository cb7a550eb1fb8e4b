// What decisions add up to, in any order.
import { expect, test } from 'vitest';
import { addDecision, countInputs, progressOf, type StoredDecision } from './decisions.ts';

const requested = { amount: 3, to: 'ann' };
const by = (count: number) => ({ count });
function approved(who: string, more: Partial<StoredDecision> = {}): StoredDecision {
  const actor = { type: 'user' as const, id: who, name: who, onBehalfOf: null };
  const at = '2026-01-01T00:00:00.000Z';
  return { decision: 'approved', actor, at, reason: null, scope: 'once', deciders: [`user:${who}`], ...more };
}
const denied = (who: string) => approved(who, { decision: 'denied' });

/** Adds the decisions one after another; each outcome as a word. */
function outcomes(count: number, given: StoredDecision[]): string[] {
  let decisions: readonly StoredDecision[] = [];
  return given.map((one) => {
    const after = addDecision({ input: requested, by: by(count), decisions }, one);
    if (after === 'repeated') return after;
    decisions = after.decisions;
    return after.status ?? `${after.progress.approved} of ${after.progress.required}`;
  });
}

test.each([
  ['one approver is enough without a count', 1, [approved('ann')], ['approved']],
  ['three different approvers', 3, ['ann', 'bob', 'cat'].map((who) => approved(who)), ['1 of 3', '2 of 3', 'approved']],
  [
    'the same approver counts once',
    2,
    [approved('ann'), approved('ann'), approved('bob')],
    ['1 of 2', 'repeated', 'approved'],
  ],
  ['one denial is final', 3, [approved('ann'), approved('bob'), denied('cat')], ['1 of 3', '2 of 3', 'denied']],
  ['who approved can deny', 2, [approved('ann'), denied('ann')], ['1 of 2', 'denied']],
  [
    'approvals of different inputs do not count together',
    2,
    [approved('ann', { input: { amount: 1 } }), approved('bob'), approved('cat')],
    ['1 of 2', '1 of 2', 'approved'],
  ],
  [
    'an input that is equal to the requested one counts with it',
    2,
    [approved('ann', { input: { to: 'ann', amount: 3 } }), approved('bob')],
    ['1 of 2', 'approved'],
  ],
  [
    'an approver replaces their approval by one of another input',
    2,
    [approved('ann'), approved('ann', { input: 1 }), approved('bob'), approved('ann')],
    ['1 of 2', '1 of 2', '1 of 2', 'approved'],
  ],
  [
    'an edit that one approver proposes, and another approves',
    2,
    [approved('ann', { input: { amount: 1 } }), approved('bob', { input: { amount: 1 } })],
    ['1 of 2', 'approved'],
  ],
])('%s', (_, count, given, expected) => {
  expect(outcomes(count, given)).toEqual(expected);
});

test('only those who approved the input that runs agreed on it', () => {
  const decisions = [approved('ann', { input: 1 }), approved('bob')];
  const after = addDecision({ input: requested, by: by(2), decisions }, approved('cat', { input: 1 }));
  expect(after).toMatchObject({ status: 'approved', agreeing: [decisions[0], { actor: { id: 'cat' } }] });
});

test('the progress is that of the input that most approve', () => {
  const decisions = [approved('ann', { input: 1 }), approved('bob'), approved('cat', { input: 1 }), approved('dan')];
  expect(progressOf({ input: requested, by: by(5), decisions })).toEqual({ approved: 2, required: 5 });
  expect(countInputs({ input: requested, by: by(5), decisions })).toBe(2);
});
