-- Works with code of schema version 1 and later.
-- For the list of approvals of an agent (approvals/list.ts).

create index concurrently approvals_by_agent on approvals (organization_id, agent_id, environment, status, operation_id);
