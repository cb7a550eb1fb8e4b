-- Works with code of schema version 1 and later.
-- Code of earlier versions does not limit calls of models.

-- How often an environment calls a model (models/limits/).
create table model_limits (
  organization_id uuid not null,
  environment text not null,
  -- `provider/model`; `*` for all models without a limit of their own, together.
  model text not null,
  requests_per_minute integer,
  tokens_per_minute bigint,
  -- It was removed while calls waited for it. They are made at once, and the row is deleted with the last of them.
  is_removed boolean not null default false,
  -- What the calls of the last minute took, by slices of two seconds: `[[start in ms since 1970, requests, tokens], …]`.
  taken json not null,
  primary key (organization_id, environment, model),
  foreign key (organization_id, environment) references environments (organization_id, name) on delete cascade
);

-- Calls that wait for a limit, or that may be made now and have not begun. One whose operation is not pending any more is deleted by the
-- next look at the limit.
create table model_limit_waits (
  organization_id uuid not null,
  environment text not null,
  model text not null,
  operation_id uuid not null,
  session_id uuid not null,
  -- What the call will take, estimated.
  tokens bigint not null,
  since timestamptz not null,
  is_granted boolean not null default false,
  primary key (organization_id, operation_id),
  foreign key (organization_id, environment, model) references model_limits on delete cascade
);
create index model_limit_waits_in_order on model_limit_waits (organization_id, environment, model, is_granted, since, operation_id);
