-- Works with code of schema version 1 and later.

-- Null: no limit, for both.
alter table api_keys add column requests_per_minute integer;
alter table api_keys add column max_cost_usd_per_day numeric;

-- The current minute of each key with a limit of requests. Nodes take some of its requests at a time.
create table key_request_windows (
  organization_id uuid not null,
  key_id uuid not null,
  ends_at timestamptz not null,
  -- By all nodes; more than the limit if a node wanted more than there were.
  taken bigint not null,
  primary key (organization_id, key_id),
  foreign key (organization_id, key_id) references api_keys on delete cascade
) with (fillfactor = 50);
