import { describe, expect, test } from 'vitest';
import { EventParser } from './sse.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (...pieces: Uint8Array[]) => {
  const parser = new EventParser();
  return pieces.flatMap((piece) => [...parser.push(piece)]);
};

describe('events are complete', () => {
  const stream = bytes(
    ': hello\n\nid: 1\nevent: a\ndata: {"x":"é€😀"}\n\ndata:no space\r\ndata:  two\r\n\r\nevent: b\rdata\r\r:c\ndata: end\n\n',
  );
  const events = [
    { event: 'a', data: '{"x":"é€😀"}', id: '1' },
    { event: 'message', data: 'no space\n two' },
    { event: 'b', data: '' },
    { event: 'message', data: 'end' },
  ];

  test('from one part', () => expect(parse(stream)).toEqual(events));

  test('byte by byte: line ends and characters cut anywhere', () => {
    expect(parse(...Array.from(stream, (byte) => Uint8Array.of(byte)))).toEqual(events);
  });

  test('from two parts, cut at every position', () => {
    for (let at = 0; at <= stream.length; at++) {
      expect(parse(stream.subarray(0, at), stream.subarray(at))).toEqual(events);
    }
  });
});

test('an event is returned with its last byte, not with the next event', () => {
  const parser = new EventParser();
  expect([...parser.push(bytes('data: x\r\n\r'))]).toEqual([{ event: 'message', data: 'x' }]);
  expect([...parser.push(bytes('\ndata: y\r\n\r\n'))]).toEqual([{ event: 'message', data: 'y' }]);
});

test('an id without data is returned, and belongs to no later event', () => {
  expect(parse(bytes('id: 7\n\ndata: x\n\n'))).toEqual([
    { event: 'message', data: '', id: '7' },
    { event: 'message', data: 'x' },
  ]);
});

test('an incomplete event, a comment, an unknown field or an event without data returns nothing', () => {
  expect(parse(bytes('data: cut off\n'))).toEqual([]);
  expect(parse(bytes(':\n\nretry: 5\nfoo: bar\n\nevent: a\n\n'))).toEqual([]);
  expect(parse(bytes('\uFEFFdata: x\n\n'))).toEqual([{ event: 'message', data: 'x' }]);
});
