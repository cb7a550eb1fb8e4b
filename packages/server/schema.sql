-- The schema that the migrations make, for reading. Written by `npm run schema`; do not edit: a test compares it.
--
-- The whole state of Signalbox.
--
-- `organization_id` leads every key and stands in every statement: an organization is the unit of tenancy and, on a
-- sharded database, of placement. Ids are UUIDv7 and sort by time, so lists page by primary key.
--
-- Tables that much is deleted from are vacuumed from 2 % of dead rows on: of a large one, a fifth (the default) is too much.
--
-- JSON that people wrote or read is kept as `json`, as they wrote it: jsonb would give fields another order, and an approval
-- is read by a person. What is only looked into is jsonb.
--
-- Who writes what:
--   sessions, segments, messages, operations   one writer at a time for a Session, fenced by sessions.epoch
--   session_inbox                              API calls, while a worker holds the Session
--   model_usage                                the writer of the Session; compaction moves it into model_usage_days
--   events                                     the sequencer, one at a time for an organization
--   nodes                                      each node its own row; this and the next have no organization
--   installation                               a node that begins to serve the console
--   master_keys                                a node that starts
--   users, sign_ins, accounts,                 better-auth, through a pool of its own; people are of the installation, not of an
--   verifications, passkeys                    organization. What makes a person one of an organization stands in members

create table organizations (
  organization_id uuid not null,
  name text not null,
  created_at timestamptz not null,
  constraint organizations_pkey primary key (organization_id)
);

