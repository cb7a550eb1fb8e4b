// Runs work for many organizations, so that an unavailable part of the database affects only its own organizations.
//
// On a single PostgreSQL, a statement may name any organizations or none. On a database that Citus shards by organization:
//
// - A statement that names organizations must name those of one shard. With several shards it is refused (0A000), or hangs if any of
//   them does. Work is therefore grouped by shard, and each group fails independently (`each`, `forEachShardWithTimeout`).
// - A statement across organizations needs every server. If one does not respond, the statement is sent to each server separately, for
//   its organizations, until all respond again (`query`, `execute`).
//
// Loops use `forEachShardWithTimeout`, `query` and `execute`, which limit the wait for a part that hangs and then skip it for some seconds
// (circuit-breaker.ts). An organization that was created while a server was unavailable is found once the server is back; until then
// its work continues through wake-ups, which name it.
import { channel } from 'node:diagnostics_channel';
import sql, { empty, type Sql } from 'sql-template-tag';
import { type Clock, systemClock } from '../lib/clock.ts';
import { CircuitBreaker, type Failure } from './circuit-breaker.ts';
import { CANCELLED, DatabaseUnavailable, type Db, type Queryable } from './db.ts';
import { createPlacement, type Placement, type Server, type Shard } from './placement.ts';

export type { Shard } from './placement.ts';

/** The items whose work failed. */
export interface FailedGroup<T> {
  items: readonly T[];
  error: unknown;
}

/**
 * `and column = any(…)` with the organizations that the statement is for; empty if it is for all. Every table with an organization
 * needs it, or must be joined by equality to one that has it. The default column is `organization_id`.
 */
export type Within = (column?: Sql) => Sql;

export interface Found<Row> {
  rows: Row[];
  /** Whether every server responded. */
  isComplete: boolean;
  /** Whether the organization was included. */
  covers(organizationId: string): boolean;
}

export interface Shards extends Pick<Placement, 'of' | 'find' | 'failed'> {
  /**
   * Calls `act` with the items of at most 32 organizations of one shard at a time; shards concurrently, the groups of a shard one
   * after the other. Never rejects: a failed group is in the result, and the other shards continue.
   */
  each<T>(
    items: readonly T[],
    organizationOf: (item: T) => string,
    act: (group: readonly T[]) => Promise<void>,
  ): Promise<FailedGroup<T>[]>;
  /**
   * As `each`, for a loop: limits the wait for a shard that hangs. Its groups are then in the result, while `act` continues in the
   * background; until `act` ends, later calls with the same name skip the shard, and their groups are in the result too. Failures
   * are logged as `${what} failed; retrying`.
   */
  forEachShardWithTimeout<T>(
    what: string,
    items: readonly T[],
    organizationOf: (item: T) => string,
    act: (group: readonly T[]) => Promise<void>,
  ): Promise<FailedGroup<T>[]>;
  /** Resolves when nothing that `forEachShardWithTimeout` started with this name is running. */
  ended(what: string): Promise<void>;
  /**
   * The rows of a statement across organizations, without those of servers that do not respond. Rejects only if no server responds;
   * other failures are logged as `${what} failed; retrying`. Rows are ordered only within each server.
   */
  query<Row>(what: string, statementOf: (within: Within) => Sql): Promise<Found<Row>>;
  /** As `query`; returns the number of affected rows, the maximum of any server. */
  execute(what: string, statementOf: (within: Within) => Sql): Promise<number>;
}

// With more, the planner no longer looks each of them up by the index.
const GROUP_ORGANIZATIONS = 32;
const LIST_EVERY_MS = 60_000;
// Ample for a statement that reads some index entries or deletes a thousand rows.
const LIMIT_MS = 5_000;

// Publishes each statement across organizations in both forms, for all and for some organizations: for the SQL rules.
const statements = channel('signalbox.across');

export interface ShardsOptions {
  clock?: Clock;
  log?: { warn(fields: object, message: string): void };
}

