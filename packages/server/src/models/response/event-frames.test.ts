import { describe, expect, test } from 'vitest';
import { frame } from '../../../test/support/converse-wire.ts';
import { eventFrames } from './event-frames.ts';

const { decode, encode } = await eventFrames('messageStop');

async function through(stream: TransformStream<Uint8Array, Uint8Array>, bytes: Uint8Array[]): Promise<Buffer> {
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of bytes) controller.enqueue(chunk);
      controller.close();
    },
  });
  return Buffer.from(await new Response(source.pipeThrough(stream)).arrayBuffer());
}

const stop = frame('event', 'messageStop', { stopReason: 'end_turn' });
const delta = frame('event', 'contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'ü😀' } });

describe('frames', () => {
  test('are the same events, however they are cut', async () => {
    const bytes = Buffer.concat([delta, stop]);
    const lines =
      'data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"ü😀"}}}\n\ndata: {"messageStop":{"stopReason":"end_turn"}}\n\n';
    for (const size of [1, 7, 64, bytes.length]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      expect((await through(decode(), chunks)).toString()).toBe(lines);
    }
    const again = await through(encode(), [Buffer.from(lines)]);
    expect((await through(decode(), [again])).toString()).toBe(lines);
  });

  test('with an exception are an error of its type', async () => {
    const exception = frame('exception', 'throttlingException', { message: 'Too many tokens' });
    expect((await through(decode(), [exception])).toString()).toBe(
      'data: {"type":"error","error":{"message":"Too many tokens","type":"throttlingException"}}\n\n',
    );
  });

  test.each([
    ['a wrong checksum', Buffer.concat([delta.subarray(0, -1), Buffer.from([delta.at(-1)! ^ 1])])],
    ['an impossible length', Buffer.from([0, 0, 0, 3, 0, 0, 0, 0, 0])],
    ['a length of 16 MiB', Buffer.from([0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0])],
  ])('with %s fail', async (_title, bytes) => {
    await expect(through(decode(), [bytes])).rejects.toThrow();
  });

  test('of no response are passed on as they are: a page, or JSON', async () => {
    for (const text of ['<p>Log in</p>', '{"output":{}}', '[{}]'])
      expect((await through(decode(), [Buffer.from(text)])).toString()).toBe(text);
  });

  test('without their last event are incomplete', async () => {
    await expect(through(encode(), [])).rejects.toThrow('interrupted');
    await expect(through(encode(), [Buffer.from('data: {"messageStart":{}}\n\n')])).rejects.toThrow('interrupted');
  });
});
