// What this node counts, in memory, written every few seconds.
//
// The rows of a minute belong to this recorder alone (`counted_by`), and each write replaces them with the counts so far. So a write that
// is repeated because its acknowledgement was lost changes nothing, and any number of nodes write without a shared row. A process that
// dies loses what it counted since its last write: at most `FLUSH_EVERY_MS`. A stop in order loses nothing.
import type { Db } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { OVER } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import { isDraft } from '../lib/draft-version.ts';
import { newUuid } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { observe } from './histogram.ts';
import { MINUTE } from './intervals.ts';
import { ALL_AGENTS, addCount, type Counter, emptyRow, type Latency, NO_ID, type Row, writeRows } from './rows.ts';

const FLUSH_EVERY_MS = 5_000;
const MINUTE_MS = 60_000;
/**
 * Minutes are folded a while later (fold.ts), and must not be written after that: what can't be written for so long, because the
 * database is unavailable, is dropped. Sessions do nothing then either.
 */
const WRITABLE_MS = 10 * MINUTE_MS;
// Bounds the memory of a node whose database is unavailable. A row is a minute of an agent in an environment.
const MAX_ROWS = 50_000;

/** What a count is of. */
export interface Subject {
  organizationId: string;
  environment: string;
  agentId?: string;
  model?: string;
  /** The session's pinned version. What drafts do is not counted: a test that fails is no failure of the agent. */
  pinnedVersion?: number | null;
}

export interface Analytics {
  count(subject: Subject, ...what: Counter[]): void;
  observe(subject: Subject, what: Latency, ms: number): void;
  /** A turn that failed. */
  countFailure(subject: Subject, failure: { code: string; sessionId: string }): void;
  start(): void;
  /** Writes what was counted since the last write. */
  flush(): Promise<void>;
  /** Writes the rest. */
  stop(): Promise<void>;
}

interface Options {
  db: Pick<Db, 'execute'>;
  shards: Pick<Shards, 'each'>;
  clock: Clock;
  log: Pick<Log, 'warn'>;
}

export function createAnalytics({ db, shards, clock, log }: Options): Analytics {
  const countedBy = newUuid();
  const rows = new Map<string, Row>();
  const dirty = new Set<Row>();
  const stopping = new AbortController();
  let loop: Promise<void> | undefined;

  /** The row of the subject and that of all agents; none if the subject is not counted. */
  function rowsOf({ pinnedVersion = null, agentId = NO_ID, model = '', ...subject }: Subject, errorCode = ''): Row[] {
    if (isDraft(pinnedVersion)) return [];
    return [rowOf(subject, agentId, model, errorCode), rowOf(subject, ALL_AGENTS, '', errorCode)];
  }

  function rowOf({ organizationId, environment }: Subject, agentId: string, model: string, errorCode: string): Row {
    const now = clock.now().getTime();
    const startsAt = now - (now % MINUTE_MS);
    const key = `${startsAt}\n${organizationId}\n${environment}\n${agentId}\n${model}\n${errorCode}`;
    let row = rows.get(key);
    if (!row) {
      row = emptyRow({
        ...{ organizationId, environment, agentId, model, errorCode, startsAt, countedBy },
        intervalSeconds: MINUTE,
      });
      rows.set(key, row);
      const [oldest] = rows.keys();
      if (rows.size > MAX_ROWS && oldest !== undefined) forgetRow(oldest);
    }
    dirty.add(row);
    return row;
  }

  function forgetRow(key: string): void {
    const row = rows.get(key);
    rows.delete(key);
    if (row) dirty.delete(row);
  }

  /** Minutes that are over and written, or too old to be written. */
  function forget(): void {
    const now = clock.now().getTime();
    for (const [key, row] of rows) {
      const age = now - row.startsAt;
      if (age > WRITABLE_MS || (age > 2 * MINUTE_MS && !dirty.has(row))) forgetRow(key);
    }
  }

  async function flush(): Promise<void> {
    forget();
    const due = [...dirty];
    dirty.clear();
    const failed = await shards.each(
      due,
      ({ organizationId }) => organizationId,
      async (group) => {
        await db.execute(writeRows(group));
      },
    );
    for (const { items, error } of failed) {
      for (const row of items) dirty.add(row);
      log.warn({ err: error, rows: items.length }, 'writing analytics failed; retrying');
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(FLUSH_EVERY_MS, stopping.signal).catch(() => {});
      await flush();
    }
  }

  return {
    count(subject, ...what) {
      for (const row of rowsOf(subject)) for (const one of what) addCount(row, one);
    },
    observe(subject, what, ms) {
      for (const row of rowsOf(subject)) observe(row.latencies[what], Math.max(0, ms));
    },
    countFailure(subject, { code, sessionId }) {
      for (const row of rowsOf(subject, code)) {
        addCount(row, 'turnsFailed');
        row.lastSessionId = sessionId;
      }
    },
    start() {
      loop = run();
    },
    flush,
    async stop() {
      stopping.abort(OVER);
      await loop;
      await flush();
    },
  };
}
