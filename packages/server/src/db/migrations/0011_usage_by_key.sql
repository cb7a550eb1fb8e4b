-- Works with code of schema version 1 and later.

-- The key that opened the session, or its root, or created the schedule that did; null: a person did. The key may be deleted.
alter table sessions add column key_id uuid;
alter table schedules add column key_id uuid;
alter table model_usage add column key_id uuid;

-- What the sessions of each key used. The sums of a day are also in model_usage_days.
create table model_usage_key_days (
  organization_id uuid not null,
  key_id uuid not null,
  -- In UTC.
  day date not null,
  agent_id uuid not null,
  environment text not null,
  -- The name of the key when it was last used on that day, for reports after the key is gone.
  key_name text,
  steps bigint not null,
  unpriced_steps bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  cost_usd numeric not null,
  primary key (organization_id, key_id, day, agent_id, environment)
);
create index model_usage_key_days_by_day on model_usage_key_days (organization_id, day);
-- For what a key has spent today, before its calls are in the sums.
create index model_usage_by_key on model_usage (organization_id, key_id, occurred_at) where key_id is not null;
