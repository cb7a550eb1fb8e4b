-- Works with code of schema version 1 and later.

-- Links by which anyone can read the conversation of a session (sessions/shares.ts). A link ends with its session.
create table session_shares (
  organization_id uuid not null,
  share_id uuid not null,
  session_id uuid not null,
  token_hash bytea not null,
  title text,
  -- Whether tool calls are shown, with their inputs and results.
  includes_tools boolean not null,
  created_by json not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (organization_id, share_id),
  foreign key (organization_id, session_id) references sessions on delete cascade
);
create index session_shares_of_session on session_shares (organization_id, session_id, share_id);
create index session_shares_expiry on session_shares (expires_at);
