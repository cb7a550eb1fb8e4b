import { expect, test } from 'vitest';
import { numberIn } from './number.ts';

test('input that is not a number is sent as typed, never as null', () => {
  const typed = [' 30 ', '0.5', '', ' ', 'a week', '1e999', '12 days'];
  expect(typed.map((text) => JSON.stringify({ days: numberIn(text) }))).toEqual([
    '{"days":30}',
    '{"days":0.5}',
    '{}',
    '{}',
    '{"days":"a week"}',
    '{"days":"1e999"}',
    '{"days":"12 days"}',
  ]);
});
