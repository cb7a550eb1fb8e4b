// The time of a page of a list if its filter excludes much: 300,000 sessions with an approval each, a million records
// of the event log and a million deliveries, inserted by SQL in one organization. Each filter is measured with the most expensive
// values: one that only the oldest rows match, one that none matches, and two of which each matches many rows but both match none.
import pg from 'pg';
import { formatId, parseId } from '../packages/server/src/lib/ids.ts';
import { pairOf } from '../packages/server/src/sessions/search/metadata.ts';
import { type Bench, type Benchmark, durations, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { quantile, type Row, rowOf } from './support/table.ts';

const SESSIONS = 300_000;
const EVENTS = 1_000_000;
const DELIVERIES = 1_000_000;
const PENDING = 10_000;
const CHILDREN = 1_000;
/** How many of the oldest rows have the rare value. */
const FEW = 7;
const TIMES = 10;
const SHOWN = 4;
const START = Date.parse('2026-01-01T00:00:00.000Z');

export const lists: Benchmark = {
  name: 'lists',
  async run() {
    // No runtime and no delivery, so the inserted rows do not change.
    const bench = await startBench({ roles: 'api' });
    const begin = performance.now();
    const agents = [await createScriptedAgent(bench), await createScriptedAgent(bench)] as const;
    const { webhookSubscription } = await bench.call<{ webhookSubscription: { webhookSubscriptionId: string } }>(
      'POST',
      '/webhook_subscriptions',
      { environment: 'production', url: 'http://127.0.0.1:9/' },
    );
    await fill(bench, {
      agentIds: agents.map((agentId) => parseId('agt', agentId)!),
      webhookSubscriptionId: parseId('whs', webhookSubscription.webhookSubscriptionId)!,
    });
    console.error(`  filled in ${Math.round((performance.now() - begin) / 1000)} s`);
    const rows: Row[] = [];
    for (const [list, paths] of Object.entries(requests(agents))) rows.push(await measure(bench, list, paths));
    await bench.stop();
    return rows;
  },
};

/** The slowest of its requests, by the median of several attempts. */
async function measure(bench: Bench, list: string, queries: readonly string[]): Promise<Row> {
  const measured: { query: string; p50: number; best: number }[] = [];
  for (const query of queries) {
    // The first attempt plans, and reads from the disk.
    const [, ...taken] = await durations(TIMES + 1, () => bench.call('GET', `${list}?${query}`));
    measured.push({ query, p50: quantile(taken, 0.5), best: Math.min(...taken) });
  }
  const slowest = measured.toSorted((a, b) => b.p50 - a.p50);
  for (const { query, p50, best } of slowest.slice(0, SHOWN)) {
    console.error(`  ${list}?${query}: ${p50.toFixed(1)} ms, best ${best.toFixed(1)}`);
  }
  return rowOf({ name: `lists, ${list.slice(list.lastIndexOf('/') + 1)}`, unit: 'ms, p50', target: '≤ 50 ms' }, [
    { ours: slowest[0]!.p50 },
  ]);
}

function requests([even, odd]: readonly [string, string]): Record<string, string[]> {
  const session = formatId('ses', idOf(1));
  const old = `since=${at(10_000)}&until=${at(10_010)}`;
  return {
    '/sessions': [
      'limit=100',
      'environment=rare',
      'environment=production&limit=100',
      'status=failed',
      'status=cancelled',
      'status=completed&limit=100',
      `agentId=${even}&limit=100`,
      `agentId=${odd}&status=running`,
      `agentId=${even}&status=failed`,
      `agentId=${even}&environment=rare`,
      'environment=rare&status=failed',
      `parentSessionId=${session}`,
      `parentSessionId=${session}&status=failed`,
      'metadata[order]=77',
      'metadata[order]=none',
      'metadata[tenant]=3&limit=100',
      'metadata[order]=77&metadata[tenant]=7',
      'metadata[tenant]=3&metadata[order]=77',
      'metadata[tenant]=3&status=failed',
      'metadata[tenant]=3&environment=rare',
      `metadata[tenant]=3&agentId=${even}`,
      'metadata[tenant]=3&status=idle',
    ],
    '/approvals': [
      'limit=100',
      'order=desc&limit=100',
      'status=pending',
      'status=expired',
      'status=denied&limit=100',
      'status=denied&order=desc&limit=100',
      'environment=rare',
      'environment=rare&order=desc',
      'environment=rare&status=cancelled',
      `sessionId=${session}`,
      `sessionId=${session}&status=expired`,
      `agentId=${even}&status=denied`,
    ],
    '/events': [
      'limit=1000',
      'order=asc&limit=1000',
      'type=api_key.created',
      'type=api_key.created,agent.created',
      'type=agent.archived,api_key.deleted',
      'type=api_key.created,session.created&limit=1000',
      'environment=rare',
      'environment=none&order=asc',
      `actorId=key_${'0'.repeat(26)}`,
      'actorId=none',
      'resourceId=1',
      `sessionId=${session}`,
      old,
      `${old}&order=asc`,
      `since=${at(15_000)}&order=asc`,
      `until=${at(5_000)}`,
      `type=session.created&until=${at(5_000)}`,
      `type=session.created&since=${at(EVENTS + 1_000)}`,
      `afterSequence=${EVENTS - 10}&order=asc`,
      `type=api_key.created&afterSequence=${EVENTS - 10}&order=asc`,
      `environment=rare&since=${at(EVENTS / 2)}`,
      'environment=staging&type=session.completed',
    ],
    '/webhook_subscriptions/production/deliveries': [
      'limit=100',
      'status=pending&limit=100',
      'status=succeeded&limit=100',
      'status=exhausted',
      'status=cancelled',
      `sessionId=${session}`,
      `sessionId=${session}&status=exhausted`,
      `sessionId=${session}&status=pending`,
    ],
  };
}

function at(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString();
}

/** The n-th id, like `id` in `fill`. */
function idOf(n: number): string {
  const text = `${(START + n * 1000).toString(16).padStart(12, '0')}70008${n.toString(16).padStart(15, '0')}`;
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

async function fill(
  bench: Bench,
  { agentIds, webhookSubscriptionId }: { agentIds: string[]; webhookSubscriptionId: string },
): Promise<void> {
  const organization = `'${parseId('org', bench.organizationId)!}'::uuid`;
  const subscription = `'${webhookSubscriptionId}'::uuid`;
  const database = new pg.Client(bench.databaseUrl);
  await database.connect();
  // The referenced rows exist: checking them would take as long again.
  await database.query('set session_replication_role = replica');
  const id = `(lpad(to_hex(${START} + n::bigint * 1000), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid`;
  const time = `timestamptz '${at(0)}' + n * interval '1 second'`;
  const environment = `case when n <= ${FEW} then 'rare' when n % 3 = 0 then 'staging' else 'production' end`;
  await database.query(`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, parent_session_id,
      created_at, updated_at, ended_at)
    select ${organization}, ${id}, case when n % 2 = 0 then '${agentIds[0]}'::uuid else '${agentIds[1]}'::uuid end, ${environment},
      case when n between ${FEW + 1} and ${2 * FEW} then 'failed' when n % 2 = 0 then 'idle' else 'completed' end, false,
      json_build_object('tenant', (n % 10)::text, 'order', n::text),
      case when n between 1001 and ${1000 + CHILDREN} then '${idOf(1)}'::uuid end, ${time}, ${time},
      case when n % 2 = 1 or n between ${FEW + 1} and ${2 * FEW} then ${time} end
    from generate_series(1, ${SESSIONS}) n`);
  const tenants = Array.from({ length: 10 }, (_, tenant) => pairOf('tenant', String(tenant)));
  await database.query(`
    insert into session_metadata (organization_id, pair, session_id)
    select ${organization}, p.pair, ${id} from generate_series(1, ${SESSIONS}) n
    cross join lateral (values ((array[${tenants.join(',')}])[n % 10 + 1]),
      (case n when 77 then ${pairOf('order', '77')} else n end)) p(pair)`);
  await database.query(`
    insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input_schema, once, status,
      requested_at, resolved_at, resolved_by)
    select organization_id, session_id, session_id, agent_id, environment, 'pay', '{}', false,
      case status when 'failed' then 'pending' when 'idle' then 'approved' else 'denied' end, created_at,
      case when status <> 'failed' then created_at end, case when status <> 'failed' then '{}'::json end
    from sessions`);
  // Every fifth record occurred two minutes before the one before it.
  await database.query('delete from events_pending');
  await database.query('delete from events');
  await database.query(`
    insert into events (organization_id, sequence, event_id, body, occurred_at, hash)
    select ${organization}, n, ${id}, jsonb_build_object(
        'type', case when n <= ${FEW} then 'api_key.created' when n <= ${2 * FEW} then 'agent.created'
          when n % 3 = 0 or n % 2 = 0 then 'session.created' else 'session.completed' end,
        'environment', ${environment}, 'sessionId', null, 'actor', jsonb_build_object('type', 'api_key', 'id', 'key_' || n % 100),
        'resource', jsonb_build_object('type', 'session', 'id', n::text), 'context', jsonb_build_object()),
      ${time} - case when n % 5 = 0 then interval '2 minutes' else interval '0' end, '\\x00'
    from generate_series(1, ${EVENTS}) n`);
  await database.query(`
    update event_heads set sequence = ${EVENTS}, late_ms = 121000, latest_at = '${at(EVENTS)}'
    where organization_id = ${organization}`);
  const delivery = `${organization}, ${subscription}, ${id}, (lpad(to_hex(${START} + (n % ${SESSIONS} + 1)::bigint * 1000), 12, '0')
    || '70008' || lpad(to_hex(n % ${SESSIONS} + 1), 15, '0'))::uuid, '', 1, 1, 1, 1, '', ${time}`;
  await database.query(`
    insert into webhook_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
      from_seq, to_turn, to_seq, chunk_types, occurred_at, status, attempts, attempt_count, created_at, finished_at)
    select ${delivery}, case when n <= ${FEW} then 'exhausted' else 'succeeded' end, '{}', 1, ${time}, ${time}
    from generate_series(1, ${DELIVERIES}) n`);
  await database.query(`
    insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
      from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at)
    select ${delivery}, ${time} from generate_series(${DELIVERIES + 1}, ${DELIVERIES + PENDING}) n`);
  // As after autovacuum.
  await database.query(
    'vacuum (analyze) sessions, session_metadata, approvals, events, webhook_deliveries, pending_deliveries',
  );
  await database.end();
}
