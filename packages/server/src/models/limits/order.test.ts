import { expect, test } from 'vitest';
import { inOrder, MOST_PASSED } from './order.ts';

const names = (letter: string, count: number) => Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
const order = (awaited: number, others: number, passed = 0) =>
  inOrder(names('p', awaited), names('s', others), passed)
    .map(({ call }) => call)
    .join(' ');

test.each([
  ['people go first', order(2, 2), 'p1 p2 s1 s2'],
  ['the fifth call is one of the others', order(6, 2), 'p1 p2 p3 p4 s1 p5 p6 s2'],
  ['those that went before count', order(3, 1, 3), 'p1 s1 p2 p3'],
  ['the others alone', order(0, 3, 2), 's1 s2 s3'],
  ['people alone', order(6, 0, 2), 'p1 p2 p3 p4 p5 p6'],
])('%s', (_, found, expected) => expect(found).toBe(expected));

test('however the calls of people come, each of the others goes after at most four of them for each place in its own order', () => {
  // One call at a time, and ten more of people before each.
  let [awaited, others, passed] = [names('p', 10), names('s', 20), 0];
  const gone: string[] = [];
  while (others.length > 0) {
    const [first] = inOrder(awaited, others, passed);
    passed = first!.passed;
    gone.push(first!.call);
    awaited = [...awaited.filter((call) => call !== first!.call), ...names(`p${gone.length}-`, 10)];
    others = others.filter((call) => call !== first!.call);
  }
  const places = names('s', 20).map((name) => gone.indexOf(name));
  expect(places).toEqual(names('s', 20).map((_, index) => (index + 1) * (MOST_PASSED + 1) - 1));
  // What went while nothing else waited is no debt.
  expect(inOrder(['p'], [], MOST_PASSED)).toEqual([{ call: 'p', passed: 0 }]);
});
