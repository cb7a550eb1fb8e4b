-- Works with code of schema version 1 and later.

-- Null: it has none.
alter table schedules add column name text;
-- Whether a caller started it, instead of its time.
alter table schedule_runs add column is_manual boolean not null default false;
