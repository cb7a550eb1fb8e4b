-- A fork continues the conversation of another session, its origin, after one of its turns: the origin, which may be deleted, and the
-- turn; null if the session is not a fork.
alter table sessions add column forked_from_session_id uuid;
alter table sessions add column forked_at_turn integer;

-- The index of forks by their origin. It is a separate table because an index on sessions would be built under a lock of that table.
create table session_forks (
  organization_id uuid not null,
  session_id uuid not null,
  origin_session_id uuid not null,
  primary key (organization_id, session_id),
  foreign key (organization_id, session_id) references sessions on delete cascade
);
create index session_forks_by_origin on session_forks (organization_id, origin_session_id, session_id);

-- A fork reads messages of other sessions where they are: whose, and of which turns. There is a row for each session that wrote some
-- of them. The origin of a fork may be a fork itself. Its rows are copied, so no reader follows a chain.
create table inherited_turns (
  organization_id uuid not null,
  -- The fork.
  session_id uuid not null,
  from_turn integer not null,
  until_turn integer not null,
  -- Of the last message. If its turn had failed, a retry in the session that wrote it adds messages that the fork does not have.
  until_position integer not null,
  -- The session that wrote the messages; it may be deleted.
  source_session_id uuid not null,
  primary key (organization_id, session_id, from_turn),
  foreign key (organization_id, session_id) references sessions on delete cascade
);
-- For the last message of a session that any fork inherits.
create index inherited_turns_by_source on inherited_turns (organization_id, source_session_id, until_turn, until_position);

-- Deleted sessions whose messages are still there: because forks inherit them, or because they are not deleted yet.
create table kept_transcripts (
  organization_id uuid not null,
  session_id uuid not null,
  -- Some of the messages may not be inherited any more.
  due boolean not null,
  primary key (organization_id, session_id)
);
create index kept_transcripts_due on kept_transcripts (organization_id, session_id) where due;

-- There is no foreign key, because messages may outlive their session (kept_transcripts).
alter table messages drop constraint messages_organization_id_session_id_fkey;
