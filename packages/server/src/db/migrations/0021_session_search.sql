-- Works with code of schema version 14 and later.

-- What the list of sessions shows and searches beyond the rows of sessions (sessions/search/update.ts). It is written in the background,
-- seconds after the messages, because inserting the words of a message into their index costs more than the rest of a turn.
create table session_search (
  organization_id uuid not null,
  session_id uuid not null,
  -- The first words of the first message; null if there is none yet.
  preview text,
  -- The words of its messages, end user and metadata, and of what never changes and is filtered by (sessions/search/words.ts).
  document tsvector not null,
  -- Up to which message.
  turn integer not null,
  position integer not null,
  -- How long models and tools have worked: in all turns, and in those before worked_turn. The operations of that turn and later ones are
  -- summed again.
  working_ms bigint not null,
  worked_turn integer not null,
  worked_before_ms bigint not null,
  primary key (organization_id, session_id),
  foreign key (organization_id, session_id) references sessions on delete cascade
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
-- Every search reads the list of entries that are pending, so it is short.
create index session_search_words on session_search using gin (document) with (gin_pending_list_limit = 256);

-- How far session_search has come in an organization.
create table session_search_progress (
  organization_id uuid not null,
  -- Sessions are updated after the records of the event log; this is the last record that was read.
  sequence bigint not null,
  -- Sessions from before the table existed are added newest first: those from this one on are there. Null: all are.
  added_from uuid,
  primary key (organization_id),
  foreign key (organization_id) references organizations
);
