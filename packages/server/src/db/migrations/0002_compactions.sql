-- Summaries that replace the older messages of a session for its model. `messages` and `segments` keep everything.
create table compactions (
  organization_id uuid not null,
  session_id uuid not null,
  -- The first message that the model still gets as it is: the summary replaces those before it. The newest compaction is the one
  -- with the greatest (from_turn, from_position).
  from_turn integer not null,
  from_position integer not null,
  operation_id uuid not null,
  -- The turn in which it was written.
  turn integer not null,
  summary text not null,
  -- Estimates of what a model call reads.
  tokens_before bigint not null,
  tokens_after bigint not null,
  -- `provider/model` that wrote it; null: it only says what is left out.
  model text,
  -- If the session's model refused fewer tokens than the agent allows: what it may get from now on, and its `provider/model`.
  max_tokens bigint,
  max_tokens_of text,
  created_at timestamptz not null,
  primary key (organization_id, session_id, from_turn, from_position),
  foreign key (organization_id, session_id) references sessions on delete cascade
);

-- What the last model call read and wrote, in tokens. Null before the first, after a compaction, and if its provider does not say.
alter table sessions add column context_tokens bigint;

-- A compaction is an operation as well. All rows satisfy the new constraint, because the old one was stricter.
alter table operations drop constraint operations_kind_check;
alter table operations add constraint operations_kind_check check (kind in ('model', 'tool', 'compaction')) not valid;
