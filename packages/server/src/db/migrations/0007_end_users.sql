-- The end user that a session is for: the integrator's own id and the name that they gave; null if none was given.
alter table sessions add column end_user_id text;
alter table sessions add column end_user_name text;
alter table schedules add column end_user json;

-- The index of sessions by end user. It is a separate table because an index on sessions would be built under a lock of that table,
-- and written whenever a session starts or stops.
create table session_end_users (
  organization_id uuid not null,
  session_id uuid not null,
  end_user_id text not null,
  primary key (organization_id, session_id),
  foreign key (organization_id, session_id) references sessions on delete cascade
);
create index session_end_users_by_id on session_end_users (organization_id, end_user_id, session_id);

-- Null: the session has no end user, or the end user was erased.
alter table model_usage add column end_user_id text;

-- What each end user used. The sums of a day are also in model_usage_days, so these rows can be deleted with their end user.
create table model_usage_end_user_days (
  organization_id uuid not null,
  -- In UTC.
  day date not null,
  environment text not null,
  end_user_id text not null,
  steps bigint not null,
  unpriced_steps bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  cost_usd numeric not null,
  primary key (organization_id, day, environment, end_user_id)
);
create index model_usage_end_user_days_by_id on model_usage_end_user_days (organization_id, end_user_id);
