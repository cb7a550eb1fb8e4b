// The floor of a session: a program that does the same requests, statements and commits with `node:http` and `pg`, and keeps none of
// the promises. It checks no input, fences no writer, loses the stream with its connection, and nothing continues after a crash.
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

const { DATABASE_URL, SECRET } = process.env;
// As many connections as the service has.
const MAX_CONNECTIONS = 20;
const DELTAS = Array.from({ length: 20 }, (_, at) => `word${at} `);

// The columns that the service writes, without foreign keys, checks and secondary indexes, and analyzed as rarely.
const analyzed = 'autovacuum_analyze_scale_factor = 0.5';
const tables = `
  create schema floor;
  create table floor.keys (organization_id uuid, key_id uuid, secret_hash bytea, primary key (organization_id, key_id));
  create table floor.agents (organization_id uuid, agent_id uuid, version integer, primary key (organization_id, agent_id));
  create table floor.environments (organization_id uuid, name text, primary key (organization_id, name));
  create table floor.sessions (organization_id uuid, session_id uuid, agent_id uuid, environment text, status text,
    turn integer, next_seq bigint, epoch integer, node_id uuid, runnable_at timestamptz, metadata json, input_tokens bigint,
    output_tokens bigint, steps integer, stop_reason text, created_at timestamptz, updated_at timestamptz,
    primary key (organization_id, session_id)) with (fillfactor = 70, ${analyzed});
  create table floor.messages (organization_id uuid, session_id uuid, turn integer, position integer, message_id uuid,
    role text, content json, created_at timestamptz, primary key (organization_id, session_id, turn, position)) with (${analyzed});
  create table floor.operations (organization_id uuid, session_id uuid, turn integer, step integer, index integer,
    operation_id uuid, kind text, status text, usage json, created_at timestamptz, finished_at timestamptz,
    primary key (organization_id, session_id, turn, step, index)) with (${analyzed});
  create table floor.segments (organization_id uuid, session_id uuid, turn integer, seq_to bigint, seq_from bigint, body text,
    created_at timestamptz, primary key (organization_id, session_id, turn, seq_to)) with (${analyzed});
  create table floor.usage (organization_id uuid, usage_id uuid, occurred_at timestamptz, agent_id uuid, environment text,
    model text, input_tokens bigint, output_tokens bigint, primary key (organization_id, usage_id)) with (${analyzed});
  create table floor.events (organization_id uuid, event_id uuid, body jsonb, occurred_at timestamptz,
    primary key (organization_id, event_id)) with (${analyzed})`;

const statements = {
  // Fails without a row, as for the service.
  key: 'select 1 / count(*) from floor.keys where organization_id = $1 and secret_hash = $2',
  agent: 'select version from floor.agents where organization_id = $1 and agent_id = $2 for key share',
  environment: 'select 1 from floor.environments where organization_id = $1 and name = $2 for key share',
  session: `insert into floor.sessions values ($1, $2, $3, $4, 'running', 1, 2, 1, $5, $6, '{}', 0, 0, 0, null, $6, $6)`,
  message: 'insert into floor.messages values ($1, $2, 1, $3, $4, $5, $6, $7)',
  operation: `insert into floor.operations values ($1, $2, 1, 1, 0, $3, 'model', 'running', null, $4, null)`,
  segment: 'insert into floor.segments values ($1, $2, 1, $3, $4, $5, $6)',
  event: 'insert into floor.events values ($1, $2, $3, $4)',
  end: `
    update floor.sessions set status = 'idle', stop_reason = 'endTurn', next_seq = $3, node_id = null, runnable_at = null,
      input_tokens = input_tokens + $4, output_tokens = output_tokens + $5, steps = steps + 1, updated_at = $6
    where organization_id = $1 and session_id = $2 and epoch = 1`,
  ended: `
    update floor.operations set status = 'succeeded', usage = $3, finished_at = $4
    where organization_id = $1 and session_id = $2 and turn = 1 and step = 1 and index = 0`,
  usage: 'insert into floor.usage values ($1, $2, $3, $4, $5, $6, $7, $8)',
} as const;

