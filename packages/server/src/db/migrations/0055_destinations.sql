-- Works with code of schema version 1 and later.

-- Where records of the event log are sent (destinations/). What is specific to a type is in columns that other types leave empty.
create table destinations (
  organization_id uuid not null,
  destination_id uuid not null,
  name text not null,
  type text not null,
  -- As given: types, groups as `approval.*`, or `*`.
  event_types text[] not null,
  -- Null: all.
  environment text,
  agent_ids uuid[],
  status text not null,
  disabled_reason text,
  -- The record up to which the log was read for it, and whether the record of its own creation was: it receives what follows that.
  read_sequence bigint not null,
  started boolean not null,
  -- The latest records that retention deleted before they were read.
  lost_from bigint,
  lost_to bigint,
  url text,
  -- The names of its own headers, and their values as sealed JSON.
  header_names text[] default '{}' not null,
  sealed_headers bytea,
  sealed_secret bytea,
  secret_version integer,
  previous_sealed_secret bytea,
  previous_secret_expires_at timestamptz,
  confirmed_secret_version integer,
  -- The node that it is assigned to: one node for all of an organization.
  node_id uuid,
  -- Incremented by each assignment and each change. A node with an older epoch can't advance the reading.
  epoch integer default 0 not null,
  -- The health, as that of webhook_subscriptions. A lane is what is sent in order: the records of a session, or of another resource.
  failing_since timestamptz,
  failures integer default 0 not null,
  failing_lane text,
  last_error text,
  last_status integer,
  probe_at timestamptz,
  degraded boolean default false not null,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (organization_id, destination_id),
  foreign key (organization_id) references organizations,
  foreign key (organization_id, environment) references environments (organization_id, name),
  constraint destinations_status_check check (status in ('enabled', 'paused', 'disabled'))
);
-- For destinations that are not assigned, or assigned to a node that is gone.
create index destinations_by_node on destinations (node_id) where status = 'enabled';

-- Deliveries to destinations of type `webhook`, written in the transaction that advances the reading. The body is made of the records.
create table destination_deliveries (
  organization_id uuid not null,
  destination_id uuid not null,
  delivery_id uuid not null,
  -- The type and id of the session or resource, separated by a colon. Deliveries of a lane are sent in the order of last_sequence.
  lane text not null,
  sequences bigint[] not null,
  last_sequence bigint not null,
  -- The last record of the lane in the delivery before.
  previous_sequence bigint,
  status text not null,
  -- The latest attempts, as JSON (deliveries/stored-attempt.ts).
  attempts text[] default '{}' not null,
  attempt_count integer default 0 not null,
  -- How many waits of the retry schedule were used.
  retries integer default 0 not null,
  -- When it may be sent; set while it is pending. Those before it in its lane go first.
  due_at timestamptz,
  -- The receiver's Retry-After: no attempt before this time.
  not_before timestamptz,
  created_at timestamptz not null,
  finished_at timestamptz,
  primary key (organization_id, destination_id, delivery_id),
  constraint destination_deliveries_status_check check (status in ('pending', 'succeeded', 'exhausted', 'cancelled'))
);
create index destination_deliveries_pending on destination_deliveries (organization_id, destination_id, lane, last_sequence)
  where status = 'pending';
create index destination_deliveries_by_lane on destination_deliveries (organization_id, destination_id, lane, last_sequence);
create index destination_deliveries_not_accepted on destination_deliveries (organization_id, destination_id, status, delivery_id)
  where status <> 'succeeded';
