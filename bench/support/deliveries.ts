// The setup for benchmarks of webhooks: sessions that get chunks, and the dispatcher, which runs in this process.
import sql from 'sql-template-tag';
import { createAnalytics } from '../../packages/server/src/analytics/recorder.ts';
import { createDb, type Db } from '../../packages/server/src/db/db.ts';
import { createShards } from '../../packages/server/src/db/shards.ts';
import { createDispatcher } from '../../packages/server/src/deliveries/dispatcher.ts';
import { createEgress, type Egress } from '../../packages/server/src/egress/egress.ts';
import type { EgressRequest } from '../../packages/server/src/egress/exchange.ts';
import { parseEgressAllow } from '../../packages/server/src/egress/policy.ts';
import { deliveryMark } from '../../packages/server/src/journal/delivery-mark.ts';
import { encodeItems } from '../../packages/server/src/journal/segment.ts';
import { systemClock } from '../../packages/server/src/lib/clock.ts';
import { newUuid, parseId } from '../../packages/server/src/lib/ids.ts';
import { createLog } from '../../packages/server/src/lib/log.ts';
import { createNodeLease } from '../../packages/server/src/node/claims/node-lease.ts';
import { createMetrics } from '../../packages/server/src/observe/metrics.ts';
import { parseMasterKeys } from '../../packages/server/src/vault/master-key.ts';
import { createVault } from '../../packages/server/src/vault/vault.ts';
import { createWake, type Wake } from '../../packages/server/src/wake/wake.ts';
import { type Bench, startBench } from './harness.ts';
import { createScriptedAgent } from './session-client.ts';

const CHUNK = encodeItems([{ type: 'session.status', status: 'running', waitingFor: null }]);
// The service writes a log line for each delivery; here the line is formatted and discarded.
const log = createLog({ level: 'info', destination: { write: () => {} } });

export interface Deliveries {
  readonly bench: Bench;
  readonly writer: Writer;
  /** Called for each attempt before it is sent. */
  onSent: (sessionId: string, request: EgressRequest) => void;
  /** Called for each attempt with response 200. */
  onAccepted: (sessionId: string) => void;
  /** Opens sessions in an existing environment. */
  open(count: number, environment: string): Promise<string[]>;
  /** Resolves when nothing is left to send in these environments. */
  drained(environments: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

export async function startDeliveries(): Promise<Deliveries> {
  // Only this process delivers.
  const bench = await startBench({ roles: 'api' });
  const agentId = await createScriptedAgent(bench);
  const db = createDb({ url: bench.databaseUrl });
  const metrics = createMetrics();
  const wake = createWake({ db, log, clock: systemClock, acrossNodes: false });
  const environmentOf = new Map<string, string>();
  const writer = createWriter(db, wake, parseId('org', bench.organizationId)!, environmentOf);
  const egress = createEgress({ policy: parseEgressAllow('127.0.0.1/32') });
  const watched: Egress = {
    ...egress,
    of(organizationId) {
      const own = egress.of(organizationId);
      return {
        ...own,
        async request(request) {
          const sessionId = sessionIdOf(request);
          deliveries.onSent(sessionId, request);
          const response = await own.request(request);
          if (response.status === 200) deliveries.onAccepted(sessionId);
          return response;
        },
      };
    },
  };
  const vault = createVault(parseMasterKeys(bench.masterKey));
  const shards = createShards(db);
  const analytics = createAnalytics({ db, shards, clock: systemClock, log });
  const platform = {
    ...{ db, shards, clock: systemClock, log, wake, vault, egress: watched, metrics, analytics },
    tracing: undefined,
  };
  const nodeId = newUuid();
  const lease = createNodeLease(platform, { nodeId });
  await lease.start();
  const dispatcher = createDispatcher(platform, { nodeId, version: '0.1.0' });
  dispatcher.start();

  const deliveries: Deliveries = {
    bench,
    writer,
    onSent: () => {},
    onAccepted: () => {},
    async open(count, environment) {
      const open = () => bench.call<{ session: { sessionId: string } }>('POST', '/sessions', { agentId, environment });
      const opened = await Promise.all(Array.from({ length: count }, open));
      const sessionIds = opened.map(({ session }) => parseId('ses', session.sessionId)!);
      for (const sessionId of sessionIds) environmentOf.set(sessionId, environment);
      return sessionIds;
    },
    async drained(environments) {
      while (await isAnyDue(db, environments)) await systemClock.sleep(10);
    },
    async stop() {
      await dispatcher.stop();
      await lease.stop();
      await wake.close();
      await egress.close();
      await db.close();
      await bench.stop();
    },
  };
  return deliveries;
}

function sessionIdOf({ body }: EgressRequest): string {
  const [, id = ''] = /"sessionId":"([^"]+)"/.exec(body!.toString()) ?? [];
  return parseId('ses', id)!;
}

async function isAnyDue(db: Db, environments: readonly string[]): Promise<boolean> {
  const rows = await db.query(sql`
    select 1 from sessions where delivery_due and environment = any(${environments}::text[]) limit 1`);
  return rows.length > 0;
}

export interface Writer {
  /** Commits a chunk to each of these sessions. */
  start(sessionIds: readonly string[]): void;
  /** Commits the next chunk to this session, until the writer is stopped. */
  next(sessionId: string): void;
  /** Called after each commit, for each session with a chunk. */
  onCommitted: (sessionId: string) => void;
  stop(): Promise<void>;
}

/** Commits chunks like the journal, those of many sessions in one statement, and publishes wake-ups. */
function createWriter(db: Db, wake: Wake, organizationId: string, environmentOf: ReadonlyMap<string, string>): Writer {
  let waiting: string[] = [];
  let writing: Promise<void> | undefined;
  let isStopped = true;

  async function write(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const sessionIds = waiting;
      waiting = [];
      const createdAt = systemClock.now();
      const written = await db.query<{ sessionId: string; seq: number }>(sql`
        with x as (
          select session_id, environment, next_seq from sessions
          where organization_id = ${organizationId} and session_id = any(${sessionIds}::uuid[])
          order by session_id for no key update),
        u as (
          update sessions s set turn = 1, next_seq = x.next_seq + 1, ${deliveryMark()} from x
          left join lateral (
            select w.webhook_subscription_id as id from webhook_subscriptions w
            where w.organization_id = ${organizationId} and w.environment = x.environment) d on true
          where s.organization_id = ${organizationId} and s.session_id = x.session_id)
        insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
        select ${organizationId}::uuid, session_id, 1, next_seq, next_seq, ${CHUNK}, ${createdAt}::timestamptz from x
        returning session_id as "sessionId", seq_to as seq`);
      for (const { sessionId, seq } of written) {
        writer.onCommitted(sessionId);
        const segment = { turn: 1, seqFrom: seq, seqTo: seq, body: CHUNK, createdAt };
        const commit = { previous: { turn: 1, seq: seq - 1 }, segments: [segment] };
        wake.publish('journal', { organizationId, environment: environmentOf.get(sessionId)!, sessionId, commit });
      }
    }
    writing = undefined;
  }

  const writer: Writer = {
    onCommitted: () => {},
    start(sessionIds) {
      isStopped = false;
      for (const sessionId of sessionIds) writer.next(sessionId);
    },
    next(sessionId) {
      if (isStopped) return;
      waiting.push(sessionId);
      writing ??= write();
    },
    async stop() {
      isStopped = true;
      await writing;
    },
  };
  return writer;
}
