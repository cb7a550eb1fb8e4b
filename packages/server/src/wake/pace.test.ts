// How many notifications a node sends, with a clock that the test moves.
import type { Sql } from 'sql-template-tag';
import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { Db } from '../db/db.ts';
import { newUuid } from '../lib/ids.ts';
import { createLog } from '../lib/log.ts';
import { readPayload } from './hints.ts';
import { createWake } from './wake.ts';

test('commits that are announced to all nodes share a notification in 40 ms, and what another node waits for goes at once', async () => {
  const clock = createManualClock();
  const sent: { at: number; topics: string[] }[] = [];
  const begin = clock.now().getTime();
  const query = async ({ text, values }: Sql) => {
    if (!text.includes('pg_notify')) return [{ isThere: false }];
    const topics = (values[1] as string[]).flatMap((payload) => readPayload(payload).hints.map(({ topic }) => topic));
    sent.push({ at: clock.now().getTime() - begin, topics });
    return [];
  };
  const db = { query, connect: () => new Promise(() => {}) } as unknown as Db;
  const wake = createWake({ db, log: createLog({ level: 'silent' }), clock, acrossNodes: true });
  const session = () => ({ organizationId: newUuid(), sessionId: newUuid() });
  const commit = () => wake.publish('journal', { ...session(), environment: 'production' });
  for (let ms = 0; ms < 100; ms += 5) {
    commit();
    await clock.advance(5);
  }
  expect(sent.map(({ at, topics }) => [at, topics.length])).toEqual([
    [5, 1],
    [50, 9],
    [95, 9],
  ]);
  wake.publish('runnable', session());
  await clock.advance(5);
  expect(sent.at(-1)).toEqual({ at: 105, topics: ['journal', 'runnable'] });
});
