// The setup for tests of the dispatcher: a database, a platform with a manual clock, and sessions whose journal the tests write.
import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { type Input, scopesOfPermission } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { createAnalytics } from '../../src/analytics/recorder.ts';
import { createDb, type Db } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import type { DeliveryContent } from '../../src/deliveries/batch.ts';
import type { Assignment } from '../../src/deliveries/destinations/assignments.ts';
import { createDispatcher, type Dispatcher, type DispatcherPlatform } from '../../src/deliveries/dispatcher.ts';
import { createEgress, type EgressOptions } from '../../src/egress/egress.ts';
import { parseEgressAllow } from '../../src/egress/policy.ts';
import { deliveryMark, subscriptionOf } from '../../src/journal/delivery-mark.ts';
import { encodeItems, type Item, type Segment } from '../../src/journal/segment.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { createVault } from '../../src/vault/vault.ts';
import { createWake } from '../../src/wake/wake.ts';
import { createWebhookSubscription } from '../../src/webhooks/subscriptions.ts';
import { until } from './idle.ts';
import { keepLine } from './last-lines.ts';
import { createManualClock, type ManualClock } from './manual-clock.ts';
import { createTestDatabase } from './postgres.ts';
import { createReceiver, type Receiver } from './receiver.ts';

export interface World {
  db: Db;
  databaseUrl: string;
  clock: ManualClock;
  platform: DispatcherPlatform;
  /** Every log line. */
  lines: Record<string, unknown>[];
  organizationId: string;
  /** Another organization, with environments of the same names. */
  strangerId: string;
  context(organizationId?: string): PoolContext;
  subscribe(url: string, more?: Partial<Input<'createWebhookSubscription'>>, organizationId?: string): Promise<string>;
  /** Starts a receiver, which `end` closes. */
  receiver(respond?: Receiver['respond']): Promise<Receiver>;
  /** Starts a dispatcher as another node; retries have no jitter. */
  node(more?: { timeoutMs?: number; nodeId?: string }): Promise<{ dispatcher: Dispatcher; nodeId: string }>;
  session(more?: { organizationId?: string; environment?: string }): Promise<TestSession>;
  /** Counts the statements that match from now on. */
  statementsLike(pattern: RegExp): { count(): number };
  /** Moves the clock forward until the condition is true. */
  advanceUntil(condition: () => boolean | Promise<boolean>, stepMs?: number): Promise<void>;
  /** Whether no chunk of these sessions waits for its delivery. */
  isDelivered(...sessions: TestSession[]): Promise<boolean>;
  /** Waits for that without moving the clock, so no poll and no retry runs. */
  delivered(...sessions: TestSession[]): Promise<void>;
  end(): Promise<void>;
}

export interface TestSession {
  organizationId: string;
  environment: string;
  sessionId: string;
  turn: number;
  seq: number;
}

const statements = channel('signalbox.statement');

export const text = (delta: string): Item => delta;
export const status = (value: 'idle' | 'running' | 'waiting' | 'completed' = 'running'): Item => ({
  type: 'session.status',
  status: value,
  waitingFor: null,
});
export const toolResult = (): Item => ({
  type: 'tool.result',
  toolCallId: 'call_01h455vb4pex5vsknk084sn02q',
  output: 1,
});

