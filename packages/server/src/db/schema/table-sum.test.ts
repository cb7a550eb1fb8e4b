import { expect, test } from 'vitest';
import { isSameSum, TableSummer } from './table-sum.ts';

function sumOf(...chunks: string[]) {
  const summer = new TableSummer();
  for (const chunk of chunks) summer.add(Buffer.from(chunk));
  return summer.sum;
}

test('the sum of a table depends on its rows, not on their order or on how they arrive', () => {
  const sum = sumOf('1\tone\n2\ttwo\n3\t\\N\n');
  expect(sum.rows).toBe(3);
  expect(sumOf('3\t\\N\n1\tone\n2\ttwo\n')).toEqual(sum);
  expect(sumOf('1\to', 'ne', '\n2\ttwo\n3', '\t\\N\n')).toEqual(sum);
});

test('a changed, a missing, a duplicated and a split row change the sum', () => {
  const sum = sumOf('1\tone\n2\ttwo\n');
  for (const other of [
    '1\tone\n2\ttwO\n',
    '1\tone\n',
    '1\tone\n2\ttwo\n2\ttwo\n',
    '1\tone\n2\t\ntwo\n',
    '1\ttwo\n2\tone\n',
    '',
  ]) {
    expect(isSameSum(sumOf(other), sum), JSON.stringify(other)).toBe(false);
  }
});
