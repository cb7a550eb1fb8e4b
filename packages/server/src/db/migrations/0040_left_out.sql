-- Works with code of schema version 14 and later.

-- What models do not get of the conversation or the agent (sessions/state/left-out.ts); null if nothing is left out.
alter table sessions add column left_out jsonb;
