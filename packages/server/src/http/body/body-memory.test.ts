import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import type { Release } from '../../lib/fair-share.ts';
import { countValues, createBodyMemory } from './body-memory.ts';

type Caller = Parameters<ReturnType<typeof createBodyMemory>['beforeReading']>[1];

const MIB = 1024 * 1024;
const ofKey = (organizationId: string) => ({ organizationId, callerId: 'key', token: undefined }) as unknown as Caller;

function requestOf(organizationId: string, length = MIB) {
  const held: Release[] = [];
  const slot = {
    async hold(take: (signal: AbortSignal) => Promise<Release | undefined>) {
      const release = await take(new AbortController().signal);
      if (release) held.push(release);
    },
  };
  const raw = { headers: { 'content-length': String(length) }, complete: true };
  const request = { raw, slot, ctx: { organizationId } } as unknown as FastifyRequest;
  return {
    request,
    end: () => {
      for (const release of held.splice(0)) release();
    },
  };
}

/** How many of these have resolved by now. */
async function countResolved(waits: readonly Promise<unknown>[]): Promise<number> {
  let count = 0;
  for (const wait of waits) void wait.then(() => count++);
  await setImmediate();
  return count;
}

test('long bodies of one organization wait for each other, and not for bodies of another or short ones', async () => {
  const memory = createBodyMemory({ watch: () => {}, arrived: () => {} });
  const requests = Array.from({ length: 200 }, () => requestOf('one'));
  const waits = requests.map(({ request }) => memory.beforeReading(request, ofKey('one')));
  const first = await countResolved(waits);
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThanOrEqual(64);
  await memory.beforeReading(requestOf('two').request, ofKey('two'));
  await memory.beforeReading(requestOf('one', 1024).request, ofKey('one'));
  for (const { end } of requests.slice(0, 5)) end();
  expect(await countResolved(waits)).toBe(first + 5);
});

test('bodies with many values wait before they are parsed', async () => {
  const memory = createBodyMemory({ watch: () => {}, arrived: () => {} });
  const values = '[],'.repeat(MIB / 3 - 10);
  const parsedOf = (organizationId: string, json: string) =>
    countResolved(
      Array.from({ length: 10 }, async () =>
        memory.beforeParsing(requestOf(organizationId).request, Buffer.from(json)),
      ),
    );
  expect(await parsedOf('one', `["${values}"]`)).toBe(10);
  expect(await parsedOf('two', `[${values}[]]`)).toBeLessThan(5);
});

test('an end user has a few long bodies at a time', async () => {
  const memory = createBodyMemory({ watch: () => {}, arrived: () => {} });
  const token = { organizationId: 'one', callerId: 'token', token: {} } as unknown as Caller;
  const requests = Array.from({ length: 4 }, () => requestOf('one', 100_000));
  for (const { request } of requests.slice(0, 3)) await memory.beforeReading(request, token);
  await expect(memory.beforeReading(requests[3]!.request, token)).rejects.toThrow('your share');
  requests[0]!.end();
  await memory.beforeReading(requests[3]!.request, token);
});

test.each([
  ['[[],[[]],{},"a,b:[{\\",",1]', 6],
  ['{"a":{"b":[1,2]},"c":"\\\\"}', 7],
  ['" , "', 1],
])('counts at least the names and values of %s', (json, count) => {
  expect(countValues(Buffer.from(json))).toBeGreaterThanOrEqual(count);
  expect(countValues(Buffer.from(json))).toBeLessThan(3 * count);
});
