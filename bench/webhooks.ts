// Deliveries a second of 200 Sessions, one chunk each, to a receiver that answers at once. The dispatcher runs in this process,
// as the limit does: a bare loop that posts the bytes and headers of one delivery to the same receiver, 200 at a time.
//
// A Session's next chunk is committed while its delivery is on its way, so there is always one to send and never two. What
// that costs is part of ours: no delivery comes without a commit before it.
import sql from 'sql-template-tag';
import { Pool } from 'undici';
import { createDb, type Db } from '../packages/server/src/db/db.ts';
import { createEgress, type EgressRequest } from '../packages/server/src/egress/egress.ts';
import { parseEgressAllow } from '../packages/server/src/egress/policy.ts';
import { encodeItems } from '../packages/server/src/journal/segment.ts';
import { systemClock } from '../packages/server/src/lib/clock.ts';
import { newUuid, parseId } from '../packages/server/src/lib/ids.ts';
import { createLog } from '../packages/server/src/lib/log.ts';
import { createMetrics } from '../packages/server/src/observe/metrics.ts';
import { createNodeLease } from '../packages/server/src/runtime/lease.ts';
import { parseMasterKeys } from '../packages/server/src/vault/master-key.ts';
import { createVault } from '../packages/server/src/vault/vault.ts';
import { createWake, type Wake } from '../packages/server/src/wake/wake.ts';
import { createDispatcher } from '../packages/server/src/webhooks/dispatcher.ts';
import {
  type Bench,
  type Benchmark,
  growthPerSecond,
  measurePairs,
  ratePerSecond,
  startBench,
  startChild,
} from './harness.ts';
import { createScriptedAgent } from './session-client.ts';
import { rowOf } from './table.ts';

const SESSIONS = 200;
const CHUNK = encodeItems([{ type: 'session.status', status: 'running', waitingFor: null }]);
// The service writes a line for each delivery to a file; here the line is made and goes nowhere.
const log = createLog({ level: 'info', destination: { write: () => {} } });

export const webhooks: Benchmark = {
  name: 'webhooks',
  async run() {
    // Nobody but this process delivers.
    const bench = await startBench({ roles: 'api' });
    const receiver = await startChild('receiver-process.ts');
    await bench.call('POST', '/webhook_subscriptions', { environment: 'production', url: receiver.hello });
    const sessionIds = await openSessions(bench);

    const db = createDb({ url: bench.databaseUrl });
    const metrics = createMetrics();
    const wake = createWake({ db, log, clock: systemClock, acrossNodes: false });
    const writer = createWriter(db, wake, parseId('org', bench.organizationId)!);
    const egress = createEgress({ policy: parseEgressAllow('127.0.0.1/32') });
    let delivered = 0;
    let example: EgressRequest | undefined;
    const watched = {
      ...egress,
      async request(request: EgressRequest) {
        example ??= request;
        writer.next(sessionIdOf(request));
        const answer = await egress.request(request);
        if (answer.status === 200) delivered += 1;
        return answer;
      },
    };
    const vault = createVault(parseMasterKeys(bench.masterKey));
    const platform = { db, clock: systemClock, log, wake, vault, egress: watched, metrics, tracing: undefined };
    const workerId = newUuid();
    const lease = createNodeLease(platform, { workerId });
    await lease.start();
    const dispatcher = createDispatcher(platform, { workerId, version: '0.1.0' });
    dispatcher.start();

    const pool = new Pool(new URL(receiver.hello).origin, { connections: SESSIONS, pipelining: 1 });
    const pairs = await measurePairs(
      async () => {
        writer.start(sessionIds);
        const rate = await growthPerSecond(() => delivered);
        await writer.stop();
        while (await isAnyDue(db)) await systemClock.sleep(10);
        return rate;
      },
      () =>
        ratePerSecond(SESSIONS, async () => {
          const { headers, body } = example!;
          const answer = await pool.request({ method: 'POST', path: '/', headers: headers!, body: body! });
          await answer.body.dump();
          if (answer.statusCode !== 200) throw new Error(`the receiver answered ${answer.statusCode}`);
        }),
    );
    await dispatcher.stop();
    await lease.stop();
    await wake.close();
    await egress.close();
    await db.close();
    await receiver.stop();
    await bench.stop();
    return [rowOf({ name: 'webhooks', unit: 'deliveries/s', target: '≥ 0.50' }, pairs)];
  },
};

async function openSessions(bench: Bench): Promise<string[]> {
  const agentId = await createScriptedAgent(bench);
  const open = () =>
    bench.call<{ session: { sessionId: string } }>('POST', '/sessions', { agentId, environment: 'production' });
  const opened = await Promise.all(Array.from({ length: SESSIONS }, open));
  return opened.map(({ session }) => parseId('ses', session.sessionId)!);
}

function sessionIdOf({ body }: EgressRequest): string {
  const [, id = ''] = /"sessionId":"([^"]+)"/.exec(body!.toString()) ?? [];
  return parseId('ses', id)!;
}

async function isAnyDue(db: Db): Promise<boolean> {
  const rows = await db.query(sql`select 1 from sessions where delivery_due limit 1`);
  return rows.length > 0;
}

interface Writer {
  /** Each of these Sessions gets a chunk. */
  start(sessionIds: readonly string[]): void;
  /** This one gets its next. */
  next(sessionId: string): void;
  stop(): Promise<void>;
}

/** Commits chunks as the journal does, those of many Sessions in one statement, and says so. */
function createWriter(db: Db, wake: Wake, organizationId: string): Writer {
  let waiting: string[] = [];
  let writing: Promise<void> | undefined;
  let isStopped = true;

  function next(sessionId: string): void {
    if (isStopped) return;
    waiting.push(sessionId);
    writing ??= write();
  }

  async function write(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const sessionIds = waiting;
      waiting = [];
      await db.execute(sql`
        with s as (
          select session_id, next_seq from sessions
          where organization_id = ${organizationId} and session_id = any(${sessionIds}::uuid[])
          order by session_id for no key update),
        u as (
          update sessions set turn = 1, next_seq = s.next_seq + 1, delivery_due = true from s
          where organization_id = ${organizationId} and sessions.session_id = s.session_id)
        insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
        select ${organizationId}::uuid, session_id, 1, next_seq, next_seq, ${CHUNK}, ${systemClock.now()}::timestamptz from s`);
      for (const sessionId of sessionIds) wake.publish('journal', sessionId);
    }
    writing = undefined;
  }

  return {
    start(sessionIds) {
      isStopped = false;
      for (const sessionId of sessionIds) next(sessionId);
    },
    next,
    async stop() {
      isStopped = true;
      await writing;
    },
  };
}
