import { expect, test } from 'vitest';
import { Line } from './line.ts';

const all = () => true;

function lineOf(...waiting: (string | undefined)[]) {
  const line = new Line<{ who: string | undefined; at: number }>();
  for (const [at, who] of waiting.entries()) line.push({ who, at });
  return line;
}

function namesOf(line: Line<{ who: string | undefined; at: number }>, mayHave: (who: string) => boolean = all) {
  const served: string[] = [];
  for (let one = line.shift(mayHave); one; one = line.shift(mayHave)) served.push(`${one.who ?? 'service'} ${one.at}`);
  return served;
}

test('organizations take turns, each in its order, and the service has every second turn', () => {
  const line = lineOf('a', 'a', 'a', 'a', 'b', 'c', undefined, 'b', undefined);
  expect(line.length).toBe(9);
  expect(namesOf(line)).toEqual(['service 6', 'a 0', 'service 8', 'b 4', 'c 5', 'a 1', 'b 7', 'a 2', 'a 3']);
  expect(line.length).toBe(0);
});

test('an organization that may not have more is passed over and keeps its place', () => {
  const line = lineOf('a', 'b', 'a');
  expect(namesOf(line, (who) => who !== 'a')).toEqual(['b 1']);
  expect(namesOf(line)).toEqual(['a 0', 'a 2']);
});

test('one that leaves is not served, wherever it waits', () => {
  const line = new Line<{ who: string | undefined; at: number }>();
  const waiting = ['a', 'a', undefined, 'b'].map((who, at) => ({ who, at }));
  for (const one of waiting) line.push(one);
  for (const one of [waiting[1]!, waiting[2]!, waiting[3]!, waiting[3]!]) line.delete(one);
  expect(line.length).toBe(1);
  expect(line.clear()).toEqual([waiting[0]]);
  expect([line.length, line.shift(all)]).toEqual([0, undefined]);
});
