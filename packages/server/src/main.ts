// The service: configuration → platform → the roles of this node. Everything that was started is stopped in reverse.
import { KnownVersions } from './agents/known-versions.ts';
import { createAnalytics } from './analytics/recorder.ts';
import { createKeySpending } from './budgets/key-spending.ts';
import { createBudgetStops } from './budgets/stops.ts';
import { type Config, oidcOf } from './config/config.ts';
import { createDb, type Db } from './db/db.ts';
import { startEmbeddedPostgres } from './db/embedded.ts';
import { createIdentityPool } from './db/identity-pool.ts';
import { isTransactionPooled, requireSameDatabase } from './db/poolers.ts';
import { requireSuitable } from './db/requirements.ts';
import { migrate } from './db/schema/migrate.ts';
import { outdatedServer, serverVersion } from './db/server-version.ts';
import { createShards } from './db/shards.ts';
import { createDispatchers } from './destinations/dispatchers.ts';
import { createEgress, type EgressOptions } from './egress/egress.ts';
import { createEventWatch } from './events/watch.ts';
import { createFileStores } from './files/stores.ts';
import { createApp } from './http/app.ts';
import { createMonitoringServer } from './http/monitoring.ts';
import { createLive } from './journal/live.ts';
import { createTailUse } from './journal/tail-use.ts';
import { writeAdminKeyFile } from './keys/admin-key-file.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { acceptedConnections } from './lib/files/open-files.ts';
import { newUuid } from './lib/ids.ts';
import { createLog, type Log } from './lib/log.ts';
import { createMemory } from './lib/memory.ts';
import { lacksFixes, newerVersion } from './lib/newest-versions.ts';
import { version } from './lib/version.ts';
import { createEnvironmentStreams } from './listening/environment-streams.ts';
import { createUpkeep } from './maintenance.ts';
import { type Identities, startIdentities } from './models/identities/identities.ts';
import { createModelLimits } from './models/limits/model-limits.ts';
import { createCatalog, createModels } from './models/models.ts';
import { createNodeLease, forgetOtherNodes } from './node/claims/node-lease.ts';
import { createSessionRunner } from './node/session-runner.ts';
import { createMetrics } from './observe/metrics.ts';
import { createScrape } from './observe/scrape.ts';
import { listen, reachable, requireFreePorts } from './operator/listen.ts';
import { explainStart, ListenUrlPooled, PoolerUnnamed } from './operator/start-error.ts';
import { ensureFirstOrganization } from './organizations/organizations.ts';
import { createCountingRound } from './overview/counting-round.ts';
import { storeConsoleUrl } from './people/console-url.ts';
import { createIdentity, type Identity } from './people/identity.ts';
import { createSetupToken, linkOf } from './people/invitations.ts';
import { isOfIssuer } from './people/provider-account.ts';
import { recordOfPerson } from './people/records.ts';
import type { Platform } from './platform.ts';
import { createScheduler } from './schedules/scheduler.ts';
import { createLocalRunners } from './session-rows/local-start.ts';
import { createTools } from './tools/tools.ts';
import { requireKnownKeys } from './vault/known-keys.ts';
import { aboutSharing, loadMasterKeys } from './vault/master-key.ts';
import { createVault } from './vault/vault.ts';
import { createWake } from './wake/wake.ts';
import { createOffers } from './workers/offers.ts';

export { type Config, ConfigError, readConfig, settings, unknownVariables } from './config/config.ts';
export { settingGroups } from './config/settings.ts';
export { createLog, type Log } from './lib/log.ts';
export { version } from './lib/version.ts';
export { type BackupSummary, backupOnHost } from './operator/backup.ts';
export { distributeOnHost } from './operator/database.ts';
export type { Finding } from './operator/doctor/check.ts';
export { examine } from './operator/doctor/doctor.ts';
export { type Moved, moveOnHost } from './operator/move.ts';
export { createKeyOnHost, type KeyOnHost, OperatorError } from './operator/operator.ts';
export { createOrganizationOnHost, listOrganizationsOnHost } from './operator/organizations.ts';
export {
  inviteOnHost,
  listUsersOnHost,
  removeUserOnHost,
  resetPasswordOnHost,
  setupLinkOnHost,
} from './operator/people.ts';
export type { Progress, ProgressState } from './operator/progress.ts';
export { checkBackup, type Restored, restoreOnHost } from './operator/restore.ts';
export {
  deleteUnreadableOnHost,
  listUnreadableOnHost,
  resealOnHost,
  type UnreadableSecret,
} from './operator/sealed-secrets.ts';
export { StartError } from './operator/start-error.ts';

