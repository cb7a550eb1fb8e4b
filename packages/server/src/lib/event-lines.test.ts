import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEventLines } from './event-lines.ts';

const bytesOf = (text: string) => Buffer.from(text);

function linesOf(pieces: readonly string[]): string {
  const meant = createEventLines();
  return Buffer.concat(pieces.map((piece) => Buffer.from(meant(bytesOf(piece))))).toString();
}

/** What a client receives. */
function heard(text: string): (EventSourceMessage | number)[] {
  const all: (EventSourceMessage | number)[] = [];
  const parser = createParser({ onEvent: (event) => all.push(event), onRetry: (ms) => all.push(ms) });
  parser.feed(new TextDecoder().decode(bytesOf(text)));
  return all;
}

test('fields and the ends of events are left, with LF, wherever the stream is cut', () => {
  const stream =
    '\ufeffevent: a\r\n: heartbeat\rid:7\nid\ndata:1\rx\nnothing: 2\ndata: ü\n\nretry: 100\nretry: soon\rdata\r\n\r\n';
  const lines = 'event: a\nid:7\nid\ndata:1\ndata: ü\n\nretry: 100\ndata\n\n';
  expect(linesOf([stream])).toBe(lines);
  const bytes = bytesOf(stream);
  const meant = createEventLines();
  expect(Buffer.concat([...bytes].map((byte) => Buffer.from(meant(Uint8Array.of(byte))))).toString()).toBe(lines);
});

test('a client hears the same as from the whole stream', () => {
  const word = fc.constantFrom(
    'data',
    'event',
    'id',
    'retry',
    ':',
    ': ',
    ' ',
    'x',
    '12',
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '{"a":1}',
    'é',
  );
  fc.assert(
    fc.property(fc.array(fc.array(word).map((words) => words.join(''))), (pieces) => {
      const ended = [...pieces, '\n'];
      expect(heard(linesOf(ended))).toEqual(heard(ended.join('').replace(/\r\n?/g, '\n')));
    }),
    { numRuns: 1_000 },
  );
});

// For each of these, a parser would create an error, or read what is left of its piece once more.
test.each(['x\r', 'x\n', ':\r', 'retry:x\n', 'retry:12345678901234567890\r', 'data'.repeat(20_000)])(
  'nothing of the line %j reaches a parser',
  (line) => {
    expect(linesOf([line.repeat(10), line])).toBe('');
  },
);

test('no CR reaches a parser, and no more bytes than the stream has', () => {
  const bytes = fc.array(fc.constantFrom(...'\r\n:dxretay 1'), { size: 'large' });
  fc.assert(
    fc.property(bytes, (letters) => {
      const lines = linesOf([letters.join('')]);
      expect(lines).not.toContain('\r');
      expect(lines.length).toBeLessThanOrEqual(letters.length);
    }),
  );
});
