import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { type StreamPart, streamOf } from '../../journal/stream.ts';
import { beginEvents, EventStream } from './sse.ts';

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

/** Writes what the generator yields, to the end. */
async function write(response: ReturnType<typeof openResponse>, read: () => AsyncGenerator<StreamPart>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const outlet = beginEvents(response as unknown as ServerResponse, {});
  const stream = new EventStream(outlet!, streamOf(read), {
    wait: () => expect.unreachable(),
    onEnd: () => over.resolve(),
  });
  stream.start();
  await over.promise;
}

test('a blank line ends an event and nothing else: comments make no empty message', async () => {
  vi.useFakeTimers();
  const response = openResponse();
  const more = Promise.withResolvers<void>();
  const done = write(response, async function* () {
    yield { cursor: 'turn_1:seq_1', json: '{"n":1}', isFirst: true, isLast: true };
    await more.promise;
    yield { cursor: 'turn_1:seq_2', json: '{"n":2}', isFirst: true, isLast: true };
  });
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
  const done = write(response, async function* () {
    yield { ...part, json: Buffer.from('{"n":'), isFirst: true };
    await more.promise;
    yield { ...part, json: Buffer.from('1}'), isLast: true };
  });
  await vi.advanceTimersByTimeAsync(25_000);
  more.resolve();
  await done;
  expect(response.written.join('')).toBe(': connected\nevent: session.chunks\ndata: {"n":1}\nid: turn_1:seq_1\n\n');
});