const organizationId = randomUUID();
const agentId = randomUUID();
const nodeId = randomUUID();

const database = new pg.Pool({ connectionString: DATABASE_URL, max: MAX_CONNECTIONS, pipeline: true } as pg.PoolConfig);
const secretHash = createHash('sha256').update(SECRET!).digest();
await database.query(tables);
await database.query('insert into floor.keys values ($1, $2, $3)', [organizationId, randomUUID(), secretHash]);
await database.query('insert into floor.agents values ($1, $2, 1)', [organizationId, agentId]);
await database.query('insert into floor.environments values ($1, $2)', [organizationId, 'production']);

type Call = readonly [name: keyof typeof statements, ...values: unknown[]];

/** A transaction in one round trip. */
async function commit(calls: readonly Call[]): Promise<void> {
  const client = await database.connect();
  try {
    await Promise.all([
      client.query({ name: 'begin', text: 'begin' }),
      ...calls.map(([name, ...values]) => client.query({ name, text: statements[name], values })),
      client.query({ name: 'commit', text: 'commit' }),
    ]);
  } finally {
    client.release();
  }
}

async function run(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part;
  const { input, environment } = JSON.parse(text);
  const own = [organizationId] as const;
  const given = createHash('sha256').update(request.headers.authorization!.slice('Bearer '.length)).digest();
  const sessionId = randomUUID();
  const session = [...own, sessionId] as const;
  const now = new Date();
  const running = { type: 'session.status', status: 'running', waitingFor: null };
  await commit([
    ['key', ...own, given],
    ['agent', ...own, agentId],
    ['environment', ...own, environment],
    ['session', ...session, agentId, environment, nodeId, now],
    ['message', ...session, 0, randomUUID(), 'user', JSON.stringify([{ type: 'text', text: input }]), now],
    ['operation', ...session, randomUUID(), now],
    ['segment', ...session, 1, 1, JSON.stringify([running]), now],
    ['event', ...own, randomUUID(), JSON.stringify({ type: 'session.created', sessionId, agentId }), now],
  ]);
  response.writeHead(201, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' });
  response.write(`event: session\ndata: ${JSON.stringify({ session: { sessionId, status: 'running' } })}\n\n`);

  const answer = DELTAS.join('');
  const usage = { inputTokens: 2, outputTokens: DELTAS.length, costUsd: null };
  const chunks = [
    { type: 'step.started', step: 1, model: 'scripted/instant' },
    { type: 'message.started', messageId: randomUUID(), step: 1 },
    ...DELTAS.map((delta) => ({ type: 'message.chunk', delta })),
    { type: 'turn.completed', stopReason: 'endTurn', usage },
    { type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'endTurn' },
  ];
  const last = chunks.length + 1;
  const content = JSON.stringify([{ type: 'text', text: answer }]);
  await commit([
    ['end', ...session, last + 1, usage.inputTokens, usage.outputTokens, now],
    ['segment', ...session, last, 2, JSON.stringify(chunks), now],
    ['message', ...session, 1, randomUUID(), 'assistant', content, now],
    ['ended', ...session, JSON.stringify(usage), now],
    ['usage', ...own, randomUUID(), now, agentId, environment, 'scripted/instant', 2, DELTAS.length],
    ['event', ...own, randomUUID(), JSON.stringify({ type: 'session.idle', sessionId, agentId }), now],
  ]);
  const envelope = { event: 'session.chunks', sessionId, cursor: `turn_1:seq_${last}`, chunks };
  response.end(`event: session.chunks\ndata: ${JSON.stringify(envelope)}\nid: ${envelope.cursor}\n\n`);
}

const server = createServer((request, response) => {
  run(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send!({ residentMb: process.memoryUsage().rss / 1e6, serviceMs: (user + system) / 1_000 });
});
process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
