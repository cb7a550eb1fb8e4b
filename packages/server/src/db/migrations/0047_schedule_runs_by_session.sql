-- Works with code of schema version 1 and later.
-- To find the sessions that a schedule opened (models/limits/order.ts).

create index concurrently schedule_runs_by_session on schedule_runs (organization_id, session_id)
  where session_id is not null;
