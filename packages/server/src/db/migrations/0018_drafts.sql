-- Works with code of schema version 1 and later.
--
-- Code of an earlier release does not find the definition of a session that runs a draft: it releases such a session for another node.

-- Definitions that run without being saved. Only sessions name them, as a version below zero. The number is a part of the SHA-256, so
-- the same draft has the same number. Drafts without an agent belong to the agent with the id of the organization, which has version 0
-- and is not listed.
create table agent_drafts (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  definition json not null,
  -- By the name of a tool: what its calls get instead of being run.
  mocks json not null,
  -- Of both.
  sha256 bytea not null,
  -- When a session was last opened with it, to within half an hour. It is deleted an hour later, unless a session runs it.
  used_at timestamptz not null,
  primary key (organization_id, agent_id, version),
  foreign key (organization_id, agent_id) references agents,
  check (version < 0)
);
create index agent_drafts_unused on agent_drafts (organization_id, used_at);
