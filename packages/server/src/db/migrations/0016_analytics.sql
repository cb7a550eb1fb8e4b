-- Works with code of schema version 1 and later.

-- Counts and latencies of an interval, for charts (analytics/). Each node writes what it has counted in a minute as rows of its own, and
-- writes them again with more until the minute is over. Folding moves old minutes into hours and days, which have no node.
create table analytics (
  organization_id uuid not null,
  -- 60, 3600 or 86400. Days are in UTC.
  interval_seconds integer not null,
  starts_at timestamptz not null,
  environment text not null,
  -- All zeros: of no agent, such as attempts of webhooks.
  agent_id uuid not null,
  -- provider/model; empty for what is not of a model.
  model text not null,
  -- Failed turns are counted by their error; empty for everything else.
  error_code text not null,
  -- A node's own id for what it counts; all zeros for sums of several nodes.
  counted_by uuid not null,
  sessions_opened bigint default 0 not null,
  sessions_completed bigint default 0 not null,
  sessions_failed bigint default 0 not null,
  sessions_cancelled bigint default 0 not null,
  turns bigint default 0 not null,
  turns_failed bigint default 0 not null,
  model_calls_failed bigint default 0 not null,
  tool_calls bigint default 0 not null,
  tool_calls_failed bigint default 0 not null,
  webhook_attempts bigint default 0 not null,
  webhook_attempts_failed bigint default 0 not null,
  -- Added by the compaction of usage, so they are exact.
  model_calls bigint default 0 not null,
  tokens bigint default 0 not null,
  cost_usd numeric default 0 not null,
  -- Histograms (analytics/histogram.ts): each element is a bucket times 2^40, plus a count.
  first_token_ms bigint[] default '{}' not null,
  turn_ms bigint[] default '{}' not null,
  webhook_ms bigint[] default '{}' not null,
  -- The last session whose turn failed with the error.
  last_session_id uuid,
  primary key (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
-- For folding minutes, and for deleting old hours and days.
create index analytics_age on analytics (interval_seconds, starts_at);
