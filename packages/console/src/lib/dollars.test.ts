import { expect, test } from 'vitest';
import { axis, exact, money, short } from './dollars.ts';

test('an amount below a dollar has four digits only if it is not whole cents', () => {
  expect([0, 0.5, 0.29, 0.5845, 0.012, 1.005, 1234.5, -0.25].map(money)).toEqual([
    ...['$0.00', '$0.50', '$0.29', '$0.5845', '$0.0120', '$1.01', '$1,234.50', '-$0.25'],
  ]);
});

test('a cost that would look like nothing is shown as less than the least amount', () => {
  const amounts = [0, 0.000_01, 0.000_06, 0.0123, 12.4];
  expect(amounts.map(exact)).toEqual(['$0.00', '<$0.0001', '<$0.0001', '$0.0123', '$12.40']);
  expect(amounts.map(short)).toEqual(['$0.00', '<$0.0001', '$0.0001', '$0.0123', '$12.40']);
  expect(axis(2_500)).toBe('$2.5K');
});