export interface Service {
  /** The URL of the API without `/api/v1`; undefined on a node without the role `api`. */
  readonly url: string | undefined;
  /** The console's URL; undefined on such a node. */
  readonly consoleUrl: string | undefined;
  /** The setup link, valid once and for 24 h; undefined if the installation has people. A secret. */
  readonly setupLink: string | undefined;
  /**
   * Reports the node as not ready and continues to serve for `SIGNALBOX_DRAIN_SECONDS`, so that a load balancer notices. Call it before
   * `stop`. On the embedded database, where there is no other node, it resolves at once.
   */
  drain(): Promise<void>;
  /** Ends streams, waits for running requests and turns, and stops the embedded PostgreSQL. Call it once. */
  stop(): Promise<void>;
}

/** For tests, and for programs that embed the service. */
export interface Overrides {
  clock?: Clock;
  log?: Log;
  /** Fails a request whose response differs from the contract. */
  checkResponses?: boolean;
  /** How outgoing requests look up names and open connections, and whose certificates they accept. */
  egress?: Pick<EgressOptions, 'lookup' | 'open' | 'ca'>;
  /** The directory of the built console; without one the console is not served. */
  consoleDir?: string;
}

/** Resolves when everything runs. Rejects with `StartError` if the operator can fix the cause; nothing is left running then. */
export async function startService(config: Config, overrides: Overrides = {}): Promise<Service> {
  const nodeId = newUuid();
  const log = (overrides.log ?? createLog({ level: config.logLevel })).child({ nodeId });
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (let last = stops.pop(); last; last = stops.pop()) {
      await last().catch((error) => log.error({ err: error }, 'a part of the service did not stop cleanly'));
    }
  };
  try {
    await requireFreePorts(config);
    const base = await startPlatform(config, log, { ...overrides, nodeId }, stops);
    return { ...(await startRoles(config, base, { ...overrides, nodeId }, stops)), stop };
  } catch (error) {
    await stop();
    throw explainStart(error, config);
  }
}

/** What is started before the roles. */
interface Base {
  platform: Platform;
  identities: Identities;
  /** The organization that the first start created. */
  organizationId: string;
  /** A connection to the database itself, not to a pooler. */
  directUrl: string;
  /** Sets the URL of the API once it listens. */
  setListeningPort(port: number): void;
}

async function startPlatform(
  config: Config,
  log: Log,
  { nodeId, clock = systemClock, egress: ways }: Overrides & { nodeId: string },
  stops: (() => Promise<unknown>)[],
): Promise<Base> {
  const vault = createVault(config.masterKeys ?? (await loadMasterKeys(config.dataDir)));
  const { db, direct, directUrl } = await openDatabase(config, log, stops);
  await logOutdated(db, log, { isEmbedded: config.databaseUrl === undefined });
  await migrate(direct, log);
  const isFirstStart = await requireKnownKeys(db, vault, clock.now(), log);
  if (isFirstStart && config.databaseUrl !== undefined && !config.masterKeys) {
    const { message, fix } = aboutSharing(config.dataDir);
    log.warn({ fix }, message);
  }
  const { organizationId } = await ensureFirstOrganization(db, clock.now());
  // The embedded database is locked for this process.
  if (config.databaseUrl === undefined) await forgetOtherNodes(db);
  if (config.adminKeyFile) await writeAdminKeyFile({ db, clock, log }, organizationId, config.adminKeyFile);

  const { otlpEndpoint } = config;
  const tracing = otlpEndpoint
    ? (await import('./observe/tracing.ts')).createTracing({ clock, log }, { ...config, otlpEndpoint })
    : undefined;
  stops.push(async () => tracing?.stop());
  const metrics = createMetrics();
  const wake = createWake({ db: direct, log, clock, nodeId, acrossNodes: config.databaseUrl !== undefined });
  stops.push(() => wake.close());
  const egress = createEgress({
    policy: config.egress,
    ...(config.egressProxy && { proxy: config.egressProxy }),
    ...ways,
  });
  stops.push(() => egress.close());
  const shards = createShards(db, { clock, log });
  const live = createLive({ db, shards, wake, clock });
  live.start();
  stops.push(() => live.stop());
  const offers = createOffers({ db, shards, wake, clock });
  offers.start();
  stops.push(() => offers.stop());
  const eventWatch = createEventWatch({ db, shards, clock });
  stops.push(() => eventWatch.stop());
  // Until the node listens, and on a node that does not, this is the URL that other nodes use.
  let ownUrl = ownUrlAt(config.port);
  const publicUrl = () => config.publicUrl ?? ownUrl;
  const { prices } = config;
  const identities = await startIdentities(config.cloudIdentities, { db, egress, clock, log }, { ways, stops });
  const analytics = createAnalytics({ db, shards, clock, log });
  analytics.start();
  stops.push(() => analytics.stop());
  const files = createFileStores({ db, log, clock }, config);
  const localRunners = createLocalRunners();
  return {
    platform: {
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
      modelCatalog: createCatalog({ db, vault, egress, clock, prices }, config.providerKeys, identities),
      keySpending: createKeySpending({ db, clock }),
      budgetStops: createBudgetStops({ db, clock }),
      files,
      memory: createMemory(),
      offers,
      localRunners,
      knownVersions: new KnownVersions(),
      eventWatch,
      publicUrl,
      metrics,
      analytics,
      tracing,
    },
    identities,
    organizationId,
    directUrl,
    setListeningPort(port) {
      ownUrl = ownUrlAt(port);
    },
  };
}

