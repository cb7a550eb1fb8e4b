// The time and the space of a fork of a long session, compared with one of a short session: the long one has 4 MiB and a thousand
// forks, and the table has 300,000 other sessions.
import pg from 'pg';
import { formatId, parseId } from '../packages/server/src/lib/ids.ts';
import { type Bench, type Benchmark, durations, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const SESSIONS = 300_000;
const FORKS = 1_000;
const TURNS = 64;
/** With its turns, 4 MiB. */
const MESSAGE_BYTES = 32 * 1024;
const TIMES = 50;

export const forks: Benchmark = {
  name: 'forks',
  async run() {
    const bench = await startBench();
    const agentId = await createScriptedAgent(bench);
    const client = new pg.Client(bench.databaseUrl);
    await client.connect();
    const ids = await fill(client, bench, agentId);
    const [long, short] = ids.map((id) => formatId('ses', id)) as [string, string];
    const fork = (sessionId: string) => bench.call('POST', `/sessions/${sessionId}/fork`, {});
    const p50 = (sessionId: string) => async () => quantile(await durations(TIMES, () => fork(sessionId)), 0.5);
    const before = await sizeOf(client);
    for (let made = 0; made < FORKS; made += 1) await fork(long);
    const bytes = ((await sizeOf(client)) - before) / FORKS;
    const pairs = await measurePairs(p50(long), p50(short));
    await client.end();
    await bench.stop();
    return [
      rowOf({ name: 'forks, of 4 MiB and of 1 KiB', unit: 'ms, p50', target: '≤ 1.50' }, pairs),
      rowOf({ name: 'forks, space of one of 4 MiB', unit: 'bytes', target: '≤ 8,192' }, [{ ours: bytes }]),
    ];
  },
};

/** Returns the ids of the long session and the short one. */
async function fill(client: pg.Client, { organizationId }: Bench, agentId: string): Promise<[string, string]> {
  const of = [parseId('org', organizationId), parseId('agt', agentId)];
  await client.query(
    `insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle,
      metadata, created_at, updated_at)
    select $1::uuid, gen_random_uuid(), $2::uuid, 'production', 'idle', 1, 2, false, '{}', now(), now()
    from generate_series(1, ${SESSIONS})`,
    of,
  );
  const { rows } = await client.query<{ session_id: string }>('select session_id from sessions limit 2');
  const [long, short] = rows.map(({ session_id: id }) => id) as [string, string];
  for (const [id, turns, bytes] of [
    [long, TURNS, MESSAGE_BYTES],
    [short, 1, 512],
  ] as const) {
    // Text that does not compress.
    await client.query(
      `insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
      select $1::uuid, $2::uuid, t, p, gen_random_uuid(), case p when 0 then 'user' else 'assistant' end,
        json_build_array(json_build_object('type', 'text', 'text', (
          select string_agg(md5(random()::text || t || p || n), '') from generate_series(1, $4::int / 32) n))), now()
      from generate_series(1, $3::int) t cross join generate_series(0, 1) p`,
      [of[0], id, turns, bytes],
    );
    await client.query('update sessions set turn = $2 where session_id = $1', [id, turns]);
  }
  await client.query('vacuum analyze');
  return [long, short];
}

/** The size of all tables and indexes, in bytes. */
async function sizeOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  return Number(rows[0]!.bytes);
}
