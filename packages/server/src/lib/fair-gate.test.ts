import { expect, test } from 'vitest';
import { createFairGate } from './fair-gate.ts';

/** Records which organizations have entered. */
function crowd(maxAtOnce: number) {
  const gate = createFairGate(maxAtOnce);
  const inside: string[] = [];
  const leaves: (() => void)[] = [];
  return {
    inside,
    async enter(organizationId: string, signal?: AbortSignal) {
      const leave = await gate.enter(organizationId, signal);
      if (!leave) return;
      inside.push(organizationId);
      leaves.push(leave);
    },
    async leave() {
      leaves.shift()!();
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
  };
}

test('at most the maximum is inside, and each that leaves admits one', async () => {
  const { inside, enter, leave } = crowd(3);
  for (let n = 0; n < 10; n += 1) void enter('a');
  await new Promise<void>((resolve) => setImmediate(resolve));
  for (let left = 0; left < 7; left += 1) {
    expect(inside.length).toBe(3 + left);
    await leave();
  }
  expect(inside.length).toBe(10);
  for (let left = 0; left < 3; left += 1) await leave();
  await Promise.all(['a', 'a', 'a'].map((id) => enter(id)));
  expect(inside.length).toBe(13);
});

test('organizations take turns, however many of one wait', async () => {
  const { inside, enter, leave } = crowd(1);
  for (let n = 0; n < 100; n += 1) void enter('many');
  for (let n = 0; n < 3; n += 1) void enter('few');
  await new Promise<void>((resolve) => setImmediate(resolve));
  for (let left = 0; left < 6; left += 1) await leave();
  expect(inside).toEqual(['many', 'many', 'few', 'many', 'few', 'many', 'few']);
});

test('an entrant that gives up is skipped', async () => {
  const { inside, enter, leave } = crowd(1);
  const gone = new AbortController();
  await enter('a');
  const waits = [enter('b', gone.signal), enter('c')];
  gone.abort();
  await waits[0];
  await leave();
  expect(inside).toEqual(['a', 'c']);
  await leave();
  await enter('b', gone.signal);
  await enter('d');
  expect(inside).toEqual(['a', 'c', 'd']);
});
