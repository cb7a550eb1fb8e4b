-- Works with code of schema version 1 and later.
-- For whether any session runs a draft.

create index concurrently sessions_by_draft on sessions (organization_id, agent_id, pinned_version) where pinned_version < 0;
