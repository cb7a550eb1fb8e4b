import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createUnreadBound, writeText } from './unread-bound.ts';

/** Readers by name. Each takes nothing until the test lets it. */
function readers(maxMegabytes: number) {
  const closed: string[] = [];
  const bound = createUnreadBound(maxMegabytes, { warn() {} });
  return {
    closed,
    write(organizationId: string, name: string, megabytes: number) {
      const gone = new AbortController();
      const response = Object.assign(new EventEmitter(), {
        write: () => false,
        destroy() {
          closed.push(name);
          gone.abort();
        },
      });
      const written = bound.writerOf(response as unknown as ServerResponse, organizationId)(
        Buffer.alloc(megabytes * 1024 * 1024),
        gone.signal,
      );
      const settled = written.then(
        () => true,
        () => false,
      );
      return { take: () => response.emit('drain'), settled };
    },
  };
}

test('beyond the bound, the client that has waited longest of the organization with the most data is closed', async () => {
  const { closed, write } = readers(10);
  const few = write('few', 'few', 2);
  for (let n = 1; n <= 12; n += 1) write('many', `many ${n}`, 1);
  expect(closed).toEqual(['many 1', 'many 2', 'many 3', 'many 4']);
  few.take();
  expect(await few.settled).toBe(true);
  for (let n = 13; n <= 14; n += 1) write('many', `many ${n}`, 1);
  expect(closed).toHaveLength(4);
  write('many', 'many 15', 1);
  expect(closed.at(-1)).toBe('many 5');
});

test('data that was taken no longer counts, so clients that read are never closed', async () => {
  const { closed, write } = readers(10);
  for (let n = 0; n < 50; n += 1) {
    const reader = write('a', `reader ${n}`, 9);
    reader.take();
    expect(await reader.settled).toBe(true);
  }
  expect(closed).toEqual([]);
});

test('text is written in pieces that a slow client can take, and no character is split', async () => {
  const pieces: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    write(piece: string) {
      pieces.push(piece);
      setImmediate(() => response.emit('drain'));
      return false;
    },
  });
  const text = `a${'😀'.repeat(20_000)}`;
  const write = createUnreadBound(1, { warn() {} }).writerOf(response as unknown as ServerResponse, 'a');
  await writeText(write, text, new AbortController().signal);
  expect(pieces.length).toBeGreaterThan(2);
  expect(Math.max(...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThan(48 * 1024);
  expect(pieces.map((piece) => Buffer.from(piece).toString()).join('')).toBe(text);
});
