import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { McpConnection } from './mcp-connection.ts';
import { McpPool } from './mcp-pool.ts';

const never = new AbortController().signal;
const KEEP_MS = 1000;

function world() {
  const clock = createManualClock();
  const pool = new McpPool(clock, KEEP_MS);
  const closed: string[] = [];
  const opened: string[] = [];
  const open = (name: string) => async () => {
    opened.push(name);
    return { close: async () => void closed.push(name) } as McpConnection;
  };
  const take = (name: string, signal = never) => pool.take(name, open(name), signal);
  return { clock, pool, closed, opened, take };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a connection that is taken at the moment its idle time ends is not closed while in use', async () => {
  const { clock, closed, opened, take } = world();
  (await take('a')).release();
  clock.leap(KEEP_MS);
  const lease = await take('a');
  await settle();
  expect(closed).toEqual([]);
  lease.release();
  await clock.advance(KEEP_MS);
  await settle();
  expect([opened, closed]).toEqual([['a'], ['a']]);
});

test('of more than a thousand connections the least recently used are closed, but none that is in use', async () => {
  const { closed, take } = world();
  const inUse = await take('in use');
  for (let index = 0; index < 999; index++) (await take(`n${index}`)).release();
  (await take('n0')).release();
  expect(closed).toEqual([]);
  (await take('one more')).release();
  (await take('and more')).release();
  await settle();
  expect(closed).toEqual(['n1', 'n2']);
  inUse.release();
});

test('a discarded connection is closed when its last user releases it, and the next caller opens another', async () => {
  const { closed, opened, take } = world();
  const [one, other] = await Promise.all([take('a'), take('a')]);
  one.discard();
  one.release();
  await settle();
  expect(closed).toEqual([]);
  const next = await take('a');
  expect(next.kept).toBe(false);
  other.release();
  await settle();
  expect([opened, closed]).toEqual([['a', 'a'], ['a']]);
  next.release();
});

test('a connection that could not be opened is opened again for the next caller', async () => {
  const { clock, pool, take } = world();
  const failing = () => pool.take('a', () => Promise.reject(new Error('away')), never);
  expect((await Promise.allSettled([failing(), failing()])).map(({ status }) => status)).toEqual([
    'rejected',
    'rejected',
  ]);
  expect((await take('a')).kept).toBe(false);
  expect(clock.sleepers).toBe(0);
});

test('after the close no connection is kept, and no timer is left', async () => {
  const { clock, pool, closed, take } = world();
  (await take('a')).release();
  (await take('b')).release();
  await pool.close();
  expect(closed).toEqual(['a', 'b']);
  expect(clock.sleepers).toBe(0);
});
