// The dependencies of a domain function or a node, on the test's own database.
import { randomBytes } from 'node:crypto';
import { scopesOfPermission } from '@signalbox/contract';
import type { Sql } from 'sql-template-tag';
import { KnownVersions } from '../../src/agents/known-versions.ts';
import { createAnalytics } from '../../src/analytics/recorder.ts';
import { createKeySpending } from '../../src/budgets/key-spending.ts';
import { createBudgetStops } from '../../src/budgets/stops.ts';
import { createDb, type Db } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { createEgress } from '../../src/egress/egress.ts';
import { parseEgressAllow } from '../../src/egress/policy.ts';
import { createEventWatch } from '../../src/events/watch.ts';
import { createFileStores } from '../../src/files/stores.ts';
import { createLive } from '../../src/journal/live.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createLog } from '../../src/lib/log.ts';
import { createMemory } from '../../src/lib/memory.ts';
import { createEnvironmentStreams } from '../../src/listening/environment-streams.ts';
import { createCatalog } from '../../src/models/models.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import type { Platform } from '../../src/platform.ts';
import { createLocalRunners } from '../../src/session-rows/local-start.ts';
import { createPrices, type Prices } from '../../src/usage/prices.ts';
import { createVault } from '../../src/vault/vault.ts';
import { createWake, type Wake } from '../../src/wake/wake.ts';
import { createOffers } from '../../src/workers/offers.ts';
import { createTestDatabase } from './postgres.ts';

export interface TestPlatform {
  platform: Platform;
  organizationId: string;
  /** The context of an admin of the organization. */
  ctx: PoolContext;
  /** The platform of another node on the same database. By default it receives no wake-ups and finds changes only by polling. */
  anotherNode(options?: NodeOptions): Promise<Platform>;
  close(): Promise<void>;
}

export interface NodeOptions {
  clock?: Clock;
  /** Exchanges wake-ups with other nodes, as in production. */
  acrossNodes?: boolean;
  /** The id with which it runs sessions. */
  nodeId?: string;
  /** Called with each statement outside a transaction, before it runs. */
  onQuery?: (statement: Sql) => void;
  /** Wraps the database for this node. */
  over?: (db: Db) => Promise<Db>;
}

export async function createTestPlatform(options: { clock?: Clock; prices?: Prices } = {}): Promise<TestPlatform> {
  const database = await createTestDatabase();
  const vault = createVault([randomBytes(32)]);
  const nodes: { platform: Platform; close(): Promise<void> }[] = [];

  async function node(more: NodeOptions = {}): Promise<Platform> {
    const { clock = options.clock ?? systemClock, acrossNodes = false, onQuery, over = async (db: Db) => db } = more;
    const { nodeId = newUuid() } = more;
    const log = createLog({ level: 'silent' });
    const pool = createDb({ url: database.url, log });
    const query: Db['query'] = (statement) => {
      onQuery?.(statement);
      return pool.query(statement);
    };
    const db = await over({ ...pool, query });
    const metrics = createMetrics();
    // What nodes send each other does not wait for a clock that a test moves.
    const wake: Wake = createWake({ db, log, clock: acrossNodes ? systemClock : clock, nodeId, acrossNodes });
    const shards = createShards(db, { clock, log });
    const live = createLive({ db, shards, wake, clock });
    const egress = createEgress({ policy: parseEgressAllow('127.0.0.1/32') });
    live.start();
    const prices = options.prices ?? createPrices({});
    const offers = createOffers({ db, shards, wake, clock });
    offers.start();
    const eventWatch = createEventWatch({ db, shards, clock });
    const analytics = createAnalytics({ db, shards, clock, log });
    const tracing = undefined;
    const platform: Platform = {
      db,
      shards,
      clock,
      log,
      vault,
      wake,
      live,
      environmentStreams: createEnvironmentStreams({ db, wake, clock, live }),
      egress,
      prices,
      modelCatalog: createCatalog({ db, vault, egress, clock, prices }),
      keySpending: createKeySpending({ db, clock }),
      budgetStops: createBudgetStops({ db, clock }),
      files: createFileStores({ db, log, clock }, { maxFileMegabytes: 0 }),
      memory: createMemory(),
      offers,
      localRunners: createLocalRunners(),
      knownVersions: new KnownVersions(),
      eventWatch,
      publicUrl: () => new URL('http://localhost:4500'),
      metrics,
      analytics,
      tracing,
    };
    nodes.push({
      platform,
      async close() {
        await eventWatch.stop();
        await offers.stop();
        await live.stop();
        await wake.close();
        await egress.close();
        await db.close();
      },
    });
    return platform;
  }

  const platform = await node();
  const { organizationId } = await platform.db.transaction((tx) =>
    createOrganization(tx, 'Test', platform.clock.now()),
  );
  const ctx: PoolContext = {
    ...platform,
    organizationId,
    actor: { type: 'system', id: null, name: 'Test' },
    callerId: null,
    keyId: null,
    scopes: scopesOfPermission.admin,
    requestId: null,
    ipAddress: null,
    userAgent: null,
  };
  return {
    platform,
    organizationId,
    ctx,
    anotherNode: node,
    async close() {
      for (const { close } of nodes) await close();
      await database.drop();
    },
  };
}
