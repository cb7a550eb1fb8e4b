import { expect, test } from 'vitest';
import { csvCell } from './csv.ts';

test('no text of a cell is a formula, and quotes and line breaks stay in the cell', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx']) expect(csvCell(text)).toMatch(/^"?'/);
  expect(csvCell('a "b", c\r\nd')).toBe('"a ""b"", c\r\nd"');
  expect(csvCell(-0.5)).toBe('-0.5');
});
