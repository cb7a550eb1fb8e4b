import { expect, test } from 'vitest';
import { newerVersion } from './newest-versions.ts';

test.each([
  ['PostgreSQL', '18.4', '18.7'],
  ['PostgreSQL', '15.18 (Debian 15.18-0+deb12u1)', '15.19'],
  ['PostgreSQL', '17.9', '17.12'],
  ['PostgreSQL', '18.7', undefined],
  ['PostgreSQL', '17.30', undefined],
  ['PostgreSQL', '18beta1', undefined],
  ['PostgreSQL', '99.1', undefined],
  ['Node.js', '26.10.0', '26.12.1'],
  ['Node.js', '24.22.0', '24.22.1'],
  ['Node.js', '26.12.1', undefined],
  ['Node.js', '26.13.0', undefined],
  ['Node.js', '27.0.0', undefined],
] as const)('%s %s lacks the fixes of %s', (product, running, newer) => {
  expect(newerVersion(product, running)?.version).toBe(newer);
});
