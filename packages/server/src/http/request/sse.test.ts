import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { writeEvents } from './sse.ts';
import { createUnreadBound } from './unread-bound.ts';

afterEach(() => vi.useRealTimers());

/** Takes everything that is written. */
function openResponse() {
  const written: string[] = [];
  return Object.assign(new EventEmitter(), {
    written,
    destroyed: false,
    writableLength: 0,
    req: { method: 'GET' },
    writeHead: () => {},
    flushHeaders: () => {},
    end: () => {},
    write(text: string) {
      written.push(text);
      return true;
    },
  });
}

test('a blank line ends an event and nothing else: comments make no empty message', async () => {
  vi.useFakeTimers();
  const response = openResponse();
  const more = Promise.withResolvers<void>();
  const done = writeEvents(
    response as unknown as ServerResponse,
    {},
    new AbortController().signal,
    createUnreadBound(1, { warn() {} }).writerOf(response as unknown as ServerResponse, 'org'),
    {
      async *read() {
        yield { cursor: 'turn_1:seq_1', json: '{"n":1}', isFirst: true, isLast: true };
        await more.promise;
        yield { cursor: 'turn_1:seq_2', json: '{"n":2}', isFirst: true, isLast: true };
      },
    },
  );
  await vi.advanceTimersByTimeAsync(25_000);
  more.resolve();
  await done;
  expect(response.written.join('')).toBe(
    ': connected\n' +
      'event: session.chunks\ndata: {"n":1}\nid: turn_1:seq_1\n\n' +
      ': here\n: here\n' +
      'event: session.chunks\ndata: {"n":2}\nid: turn_1:seq_2\n\n',
  );
});

test('no heartbeat comes between the parts of an event, however long the next one takes', async () => {
  vi.useFakeTimers();
  const response = openResponse();
  const more = Promise.withResolvers<void>();
  const part = { cursor: 'turn_1:seq_1', isFirst: false, isLast: false };
  const done = writeEvents(
    response as unknown as ServerResponse,
    {},
    new AbortController().signal,
    createUnreadBound(1, { warn() {} }).writerOf(response as unknown as ServerResponse, 'org'),
    {
      async *read() {
        yield { ...part, json: Buffer.from('{"n":'), isFirst: true };
        await more.promise;
        yield { ...part, json: Buffer.from('1}'), isLast: true };
      },
    },
  );
  await vi.advanceTimersByTimeAsync(25_000);
  more.resolve();
  await done;
  expect(response.written.join('')).toBe(': connected\nevent: session.chunks\ndata: {"n":1}\nid: turn_1:seq_1\n\n');
});
