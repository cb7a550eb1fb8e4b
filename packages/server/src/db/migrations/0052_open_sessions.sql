-- Works with code of schema version 1 and later.
-- Code of earlier versions numbers records without counting. `counted` then stays behind `sequence`, which readers and the next count see.

-- How many sessions are open, by environment, after the record `counted` of the event log (events/open-sessions.ts). Null if they have not
-- been counted yet, as in organizations from before this column.
alter table event_heads add column open_sessions jsonb;
alter table event_heads alter column open_sessions set default '{}';
alter table event_heads add column counted bigint default 0 not null;
-- When they were last counted one by one.
alter table event_heads add column recounted_at timestamptz;