-- Keys. The secret carries organization and key id, so that even the credential look-up names the organization.
create table api_keys (
  organization_id uuid not null,
  key_id uuid not null,
  name text not null,
  permission text not null,
  expires_at timestamptz,
  -- Null where the key may be used from anywhere, and reaches every Environment.
  allowed_ips text[],
  environments text[],
  metadata json not null,
  secret_hash bytea not null,
  secret_preview text not null,
  last_used_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  constraint api_keys_pkey primary key (organization_id, key_id),
  constraint api_keys_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint api_keys_permission_check check ((permission = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
create index api_keys_deleted on api_keys (deleted_at) WHERE (deleted_at IS NOT NULL);

-- Hashes of secrets that were rotated away, kept 90 days for their exact 401 code.
create table retired_key_secrets (
  organization_id uuid not null,
  key_id uuid not null,
  secret_hash bytea not null,
  retired_at timestamptz not null,
  constraint retired_key_secrets_pkey primary key (organization_id, key_id, secret_hash),
  constraint retired_key_secrets_organization_id_key_id_fkey foreign key (organization_id, key_id) references api_keys(organization_id, key_id) on delete cascade
);
create index retired_key_secrets_age on retired_key_secrets (retired_at);

create table idempotency_records (
  organization_id uuid not null,
  -- The key or the person that called.
  caller_id uuid not null,
  idempotency_key text not null,
  fingerprint bytea not null,
  -- Null while the first request is under way; it is then visible to nobody else, its transaction being open.
  status integer,
  -- The exact text of the answer, without any secret in it.
  body text,
  -- The whole body where it holds a plaintext secret, sealed under the caller's own credential.
  sealed_body bytea,
  expires_at timestamptz not null,
  constraint idempotency_records_pkey primary key (organization_id, caller_id, idempotency_key)
) with (autovacuum_vacuum_scale_factor=0.02);
create index idempotency_records_expiry on idempotency_records (expires_at);

create table environments (
  organization_id uuid not null,
  name text not null,
  environment_id uuid not null,
  -- How long its sessions are kept after they ended; null: as long as the operator says.
  keep_sessions_days integer,
  created_at timestamptz not null,
  constraint environments_pkey primary key (organization_id, name),
  constraint environments_organization_id_environment_id_key unique (organization_id, environment_id),
  constraint environments_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

create table environment_secrets (
  organization_id uuid not null,
  environment text not null,
  name text not null,
  sealed_value bytea not null,
  allowed_hosts text[] not null,
  version integer not null,
  updated_at timestamptz not null,
  constraint environment_secrets_pkey primary key (organization_id, environment, name),
  constraint environment_secrets_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name) on delete cascade
);

create table agents (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  -- MCP servers that could not be asked for their tools when a turn last needed them: why, by `environment/name`. Only a change is an
  -- event.
  unavailable_servers jsonb default '{}'::jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  archived_at timestamptz,
  constraint agents_pkey primary key (organization_id, agent_id),
  constraint agents_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

-- Never updated: a version is the same for ever, and may be cached for ever.
create table agent_versions (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  definition json not null,
  created_at timestamptz not null,
  constraint agent_versions_pkey primary key (organization_id, agent_id, version),
  constraint agent_versions_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id)
);

-- A session's row is its queue entry (runnable_at), names the node that runs it (node_id), and has its fencing token (epoch) and the
-- head of its journal (turn, next_seq). While a worker has claimed the session's step, node_id is the id of that worker turn.
--
-- runnable_at is when a node has something to do for it: now while it is running, at the first deadline of an approval while it is
-- waiting, at the turn's own deadline while a step is offered to workers (queue), never (null) while it is idle or has ended.
--
-- The fill factor leaves room on the page for the next version of the row: an append changes no indexed column (once
-- delivery_due is set), so it stays a heap-only update.
create table sessions (
  organization_id uuid not null,
  session_id uuid not null,
  agent_id uuid not null,
  pinned_version integer,
  agent_version integer,
  environment text not null,
  status text not null,
  waiting_for json,
  stop_reason text,
  turn integer default 0 not null,
  next_seq bigint default 1 not null,
  -- Moves on each time the writer changes; what a writer with an older epoch sends is refused.
  epoch integer default 0 not null,
  node_id uuid,
  -- How often a worker died while it ran the present step; a step that ends its process each time is not run for ever.
  crashes smallint default 0 not null,
  runnable_at timestamptz,
  -- A turn's step that the integrator's own program runs: the queue that it is offered on or was claimed from.
  queue text,
  -- What the turn's worker is to do before anything else: end the turn, or the Session.
  stop text,
  -- When the turn has taken too long. While the Session waits no time passes: turn_left_ms then says how much there is.
  turn_deadline timestamptz,
  turn_left_ms bigint,
  -- The trace of what brought the turn's message (W3C Trace Context), where it is traced.
  trace_parent text,
  -- Tools whose calls run unasked in this Session since a person said so.
  granted_tools text[] default '{}'::text[] not null,
  -- A child is opened by a call of its parent's; the root shares its budget with all below it.
  parent_session_id uuid,
  parent_operation_id uuid,
  root_session_id uuid,
  depth integer default 0 not null,
  -- It has ended, and its parent has not heard of it.
  parent_due boolean default false not null,
  -- How many rows of session_inbox wait. Kept here because a worker about to park must see a row that came at the same
  -- moment: it re-reads this row under its lock, not the inbox.
  inbox integer default 0 not null,
  closing boolean default false not null,
  close_on_idle boolean not null,
  budget json,
  error json,
  metadata json not null,
  input_tokens bigint default 0 not null,
  output_tokens bigint default 0 not null,
  cached_tokens bigint default 0 not null,
  steps integer default 0 not null,
  tool_calls integer default 0 not null,
  -- Null until a model call had a price.
  cost_usd numeric,
  -- Model calls that answered or failed, so that the scripted model knows its place also after a crash.
  model_calls integer default 0 not null,
  -- Webhooks: whether chunks wait, and the subscription that all of this is about. A new subscription of the environment writes
  -- nothing here: the first append that sees it does (journal/delivery-mark.ts).
  delivery_due boolean default false not null,
  delivery_subscription_id uuid,
  -- The position that the delivery under way, or the next one, starts after: what is before was acknowledged, given up or not
  -- asked for.
  delivered_turn integer default 0 not null,
  delivered_seq bigint default 0 not null,
  delivery_id uuid,
  -- The cursor that the receiver acknowledged last.
  acknowledged_cursor text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  constraint sessions_pkey primary key (organization_id, session_id),
  constraint sessions_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id),
  constraint sessions_status_check check ((status = ANY (ARRAY['idle'::text, 'running'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
  constraint sessions_stop_check check ((stop = ANY (ARRAY['interrupt'::text, 'cancel'::text])))
) with (fillfactor=70);
-- How long the first of all has waited, for metrics.
create index sessions_runnable on sessions (runnable_at) WHERE ((node_id IS NULL) AND (runnable_at IS NOT NULL));
-- A worker looks for what runs organization by organization, so the backlog of one is never walked for another's; and for what
-- has a deadline by that, of which few have come.
create index sessions_ready on sessions (organization_id, runnable_at) WHERE ((node_id IS NULL) AND (runnable_at IS NOT NULL) AND (queue IS NULL) AND (status = 'running'::text));
create index sessions_timed on sessions (runnable_at, session_id) WHERE ((node_id IS NULL) AND (runnable_at IS NOT NULL) AND ((queue IS NOT NULL) OR (status <> 'running'::text)));
create index sessions_offered on sessions (organization_id, queue, session_id) WHERE ((node_id IS NULL) AND (queue IS NOT NULL));
create index sessions_by_root on sessions (organization_id, root_session_id, session_id) WHERE (root_session_id IS NOT NULL);
create index sessions_by_parent on sessions (organization_id, parent_session_id, session_id) WHERE (parent_session_id IS NOT NULL);
create index sessions_parent_due on sessions (organization_id, session_id) WHERE parent_due;
create index sessions_by_node on sessions (node_id) WHERE (node_id IS NOT NULL);
create index sessions_due on sessions (organization_id, delivery_subscription_id, session_id) WHERE delivery_due;
-- For the lists by environment, status and agent (sessions/list.ts), and for counting by status.
create index sessions_by_environment on sessions (organization_id, environment, status, session_id);
create index sessions_by_agent on sessions (organization_id, agent_id, environment, status, session_id);
create index sessions_ended on sessions (organization_id, environment, status, ended_at) WHERE (ended_at IS NOT NULL);
-- What retention deletes: a session goes with its children.
create index sessions_retention on sessions (organization_id, environment, ended_at) WHERE ((ended_at IS NOT NULL) AND (root_session_id IS NULL));

-- What sessions are found by (sessions/metadata.ts): a hash of a key and its value. A table of its own, as an index of sessions
-- would be written each time that a session starts or stops. No foreign key: it would look for rows by session.
create table session_metadata (
  organization_id uuid not null,
  pair bigint not null,
  session_id uuid not null,
  constraint session_metadata_pkey primary key (organization_id, pair, session_id)
);

-- The journal. A segment is the run of chunks that one commit added; body is a JSON array in which a string is the delta
-- of a message.chunk and an object is any other chunk without turn and seq.
create table segments (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  seq_to bigint not null,
  seq_from bigint not null,
  body text not null,
  created_at timestamptz not null,
  constraint segments_pkey primary key (organization_id, session_id, turn, seq_to)
) with (autovacuum_vacuum_scale_factor=0.02);

-- What API calls leave for the worker that holds the Session, and messages queued for a later turn.
create table session_inbox (
  organization_id uuid not null,
  session_id uuid not null,
  inbox_id uuid not null,
  -- Counts in the Session, under the lock of its row: ids are of the clocks of several nodes.
  "position" integer not null,
  kind text not null,
  body json not null,
  created_at timestamptz not null,
  constraint session_inbox_pkey primary key (organization_id, session_id, inbox_id),
  constraint session_inbox_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint session_inbox_kind_check check ((kind = ANY (ARRAY['message'::text, 'approval'::text, 'tool_result'::text])))
);

-- The transcript: what the model was told and what it answered.
create table messages (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  "position" integer not null,
  message_id uuid not null,
  role text not null,
  content json not null,
  -- What a provider wants back with the next call and nobody else can read: signatures of its reasoning.
  provider_data json,
  created_at timestamptz not null,
  constraint messages_pkey primary key (organization_id, session_id, turn, "position"),
  constraint messages_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint messages_role_check check ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text])))
) with (autovacuum_vacuum_scale_factor=0.02);

-- Every model call (index 0 of its step) and tool call, stored before it starts.
create table operations (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  step integer not null,
  index integer not null,
  -- Also the toolCallId, under another prefix.
  operation_id uuid not null,
  kind text not null,
  status text not null,
  tool text,
  -- For a tool call: the type of its tool; null if there is no such tool.
  tool_type text,
  input json,
  output json,
  error text,
  usage json,
  -- For a model call: the first seq that text of it may have.
  from_seq bigint,
  -- For a model call: how often it failed, and when it is made again at the soonest. Kept here, so that a worker which takes
  -- the turn over goes on counting.
  failures integer default 0 not null,
  retry_at timestamptz,
  -- For a tool call: whether it may be made again where it was cut off. Else nobody knows then what came of it.
  repeatable boolean default false not null,
  -- For a call that awaits approval: when it is too late for one.
  expires_at timestamptz,
  -- For a call of an agent tool: the child.
  child_session_id uuid,
  -- For a turn's first model call: the version of the Agent that the turn runs.
  agent_version integer,
  -- And its MCP servers that could not be asked for their tools, `[{ name, reason }]`.
  unavailable_servers json,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  constraint operations_pkey primary key (organization_id, session_id, turn, step, index),
  constraint operations_organization_id_operation_id_key unique (organization_id, operation_id),
  constraint operations_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint operations_kind_check check ((kind = ANY (ARRAY['model'::text, 'tool'::text]))),
  constraint operations_status_check check ((status = ANY (ARRAY['pending'::text, 'awaiting_approval'::text, 'ready'::text, 'running'::text, 'awaiting_result'::text, 'awaiting_session'::text, 'succeeded'::text, 'failed'::text, 'denied'::text, 'cancelled'::text, 'unknown'::text])))
) with (autovacuum_vacuum_scale_factor=0.02);

create table approvals (
  organization_id uuid not null,
  operation_id uuid not null,
  session_id uuid not null,
  agent_id uuid not null,
  environment text not null,
  name text not null,
  input json,
  -- Of the tool at the time: what an edited input is checked against.
  input_schema json not null,
  edited_input json,
  -- Whether approving it lets later calls of the tool run unasked, because its policy is to ask once.
  once boolean not null,
  status text not null,
  reason text,
  resolved_by json,
  requested_at timestamptz not null,
  resolved_at timestamptz,
  expires_at timestamptz,
  constraint approvals_pkey primary key (organization_id, operation_id),
  constraint approvals_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint approvals_status_check check ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'expired'::text, 'cancelled'::text])))
);
create index approvals_by_environment on approvals (organization_id, environment, status, operation_id);
create index approvals_by_session on approvals (organization_id, session_id);

