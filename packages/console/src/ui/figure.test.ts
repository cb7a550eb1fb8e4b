import { expect, test } from 'vitest';
import { pointsText } from './figure.tsx';

test.each([
  [0.01, '1 point'],
  [-0.01, '1 point'],
  [0.025, '2.5 points'],
  [-0.3, '30 points'],
  [0.0006, '0.1 points'],
])('a share that changes by %f changes by %s', (difference, text) => {
  expect(pointsText(difference)).toBe(text);
});
