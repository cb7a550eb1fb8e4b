import { expect, test } from 'vitest';
import { command } from './command.ts';
import { parse } from './parse.ts';

const clock = { now: () => Date.parse('2026-03-01T12:00:00.000Z') };
const list = command({
  name: 'list',
  summary: 'List things',
  arguments: { thing: { about: 'which' }, rest: { about: 'more', many: true, optional: true } },
  options: {
    status: { type: 'string', choices: ['open', 'closed'], about: 'state' },
    limit: { type: 'integer', min: 1, about: 'count' },
    since: { type: 'time', about: 'age' },
    until: { type: 'time', direction: 'future', about: 'distance' },
    input: { type: 'json', about: 'json' },
    tag: { type: 'string', multiple: true, about: 'tag' },
    scopes: { type: 'list', about: 'list' },
    quiet: { type: 'boolean', short: 'q', about: 'quiet' },
  },
  run: async () => {},
});
const parsed = (...argv: string[]) => parse(list, 'things list', argv, clock);
const problem = (...argv: string[]) => {
  try {
    parsed(...argv);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
};

test('options become values of their types, wherever they are', () => {
  const argv = ['a', '-q', '--limit=5', '--since', '2h', '--tag', 'x', 'b', '--tag=-y', '--', '--c'];
  const { values, args } = parsed(...argv, '--d');
  expect(values).toMatchObject({ quiet: true, limit: 5, since: '2026-03-01T10:00:00.000Z', tag: ['x', '-y'] });
  expect(args).toEqual({ thing: 'a', rest: ['b', '--c', '--d'] });
  expect(parsed('a', '--until', '7d', '--scopes', 'x, y', '--input', '{"a":[1]}').values).toMatchObject({
    until: '2026-03-08T12:00:00.000Z',
    scopes: ['x', 'y'],
    input: { a: [1] },
    status: undefined,
  });
  expect(parsed('a', '--since', '2026-01-31').values.since).toBe('2026-01-31T00:00:00.000Z');
});

test('wrong usage names the option and what would be right', () => {
  const wrong: [string[], string][] = [
    [['a', '--statsu', 'open'], 'there is no option --statsu (did you mean --status?)'],
    [['a', '--nonsense'], 'there is no option --nonsense.'],
    [['a', '--toString'], 'there is no option --toString'],
    [['a', '-x'], 'there is no option -x'],
    [['a', '--status', 'opne'], '--status must be one of open, closed (did you mean open?)'],
    [['a', '--status'], '--status needs a value'],
    [['a', '--status', '--quiet'], '--status needs a value'],
    [['a', '--quiet=yes'], '--quiet takes no value'],
    [['a', '--limit', '0'], '--limit must be a whole number, 1 or more'],
    [['a', '--limit', '-5'], '--limit must be a whole number, 1 or more'],
    [['a', '--limit', '1e3'], '--limit must be a whole number'],
    [['a', '--since', 'yesterday'], '--since must be a time such as'],
    [['a', '--since', '2026-02-31T00:00:00+99:00'], '--since must be a time such as'],
    [['a', '--input', '{'], '--input is not JSON'],
    [[], 'needs THING'],
  ];
  for (const [argv, words] of wrong) {
    expect(problem(...argv), argv.join(' ')).toContain(`things list: ${words}`);
    expect(problem(...argv)).toContain('See: signalbox things list --help');
  }
});

test('--help wins over everything else that is wrong', () => {
  expect(parsed('--statsu', '--help')).toMatchObject({ help: true });
  expect(parsed('-h')).toMatchObject({ help: true });
});