create table webhook_subscriptions (
  organization_id uuid not null,
  environment text not null,
  webhook_subscription_id uuid not null,
  url text not null,
  chunk_types text[] not null,
  status text not null,
  disabled_reason text,
  sealed_secret bytea not null,
  secret_version integer not null,
  previous_sealed_secret bytea,
  previous_secret_expires_at timestamptz,
  confirmed_secret_version integer,
  -- The node that sends for it; see workers.
  node_id uuid,
  -- Moves on with each claim and each change: a node that knows an older one fixes no delivery and skips no chunk.
  epoch integer default 0 not null,
  -- How the destination does (webhooks/sending/health-rules.ts): since when it fails, how often in a row and in which one Session, when it is
  -- attempted next, and whether someone was warned.
  failing_since timestamptz,
  failures integer default 0 not null,
  failing_session_id uuid,
  -- What the last attempt came to, and the status of its answer.
  last_error text,
  last_status integer,
  probe_at timestamptz,
  degraded boolean default false not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  constraint webhook_subscriptions_pkey primary key (organization_id, environment),
  constraint webhook_subscriptions_organization_id_webhook_subscription__key unique (organization_id, webhook_subscription_id),
  constraint webhook_subscriptions_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name),
  constraint webhook_subscriptions_status_check check ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text])))
);
-- For those that nobody holds, or a node that is gone.
create index webhook_subscriptions_by_node on webhook_subscriptions (node_id) WHERE (status = 'enabled'::text);

