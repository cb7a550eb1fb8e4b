// An ordinary PostgreSQL that claims to be sharded by Citus over two servers, one of which can be lost. Statements that need the lost
// server fail or hang: those that name an organization on it, and those across organizations.
import { readFileSync } from 'node:fs';
import { loadModule } from 'libpg-query';
import sql, { type Sql } from 'sql-template-tag';
import { problemsOf, schemaOf } from '../../../../test/sql-rules.ts';
import { DatabaseUnavailable, type Db, type Queryable, type Tx } from '../../src/db/db.ts';

export type Loss = 'fails' | 'hangs';

export interface ShardedDb extends Db {
  /** Loses one of the two servers, which has these organizations. */
  lose(organizationIds: readonly string[], how: Loss): void;
  /** Brings the server back; statements that hung fail. */
  find(): void;
  /** The statements sent to the lost server. */
  tries(): number;
}

/** `far`: the organizations on the second server. Call it before the service reads their location. */
export async function installShards(db: Queryable, far: readonly string[]): Promise<void> {
  await db.query(sql`create table pg_dist_partition (logicalrelid regclass)`);
  await db.query(sql`insert into pg_dist_partition values ('sessions')`);
  await db.query(sql`create table pg_dist_placement (shardid bigint, groupid int)`);
  await db.query(sql`insert into pg_dist_placement values (101, 1), (102, 2)`);
  await db.query(sql`create table far_organizations (id uuid)`);
  await db.query(sql`insert into far_organizations select * from unnest(${[...far]}::uuid[])`);
  await db.query(sql`
    create function get_shard_id_for_distribution_column(regclass, uuid) returns bigint language sql
    as 'select case when exists (select from far_organizations where id = $2) then 102 else 101 end::bigint'`);
}

export async function shardedDb(base: Db): Promise<ShardedDb> {
  await loadModule();
  const schema = schemaOf(readFileSync(new URL('../../schema.sql', import.meta.url), 'utf8'));
  const crossing = new Map<string, boolean>();
  let lost: { ids: ReadonlySet<unknown>; how: Loss; over: PromiseWithResolvers<never> } | undefined;
  let tries = 0;

  function crosses({ text }: Sql): boolean {
    const known = crossing.get(text);
    if (known !== undefined) return known;
    const found = problemsOf(text, schema, []).some((problem) => problem.endsWith('without an organization'));
    crossing.set(text, found);
    return found;
  }

  /** Undefined if the statement does not need the lost server. */
  function fate(statement: Sql): Promise<never> | undefined {
    // The coordinator itself knows the locations of organizations.
    if (!lost || statement.text.includes('pg_dist_placement')) return undefined;
    const isReached = statement.values.flat(3).some((value) => lost!.ids.has(value)) || crosses(statement);
    if (!isReached) return undefined;
    tries += 1;
    return lost.how === 'hangs' ? lost.over.promise : Promise.reject(away());
  }

  const over = (on: Queryable): Queryable => ({
    query: (statement) => fate(statement) ?? on.query(statement),
    execute: (statement) => fate(statement) ?? on.execute(statement),
  });

  return {
    ...base,
    ...over(base),
    batch: (statements) => statements.map(fate).find(Boolean) ?? base.batch(statements),
    transaction: (fn) =>
      base.transaction(async (tx) => {
        const written: Promise<never>[] = [];
        const wrapped: Tx = {
          ...tx,
          ...over(tx),
          write(statement) {
            const failure = fate(statement);
            if (!failure) return tx.write(statement);
            failure.catch(() => {});
            written.push(failure);
          },
        };
        const value = await fn(wrapped);
        await Promise.all(written);
        return value;
      }),
    lose(organizationIds, how) {
      const promise = Promise.withResolvers<never>();
      promise.promise.catch(() => {});
      lost = { ids: new Set(organizationIds), how, over: promise };
    },
    find() {
      lost?.over.reject(away());
      lost = undefined;
    },
    tries: () => tries,
  };
}

function away(): DatabaseUnavailable {
  return new DatabaseUnavailable(new Error('could not connect to the server'));
}
