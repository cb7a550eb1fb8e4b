// Folding: adds minutes that are some minutes old to the longer intervals that contain them (intervals.ts), and deletes what is too old.
//
// A batch is one transaction: lock some minutes, add them to every interval, delete them. A reader of the minutes that are left and of
// longer intervals therefore counts each once. One node at a time folds an organization, under the lock of its row; others skip it.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { deleteAcross } from '../db/delete-in-batches.ts';
import type { Shards } from '../db/shards.ts';
import { addPacked } from './histogram.ts';
import { FOLDED_INTERVALS, FOLDED_MINUTE, HOUR, MINUTE, ROLLUP_INTERVALS, startOf } from './intervals.ts';
import {
  addCount,
  type Counter,
  counters,
  emptyRow,
  type Latency,
  latencies,
  NO_ID,
  type Row,
  writeRows,
} from './rows.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** When nodes no longer write a minute (recorder.ts). Reports read all minutes that are left, so these are few. */
const FOLDED_AFTER_MS = 15 * MINUTE_MS;
/** The longest report of each step, as long ago as it may begin, and the period before it (report.ts). */
const keptMs: ReadonlyMap<number, number> = new Map([
  [FOLDED_MINUTE, 4 * HOUR_MS + 2 * MINUTE_MS],
  [HOUR, 94 * DAY_MS],
  ...ROLLUP_INTERVALS.map((seconds) => [seconds, 2 * 366 * DAY_MS] as const),
]);
// Each batch reads and writes every longer interval that it adds to, so few large batches cost less.
const BATCH_ROWS = 2_000;

/** The end of the minutes that are folded at a time. */
export function foldedBefore(now: Date): Date {
  return new Date(startOf(new Date(now.getTime() - FOLDED_AFTER_MS), MINUTE));
}

export async function organizationsToFold({ shards }: { shards: Shards }, before: Date): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for analytics to fold',
    (within) => sql`
    select distinct organization_id as "organizationId" from analytics
    where interval_seconds = ${MINUTE} and starts_at < ${before} ${within()} limit 1000`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

interface StoredRow extends Record<Counter, number>, Record<Latency, number[]> {
  intervalSeconds: number;
  startsAt: Date;
  environment: string;
  agentId: string;
  model: string;
  errorCode: string;
  countedBy: string;
  costUsd: string;
  lastSessionId: string | null;
}

const columns = sql`
  a.interval_seconds as "intervalSeconds", a.starts_at as "startsAt", a.environment, a.agent_id as "agentId", a.model,
  a.error_code as "errorCode", a.counted_by as "countedBy", a.sessions_opened as "sessionsOpened",
  a.sessions_completed as "sessionsCompleted", a.sessions_failed as "sessionsFailed",
  a.sessions_cancelled as "sessionsCancelled", a.turns, a.turns_failed as "turnsFailed",
  a.model_calls_failed as "modelCallsFailed", a.tool_calls as "toolCalls", a.tool_calls_failed as "toolCallsFailed",
  a.webhook_attempts as "webhookAttempts", a.webhook_attempts_failed as "webhookAttemptsFailed",
  a.model_calls as "modelCalls", a.tokens, a.web_searches as "webSearches", a.cost_usd as "costUsd", a.first_token_ms as "firstTokenMs",
  a.turn_ms as "turnMs", a.webhook_ms as "webhookMs", a.last_session_id as "lastSessionId"`;