-- The delivery under way of each session that has one (sessions.delivery_id): what it holds is fixed before its first attempt and
-- never changes. When it is over its row moves to webhook_deliveries.
create table pending_deliveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  delivery_id uuid not null,
  session_id uuid not null,
  -- What the receiver had acknowledged before, as a cursor; empty for a session's first.
  previous_cursor text not null,
  -- The range of chunks: from is the position before its first, to that of its last.
  from_turn integer not null,
  from_seq bigint not null,
  to_turn integer not null,
  to_seq bigint not null,
  -- A letter each (webhooks/sending/delivery-row.ts).
  chunk_types text not null,
  -- The time stamp that the envelope carries.
  occurred_at timestamptz not null,
  -- As JSON, the last ones (webhooks/sending/kept-attempt.ts).
  attempts text[] default '{}'::text[] not null,
  attempt_count integer default 0 not null,
  -- How many waits of the retry schedule it has used; not every attempt costs one.
  retries integer default 0 not null,
  -- Only while it waits for a retry.
  next_attempt_at timestamptz,
  -- Until when the receiver asked to wait.
  not_before timestamptz,
  -- The exact bytes, kept from the first failure on.
  body text,
  created_at timestamptz not null,
  constraint pending_deliveries_pkey primary key (organization_id, webhook_subscription_id, delivery_id)
);
create index pending_deliveries_retry on pending_deliveries (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

-- Deliveries that are over, kept for people to look at. A row is written once, so nothing of it is indexed or stored twice; only
-- one that is sent once more changes. Columns as in pending_deliveries.
create table webhook_deliveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  delivery_id uuid not null,
  session_id uuid not null,
  previous_cursor text not null,
  from_turn integer not null,
  from_seq bigint not null,
  to_turn integer not null,
  to_seq bigint not null,
  chunk_types text not null,
  occurred_at timestamptz not null,
  status text not null,
  attempts text[] not null,
  attempt_count integer not null,
  -- Only while it is to be sent once more.
  next_attempt_at timestamptz,
  created_at timestamptz not null,
  finished_at timestamptz not null,
  constraint webhook_deliveries_pkey primary key (organization_id, webhook_subscription_id, delivery_id),
  constraint webhook_deliveries_status_check check ((status = ANY (ARRAY['succeeded'::text, 'exhausted'::text, 'cancelled'::text])))
);
create index webhook_deliveries_by_session on webhook_deliveries (organization_id, session_id, delivery_id);
create index webhook_deliveries_not_accepted on webhook_deliveries (organization_id, webhook_subscription_id, status, delivery_id) WHERE (status <> 'succeeded'::text);
create index webhook_deliveries_resend on webhook_deliveries (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

-- What came to the built-in test receiver (webhooks/test-receiver.ts): the last hundred of a subscription, gone with it.
create table received_webhooks (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  received_webhook_id uuid not null,
  -- Whose chunks it holds: it goes with the Session too.
  session_id uuid,
  headers json not null,
  body text not null,
  truncated boolean not null,
  verified boolean not null,
  received_at timestamptz not null,
  constraint received_webhooks_pkey primary key (organization_id, webhook_subscription_id, received_webhook_id),
  constraint received_webhooks_organization_id_webhook_subscription_id_fkey foreign key (organization_id, webhook_subscription_id) references webhook_subscriptions(organization_id, webhook_subscription_id) on delete cascade
);

-- What is to be sent once more (webhooks/recovery.ts): the Sessions are taken back to where it says, a few at a time.
create table webhook_recoveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  recovery_id uuid not null,
  -- All of the Environment's, from the first chunk committed at this time or later;
  since timestamptz,
  -- or one, from the chunk behind a position.
  session_id uuid,
  turn integer,
  seq bigint,
  -- How far it has come: over the open ones by id, then over those that ended in time by when they did.
  after_session_id uuid not null,
  after_ended_at timestamptz,
  ended_before timestamptz,
  created_at timestamptz not null,
  constraint webhook_recoveries_pkey primary key (organization_id, webhook_subscription_id, recovery_id),
  constraint webhook_recoveries_organization_id_webhook_subscription_id_fkey foreign key (organization_id, webhook_subscription_id) references webhook_subscriptions(organization_id, webhook_subscription_id)
);

