-- Works with code of schema version 14 and later.
-- For the list of sessions whose last turn failed (sessions/list-query.ts).

create index concurrently sessions_with_error on sessions (organization_id, session_id) where error is not null;
