import { expect, test } from 'vitest';
import type { WorkerDelta } from '../types.generated.ts';
import { createTextSender } from './text.ts';

/** Requests that end when the test says so; pauses that last until a flush. */
function senderOf(fail: () => void = () => {}) {
  const sent: WorkerDelta[][] = [];
  let release = Promise.withResolvers<void>();
  const sender = createTextSender(
    async (pieces) => {
      sent.push(pieces);
      await release.promise;
      fail();
    },
    (_, signal) =>
      new Promise((_, reject) => {
        if (signal?.aborted) reject(signal.reason);
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
  );
  return {
    sender,
    sent,
    answer() {
      release.resolve();
      release = Promise.withResolvers();
      release.resolve();
    },
  };
}

test('the first delta is sent immediately; those added meanwhile are sent together and in order', async () => {
  const { sender, sent, answer } = senderOf();
  await sender.add('a');
  expect(sent).toEqual([['a']]);
  await sender.add('b');
  await sender.add('c');
  expect(sent).toEqual([['a']]);
  answer();
  await sender.flush();
  expect(sent).toEqual([['a'], ['b', 'c']]);
});

test('a character that arrives in two halves is sent whole; invalid characters are not sent', async () => {
  const { sender, sent, answer } = senderOf();
  answer();
  const [high = '', low = ''] = '👋'.split('');
  await sender.add(`x${high}`);
  await sender.add(`${low}y\0`);
  await sender.add(`${low}z${high}`);
  await sender.flush();
  expect(sent.flat().join('')).toBe('x👋y\uFFFDz\uFFFD');
});

test('a closed sender keeps text until it is opened again', async () => {
  const { sender, sent, answer } = senderOf();
  answer();
  sender.close();
  await sender.add('later');
  await sender.flush();
  expect(sent).toEqual([]);
  sender.open();
  await sender.flush();
  expect(sent).toEqual([['later']]);
});

test('a request stays within the service’s limits', async () => {
  const { sender, sent, answer } = senderOf();
  answer();
  const long = '👋'.repeat(120_000);
  await sender.add(long);
  await Promise.all(Array.from({ length: 2_500 }, () => sender.add('.')));
  await sender.flush();
  expect(sent.flat().join('')).toBe(long + '.'.repeat(2_500));
  for (const pieces of sent) {
    expect(pieces.length).toBeLessThanOrEqual(1_000);
    expect(pieces.join('').length).toBeLessThanOrEqual(100_000);
    expect(pieces.every((piece) => String(piece).isWellFormed())).toBe(true);
  }
});

test('after a failure nothing more is sent, and every caller gets the error', async () => {
  const { sender, sent, answer } = senderOf(() => {
    throw new Error('gone');
  });
  const first = sender.add('a');
  answer();
  await first;
  await expect(sender.flush()).rejects.toThrow('gone');
  await expect(sender.add('b')).rejects.toThrow('gone');
  await expect(sender.flush()).rejects.toThrow('gone');
  expect(sent).toEqual([['a']]);
});

test('reasoning and tool input that wait are joined, each with its own, and keep their order with text', async () => {
  const { sender, sent, answer } = senderOf();
  const reasoning = (delta: string) => ({ type: 'reasoning' as const, delta });
  const input = (index: number, delta: string) => ({ type: 'toolInput' as const, index, tool: 'look', delta });
  await sender.add('first');
  for (const delta of ['h', 'm', '\0', '.']) await sender.add(reasoning(delta));
  await sender.add('text');
  for (const delta of ['{"q"', ':1}']) await sender.add(input(0, delta));
  await sender.add(input(1, '{}'));
  answer();
  await sender.flush();
  expect(sent).toEqual([['first'], [reasoning('hm.'), 'text', input(0, '{"q":1}'), input(1, '{}')]]);
});
