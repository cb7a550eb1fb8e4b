// Periodic work: sequencing the event log, counting open sessions, making sessions searchable, erasing end users, deleting expired data, and compacting usage.
// Every node with the role `runtime` does it; two at once are harmless. Of old sessions, each deletes its share.
import { hasEndings, recordEndings } from './agents/model-endings.ts';
import { dropOldAnalytics, foldedBefore, foldMinutes, organizationsToFold } from './analytics/fold.ts';
import { alertBudgets, alertBudgetsIn, organizationsToAlert } from './budgets/alerts.ts';
import type { Tx } from './db/db.ts';
import { createRound, type Page } from './db/rounds.ts';
import { dropDestinationDeliveries, hasOldDestinationDeliveries } from './destinations/retention.ts';
import { type ErasurePlatform, eraseEndUsers, organizationsWithErasures } from './end-users/erase.ts';
import { dropAccessDenials } from './events/denied.ts';
import { countOpenSessions, hasToCount } from './events/open-sessions.ts';
import { dropEvents, hasOldEvents } from './events/retention.ts';
import { findPendingRecords, PENDING_PAGE_SIZE, sequenceInBackground } from './events/sequencer.ts';
import { purgeFiles } from './files/purge.ts';
import { dropUnusedFiles, hasOldFiles } from './files/retention.ts';
import { dropExpiredResponses } from './http/idempotency/idempotency.ts';
import { dropRetiredSecrets } from './keys/retired.ts';
import { OVER } from './lib/aborted.ts';
import { exponentialMs } from './lib/back-off.ts';
import { formatId } from './lib/ids.ts';
import { paced } from './lib/paced.ts';
import { dropExpiredLinks } from './people/invitations.ts';
import { dropExpiredSignIns } from './people/sign-ins.ts';
import { allOfIt, readShare } from './session-rows/share.ts';
import { dropExpiredShares } from './sessions/reading/shares.ts';
import { dropOldSessions, hasOldSessions } from './sessions/retention/retention.ts';
import { createSearchUpdates, ORGANIZATIONS_PAGE, organizationsToUpdate } from './sessions/search/update.ts';
import { compactUsage, organizationsToCompact } from './usage/compact.ts';
import {
  clearSessions,
  deletedSubscriptions,
  dropDeliveries,
  dropPending,
  hasOldDeliveries,
  subscriptionsWithDeliveries,
} from './webhooks/retention.ts';

export interface Upkeep {
  start(): void;
  stop(): Promise<void>;
}

// Readers of the log run the sequencer themselves. This limits how long records wait in a log that is not read.
const SEQUENCE_EVERY_MS = 1_000;
// How late a search finds a message, in addition to the sequencer.
const SEARCH_EVERY_MS = 1_000;
// An erasure begins soon after its request.
const ERASE_EVERY_MS = 1_000;
// Expired data has no effect any more; this only frees its space.
const EXPIRE_EVERY_MS = 60_000;
// Until they are counted, the overview counts them itself, up to a limit.
const COUNT_EVERY_MS = 60_000;
// Reports are right without it; this only makes them cheaper.
const COMPACT_EVERY_MS = 60_000;
// How late an alert of a budget may be.
const ALERT_EVERY_MS = 15_000;
// A budget has the time of the node that set it, and may be committed a little later.
const CLOCKS_DIFFER_MS = 60_000;
// Ends of models are announced by day.
const ENDINGS_EVERY_MS = 3600_000;
// Hours are folded as a whole, so this only has to notice the next one.
const FOLD_EVERY_MS = 300_000;
// Retention is measured in days, so an hour does not matter.
const DROP_EVERY_MS = 3600_000;
// The pause between the pages of a round through all organizations: a round of 50,000 takes most of an hour.
const PAGE_EVERY_MS = 60_000;
// The first wait after a failure, which doubles up to the usual one.
const RETRY_MS = 5_000;
const DAY_MS = 24 * 3600 * 1000;

/** `more`: a part of the work is done, and the next one follows. */
type Outcome = 'done' | 'failed' | 'more';

interface Kept {
  eventsKeptDays: number;
  deliveriesKeptDays: number;
  filesKeptDays: number;
  /** Undefined: no limit, unless the environment has one. */
  sessionsKeptDays?: number | undefined;
}

/** `nodeId`: the node deletes its share of the old sessions, among the nodes with a lease; without it, all of them. */
interface UpkeepOptions extends Kept {
  nodeId?: string;
}

