-- Works with code of schema version 1 and later.
-- Code of earlier versions lets calls go in the order in which they began to wait, whether a person waits for them or not.

-- Calls that a person waits for go before the others, four for each of them (models/limits/order.ts).
alter table model_limit_waits add column is_awaited boolean not null default true;
-- How many have gone in a row while another waited.
alter table model_limits add column passed smallint not null default 0;

drop index model_limit_waits_in_order;
create index model_limit_waits_in_order
  on model_limit_waits (organization_id, environment, model, is_granted, is_awaited, since, operation_id);
