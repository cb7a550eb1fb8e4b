// The services that every part of a node receives.
import type { KnownVersions } from './agents/known-versions.ts';
import type { Analytics } from './analytics/recorder.ts';
import type { KeySpending } from './budgets/key-spending.ts';
import type { BudgetStops } from './budgets/stops.ts';
import type { Db } from './db/db.ts';
import type { Shards } from './db/shards.ts';
import type { Egress } from './egress/egress.ts';
import type { EventWatch } from './events/watch.ts';
import type { FileStores } from './files/stores.ts';
import type { Live } from './journal/live.ts';
import type { Clock } from './lib/clock.ts';
import type { FairShare } from './lib/fair-share.ts';
import type { Log } from './lib/log.ts';
import type { EnvironmentStreams } from './listening/environment-streams.ts';
import type { ModelCatalog } from './models/catalog.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Tracing } from './observe/tracing.ts';
import type { LocalRunners } from './session-rows/local-start.ts';
import type { Prices } from './usage/prices.ts';
import type { Vault } from './vault/vault.ts';
import type { Wake } from './wake/wake.ts';
import type { Offers } from './workers/offers.ts';

export interface Platform {
  readonly db: Db;
  readonly shards: Shards;
  readonly clock: Clock;
  readonly log: Log;
  readonly vault: Vault;
  readonly wake: Wake;
  readonly live: Live;
  readonly environmentStreams: EnvironmentStreams;
  readonly egress: Egress;
  readonly prices: Prices;
  readonly modelCatalog: ModelCatalog;
  readonly keySpending: KeySpending;
  readonly budgetStops: BudgetStops;
  readonly files: FileStores;
  /** Bytes from outside that are in memory, before they are stored or sent (lib/memory.ts). */
  readonly memory: FairShare;
  readonly offers: Offers;
  readonly localRunners: LocalRunners;
  readonly knownVersions: KnownVersions;
  readonly eventWatch: EventWatch;
  /** The console's URL; known once the node listens. */
  readonly publicUrl: () => URL;
  readonly metrics: Metrics;
  readonly analytics: Analytics;
  /** Undefined if tracing is off, so that it costs nothing: `tracing?.span(…)`. */
  readonly tracing: Tracing | undefined;
}