-- What model calls used and cost, as it was when they were answered. It outlives the Session. Soon after, a call becomes part
-- of the sums of its day: it stands in exactly one of the two tables.
create table model_usage (
  organization_id uuid not null,
  -- The operation's.
  usage_id uuid not null,
  occurred_at timestamptz not null,
  agent_id uuid not null,
  environment text not null,
  -- provider/model
  model text not null,
  -- The cached ones included.
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  -- Null where the model had no price.
  cost_usd numeric,
  constraint model_usage_pkey primary key (organization_id, usage_id)
);

create table model_usage_days (
  organization_id uuid not null,
  -- Of UTC.
  day date not null,
  agent_id uuid not null,
  environment text not null,
  model text not null,
  steps bigint not null,
  -- Those whose model had no price.
  unpriced_steps bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  -- Of the steps that had a price.
  cost_usd numeric not null,
  constraint model_usage_days_pkey primary key (organization_id, day, agent_id, environment, model)
);

-- A schedule opens a Session at each of its occurrences: those of a cron expression, or the one instant `at`.
--
-- next_at is the next occurrence that nobody has dealt with; null while it is paused and when `at` has passed. Whoever deals
-- with it moves it on in the transaction that opens the Session, under the row's lock and only from the value that was read:
-- that is what makes an occurrence happen once over nodes, restarts and lost answers.
create table schedules (
  organization_id uuid not null,
  schedule_id uuid not null,
  agent_id uuid not null,
  environment text not null,
  input json,
  metadata json not null,
  budget json,
  cron text,
  timezone text,
  at timestamptz,
  status text not null,
  close_on_idle boolean not null,
  next_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint schedules_pkey primary key (organization_id, schedule_id),
  constraint schedules_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id),
  constraint schedules_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name),
  constraint schedules_check check (((cron IS NULL) = (timezone IS NULL))),
  constraint schedules_check1 check (((cron IS NULL) <> (at IS NULL))),
  constraint schedules_status_check check ((status = ANY (ARRAY['enabled'::text, 'paused'::text])))
);
create index schedules_due on schedules (next_at, schedule_id) WHERE (status = 'enabled'::text);

