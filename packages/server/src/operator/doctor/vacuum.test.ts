import { expect, test } from 'vitest';
import { findingOfVacuum } from './vacuum.ts';

const of = (given: Partial<Parameters<typeof findingOfVacuum>[0]>) =>
  findingOfVacuum({ on: 'on', age: 1_000, freezeAge: 200_000_000, ...given });

test.each([
  ['ok', {}],
  ['ok', { age: 400_000_000 }],
  ['warning', { age: 400_000_001 }],
  ['ok', { age: 400_000_001, freezeAge: 800_000_000 }],
  ['failed', { age: 1_400_000_001 }],
  ['failed', { age: 1_400_000_001, freezeAge: 1_000_000_000 }],
  ['failed', { on: 'off' }],
])('%s: %j', (status, given) => {
  expect(of(given).status).toBe(status);
});

test('a warning says how old the id is, and at which age it was to be frozen', () => {
  expect(of({ age: 500_000_000 }).message).toMatch(/500000000 .*at 200000000$/);
});
