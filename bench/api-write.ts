// Sessions opened without input over 64 connections, each with its own Idempotency-Key: the session's row, its event and the stored
// response. The limit: transactions of `pg` that insert the same two rows and store no response.
import pg from 'pg';
import { Pool } from 'undici';
import { newUuid, parseId } from '../packages/server/src/lib/ids.ts';
import { type Bench, type Benchmark, measurePairs, ratePerSecond, startBench } from './support/harness.ts';
import { createScriptedAgent } from './support/session-client.ts';
import { rowOf } from './support/table.ts';

const CONNECTIONS = 64;
// As many as the service has.
const MAX_DATABASE_CONNECTIONS = 20;

export const apiWrite: Benchmark = {
  name: 'api-write',
  async run() {
    const bench = await startBench();
    const agentId = await createScriptedAgent(bench);
    const database = new pg.Pool({ connectionString: bench.databaseUrl, max: MAX_DATABASE_CONNECTIONS });
    const open = opener(bench, agentId);
    const insert = await inserter(bench, agentId, database);
    const pairs = await measurePairs(
      () => ratePerSecond(CONNECTIONS, open),
      () => ratePerSecond(CONNECTIONS, insert),
    );
    await database.end();
    await bench.stop();
    return [rowOf({ name: 'api-write', unit: 'requests/s', target: '≥ 0.60' }, pairs)];
  },
};

function opener(bench: Bench, agentId: string): () => Promise<void> {
  const pool = new Pool(bench.url, { connections: CONNECTIONS, pipelining: 1 });
  const body = JSON.stringify({ agentId, environment: 'production' });
  return async () => {
    const response = await pool.request({
      method: 'POST',
      path: '/api/v1/sessions',
      headers: {
        authorization: `Bearer ${bench.adminKey}`,
        'content-type': 'application/json',
        'idempotency-key': newUuid(),
      },
      body,
    });
    const text = await response.body.text();
    if (response.statusCode !== 201) throw new Error(`opening a session: ${response.statusCode} ${text}`);
  };
}

/** Into tables with the same indexes, which nothing else reads. */
async function inserter(bench: Bench, agentId: string, database: pg.Pool): Promise<() => Promise<void>> {
  await bench.call('POST', '/sessions', { agentId, environment: 'production' });
  const { data } = await bench.call<{ data: object[] }>('GET', '/events?type=session.created&limit=1');
  const event = JSON.stringify(data[0]);
  await database.query(`
    create table bench_sessions (like sessions including all) with (fillfactor = 70, autovacuum_analyze_scale_factor = 0.5);
    create table bench_events (like events_pending including all)`);
  const [organizationId, agent] = [parseId('org', bench.organizationId), parseId('agt', agentId)];
  return async () => {
    const client = await database.connect();
    const now = new Date();
    try {
      await client.query('begin');
      await client.query({
        name: 'session',
        text: `
          insert into bench_sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, depth,
            close_on_idle, metadata, delivery_due, created_at, updated_at)
          values ($1, $2, $3, 'production', 'idle', 0, 1, 0, false, '{}', false, $4, $4)`,
        values: [organizationId, newUuid(), agent, now],
      });
      await client.query({
        name: 'event',
        text: 'insert into bench_events (organization_id, event_id, body, occurred_at) values ($1, $2, $3, $4)',
        values: [organizationId, newUuid(), event, now],
      });
      await client.query('commit');
    } finally {
      client.release();
    }
  };
}