-- What became of an occurrence: one row each.
create table schedule_runs (
  organization_id uuid not null,
  schedule_id uuid not null,
  scheduled_at timestamptz not null,
  status text not null,
  -- Of the Session that was opened, which may be deleted before this row is.
  session_id uuid,
  error json,
  created_at timestamptz not null,
  constraint schedule_runs_pkey primary key (organization_id, schedule_id, scheduled_at),
  constraint schedule_runs_organization_id_schedule_id_fkey foreign key (organization_id, schedule_id) references schedules(organization_id, schedule_id) on delete cascade,
  constraint schedule_runs_status_check check ((status = ANY (ARRAY['opened'::text, 'missed'::text, 'failed'::text])))
);

-- The event log. A change inserts into events_pending, without any lock shared between requests; the sequencer moves what
-- is committed into events, where sequence and hash are given.
create table events_pending (
  organization_id uuid not null,
  event_id uuid not null,
  body jsonb not null,
  occurred_at timestamptz not null,
  constraint events_pending_pkey primary key (organization_id, event_id)
);

create table events (
  organization_id uuid not null,
  sequence bigint not null,
  event_id uuid not null,
  body jsonb not null,
  occurred_at timestamptz not null,
  hash bytea not null,
  constraint events_pkey primary key (organization_id, sequence),
  constraint events_organization_id_event_id_key unique (organization_id, event_id)
) with (autovacuum_vacuum_scale_factor=0.02);
-- What people look for in a long log: what happened to one thing, in one Session, by one key, or of one kind.
create index events_resource on events (organization_id, (((body -> 'resource'::text) ->> 'id'::text)), sequence);
create index events_session on events (organization_id, ((body ->> 'sessionId'::text)), sequence) WHERE ((body ->> 'sessionId'::text) IS NOT NULL);
create index events_actor on events (organization_id, (((body -> 'actor'::text) ->> 'id'::text)), sequence);
create index events_environment on events (organization_id, ((body ->> 'environment'::text)), sequence) WHERE ((body ->> 'environment'::text) IS NOT NULL);
create index events_type on events (organization_id, ((body ->> 'type'::text)), sequence);