export function createShards(
  db: Pick<Db, 'query' | 'execute' | 'transaction'>,
  { clock = systemClock, log }: ShardsOptions = {},
): Shards {
  const placement = createPlacement(db);
  const breakers = new Map<string, CircuitBreaker>();
  let listedAt = Number.NEGATIVE_INFINITY;

  function breakerFor(what: string, part: string | number): CircuitBreaker {
    const key = `${what} ${part}`;
    const breaker = breakers.get(key) ?? new CircuitBreaker(clock);
    breakers.set(key, breaker);
    return breaker;
  }

  function warnOf(what: string): (error: unknown) => void {
    return (error) => log?.warn({ err: error }, `${what} failed; retrying`);
  }

  // ── By shard ───────────────────────────────────────────────────────────────────────────────────────────────────────

  interface Runner {
    run(shard: Shard, work: () => Promise<void>): Promise<Failure>;
    onError(error: unknown): void;
  }

  async function eachBy<T>(
    { run, onError }: Runner,
    items: readonly T[],
    organizationOf: (item: T) => string,
    act: (group: readonly T[]) => Promise<void>,
  ): Promise<FailedGroup<T>[]> {
    const failures: FailedGroup<T>[] = [];
    const unplaced = await placement.find(items.map(organizationOf)).catch((error: unknown) => ({ error }));
    const byShard = Map.groupBy(items, (item) => placement.of(organizationOf(item)));
    await Promise.all(
      [...byShard].map(async ([shard, ofShard]) => {
        if (shard === undefined) {
          const error = unplaced?.error ?? new Error('An organization without a shard');
          onError(error);
          failures.push({ items: ofShard, error });
          return;
        }
        const left = groupOrganizations(ofShard, organizationOf);
        const failure = await run(shard, async () => {
          let outage: Failure;
          for (let group = left[0]; group; group = left[0]) {
            try {
              await act(group);
            } catch (error) {
              placement.failed(error);
              onError(error);
              failures.push({ items: group, error });
              if (isOutage(error)) outage = { error };
            }
            left.shift();
          }
          if (outage) throw outage.error;
        });
        if (failure) for (const group of left) failures.push({ items: group, error: failure.error });
      }),
    );
    // A copy: work that continues may still add failures.
    return [...failures];
  }

  async function waitFor(_: Shard, work: () => Promise<void>): Promise<Failure> {
    await work().catch(() => {});
    return undefined;
  }

  // ── Across organizations ───────────────────────────────────────────────────────────────────────────────────────────

  /** One result of all servers, or one of each server that responds. */
  async function ask<T>(
    what: string,
    statementOf: (within: Within) => Sql,
    send: (on: Queryable, statement: Sql) => Promise<T>,
  ): Promise<{ result: T; server?: Server }[]> {
    if (statements.hasSubscribers) {
      statements.publish({ whole: statementOf(everywhere).text, confined: statementOf(within([])).text });
    }
    if (!(await placement.isSharded())) return [{ result: await send(db, statementOf(everywhere)) }];
    await listNowAndThen();
    const servers = placement.servers();
    // By statement too: jobs with the same name may run at the same time, and are not the same attempt.
    const { text } = statementOf(everywhere);
    const breakersOfServers = servers.map(({ id }) => breakerFor(what, `on server ${id}: ${text}`));
    let failure: Failure;
    if (breakersOfServers.every((breaker) => breaker.isHealthy)) {
      let result: T | undefined;
      failure = await breakerFor(what, `everywhere: ${text}`).run(async () => {
        result = await send(db, statementOf(everywhere));
      }, warnOf(what));
      if (!failure) return [{ result: result! }];
    }
    const results: { result: T; server: Server }[] = [];
    const failures = await Promise.all(
      servers.map(async (server, index) => {
        let result: T | undefined;
        const failure = await breakersOfServers[index]!.run(async () => {
          result = await limited((on) => send(on, statementOf(within(server.organizationIds))));
        }, warnOf(what));
        if (!failure) results.push({ result: result!, server });
        return failure;
      }),
    );
    if (results.length === 0) throw (failure ?? failures.find(Boolean))!.error;
    return results;
  }

  /** The server cancels it after LIMIT_MS. */
  function limited<T>(act: (on: Queryable) => Promise<T>): Promise<T> {
    return db.transaction((tx) => {
      tx.write(sql`select set_config('statement_timeout', ${String(LIMIT_MS)}, true)`);
      return act(tx);
    });
  }

  /** While a server is unavailable, the previous list remains. */
  async function listNowAndThen(): Promise<void> {
    const now = clock.now().getTime();
    if (now - listedAt < LIST_EVERY_MS) return;
    listedAt = now;
    await breakerFor('listing organizations', 'everywhere').run(placement.list, warnOf('listing organizations'));
  }

  return {
    of: placement.of,
    find: placement.find,
    failed: placement.failed,

    each: (items, organizationOf, act) => eachBy({ run: waitFor, onError() {} }, items, organizationOf, act),

    async forEachShardWithTimeout(what, items, organizationOf, act) {
      const isSharded = await placement.isSharded().catch(() => false);
      const inTime: Runner['run'] = (shard, work) => breakerFor(what, `on shard ${shard}`).run(work);
      return eachBy({ run: isSharded ? inTime : waitFor, onError: warnOf(what) }, items, organizationOf, act);
    },

    async ended(what) {
      const ofName = [...breakers].flatMap(([key, breaker]) => (key.startsWith(`${what} on shard`) ? breaker : []));
      await Promise.all(ofName.map((breaker) => breaker.ended()));
    },

    async query<Row>(what: string, statementOf: (within: Within) => Sql): Promise<Found<Row>> {
      const results = await ask(what, statementOf, (on, statement) => on.query<Row>(statement));
      const isWhole = results.some(({ server }) => server === undefined);
      const covered = new Set(results.flatMap(({ server }) => server?.organizationIds ?? []));
      return {
        rows: results.flatMap(({ result }) => result),
        isComplete: isWhole || results.length === placement.servers().length,
        covers: (organizationId) => isWhole || covered.has(organizationId),
      };
    },

    async execute(what, statementOf) {
      const results = await ask(what, statementOf, (on, statement) => on.execute(statement));
      return Math.max(0, ...results.map(({ result }) => result));
    },
  };
}

const everywhere: Within = () => empty;

function within(organizationIds: readonly string[]): Within {
  return (column = sql`organization_id`) => sql`and ${column} = any(${organizationIds}::uuid[])`;
}

/** Whether the next statement would probably fail as well. */
function isOutage(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || (error as { code?: unknown } | undefined)?.code === CANCELLED;
}

/** Groups of as many organizations as one statement may name. The items of an organization stay together, in order. */
export function groupOrganizations<T>(items: readonly T[], organizationOf: (item: T) => string): T[][] {
  const groups: T[][] = [];
  let count = 0;
  for (const ofOne of Map.groupBy(items, organizationOf).values()) {
    if (count % GROUP_ORGANIZATIONS === 0) groups.push([]);
    groups.at(-1)!.push(...ofOne);
    count += 1;
  }
  return groups;
}
