-- Works with code of schema version 7 and later.

-- Erasures of end users (end-users/erase.ts): the latest of each.
create table end_user_erasures (
  organization_id uuid not null,
  -- A keyed hash of the id, which stays when the erasure has finished (vault/pseudonym.ts).
  pseudonym bytea not null,
  -- Null once everything is erased.
  end_user_id text,
  -- How much was erased so far.
  sessions integer not null,
  files integer not null,
  schedules integer not null,
  -- As the event log names an actor.
  requested_by json not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  primary key (organization_id, pseudonym)
);
create index end_user_erasures_running on end_user_erasures (organization_id, end_user_id) where end_user_id is not null;
