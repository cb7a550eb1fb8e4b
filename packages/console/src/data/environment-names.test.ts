import { expect, test } from 'vitest';
import { preferredEnvironment } from './environment-names.ts';

test.each([
  [['eu-production', 'staging', 'production'], undefined, 'staging'],
  [['production', 'live', 'eu-prod', 'delivery'], undefined, 'delivery'],
  [['production', 'staging'], 'production', 'production'],
  [['production', 'staging'], 'deleted', 'staging'],
  [['production'], undefined, 'production'],
  [[], undefined, ''],
])('of %j on the page of %s, a form offers %j first', (names, ofPage, first) => {
  expect(preferredEnvironment(names, ofPage)).toBe(first);
});
