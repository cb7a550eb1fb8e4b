import { expect, test } from 'vitest';
import { parsePeers } from '../bench/against/against.ts';
import { formatRuns } from '../bench/against/table.ts';

test('--against takes names of programs, and names those that there are for another', () => {
  expect(parsePeers('eve, mastra').map(({ name }) => name)).toEqual(['mastra', 'eve']);
  const known = 'There are mastra, langgraph, eve, restate.';
  expect(() => parsePeers('mastra,svix')).toThrow(`--against: no program "svix". ${known}`);
  expect(() => parsePeers('')).toThrow(`--against: no program "". ${known}`);
});

test('the table of --against has medians, all failures, and a row for a program that did not start', () => {
  const target = { title: 'Some', keeps: 'nothing', open: () => Promise.reject(new Error('not called')) };
  const sample = (firstToken: number, ...perSecond: number[]) => ({ firstToken, perSecond, failed: 1 });
  const table = formatRuns([
    {
      version: '1.0.0',
      target,
      url: 'http://some',
      samples: [sample(4, 10, 100), sample(2, 30, 300), sample(3, 20, 200)],
    },
    { version: '2.0.0', target, url: 'http://some', samples: [{ perSecond: [1, 2], failed: 0 }] },
    { version: '3.0.0', target, problem: 'needs Docker', samples: [] },
  ]);
  const cells = table.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  expect(cells[0]).toEqual([
    'program',
    'version',
    'first token, p50',
    'a second, 10 at a time',
    'a second, 100 at a time',
    'failed',
    'on disk',
  ]);
  expect(cells.slice(2)).toEqual([
    ['Some', '1.0.0', '3.00 ms', '20.0', '200', '3', 'nothing'],
    ['Some', '2.0.0', '–', '1.00', '2.00', '0', 'nothing'],
    ['Some', '3.0.0', '–', '–', '–', '–', 'not started: needs Docker'],
  ]);
});
