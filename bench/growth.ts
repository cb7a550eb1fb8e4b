// The cost of a long session: 1,000,000 chunks compared with 100. Each chunk is a segment of its own, the worst case.
//
// `append` is the commit of one more, `resume` a stream that begins after the second to last chunk until it has the last, `page` a
// page of 50 from the middle of the list.

import sql from 'sql-template-tag';
import { Pool } from 'undici';
import { createDb, type Db } from '../packages/server/src/db/db.ts';
import { systemClock } from '../packages/server/src/lib/clock.ts';
import { formatId, parseId } from '../packages/server/src/lib/ids.ts';
import { createFeed, DELTA, type Feed, insertSessions } from './append.ts';
import { type Bench, type Benchmark, durations, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const LONG = 1_000_000;
const SHORT = 100;
const PAGE = 50;
const TIMES = 100;

export const growth: Benchmark = {
  name: 'growth',
  async run() {
    const bench = await startBench();
    const organizationId = parseId('org', bench.organizationId)!;
    const agentId = parseId('agt', await createScriptedAgent(bench))!;
    const db = createDb({ url: bench.databaseUrl });
    const feed = createFeed(db, await insertSessions(db, organizationId, agentId, 2));
    for (const [at, chunks] of [LONG, SHORT].entries()) await fill(db, feed.heads[at]!, chunks);
    const pool = new Pool(bench.url, { connections: 1, pipelining: 1 });

    const rows = [];
    for (const [name, act] of Object.entries({ append, resume, page })) {
      const p50 = (at: number, chunks: number) => async () =>
        quantile(await durations(TIMES, () => act({ bench, pool, feed, head: feed.heads[at]!, chunks })), 0.5);
      const pairs = await measurePairs(p50(0, LONG), p50(1, SHORT));
      rows.push(rowOf({ name: `growth, ${name}`, unit: 'ms, p50', target: '≤ 1.50' }, pairs));
    }
    await pool.destroy();
    await feed.appender.close();
    await db.close();
    await bench.stop();
    return rows;
  },
};

interface Subject {
  bench: Bench;
  pool: Pool;
  feed: Feed;
  head: Feed['heads'][number];
  /** The text that it had at first. */
  chunks: number;
}

async function fill(db: Db, head: Feed['heads'][number], chunks: number): Promise<void> {
  const { organizationId, sessionId } = head;
  await db.execute(sql`
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    select ${organizationId}::uuid, ${sessionId}::uuid, 1, seq, seq, ${JSON.stringify([DELTA])}, ${systemClock.now()}::timestamptz
    from generate_series(1, ${chunks}::int) as seq`);
  head.nextSeq = chunks + 1;
  await db.execute(sql`
    update sessions set next_seq = ${head.nextSeq} where organization_id = ${organizationId} and session_id = ${sessionId}`);
}

async function append({ feed, head }: Subject): Promise<void> {
  const committed = new Promise<void>((resolve) => {
    feed.onCommitted = () => resolve();
  });
  // Otherwise it would wait for more text.
  head.first = true;
  void feed.appender.append(head, DELTA);
  await committed;
}

async function resume(subject: Subject): Promise<void> {
  const body = await get(subject, `stream?cursor=turn_1:seq_${subject.head.nextSeq - 2}`);
  for await (const part of body) if (String(part).includes('"message.chunk"')) return;
  throw new Error('a stream ended before its last chunk');
}

async function page(subject: Subject): Promise<void> {
  const body = await get(subject, `chunks?cursor=turn_1:seq_${subject.chunks / 2}&limit=${PAGE}`);
  const { data } = (await body.json()) as { data: { chunks: object[] }[] };
  if (data.flatMap(({ chunks }) => chunks).length !== PAGE) throw new Error('a page has another length');
}

async function get({ bench, pool, head }: Subject, what: string) {
  const { statusCode, body } = await pool.request({
    method: 'GET',
    path: `/api/v1/sessions/${formatId('ses', head.sessionId)}/${what}`,
    headers: { authorization: `Bearer ${bench.adminKey}` },
  });
  if (statusCode !== 200) throw new Error(`${what}: ${statusCode} ${await body.text()}`);
  return body;
}
