// What the sessions of a key cost in a UTC day, against the limit of the key.
//
// Each model call writes a row of usage anyway (usage/usage.ts), and the sum of these rows is what was spent, exactly, on all nodes. So
// nothing else is written, and a node that dies loses nothing. A node reads the sum at most once a second for a key with a limit, and
// adds its own calls meanwhile. What a call costs is known only with its response: calls that are running when the limit is reached
// still finish, as with the budget of a session.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';

export interface KeySpending {
  /**
   * The limit of the key and what was spent of it today; undefined without a limit. `limitUsd`: the limit now, if the caller has just read
   * it; null: none.
   */
  of(organizationId: string, keyId: string, limitUsd?: number | null): Promise<Spent | undefined>;
  /** A call of this node, until it is part of the sum. */
  add(organizationId: string, keyId: string, costUsd: number): void;
}

export interface Spent {
  limitUsd: number;
  spentUsd: number;
}

interface Known {
  /** Null: no limit. */
  limitUsd: number | null;
  spentUsd: number;
  day: string;
  readAt: number;
}

// How long other nodes' calls and a changed limit may be unknown. Keys without a limit are looked up rarely.
const READ_EVERY_MS = 1_000;
const READ_UNLIMITED_EVERY_MS = 10_000;
const MAX_REMEMBERED = 10_000;

export function createKeySpending({ db, clock }: { db: Db; clock: Clock }): KeySpending {
  const known = new Map<string, Known>();
  const reads = new Map<string, Promise<Known>>();

  async function read(id: string, organizationId: string, keyId: string): Promise<Known> {
    const now = clock.now();
    const [row] = await db.query<{ limitUsd: number | null; spentUsd: number | null }>(sql`
      select k.max_cost_usd_per_day::float8 as "limitUsd",
        case when k.max_cost_usd_per_day is not null then ${spentToday(organizationId, sql`k`, now)} end as "spentUsd"
      from api_keys k where k.organization_id = ${organizationId} and k.key_id = ${keyId}`);
    const found: Known = {
      limitUsd: row?.limitUsd ?? null,
      spentUsd: row?.spentUsd ?? 0,
      day: dayOf(now),
      readAt: now.getTime(),
    };
    known.delete(id);
    known.set(id, found);
    const [oldest] = known.keys();
    if (known.size > MAX_REMEMBERED && oldest !== undefined) known.delete(oldest);
    return found;
  }

  function isFresh({ limitUsd, day, readAt }: Known): boolean {
    const now = clock.now();
    const everyMs = limitUsd === null ? READ_UNLIMITED_EVERY_MS : READ_EVERY_MS;
    return day === dayOf(now) && now.getTime() - readAt < everyMs;
  }

  return {
    async of(organizationId, keyId, limitUsd) {
      const id = `${organizationId}${keyId}`;
      let found = known.get(id);
      const hasChanged = limitUsd !== undefined && limitUsd !== found?.limitUsd;
      if (!found || hasChanged || !isFresh(found)) {
        const reading = reads.get(id) ?? read(id, organizationId, keyId).finally(() => reads.delete(id));
        reads.set(id, reading);
        found = await reading;
      }
      return found.limitUsd === null ? undefined : { limitUsd: found.limitUsd, spentUsd: found.spentUsd };
    },
    add(organizationId, keyId, costUsd) {
      const found = known.get(`${organizationId}${keyId}`);
      if (found) found.spentUsd += costUsd;
    },
  };
}

/** Also if it is reached exactly; the sum of binary fractions may be a little less. */
export function isSpent({ limitUsd, spentUsd }: Spent): boolean {
  return Math.round(spentUsd * 1e9) >= Math.round(limitUsd * 1e9);
}

/** The cost of the key in the row of this alias, of this UTC day: single calls, and those that are in the sums already. */
export function spentToday(organizationId: string, row: Sql, now: Date): Sql {
  const day = dayOf(now);
  return sql`(
    coalesce((select sum(c.cost_usd) from model_usage c
      where c.organization_id = ${organizationId} and c.key_id = ${row}.key_id
        and c.occurred_at >= ${new Date(`${day}T00:00:00.000Z`)}), 0)
    + coalesce((select sum(d.cost_usd) from model_usage_key_days d
      where d.organization_id = ${organizationId} and d.key_id = ${row}.key_id and d.day = ${day}::date), 0))::float8`;
}

/** Until the next UTC day begins; at least 1. */
export function secondsLeftToday(now: Date): number {
  const next = new Date(`${dayOf(now)}T00:00:00.000Z`).getTime() + 86_400_000;
  return Math.max(1, Math.ceil((next - now.getTime()) / 1000));
}

function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}
