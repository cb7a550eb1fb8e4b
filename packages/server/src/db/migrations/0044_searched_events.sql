-- Works with code of schema version 1 and later.
-- Code of earlier versions does not change the new column. A node of this version then looks at the organization and finds nothing to do.

-- The last record of the event log after which all sessions can be found (sessions/search/update.ts).
alter table event_heads add column searched bigint default 0 not null;
