import { InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRefresher, nounsOfLatest, refreshLoaded } from './live.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const LONG_MS = 60_000;

function start() {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const refresher = createRefresher((noun) => {
    asked.push(noun);
    return new Promise<void>((resolve) => answers.push(resolve));
  });
  return { ...refresher, asked, answer: () => answers.shift()!() };
}

test('events that arrive together are one refresh of each noun', async () => {
  const { note, asked } = start();
  note(['events', 'sessions']);
  note(['events', 'approvals']);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual(['events', 'sessions', 'approvals']);
});

test('a refresh is not started again while it runs, however many events arrive; afterwards there is one more', async () => {
  const { note, asked, answer } = start();
  note(['sessions']);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  for (let event = 0; event < 3; event++) {
    note(['sessions']);
    await vi.advanceTimersByTimeAsync(LONG_MS);
  }
  expect(asked).toEqual(['sessions']);
  answer();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual(['sessions', 'sessions']);
  answer();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual(['sessions', 'sessions']);
});

test('a refresh that takes long holds up no other noun', async () => {
  const { note, asked } = start();
  note(['sessions']);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  note(['sessions', 'agents']);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual(['sessions', 'agents']);
});

test('nothing is refreshed once it is stopped', async () => {
  const { note, stop, asked, answer } = start();
  note(['sessions']);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  note(['sessions']);
  stop();
  answer();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual(['sessions']);
});

test('the next page of a list that is loading when an event arrives is not lost', async () => {
  const queries = new QueryClient();
  const asked: number[] = [];
  let answer = () => {};
  const list = new InfiniteQueryObserver(queries, {
    queryKey: ['org', 'agents'],
    initialPageParam: 1,
    getNextPageParam: (_page, all) => all.length + 1,
    queryFn: async ({ pageParam }) => {
      asked.push(pageParam);
      if (asked.length === 2) await new Promise<void>((resolve) => (answer = resolve));
      return `page ${pageParam}`;
    },
  });
  const stop = list.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(1);
  void list.fetchNextPage();
  const refreshed = refreshLoaded(queries, ['org']);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(asked).toEqual([1, 2]);
  answer();
  await vi.advanceTimersByTimeAsync(LONG_MS);
  await refreshed;
  expect(list.getCurrentResult().data?.pages).toEqual(['page 1', 'page 2']);
  expect(asked).toEqual([1, 2, 1, 2]);
  stop();
  queries.clear();
});

test('a page that opens does not ask twice for everything because of events that are long past', () => {
  const now = Date.parse('2026-01-02T12:00:00.000Z');
  const events = [
    { type: 'agent.updated', occurredAt: '2026-01-02T11:59:59.000Z' },
    { type: 'session.created', occurredAt: '2026-01-02T11:00:00.000Z' },
  ] as const;
  expect(nounsOfLatest(events, now)).toEqual(['events', 'agents']);
});
