-- Works with code of schema version 1 and later.

-- What sessions should cost in a day or a month of UTC (budgets/). Null: of any environment, agent or key.
create table budgets (
  organization_id uuid not null,
  name text not null,
  period text not null check (period in ('day', 'month')),
  limit_usd numeric not null,
  environment text,
  agent_id uuid,
  key_id uuid,
  -- Percentages of the limit.
  thresholds integer[] not null,
  stop boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (organization_id, name),
  foreign key (organization_id) references organizations
);

-- Thresholds that were reached. The first node to insert the row records the event, so each alerts once in a period.
create table budget_alerts (
  organization_id uuid not null,
  name text not null,
  period_starts_at timestamptz not null,
  threshold integer not null,
  alerted_at timestamptz not null,
  primary key (organization_id, name, period_starts_at, threshold),
  foreign key (organization_id, name) references budgets on delete cascade
);
