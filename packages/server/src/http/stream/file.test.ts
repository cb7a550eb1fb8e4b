import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { writeFile } from './file.ts';
import { createUnreadBound } from './unread-bound.ts';

test('a client that does not read is waited for: no more of the file is generated, however long it is', async () => {
  const written: string[] = [];
  let made = 0;
  let room = 2;
  const response = Object.assign(new EventEmitter(), {
    req: { method: 'GET' },
    destroyed: false,
    writeHead: () => {},
    write(piece: string) {
      written.push(piece);
      room -= 1;
      return room > 0;
    },
    end: () => void response.emit('end'),
    destroy: () => {},
  });
  async function* read() {
    for (; made < 1_000_000; made += 1) yield `${made}\n`;
  }
  const whole = writeFile(
    response as unknown as ServerResponse,
    {},
    new AbortController().signal,
    createUnreadBound(1, { warn() {} }).writerOf(response as unknown as ServerResponse, 'org'),
    {
      status: 200,
      headers: {},
      read: () => read(),
    },
  );
  for (const [expected, more] of [
    [2, 3],
    [5, 4],
    [9, 1],
  ] as const) {
    while (written.length < expected) await new Promise<void>((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    expect([written.length, made]).toEqual([expected, expected - 1]);
    room = more;
    response.emit('drain');
  }
  response.emit('close');
  await whole;
  expect(made).toBeLessThan(20);
});