export async function createWorld(options: Pick<EgressOptions, 'lookup' | 'maxPerOrigin'> = {}): Promise<World> {
  const database = await createTestDatabase();
  const db = createDb({ url: database.url });
  const clock = createManualClock(new Date('2026-01-01T00:00:00.000Z'));
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => {
    lines.push(JSON.parse(line));
    keepLine(line);
  };
  const log = createLog({ level: 'info', destination: { write } });
  const metrics = createMetrics();
  const wake = createWake({ db, log, clock, acrossNodes: false });
  const egress = createEgress({ policy: parseEgressAllow('127.0.0.1/32'), ...options });
  const shards = createShards(db, { clock, log });
  const vault = createVault([randomBytes(32)]);
  const analytics = createAnalytics({ db, shards, clock, log });
  const platform = { db, shards, clock, log, wake, egress, metrics, analytics, tracing: undefined, vault };
  const started: Dispatcher[] = [];
  const endings: (() => void)[] = [];
  const receivers: Receiver[] = [];

  async function organization(): Promise<string> {
    const organizationId = newUuid();
    await db.query(sql`
      insert into organizations (organization_id, name, created_at) values (${organizationId}, 'Test', ${clock.now()})`);
    for (const name of ['production', 'staging']) {
      await db.query(sql`
        insert into environments (organization_id, name, environment_id, created_at)
        values (${organizationId}, ${name}, ${newUuid()}, ${clock.now()})`);
    }
    await db.query(sql`
      insert into agents (organization_id, agent_id, version, created_at, updated_at)
      values (${organizationId}, ${organizationId}, 1, ${clock.now()}, ${clock.now()})`);
    return organizationId;
  }

  const world: World = {
    db,
    databaseUrl: database.url,
    clock,
    platform,
    lines,
    organizationId: await organization(),
    strangerId: await organization(),
    context: (organizationId = world.organizationId) =>
      ({
        ...platform,
        organizationId,
        actor: { type: 'system', id: null, name: 'Test' },
        callerId: null,
        keyId: null,
        scopes: scopesOfPermission.admin,
        requestId: null,
        ipAddress: null,
        userAgent: null,
      }) as unknown as PoolContext,
    async subscribe(url, more = {}, organizationId = world.organizationId) {
      const input = { environment: 'production', url, ...more };
      return (await createWebhookSubscription(world.context(organizationId), input)).signingSecret!;
    },
    async node({ nodeId = newUuid(), ...more } = {}) {
      await db.query(sql`
        insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 day')`);
      const dispatcher = createDispatcher(platform, {
        nodeId,
        version: '0.0.0',
        random: () => 0,
        graceMs: 0,
        ...more,
      });
      started.push(dispatcher);
      dispatcher.start();
      return { dispatcher, nodeId };
    },
    async session({ organizationId = world.organizationId, environment = 'production' } = {}) {
      const session: TestSession = { organizationId, environment, sessionId: newUuid(), turn: 0, seq: 0 };
      await db.query(sql`
        insert into sessions (organization_id, session_id, agent_id, environment, status, runnable_at, close_on_idle,
          metadata, created_at, updated_at)
        values (${organizationId}, ${session.sessionId}, ${organizationId}, ${environment}, 'idle', ${clock.now()}, false,
          '{}', ${clock.now()}, ${clock.now()})`);
      return session;
    },
    statementsLike(pattern) {
      let count = 0;
      const hear = (text: unknown) => {
        if (pattern.test(String(text).replaceAll(/\s+/g, ' ').trim())) count += 1;
      };
      statements.subscribe(hear);
      endings.push(() => statements.unsubscribe(hear));
      return { count: () => count };
    },
    advanceUntil: (condition, stepMs = 1_000) => (stepMs === 0 ? until(condition) : clock.passUntil(condition, stepMs)),
    async isDelivered(...sessions) {
      const ids = sessions.map(({ sessionId }) => sessionId);
      const due = await db.query(sql`select 1 from sessions where session_id = any(${ids}::uuid[]) and delivery_due`);
      return due.length === 0;
    },
    delivered: (...sessions) => world.advanceUntil(() => world.isDelivered(...sessions), 0),
    async receiver(respond) {
      const receiver = await createReceiver(respond);
      receivers.push(receiver);
      return receiver;
    },
    async end() {
      for (const end of endings) end();
      await Promise.all(started.map((dispatcher) => dispatcher.stop()));
      await wake.close();
      await egress.close();
      await db.close();
      await database.drop();
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
  return world;
}

/** The content of a delivery of one chunk of the first turn. */
export function contentOf({ chunkTypes }: Assignment, seq: number, occurredAt: Date): DeliveryContent {
  return { from: { turn: 1, seq }, to: { turn: 1, seq: seq + 1 }, chunkTypes, occurredAt };
}

/** Commits chunks as one segment, like the journal's writer; `isQuiet` omits the wake-up, `isElsewhere` sends another node's. */
export async function append(
  { db, clock, platform }: World,
  session: TestSession,
  items: readonly Item[],
  { turn = Math.max(session.turn, 1), isQuiet = false, isElsewhere = false } = {},
): Promise<void> {
  const { organizationId, environment, sessionId, ...previous } = session;
  const from = turn === session.turn ? session.seq + 1 : 1;
  const to = from + items.length - 1;
  const segment: Segment = { turn, seqFrom: from, seqTo: to, body: encodeItems(items), createdAt: clock.now() };
  await db.batch([
    sql`
      insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      values (${organizationId}, ${sessionId}, ${turn}, ${to}, ${from}, ${segment.body}, ${segment.createdAt})`,
    sql`
      update sessions s set turn = ${turn}, next_seq = ${to + 1}, updated_at = ${clock.now()}, ${deliveryMark()}
      from (${subscriptionOf(organizationId, environment)}) d
      where s.organization_id = ${organizationId} and s.session_id = ${sessionId}`,
  ]);
  session.turn = turn;
  session.seq = to;
  if (isQuiet) return;
  const hint = { organizationId, environment, sessionId };
  platform.wake.publish('journal', isElsewhere ? hint : { ...hint, commit: { previous, segments: [segment] } });
}
