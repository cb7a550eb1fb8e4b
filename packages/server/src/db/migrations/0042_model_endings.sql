-- Works with code of schema version 1 and later.

-- Announced ends of models that agents use (agents/model-endings.ts). The first node to insert the row
-- records the event, so each threshold of an announced day is recorded once.
create table model_endings (
  organization_id uuid not null,
  -- `provider/model`.
  model text not null,
  ends_at date not null,
  threshold_days smallint not null,
  recorded_at timestamptz not null,
  primary key (organization_id, model, ends_at, threshold_days),
  foreign key (organization_id) references organizations
);
