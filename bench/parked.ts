// The cost of a million parked sessions, each waiting for an approval. Compares a service with them to one without.
//
// `parked` is the time from `POST /sessions` with input to the first delta on its stream: opened, found, claimed and appended to.
// `parked-idle` is the CPU time of service and database while nothing happens, `parked-disk` the size of a session's row
// with its indexes. The sessions are copies, made by SQL, of one that the service parked.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { parseId } from '../packages/server/src/lib/ids.ts';
import { type Bench, type Benchmark, durations, measurePairs, startBench } from './support/harness.ts';
import { createScriptedAgent, createSessionClient } from './support/session-client.ts';
import { quantile, rowOf } from './support/table.ts';

const TIMES = 50;
const IDLE_MS = 3_000;
/** The tables with a session's rows, chunks last. */
const TABLES = ['sessions', 'messages', 'operations', 'approvals', 'segments'];

export const parked: Benchmark = {
  name: 'parked',
  async run({ parkedSessions }) {
    const [full, empty] = [await startBench(), await startBench()];
    const begin = performance.now();
    const bytes = await park(full, parkedSessions);
    console.error(`  parked ${parkedSessions} Sessions in ${Math.round((performance.now() - begin) / 1000)} s`);

    async function latency(bench: Bench): Promise<() => Promise<number>> {
      const client = createSessionClient(bench, await createScriptedAgent(bench), 1);
      return async () => quantile(await durations(TIMES, () => client.openAndReadUntil('"message.chunk"')), 0.5);
    }
    const idle = (bench: Bench) => async () => {
      const before = await bench.usage();
      await sleep(IDLE_MS);
      const after = await bench.usage();
      const ms = after.serviceMs - before.serviceMs + after.databaseMs - before.databaseMs;
      return (ms / IDLE_MS) * 100;
    };
    const latencies = await measurePairs(await latency(full), await latency(empty));
    const idles = await measurePairs(idle(full), idle(empty));
    await full.stop();
    await empty.stop();

    const suffix = `, ${parkedSessions.toLocaleString('en')}`;
    return [
      rowOf({ name: `parked${suffix}`, unit: 'ms, p50', target: '≤ 1.20' }, latencies),
      rowOf({ name: `parked-idle${suffix}`, unit: '% of a core', target: 'none' }, idles),
      rowOf({ name: `parked-disk${suffix}`, unit: 'bytes each', target: '≤ 1,000' }, [{ ours: bytes.own }]),
      rowOf({ name: 'with transcript, calls, approval', unit: 'bytes each', target: '–' }, [{ ours: bytes.all }]),
    ];
  },
};

/** The bytes of each session with its indexes: its own row, and all other rows except its chunks. */
async function park(bench: Bench, count: number): Promise<{ own: number; all: number }> {
  const sessionId = await parkOne(bench);
  const database = new pg.Client(bench.databaseUrl);
  await database.connect();
  // The referenced rows exist: checking them would take as long again.
  await database.query('set session_replication_role = replica');
  await database.query(`
    create temporary table copies as
    select uuidv7() as session_id, uuidv7() as operation_id from generate_series(1, ${count})`);
  for (const table of TABLES) await copy(database, table, sessionId);
  // As after autovacuum.
  for (const table of TABLES) await database.query(`vacuum (analyze) ${table}`);
  const [own, all] = [await sizeOf(database, ['sessions']), await sizeOf(database, TABLES.slice(0, -1))];
  await database.end();
  return { own: own / count, all: all / count };
}

async function parkOne(bench: Bench): Promise<string> {
  const { agent } = await bench.call<{ agent: { agentId: string } }>('POST', '/agents', {
    name: 'Waiting',
    model: {
      provider: 'scripted',
      model: 'asks',
      settings: { script: [{ text: 'May I?', toolCalls: [{ name: 'refund', input: { order: 'A-1', cents: 1250 } }] }] },
    },
    tools: [
      {
        type: 'client',
        name: 'refund',
        description: 'Gives the money for an order back',
        inputSchema: {
          type: 'object',
          properties: { order: { type: 'string' }, cents: { type: 'integer' } },
          required: ['order', 'cents'],
        },
        approval: 'always',
      },
    ],
  });
  const { session } = await bench.call<{ session: { sessionId: string } }>('POST', '/sessions', {
    agentId: agent.agentId,
    environment: 'production',
    input: 'Please refund my last order',
  });
  while (true) {
    const now = await bench.call<{ session: { status: string } }>('GET', `/sessions/${session.sessionId}`);
    if (now.session.status === 'waiting') return parseId('ses', session.sessionId)!;
    await sleep(50);
  }
}

/** Copies the rows of a session in a table, with new ids. */
async function copy(database: pg.Client, table: string, sessionId: string): Promise<void> {
  const { rows } = await database.query(
    'select attname from pg_attribute where attrelid = $1::regclass and attnum > 0',
    [table],
  );
  const columns = rows.map(({ attname }) => attname as string);
  const replaced: Record<string, string> = {
    session_id: 'c.session_id',
    message_id: 'uuidv7()',
    // An approval has the id of its call.
    operation_id:
      table === 'operations' ? `case t.kind when 'tool' then c.operation_id else uuidv7() end` : 'c.operation_id',
  };
  await database.query(
    `insert into ${table} (${columns.join(', ')})
     select ${columns.map((column) => replaced[column] ?? `t.${column}`).join(', ')}
     from copies c cross join ${table} t where t.session_id = '${sessionId}'`,
  );
}

async function sizeOf(database: pg.Client, tables: readonly string[]): Promise<number> {
  const size = 'select sum(pg_total_relation_size(t::regclass)) as size from unnest($1::text[]) t';
  return Number((await database.query(size, [tables])).rows[0].size);
}
