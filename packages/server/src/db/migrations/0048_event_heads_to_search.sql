-- Works with code of schema version 1 and later.
-- The organizations with sessions to make searchable: few, however many organizations there are.

create index concurrently event_heads_to_search on event_heads (organization_id) where searched < sequence;