/** `localhost`, because browsers do not allow passkeys for 127.0.0.1. */
function ownUrlAt(port: number): URL {
  return new URL(`http://localhost:${port}`);
}

/** `direct` is the same as `db` unless `db` uses a pooler. */
async function openDatabase(
  { databaseUrl, databaseConnections, listenUrl, dataDir, statementTimeoutSeconds, leaseSeconds }: Config,
  log: Log,
  stops: (() => Promise<unknown>)[],
): Promise<{ db: Db; direct: Db; directUrl: string }> {
  let url = databaseUrl;
  if (url === undefined) {
    const embedded = await startEmbeddedPostgres(dataDir, log);
    stops.push(() => embedded.stop());
    url = embedded.url;
  }
  // A node that hangs in a transaction keeps its row locks no longer than its sessions.
  const limits = { statementTimeoutMs: statementTimeoutSeconds * 1000, idleInTransactionMs: leaseSeconds * 1000 };
  const db = createDb({ url, log, max: databaseConnections, isPooled: listenUrl !== undefined, ...limits });
  stops.push(() => db.close());
  if (databaseUrl === undefined) return { db, direct: db, directUrl: url };
  await requireSuitable(db, { isPooled: listenUrl !== undefined });
  if (listenUrl === undefined) {
    if (await isTransactionPooled(db)) throw new PoolerUnnamed();
    return { db, direct: db, directUrl: url };
  }
  const direct = createDb({ url: listenUrl, log, max: 1, ...limits });
  stops.push(() => direct.close());
  try {
    if (await isTransactionPooled(direct)) throw new ListenUrlPooled();
    await requireSameDatabase(db, direct);
  } catch (error) {
    throw explainStart(error, { databaseUrl: listenUrl, variable: 'SIGNALBOX_LISTEN_URL' });
  }
  return { db, direct, directUrl: listenUrl };
}

/** An outdated embedded server is not a warning: only a move to another PostgreSQL changes it, and few installations need one. */
async function logOutdated(db: Db, log: Log, { isEmbedded }: { isEmbedded: boolean }): Promise<void> {
  const { node } = process.versions;
  const newer = newerVersion('Node.js', node);
  if (newer) log.warn(lacksFixes('Node.js', node, newer));
  const outdated = outdatedServer(await serverVersion(db), { isEmbedded });
  if (outdated) log[isEmbedded ? 'info' : 'warn']({ fix: outdated.fix }, outdated.message);
}