/** Returns whether there may be more; false as well while another node folds. */
export function foldMinutes(
  db: Pick<Db, 'transaction'>,
  organizationId: string,
  before: Date,
  batchRows: number = BATCH_ROWS,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isOurs = await tx.query(sql`
      select 1 as one from organizations where organization_id = ${organizationId} for no key update skip locked`);
    if (isOurs.length === 0) return false;
    // Compaction may be adding calls to a minute; the minute is then folded later.
    const minutes = await tx.query<StoredRow>(sql`
      select ${columns} from analytics a
      where a.organization_id = ${organizationId} and a.interval_seconds = ${MINUTE} and a.starts_at < ${before}
      order by a.starts_at limit ${batchRows} for update skip locked`);
    if (minutes.length === 0) return false;
    // One after the other, because each blocks the event loop while its rows are read and added.
    for (const seconds of FOLDED_INTERVALS) await addTo(tx, organizationId, seconds, minutes);
    const all = <K extends keyof StoredRow>(name: K) => minutes.map((row) => row[name]);
    await tx.execute(sql`
      delete from analytics a
      using unnest(${all('startsAt')}::timestamptz[], ${all('environment')}::text[], ${all('agentId')}::uuid[],
        ${all('model')}::text[], ${all('errorCode')}::text[], ${all('countedBy')}::uuid[])
        as m(starts_at, environment, agent_id, model, error_code, counted_by)
      where a.organization_id = ${organizationId} and a.interval_seconds = ${MINUTE} and a.starts_at = m.starts_at
        and a.environment = m.environment and a.agent_id = m.agent_id and a.model = m.model
        and a.error_code = m.error_code and a.counted_by = m.counted_by`);
    return minutes.length === batchRows;
  });
}

/** Adds minutes to their intervals of one length. */
async function addTo(tx: Tx, organizationId: string, seconds: number, minutes: readonly StoredRow[]): Promise<void> {
  const starts = [...new Set(minutes.map((row) => startOf(row.startsAt, seconds)))];
  const stored = await tx.query<StoredRow>(sql`
    select ${columns} from analytics a
    where a.organization_id = ${organizationId} and a.interval_seconds = ${seconds}
      and a.starts_at = any(${starts.map((ms) => new Date(ms))}::timestamptz[])`);
  const sums = new Map<string, Row>();
  for (const row of stored) add(sums, organizationId, row, seconds);
  const changed = new Set(minutes.map((row) => add(sums, organizationId, row, seconds)));
  await tx.execute(writeRows([...changed]));
}

/** Adds a row to the sum of a longer interval; later rows come later. */
function add(sums: Map<string, Row>, organizationId: string, row: StoredRow, intervalSeconds: number): Row {
  const { environment, agentId, model, errorCode } = row;
  const startsAt = startOf(row.startsAt, intervalSeconds);
  const key = JSON.stringify([intervalSeconds, startsAt, environment, agentId, model, errorCode]);
  const sum =
    sums.get(key) ??
    emptyRow({ organizationId, intervalSeconds, startsAt, environment, agentId, model, errorCode, countedBy: NO_ID });
  sums.set(key, sum);
  for (const name of counters) addCount(sum, name, row[name]);
  for (const name of latencies) addPacked(sum.latencies[name], row[name]);
  sum.costUsd = addUsd(sum.costUsd, row.costUsd);
  sum.lastSessionId = row.lastSessionId ?? sum.lastSessionId;
  return sum;
}

/** Exact to a billionth, as costs are. */
function addUsd(one: string, other: string): string {
  return ((Math.round(Number(one) * 1e9) + Math.round(Number(other) * 1e9)) / 1e9).toFixed(9);
}

export async function dropOldAnalytics({ shards }: { shards: Shards }, now: Date, signal: AbortSignal): Promise<void> {
  for (const [seconds, ms] of keptMs) {
    const before = new Date(now.getTime() - ms);
    await deleteAcross(
      shards,
      'deleting old analytics',
      signal,
      (limit, within) => sql`
        delete from analytics a using (
          select organization_id, starts_at, environment, agent_id, model, error_code, counted_by from analytics
          where interval_seconds = ${seconds} and starts_at < ${before} ${within()} order by starts_at ${limit}) old
        where a.organization_id = old.organization_id ${within(sql`a.organization_id`)} and a.interval_seconds = ${seconds}
          and a.starts_at = old.starts_at and a.environment = old.environment and a.agent_id = old.agent_id
          and a.model = old.model and a.error_code = old.error_code and a.counted_by = old.counted_by`,
    );
  }
}