export function createUpkeep(
  platform: ErasurePlatform,
  { eventsKeptDays, deliveriesKeptDays, filesKeptDays, sessionsKeptDays, nodeId }: UpkeepOptions,
): Upkeep {
  const { db, shards, clock, log } = platform;
  const shareNow = nodeId === undefined ? allOfIt : () => readShare(db, nodeId);
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  /** The names of work that may continue after its loop ends. */
  const names = new Set<string>();

  /** `act` resolves with `failed` if a part of it has failed, which it has logged. */
  async function every(ms: number, what: string, act: () => Promise<unknown>): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const outcome = await act().catch((error): Outcome => {
        log.warn({ err: error }, `${what} failed; retrying`);
        return 'failed';
      });
      failures = outcome === 'failed' ? failures + 1 : 0;
      const usualMs = outcome === 'more' ? PAGE_EVERY_MS : ms;
      const pauseMs = failures > 0 ? exponentialMs(failures, RETRY_MS, usualMs) : usualMs;
      await clock.sleep(pauseMs, stopping.signal).catch(() => {});
    }
  }

  /** One organization after the other, shards concurrently. If one fails, the others continue. */
  async function eachOf(
    organizationIds: readonly string[],
    what: string,
    act: (organizationId: string) => Promise<unknown>,
  ): Promise<Outcome> {
    names.add(what);
    let hasFailed = false;
    const unreached = await shards.forEachShardWithTimeout(
      what,
      organizationIds,
      (id) => id,
      async (group) => {
        for (const organizationId of group) {
          if (stopping.signal.aborted) return;
          await act(organizationId).catch((error) => {
            hasFailed = true;
            log.warn({ err: error, organizationId: formatId('org', organizationId) }, `${what} failed; retrying`);
          });
        }
      },
    );
    return hasFailed || unreached.length > 0 ? 'failed' : 'done';
  }

  /** Rounds through all organizations. What has failed is repeated in the next round, which then begins soon. */
  function inRounds(
    what: string,
    nextPage: () => Promise<Page>,
    act: (organizationId: string) => Promise<unknown>,
  ): () => Promise<Outcome> {
    let hasFailed = false;
    return async () => {
      const { organizationIds, isLast, isComplete } = await nextPage();
      const outcome = await eachOf(organizationIds, what, act);
      hasFailed ||= outcome === 'failed' || !isComplete;
      if (!isLast) return 'more';
      const whole = hasFailed ? 'failed' : 'done';
      hasFailed = false;
      return whole;
    };
  }

  const daysAgo = (days: number) => new Date(clock.now().getTime() - days * DAY_MS);

  const pendingRecords = paced(clock, () => findPendingRecords(platform), {
    again: ({ length }) => length >= PENDING_PAGE_SIZE,
  });
  async function sequence(): Promise<Outcome> {
    const pending = new Map((await pendingRecords())?.map((records) => [records.organizationId, records]));
    return eachOf([...pending.keys()], 'sequencing the event log', (organizationId) =>
      sequenceInBackground(db, pending.get(organizationId)!),
    );
  }

  const searchUpdates = createSearchUpdates(platform);
  const toUpdate = paced(clock, () => organizationsToUpdate(platform), {
    again: ({ length }) => length >= ORGANIZATIONS_PAGE,
  });
  async function makeSearchable(): Promise<Outcome> {
    return eachOf((await toUpdate()) ?? [], 'making sessions searchable', (organizationId) =>
      searchUpdates.update(organizationId, stopping.signal),
    );
  }

  async function compact(): Promise<Outcome> {
    return eachOf(await organizationsToCompact(platform), 'compacting usage', async (organizationId) => {
      const alertToo = (tx: Tx) => alertBudgetsIn(tx, organizationId, clock.now());
      while (!stopping.signal.aborted && (await compactUsage(db, organizationId, undefined, alertToo)));
    });
  }

  // Also those that were set while no node ran.
  let budgetsSince = daysAgo(1);
  async function alert(): Promise<Outcome> {
    const now = clock.now();
    const organizationIds = await organizationsToAlert(platform, budgetsSince);
    const outcome = await eachOf(organizationIds, 'looking at budgets', (id) => alertBudgets(db, id, clock.now()));
    if (outcome === 'done') budgetsSince = new Date(now.getTime() - CLOCKS_DIFFER_MS);
    return outcome;
  }

  const lookForEndings = inRounds(
    'looking for models that end',
    createRound(platform, 'models that end', (id, within) => hasEndings(id, clock.now(), within)),
    (organizationId) => recordEndings(db, organizationId, clock.now()),
  );

  async function fold(): Promise<Outcome> {
    const before = foldedBefore(clock.now());
    const outcome = await eachOf(
      await organizationsToFold(platform, before),
      'folding analytics',
      async (organizationId) => {
        while (!stopping.signal.aborted && (await foldMinutes(db, organizationId, before)));
      },
    );
    await dropOldAnalytics(platform, clock.now(), stopping.signal);
    return outcome;
  }

  const dropOldEvents = inRounds(
    'deleting old events',
    createRound(platform, 'old events', (id, within) => hasOldEvents(id, daysAgo(eventsKeptDays), within)),
    async (organizationId) => {
      while (!stopping.signal.aborted && (await dropEvents(db, organizationId, daysAgo(eventsKeptDays))));
    },
  );

  const countSessions = inRounds(
    'counting open sessions',
    createRound(platform, 'open sessions to count', (id, within) => hasToCount(id, clock.now(), within)),
    async (organizationId) => {
      const wrong = await countOpenSessions(db, organizationId, clock.now());
      if (!wrong) return;
      log.warn(
        { organizationId: formatId('org', organizationId), ...wrong },
        'the kept numbers of open sessions were wrong and were replaced',
      );
    },
  );

  const dropOldDeliveries = inRounds(
    'deleting old deliveries',
    createRound(platform, 'old deliveries', (id, within) => hasOldDeliveries(id, daysAgo(deliveriesKeptDays), within)),
    async (organizationId) => {
      const { signal } = stopping;
      for (const webhookSubscriptionId of await subscriptionsWithDeliveries(db, organizationId)) {
        await dropDeliveries(db, { organizationId, webhookSubscriptionId }, daysAgo(deliveriesKeptDays), signal);
      }
      for (const webhookSubscriptionId of await deletedSubscriptions(db, organizationId)) {
        await clearSessions(db, { organizationId, webhookSubscriptionId }, signal);
        await dropPending(db, { organizationId, webhookSubscriptionId }, signal);
      }
    },
  );

  const dropOldDestinationDeliveries = inRounds(
    'deleting old deliveries to destinations',
    createRound(platform, 'old deliveries to destinations', (id, within) =>
      hasOldDestinationDeliveries(id, daysAgo(deliveriesKeptDays), within),
    ),
    (organizationId) => dropDestinationDeliveries(db, organizationId, daysAgo(deliveriesKeptDays), stopping.signal),
  );

  const dropSessions = inRounds(
    'deleting old sessions',
    createRound(platform, 'old sessions', (id, within) => hasOldSessions(id, sessionsKeptDays, clock.now(), within)),
    (organizationId) => dropOldSessions(platform, organizationId, sessionsKeptDays, stopping.signal, shareNow),
  );

  const dropFiles = inRounds(
    'deleting unused files',
    createRound(platform, 'unused files', (id, within) => hasOldFiles(id, filesKeptDays, clock.now(), within)),
    (organizationId) => dropUnusedFiles(platform, organizationId, filesKeptDays, stopping.signal),
  );

  async function erase(): Promise<Outcome> {
    return eachOf(await organizationsWithErasures(platform), 'erasing end users', (organizationId) =>
      eraseEndUsers(platform, organizationId, stopping.signal),
    );
  }

  async function expire(): Promise<void> {
    const now = clock.now();
    await dropExpiredResponses(platform, now, stopping.signal);
    await dropRetiredSecrets(platform, now, stopping.signal);
    await dropAccessDenials(platform, now, stopping.signal);
    await dropExpiredLinks(platform, now, stopping.signal);
    await dropExpiredShares(platform, now, stopping.signal);
    await dropExpiredSignIns(platform, now, stopping.signal);
  }

  return {
    start() {
      loops.push(
        every(SEQUENCE_EVERY_MS, 'sequencing the event log', sequence),
        every(SEARCH_EVERY_MS, 'making sessions searchable', makeSearchable),
        every(ERASE_EVERY_MS, 'erasing end users', erase),
        every(EXPIRE_EVERY_MS, 'deleting expired data', expire),
        every(EXPIRE_EVERY_MS, 'deleting old events', dropOldEvents),
        every(COUNT_EVERY_MS, 'counting open sessions', countSessions),
        every(COMPACT_EVERY_MS, 'compacting usage', compact),
        every(ALERT_EVERY_MS, 'looking at budgets', alert),
        every(ENDINGS_EVERY_MS, 'looking for models that end', lookForEndings),
        every(FOLD_EVERY_MS, 'folding analytics', fold),
        every(DROP_EVERY_MS, 'deleting old deliveries', dropOldDeliveries),
        every(DROP_EVERY_MS, 'deleting old deliveries to destinations', dropOldDestinationDeliveries),
        every(DROP_EVERY_MS, 'deleting old sessions', dropSessions),
        every(DROP_EVERY_MS, 'deleting unused files', dropFiles),
        every(EXPIRE_EVERY_MS, 'removing deleted files', () => purgeFiles(platform, stopping.signal)),
      );
    },
    async stop() {
      stopping.abort(OVER);
      await Promise.all(loops);
      await Promise.all([...names].map(shards.ended));
    },
  };
}
