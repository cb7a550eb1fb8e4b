// The part of Citus that the service uses, in an ordinary PostgreSQL: which tables are distributed, and what is refused.
import { ask } from '../../../embedded-postgres/test/support/ask.ts';

/** Installs it in the database of this URL. No table is distributed at first. */
export async function installFakeCitus(url: string): Promise<void> {
  await ask(
    url,
    `create table pg_dist_partition (
    logicalrelid regclass primary key, partmethod "char" not null, colocated_with text not null,
    has_local_rows boolean not null default true)`,
  );
  await ask(
    url,
    `create function truncate_local_data_after_distributing_table(function_table_name regclass) returns void
    language plpgsql as $$
    declare local text;
    begin
      if not exists (select 1 from pg_dist_partition where logicalrelid = function_table_name) then
        raise exception 'supplied parameter is not a distributed relation';
      end if;
      select k.conrelid::regclass into local from pg_constraint k
        where k.confrelid = function_table_name and k.contype = 'f'
          and not exists (select 1 from pg_dist_partition d where d.logicalrelid = k.conrelid) limit 1;
      if local is not null then
        raise exception 'cannot truncate a table referenced in a foreign key constraint by a local table: %', local;
      end if;
      update pg_dist_partition set has_local_rows = false where logicalrelid = function_table_name;
    end $$`,
  );
  await ask(
    url,
    `create function refuse_several_commands() returns event_trigger language plpgsql as $$
    begin
      if current_query() ~ ';\\s*\\S' and exists (select 1 from pg_dist_partition) then
        raise exception 'cannot insert multiple commands into a prepared statement';
      end if;
    end $$`,
  );
  await ask(
    url,
    `create event trigger refuse_several_commands on ddl_command_start execute function refuse_several_commands()`,
  );
  await ask(
    url,
    `create function create_distributed_table(
      table_name regclass, distribution_column text, colocate_with text default 'default') returns void
    language plpgsql as $$
    declare missing text;
    begin
      if distribution_column <> 'organization_id' then
        raise exception 'distributed by %', distribution_column;
      end if;
      if current_setting('citus.multi_shard_modify_mode', true) is distinct from 'sequential' then
        raise exception 'cannot distribute relation "%" in this transaction because it has a foreign key', table_name;
      end if;
      if colocate_with <> 'none' and not exists (
          select 1 from pg_dist_partition where logicalrelid = colocate_with::regclass) then
        raise exception 'relation % is not distributed', colocate_with;
      end if;
      select k.confrelid::regclass into missing from pg_constraint k
        where k.conrelid = table_name and k.contype = 'f' and k.confrelid <> table_name
          and not exists (select 1 from pg_dist_partition d where d.logicalrelid = k.confrelid) limit 1;
      if missing is not null then
        raise exception 'cannot create foreign key constraint: referenced table "%" must be a distributed table', missing;
      end if;
      insert into pg_dist_partition values (table_name, 'h', colocate_with);
    end $$`,
  );
}

/** The distributed tables whose rows from before are still on the coordinator too. */
export async function withLocalRows(url: string): Promise<unknown[]> {
  return ask(url, 'select logicalrelid::text from pg_dist_partition where has_local_rows');
}

/** The distributed tables in the order of their distribution, each with the table that it is colocated with. */
export async function distributedIn(url: string): Promise<{ name: string; colocatedWith: string }[]> {
  return ask(
    url,
    'select logicalrelid::text as name, colocated_with as "colocatedWith" from pg_dist_partition order by ctid',
  );
}