/** The API is started last and stopped first: no new requests arrive while the rest stops. */
async function startRoles(
  config: Config,
  { platform, identities, organizationId, directUrl, setListeningPort }: Base,
  { nodeId, checkResponses = false, consoleDir }: Overrides & { nodeId: string },
  stops: (() => Promise<unknown>)[],
): Promise<Omit<Service, 'stop'>> {
  const { roles, host, port, leaseSeconds, graceSeconds, providerKeys, trustProxy } = config;
  const { log } = platform;
  const scrape = createScrape(platform, createCountingRound(platform));
  stops.push(() => scrape.stop());
  let draining = false;
  const monitoring = { scrape, token: config.metricsToken, isDraining: () => draining };
  const drain = async (serveOn = async (_ms: number) => {}) => {
    if (config.databaseUrl === undefined) return;
    draining = true;
    log.info({ seconds: config.drainSeconds }, 'draining');
    await serveOn(config.drainSeconds * 1000);
  };
  if (config.metricsPort !== undefined) {
    const server = createMonitoringServer(platform, monitoring, config);
    stops.push(() => server.close());
    log.info({ host, port: await listen(server, host, config.metricsPort) }, 'serving metrics');
  }
  if (roles.has('runtime')) {
    const upkeep = createUpkeep(platform, { ...config, nodeId });
    upkeep.start();
    stops.push(() => upkeep.stop());
    const tools = createTools(platform);
    stops.push(() => tools.close());
    const modelLimits = createModelLimits(platform);
    stops.push(() => modelLimits.stop());
    await modelLimits.start();
    const ask = createModels(platform, providerKeys, modelLimits, identities);
    const worker = createSessionRunner(platform, {
      nodeId,
      ask,
      tools,
      leaseSeconds,
      graceMs: graceSeconds * 1000,
      tail: config.tail ? createTailUse(platform) : undefined,
    });
    await worker.start();
    stops.push(() => worker.stop());
    const scheduler = createScheduler(platform);
    scheduler.start();
    stops.push(() => scheduler.stop());
  }
  if (roles.has('delivery')) {
    if (!roles.has('runtime')) {
      const lease = createNodeLease(platform, { nodeId: nodeId, leaseSeconds });
      await lease.start();
      stops.push(() => lease.stop());
    }
    const dispatchers = createDispatchers(platform, { nodeId: nodeId, version });
    dispatchers.start();
    stops.push(() => dispatchers.stop());
  }
  if (!roles.has('api')) {
    log.info({ version, roles: [...roles] }, 'started');
    return { url: undefined, consoleUrl: undefined, setupLink: undefined, drain: () => drain() };
  }
  const provider = oidcOf(config);
  const identity = startIdentity(config, platform, directUrl, stops);
  const app = await createApp(platform, {
    version,
    checkResponses,
    limits: { ...config, maxConnections: await acceptedConnections(config, log) },
    trustProxy,
    monitoring,
    operator: { operatorToken: config.operatorToken, organizationId },
    consoleDir,
    identity,
    provider,
  });
  stops.push(() => app.close());
  const bound = await listen(app, host, port);
  setListeningPort(bound);
  const setupToken = await createSetupToken({ db: platform.db, organizationId }, platform.clock.now());
  log.info({ version, roles: [...roles], host, port: bound }, 'started');
  const publicUrl = platform.publicUrl();
  await storeConsoleUrl(platform.db, publicUrl);
  return {
    url: `http://${reachable(host)}:${bound}`,
    consoleUrl: `${publicUrl.origin}/console`,
    setupLink: setupToken && linkOf(publicUrl, setupToken),
    drain: () => drain(app.drain),
  };
}

function startIdentity(
  config: Config,
  platform: Platform,
  directUrl: string,
  stops: (() => Promise<unknown>)[],
): Identity {
  const { log, vault, publicUrl, clock } = platform;
  const statementTimeoutMs = config.statementTimeoutSeconds * 1000;
  const pool = createIdentityPool({ url: directUrl, log, statementTimeoutMs });
  stops.push(() => pool.end());
  return createIdentity({
    pool,
    log,
    clock,
    publicUrl,
    key: vault.derive('sign_in'),
    oidc: oidcOf(config),
    signInDays: config.signInDays,
    onSignedIn: (userId, visitor) => recordOfPerson(platform, userId, visitor, { type: 'user.signed_in' }),
    onNamed: (account) => isOfIssuer(platform.db, log, account),
    onConnected: (userId, visitor) => recordOfPerson(platform, userId, visitor, { type: 'user.provider_connected' }),
  });
}
