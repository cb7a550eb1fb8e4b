-- Works with code of schema version 14 and later.

-- How many characters the worker that has claimed the session's step has appended.
alter table sessions add column appended_characters integer not null default 0;
