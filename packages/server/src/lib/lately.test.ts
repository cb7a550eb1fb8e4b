import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { Lately } from './lately.ts';

test('a value is known for at least the time since it was last added, and at most twice as long', async () => {
  const clock = createManualClock();
  const lately = new Lately<string>(clock, 1_000);
  await clock.advance(600);
  lately.add('a', 'early');
  await clock.advance(600);
  lately.add('a', 'late');
  lately.add('b', 'other');
  expect(lately.of('a').toSorted()).toEqual(['early', 'late']);
  await clock.advance(400);
  lately.add('a', 'late');
  expect([lately.has('a', 'early'), lately.of('c')]).toEqual([true, []]);
  await clock.advance(600);
  expect(lately.of('a')).toEqual(['late']);
  await clock.advance(999);
  expect([lately.has('a', 'late'), lately.has('b', 'other')]).toEqual([true, true]);
  await clock.advance(1);
  expect([lately.of('a'), lately.of('b')]).toEqual([[], []]);
});

test('after a long silence nothing is known', async () => {
  const clock = createManualClock();
  const lately = new Lately<string>(clock, 1_000);
  lately.add('a', 'x');
  await clock.advance(2_000);
  expect(lately.has('a', 'x')).toBe(false);
});
