-- Who may decide an approval, as the agent said when the call was requested; null: any person or key that can decide approvals.
alter table approvals add column approvers json;
-- If the approvers exclude requesters: who they were when the call was requested, as in sessions.requesters.
alter table approvals add column requesters text[];
-- What each approver decided. The approval is decided once as many as it needs have approved the same input, or one has denied it.
-- Empty in rows of an earlier release: `status` and `resolved_by` have their one decision.
alter table approvals add column decisions json not null default '[]';
alter table approvals add constraint approvals_approvers_check check (status <> 'approved' or approvers is null
  or json_array_length(decisions) >= coalesce((approvers->>'count')::integer, 1)) not valid;

-- Who gave the session input: `user:` or `api_key:` and the id of everyone who opened it, sent it a message or a result, or ran a
-- step of it as a worker. A child has its parent's as well, a fork its origin's.
alter table sessions add column requesters text[] not null default '{}';
-- Who created and changed it.
alter table schedules add column requesters text[] not null default '{}';

-- Who created the key, in the same form: its creator, then the creator of that key, and so on. Empty in rows of an earlier release,
-- and for keys that the operator created on the host.
alter table api_keys add column created_by text[] not null default '{}';
