-- Works with code of schema version 1 and later.
-- For the list of the events of an environment that have one type (events/select.ts).

create index concurrently events_environment_type on events (organization_id, ((body->>'environment')), ((body->>'type')), sequence)
  where body->>'environment' is not null;
