// The floor of a delivery: a program that does the same statements, commits and posts with `pg` and `undici`, and keeps none of the
// promises. It signs nothing, fences no node, takes every response for an acceptance, and nothing continues after a crash.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { gather } from '../../packages/server/src/lib/gather.ts';

// As many connections as the service has.
const MAX_CONNECTIONS = 20;
const CHUNK = '[{"type":"session.status","status":"running","waitingFor":null}]';

// The columns that a delivery reads and writes, without foreign keys, checks and secondary indexes, and analyzed as rarely.
const analyzed = 'autovacuum_analyze_scale_factor = 0.5';
const columns = `organization_id uuid, webhook_subscription_id uuid, delivery_id uuid, session_id uuid, previous_cursor text,
  from_turn integer, from_seq bigint, to_turn integer, to_seq bigint, chunk_types text, occurred_at timestamptz,
  created_at timestamptz, primary key (organization_id, webhook_subscription_id, delivery_id)`;
const tables = `
  create schema floor;
  create table floor.sessions (organization_id uuid, session_id uuid, agent_id uuid, environment text, next_seq bigint,
    delivery_id uuid, delivered_seq bigint, acknowledged_cursor text,
    primary key (organization_id, session_id)) with (fillfactor = 70, ${analyzed});
  create table floor.segments (organization_id uuid, session_id uuid, turn integer, seq_to bigint, seq_from bigint, body text,
    created_at timestamptz, primary key (organization_id, session_id, turn, seq_to)) with (${analyzed});
  create table floor.pending (${columns});
  create table floor.deliveries (${columns}, status text, attempts text[], attempt_count integer, finished_at timestamptz)
    with (${analyzed})`;

const statements = {
  open: `
    insert into floor.sessions select $1, s.id, $2, 'production', 1, null, 0, null from unnest($3::uuid[]) s(id)`,
  append: `
    with u as (
      update floor.sessions s set next_seq = s.next_seq + 1 from unnest($2::uuid[]) b(id)
      where s.organization_id = $1 and s.session_id = b.id returning s.session_id, s.next_seq - 1 as seq)
    insert into floor.segments select $1, u.session_id, 1, u.seq, u.seq, $3, now() from u`,
  advance: `
    update floor.sessions s set delivery_id = b.next, delivered_seq = b.seq - 1, acknowledged_cursor = b.cursor
    from unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::text[]) b(id, next, seq, cursor)
    where s.organization_id = $1 and s.session_id = b.id`,
  store: `
    insert into floor.pending
    select $1, $2, b.next, b.id, b.cursor, 1, b.seq - 1, 1, b.seq, 'pbmhiscrfavdxtk', now(), now()
    from unnest($3::uuid[], $4::uuid[], $5::bigint[], $6::text[]) b(id, next, seq, cursor)`,
  finish: `
    with gone as (
      delete from floor.pending d using unnest($3::uuid[], $4::text[]) b(id, attempt)
      where d.organization_id = $1 and d.webhook_subscription_id = $2 and d.delivery_id = b.id
      returning d.*, b.attempt)
    insert into floor.deliveries
    select organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn, from_seq, to_turn, to_seq,
      chunk_types, occurred_at, created_at, 'succeeded', array[attempt], 1, now() from gone`,
} as const;

interface Next {
  sessionId: string;
  deliveryId: string;
  seq: number;
  /** The delivery before it, which this one acknowledges. */
  done: string | undefined;
}

export interface WebhookFloor {
  /** Delivers the chunks of this many sessions at once, one after the other for each, for so long. Returns the number of deliveries. */
  run(ms: number): Promise<number>;
  close(): Promise<void>;
}

/** `attempt`: what is stored of an accepted attempt. */
export async function createWebhookFloor(
  databaseUrl: string,
  sessions: number,
  post: () => Promise<void>,
  attempt: string,
): Promise<WebhookFloor> {
  const database = new pg.Pool({
    connectionString: databaseUrl,
    max: MAX_CONNECTIONS,
    pipeline: true,
  } as pg.PoolConfig);
  const [organizationId, subscriptionId, agentId] = [randomUUID(), randomUUID(), randomUUID()];
  const sessionIds = Array.from({ length: sessions }, () => randomUUID());
  await database.query(tables);
  await database.query(statements.open, [organizationId, agentId, sessionIds]);
  const last = new Map<string, { deliveryId: string; seq: number }>();

  const append = gather(async (ids: readonly string[]) => {
    await database.query({ name: 'append', text: statements.append, values: [organizationId, ids, CHUNK] });
    return ids;
  });

  const advance = gather(async (next: readonly Next[]) => {
    const ids = next.map(({ sessionId }) => sessionId);
    const deliveryIds = next.map(({ deliveryId }) => deliveryId);
    const seqs = next.map(({ seq }) => seq);
    const cursors = next.map(({ seq }) => `turn_1:seq_${seq - 1}`);
    const done = next.flatMap(({ done }) => done ?? []);
    const own = [organizationId, subscriptionId];
    const client = await database.connect();
    try {
      await Promise.all([
        client.query({ name: 'begin', text: 'begin' }),
        client.query({
          name: 'advance',
          text: statements.advance,
          values: [organizationId, ids, deliveryIds, seqs, cursors],
        }),
        client.query({ name: 'store', text: statements.store, values: [...own, ids, deliveryIds, seqs, cursors] }),
        client.query({ name: 'finish', text: statements.finish, values: [...own, done, done.map(() => attempt)] }),
        client.query({ name: 'commit', text: 'commit' }),
      ]);
    } finally {
      client.release();
    }
    return next;
  });

  return {
    async run(ms) {
      const end = performance.now() + ms;
      let posted = 0;
      await Promise.all(
        sessionIds.map(async (sessionId) => {
          // As for the service, the next chunk is committed while a delivery is in flight.
          let appended: Promise<string> | undefined = last.has(sessionId) ? undefined : append(sessionId);
          while (performance.now() < end) {
            await appended;
            const seq = (last.get(sessionId)?.seq ?? 0) + 1;
            JSON.stringify({
              sessionId,
              agentId,
              cursor: `turn_1:seq_${seq}`,
              createdAt: new Date(),
              chunks: JSON.parse(CHUNK),
            });
            const deliveryId = randomUUID();
            await advance({ sessionId, deliveryId, seq, done: last.get(sessionId)?.deliveryId });
            last.set(sessionId, { deliveryId, seq });
            appended = append(sessionId);
            await post();
            posted += 1;
          }
          await appended;
        }),
      );
      return posted;
    },
    close: () => database.end(),
  };
}
