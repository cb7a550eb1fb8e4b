-- Works with code of schema version 1 and later.
-- For the list of sessions that run a draft.

create index concurrently sessions_drafts on sessions (organization_id, session_id) where pinned_version < 0;
