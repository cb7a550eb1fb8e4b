// The changes that the page of versions shows.
import { expect, test } from 'vitest';
import { diffDefinitions, diffLines } from '../src/pages/agents/diff.ts';

const text = (lines: readonly { sign: string; text: string }[]) => lines.map((line) => line.sign + line.text);

test('a diff separates unchanged, added and removed lines at both ends and in between', () => {
  expect(text(diffLines(['a', 'b', 'c', 'd'], ['a', 'c', 'x', 'd', 'e']))).toEqual([
    ' a',
    '-b',
    ' c',
    '+x',
    ' d',
    '+e',
  ]);
  expect(text(diffLines([], ['a']))).toEqual(['+a']);
  expect(text(diffLines(['a', 'a'], ['a']))).toEqual([' a', '-a']);
  expect(diffLines(['a'], ['a']).every(({ sign }) => sign === ' ')).toBe(true);
});

test('for any two texts, the lines without + are the first text and the lines without − the second', () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  for (let round = 0; round < 200; round += 1) {
    const [before, after] = [0, 1].map(() => Array.from({ length: random(12) }, () => 'abcd'[random(4)]!)) as [
      string[],
      string[],
    ];
    const lines = diffLines(before, after);
    expect(lines.filter(({ sign }) => sign !== '+').map((line) => line.text)).toEqual(before);
    expect(lines.filter(({ sign }) => sign !== '-').map((line) => line.text)).toEqual(after);
  }
});

test('texts too long to compare line by line are shown as fully replaced, without hanging', () => {
  const many = (word: string) => Array.from({ length: 20_000 }, (_, index) => `${word} ${index}`);
  const lines = diffLines(['same', ...many('old')], ['same', ...many('new')]);
  expect(lines[0]).toEqual({ sign: ' ', text: 'same' });
  expect(lines).toHaveLength(40_001);
});

test('key order and omitted defaults are not changes; instructions are compared line by line', () => {
  const one = { name: 'A', model: { provider: 'openai', model: 'm' }, instructions: 'one\ntwo' };
  const other = {
    model: { model: 'm', provider: 'openai' },
    name: 'A',
    description: '',
    instructions: 'one\n2',
    tools: [],
  };
  const { instructions, rest } = diffDefinitions(one, other);
  expect(text(instructions)).toEqual([' one', '-two', '+2']);
  expect(rest.every(({ sign }) => sign === ' ')).toBe(true);
});
