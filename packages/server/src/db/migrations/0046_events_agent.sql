-- Works with code of schema version 1 and later.
-- For the filter `agentId` of the event log. Records of earlier releases have no agent and no entry.

create index concurrently events_agent on events (organization_id, (body->>'agentId'), sequence)
  where body->>'agentId' is not null;