create table event_heads (
  organization_id uuid not null,
  -- The last record in events, and its hash.
  sequence bigint not null,
  hash bytea not null,
  -- The last record that retention has dropped: what is left begins after it, and its hash is what the chain hangs on.
  -- 0 and zeros where nothing was dropped.
  anchor_sequence bigint not null,
  anchor_hash bytea not null,
  -- When the latest of all records occurred, and how long before it one occurred that came behind it (events/range.ts).
  latest_at timestamptz,
  late_ms bigint default 0 not null,
  constraint event_heads_pkey primary key (organization_id),
  constraint event_heads_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

-- When the log last heard that a key or a person was refused with a code: who hammers must not fill it.
create table access_denials (
  organization_id uuid not null,
  caller_id uuid not null,
  code text not null,
  recorded_at timestamptz not null,
  constraint access_denials_pkey primary key (organization_id, caller_id, code)
);
create index access_denials_age on access_denials (recorded_at);

-- A node and its lease, renewed by the database's clock. Sessions and subscriptions name their node, so no heartbeat touches their
-- rows. A worker turn that was claimed has a row as well: if the worker dies, its session is found as that of a dead node is.
create table nodes (
  node_id uuid not null,
  lease_expires_at timestamptz not null,
  -- It sends webhooks, so some subscriptions are its share (webhooks/sending/shares.ts).
  delivers boolean default false not null,
  -- Of a worker turn that was claimed with an Idempotency-Key: which claim that was. Sent again, it gets the same or nothing.
  claim uuid,
  started_at timestamptz default now() not null,
  constraint nodes_pkey primary key (node_id),
  constraint nodes_claim_key unique (claim)
);

-- What is so for all organizations, in one row: where people open the console, as the service said last. The command on the host
-- makes links of it.
create table installation (
  only_row boolean default true not null,
  console_origin text not null,
  constraint installation_pkey primary key (only_row),
  constraint installation_only_row_check check (only_row)
);

-- A fingerprint of each key that secrets were sealed under, the newest last: a node that does not have the newest does not start.
create table master_keys (
  fingerprint bytea not null,
  "position" integer not null,
  recorded_at timestamptz not null,
  constraint master_keys_pkey primary key (fingerprint),
  constraint master_keys_position_key unique ("position")
);

-- Who belongs to an organization. The person stands in users, which a sharded database keeps in one place: no foreign key
-- leads there. Who leaves the last organization is deleted there too, in the same transaction.
create table members (
  organization_id uuid not null,
  user_id uuid not null,
  role text not null,
  joined_at timestamptz not null,
  last_signed_in_at timestamptz,
  constraint members_pkey primary key (organization_id, user_id),
  constraint members_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint members_role_check check ((role = ANY (ARRAY['viewer'::text, 'member'::text, 'admin'::text, 'owner'::text])))
);
-- A person who signs in is asked for their organizations, whichever these are.
create index members_user on members (user_id);

-- A link that makes who follows it a member. Accepting it deletes the row, so of two at once one finds it.
create table invitations (
  organization_id uuid not null,
  invitation_id uuid not null,
  -- The first one, made by the start where the organization has no members: who accepts it names the organization.
  is_setup boolean not null,
  role text not null,
  email text,
  name text,
  -- As the event log names an actor.
  invited_by json not null,
  token_hash bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint invitations_pkey primary key (organization_id, invitation_id),
  constraint invitations_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint invitations_role_check check ((role = ANY (ARRAY['viewer'::text, 'member'::text, 'admin'::text, 'owner'::text])))
);
create index invitations_expiry on invitations (expires_at);

-- A link that lets a member set a new password; using it deletes the row.
create table password_resets (
  organization_id uuid not null,
  password_reset_id uuid not null,
  user_id uuid not null,
  -- Who made it; null of one made on the host, which is for people of several organizations too.
  made_by uuid,
  token_hash bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint password_resets_pkey primary key (organization_id, password_reset_id),
  constraint password_resets_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);
create index password_resets_expiry on password_resets (expires_at);

-- better-auth's own, in the shape that it asks for (people/identity.ts names the columns to it; a test compares).
create table users (
  id uuid not null,
  name text not null,
  email text not null,
  email_verified boolean not null,
  image text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint users_pkey primary key (id),
  constraint users_email_key unique (email)
);

-- Sign-ins, not Sessions of an Agent. The token is worth nothing without its signature under the master key.
create table sign_ins (
  id uuid not null,
  user_id uuid not null,
  token text not null,
  expires_at timestamptz not null,
  ip_address text,
  user_agent text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint sign_ins_pkey primary key (id),
  constraint sign_ins_token_key unique (token),
  constraint sign_ins_user_id_fkey foreign key (user_id) references users(id) on delete cascade
);
create index sign_ins_user on sign_ins (user_id);
create index sign_ins_expiry on sign_ins (expires_at);

-- How a person signs in: with a password (provider_id "credential", hashed by scrypt), or by a provider.
create table accounts (
  id uuid not null,
  user_id uuid not null,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint accounts_pkey primary key (id),
  constraint accounts_provider_id_account_id_key unique (provider_id, account_id),
  constraint accounts_user_id_fkey foreign key (user_id) references users(id) on delete cascade
);
create index accounts_user on accounts (user_id);

-- Challenges of passkeys and states of sign-ins by a provider, for minutes.
create table verifications (
  id uuid not null,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint verifications_pkey primary key (id)
);
create index verifications_identifier on verifications (identifier);
create index verifications_expiry on verifications (expires_at);

create table passkeys (
  id uuid not null,
  user_id uuid not null,
  name text,
  public_key text not null,
  credential_id text not null,
  counter integer not null,
  device_type text not null,
  backed_up boolean not null,
  transports text,
  aaguid text,
  created_at timestamptz,
  constraint passkeys_pkey primary key (id),
  constraint passkeys_credential_id_key unique (credential_id),
  constraint passkeys_user_id_fkey foreign key (user_id) references users(id) on delete cascade
);
create index passkeys_user on passkeys (user_id);

create table signalbox_migrations (
  version integer not null,
  name text not null,
  sha256 text not null,
  works_with integer not null,
  applied_by text not null,
  applied_at timestamptz default now() not null,
  constraint signalbox_migrations_pkey primary key (version)
);
