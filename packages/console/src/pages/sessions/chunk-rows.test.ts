import type { Chunk } from '@signalbox/client';
import { expect, test } from 'vitest';
import { mergeDeltas } from './chunk-rows.ts';

const say = (turn: number, seq: number, delta: string) => ({ type: 'message.chunk', delta, turn, seq }) as Chunk;
const write = (seq: number, toolCallId: string, delta: string) =>
  ({ type: 'tool.input.chunk', toolCallId, toolName: 'x', delta, turn: 1, seq }) as Chunk;

test('deltas of one text become one row, and those of another turn, call or after another chunk do not', () => {
  const chunks = [
    say(1, 1, 'Hel'),
    say(1, 2, 'lo'),
    { type: 'step.started', turn: 1, seq: 3 } as unknown as Chunk,
    say(1, 4, 'a'),
    write(5, 'call_1', '{'),
    write(6, 'call_1', '}'),
    write(7, 'call_2', '[]'),
    say(2, 1, 'b'),
  ];
  const rows = mergeDeltas(chunks.map((chunk) => ({ chunk, timestamp: '' })));
  expect(rows.map(({ id, count, text }) => [id, count, text])).toEqual([
    ['1:1–2', 2, 'Hello'],
    ['1:3', 1, undefined],
    ['1:4', 1, 'a'],
    ['1:5–6', 2, '{}'],
    ['1:7', 1, '[]'],
    ['2:1', 1, 'b'],
  ]);
});
