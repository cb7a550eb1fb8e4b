import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { createStalledReaders, type StalledReaders } from './stalled-readers.ts';

let clock: ManualClock;
let unread: StalledReaders;
beforeEach(() => {
  clock = createManualClock();
  unread = createStalledReaders(clock);
});
afterEach(() => unread.stop());

/** A connection on which so much waits to be taken. */
function connection() {
  const socket = Object.assign(new EventEmitter(), {
    bytesWritten: 0,
    writableLength: 0,
    destroyed: false,
    destroy() {
      socket.destroyed = true;
    },
  });
  unread.watch(socket as unknown as Socket);
  return {
    socket,
    write(bytes: number) {
      socket.bytesWritten += bytes;
      socket.writableLength += bytes;
    },
    take(bytes: number) {
      socket.writableLength -= bytes;
    },
  };
}

const pass = (seconds: number) => clock.pass(1_000 * seconds);

test('a client that takes nothing is closed after a minute, also while more is written for it', async () => {
  const { socket, write } = connection();
  write(100);
  await pass(40);
  write(100);
  await pass(20);
  expect(socket.destroyed).toBe(false);
  await pass(20);
  expect(socket.destroyed).toBe(true);
});

test('a client that takes a little from time to time is waited for', async () => {
  const { socket, write, take } = connection();
  write(1000);
  for (let n = 0; n < 9; n += 1) {
    await pass(50);
    take(100);
  }
  expect(socket.destroyed).toBe(false);
  await pass(80);
  expect(socket.destroyed).toBe(true);
});

test('a client that has taken everything is not closed, and a response of 1 MiB has two minutes more', async () => {
  const [idle, long] = [connection(), connection()];
  long.write(1024 * 1024);
  await pass(180);
  expect([idle.socket.destroyed, long.socket.destroyed]).toEqual([false, false]);
  await pass(20);
  expect([idle.socket.destroyed, long.socket.destroyed]).toEqual([false, true]);
});
