-- The schema that the migrations make, for reading. Written by `npm run schema`; do not edit: a test compares it.
--
-- The whole state of Signalbox.
--
-- `organization_id` is the first column of every key and a condition of every statement: an organization is the unit of tenancy
-- and, on a sharded database, of placement. Ids are UUIDv7 and sort by time, so lists page by primary key.
--
-- A node is a process of the service. A worker is a program of the integrator's that runs steps or tools. An active session is one
-- that a node has claimed and runs; a parked session is only a row.
--
-- Tables with many deletions are vacuumed once 2 % of their rows are dead; the default, a fifth, is too much of a large table.
--
-- JSON that people write or read has the type `json`, which keeps it as written: jsonb would reorder the fields, and people read
-- approvals. JSON that is only queried is jsonb.
--
-- Who writes which table:
--   sessions, segments, messages, operations   one writer at a time for each session, fenced by sessions.epoch
--   session_inbox                              API calls, while a node runs the session
--   model_usage                                the writer of the session; compaction moves rows into model_usage_days
--   events                                     the sequencer, one at a time for each organization
--   nodes                                      each node its own row; this table and those below have no organization
--   installation                               a node that starts to serve the console
--   master_keys                                a node that starts
--   users, sign_ins, accounts,                 better-auth, through its own pool. A user belongs to the installation; members says
--   verifications, passkeys                    which organizations they are in

create table organizations (
  organization_id uuid not null,
  name text not null,
  created_at timestamptz not null,
  -- The size of all files of the organization together.
  file_bytes bigint default 0 not null,
  -- The origins of web pages that may call with session tokens.
  allowed_origins text[] default '{}'::text[] not null,
  constraint organizations_pkey primary key (organization_id)
);

-- A secret contains the ids of its organization and key, so even the look-up of a key names the organization.
create table api_keys (
  organization_id uuid not null,
  key_id uuid not null,
  name text not null,
  permission text,
  expires_at timestamptz,
  -- Null: the key may be used from any address, and in every environment.
  allowed_ips text[],
  environments text[],
  metadata json not null,
  secret_hash bytea not null,
  secret_preview text not null,
  last_used_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  -- What a key without a permission has: its scopes, or the name of a permission if the key is limited to agents. Code that knows neither
  -- refuses every request of such a key.
  scopes text[],
  -- Null: the key may use every agent.
  agents uuid[],
  -- The secret before the last rotation works until its time. It is also in retired_key_secrets, with that time.
  old_secret_hash bytea,
  old_secret_preview text,
  old_secret_expires_at timestamptz,
  -- Who created the key, in the same form: its creator, then the creator of that key, and so on. Empty in rows of an earlier release,
  -- and for keys that the operator created on the host.
  created_by text[] default '{}'::text[] not null,
  -- Null: no limit, for both.
  requests_per_minute integer,
  max_cost_usd_per_day numeric,
  constraint api_keys_pkey primary key (organization_id, key_id),
  constraint api_keys_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint api_keys_permission_check check ((permission = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
create index api_keys_deleted on api_keys (deleted_at) WHERE (deleted_at IS NOT NULL);

-- Hashes of secrets that were replaced by a rotation, kept for 90 days so that their use gets a specific 401 code.
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
  -- The key or the user of the request.
  caller_id uuid not null,
  idempotency_key text not null,
  fingerprint bytea not null,
  -- Null while the first request is running. No other request can see the row then, because its transaction is open.
  status integer,
  -- The exact text of the response, without secrets.
  body text,
  -- The whole response if it contains a secret, encrypted with the caller's own credential.
  sealed_body bytea,
  expires_at timestamptz not null,
  -- The sessions, files and end users that the request or its response names, so that erasing an end user finds it. Null in rows of older code.
  subjects text[],
  constraint idempotency_records_pkey primary key (organization_id, caller_id, idempotency_key)
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02);
create index idempotency_records_expiry on idempotency_records (expires_at);

create table environments (
  organization_id uuid not null,
  name text not null,
  environment_id uuid not null,
  -- How long ended sessions are kept; null: as the operator configured.
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
  -- MCP servers that did not list their tools when a turn last needed them: the reason, by `environment/name`. Only a change is
  -- recorded as an event.
  unavailable_servers jsonb default '{}'::jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  archived_at timestamptz,
  constraint agents_pkey primary key (organization_id, agent_id),
  constraint agents_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

-- Never updated, so a version can be cached indefinitely.
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
-- runnable_at is when a node next has something to do for it. Running: now. Waiting: at the first deadline of an approval. A step
-- offered to workers (queue): at the turn's deadline. Idle or ended: null.
--
-- The fill factor leaves room on the page for the next version of the row. An append changes no indexed column (once
-- delivery_due is set), so it is a heap-only update.
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
  -- Incremented whenever the writer changes. Writes with an older epoch are refused.
  epoch integer default 0 not null,
  node_id uuid,
  -- How many nodes died while they ran the current step, so that a step which kills its process is not retried without end.
  crashes smallint default 0 not null,
  runnable_at timestamptz,
  -- For a step that a worker runs: the queue that it is offered on or was claimed from.
  queue text,
  -- A request to end the turn, or the session. The node handles it before anything else.
  stop text,
  -- When the turn times out. The time is stopped while the session waits: turn_left_ms is then what is left of it.
  turn_deadline timestamptz,
  turn_left_ms bigint,
  -- The trace of the request that sent the turn's message (W3C Trace Context); null if it is not traced.
  trace_parent text,
  -- Tools that an approver allowed for the rest of the session; their calls need no further approval.
  granted_tools text[] default '{}'::text[] not null,
  -- A call of an agent tool opens a child. All sessions below a root share the budget of the root.
  parent_session_id uuid,
  parent_operation_id uuid,
  root_session_id uuid,
  depth integer default 0 not null,
  -- The session has ended, and its parent has not been notified yet.
  parent_due boolean default false not null,
  -- The number of rows in session_inbox. It is here because a node about to park the session must see a row that is inserted
  -- concurrently: the node re-reads this row under its lock, not the inbox.
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
  -- Null until a model call has a price.
  cost_usd numeric,
  -- Model calls that have ended, so that the scripted model finds its position after a crash.
  model_calls integer default 0 not null,
  -- Webhooks: whether chunks are waiting to be delivered, and the subscription that the delivery columns belong to. Creating a
  -- subscription does not write to this table; the first append that sees the subscription does (journal/delivery-mark.ts).
  delivery_due boolean default false not null,
  delivery_subscription_id uuid,
  -- The position after which the current or next delivery starts. Everything up to it was acknowledged, given up, or filtered out.
  delivered_turn integer default 0 not null,
  delivered_seq bigint default 0 not null,
  delivery_id uuid,
  -- The last cursor that the receiver acknowledged.
  acknowledged_cursor text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  -- What the last model call read and wrote, in tokens. Null before the first, after a compaction, and if its provider does not say.
  context_tokens bigint,
  -- A fork continues the conversation of another session, its origin, after one of its turns: the origin, which may be deleted, and the
  -- turn; null if the session is not a fork.
  forked_from_session_id uuid,
  forked_at_turn integer,
  -- Input tokens that were written to a provider's cache, which some providers charge more for.
  cache_write_tokens bigint default 0 not null,
  -- The end user that a session is for: the integrator's own id and the name that they gave; null if none was given.
  end_user_id text,
  end_user_name text,
  -- The key that opened the session, or its root, or created the schedule that did; null: a person did. The key may be deleted.
  key_id uuid,
  -- Who gave the session input: `user:` or `api_key:` and the id of everyone who opened it, sent it a message or a result, or ran a
  -- step of it as a worker. A child has its parent's as well, a fork its origin's.
  requesters text[] default '{}'::text[] not null,
  -- How many characters the worker that has claimed the session's step has appended.
  appended_characters integer default 0 not null,
  -- What models do not get of the conversation or the agent (sessions/state/left-out.ts); null if nothing is left out.
  left_out jsonb,
  -- Searches of the web that the models' providers ran, which they charge for apart from tokens.
  web_searches bigint default 0 not null,
  -- The node that may have text of the session in the tail, and the flush after which it is. Null if there is none.
  tail_node uuid,
  tail_from bigint,
  constraint sessions_pkey primary key (organization_id, session_id),
  constraint sessions_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id),
  constraint sessions_status_check check ((status = ANY (ARRAY['idle'::text, 'running'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
  constraint sessions_stop_check check ((stop = ANY (ARRAY['interrupt'::text, 'cancel'::text])))
) with (autovacuum_analyze_scale_factor=0.5, fillfactor=70);
-- For the metric of how long the oldest runnable session has waited.
create index sessions_runnable on sessions (runnable_at) WHERE ((node_id IS NULL) AND (runnable_at IS NOT NULL));
-- Claims. A node searches for ready sessions organization by organization, so it never scans the backlog of one to find the sessions
-- of another. Sessions with a deadline are searched by deadline: few are due.
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
-- For retention, which deletes a session together with its children.
create index sessions_retention on sessions (organization_id, environment, ended_at) WHERE ((ended_at IS NOT NULL) AND (root_session_id IS NULL));
create index sessions_by_draft on sessions (organization_id, agent_id, pinned_version) WHERE (pinned_version < 0);
create index sessions_drafts on sessions (organization_id, session_id) WHERE (pinned_version < 0);
create index sessions_with_error on sessions (organization_id, session_id) WHERE (error IS NOT NULL);

-- The index for finding sessions by metadata (sessions/metadata.ts): `pair` is a hash of a key and its value. It is a separate table
-- because an index of sessions would be written whenever a session starts or stops. There is no foreign key, because a cascade would
-- search this table by session.
create table session_metadata (
  organization_id uuid not null,
  pair bigint not null,
  session_id uuid not null,
  constraint session_metadata_pkey primary key (organization_id, pair, session_id)
);

-- The journal. A segment has the chunks that one commit appended. Its body is a JSON array: a string is the delta of a
-- message.chunk, an object is any other chunk without its turn and seq.
create table segments (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  seq_to bigint not null,
  seq_from bigint not null,
  body text not null,
  created_at timestamptz not null,
  constraint segments_pkey primary key (organization_id, session_id, turn, seq_to)
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02);

-- What API calls leave for the node that runs the session, and messages queued for a later turn.
create table session_inbox (
  organization_id uuid not null,
  session_id uuid not null,
  inbox_id uuid not null,
  -- Assigned in order under the lock of the session's row. Ids are no order here: they come from the clocks of several nodes.
  "position" integer not null,
  kind text not null,
  body json not null,
  created_at timestamptz not null,
  constraint session_inbox_pkey primary key (organization_id, session_id, inbox_id),
  constraint session_inbox_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint session_inbox_kind_check check ((kind = ANY (ARRAY['message'::text, 'approval'::text, 'tool_result'::text])))
);

-- The transcript: the messages to and from the model.
-- There is no foreign key, because messages may outlive their session (kept_transcripts).
create table messages (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  "position" integer not null,
  message_id uuid not null,
  role text not null,
  content json not null,
  -- Opaque data that the provider needs with the next call, such as signatures of its reasoning.
  provider_data json,
  created_at timestamptz not null,
  constraint messages_pkey primary key (organization_id, session_id, turn, "position"),
  constraint messages_role_check check ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text])))
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02);

-- Every model call (index 0 of its step) and tool call, stored before it starts.
-- A compaction is an operation as well. All rows satisfy the new constraint, because the old one was stricter.
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
  -- For a model call: how often it failed, and the earliest time of its next attempt. Stored so that a node which takes over the
  -- turn continues the count.
  failures integer default 0 not null,
  retry_at timestamptz,
  -- For a tool call: whether it may be repeated after a crash. If not, its outcome is then unknown.
  repeatable boolean default false not null,
  -- For a call that awaits approval: when the approval expires.
  expires_at timestamptz,
  -- For a call of an agent tool: the child session.
  child_session_id uuid,
  -- For a turn's first model call: the version of the agent that the turn runs.
  agent_version integer,
  -- For a turn's first model call: the MCP servers that did not list their tools, `[{ name, reason }]`.
  unavailable_servers json,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  -- For a model call with a response: `provider/model` of the model that gave it, which may be a fallback of the agent's own. Null in
  -- rows of an earlier release: it was the agent's own.
  model text,
  -- For a model call whose session waits, or waited, because no model was available: since when.
  unavailable_since timestamptz,
  -- For people who debug a step. Of a model call: when its first token arrived and which attempts failed. Of a call of an `http` or `mcp`
  -- tool: the head of the server's response, without secrets. What was sent is not stored, because it follows from the agent's version
  -- and the transcript.
  trace json,
  constraint operations_pkey primary key (organization_id, session_id, turn, step, index),
  constraint operations_organization_id_operation_id_key unique (organization_id, operation_id),
  constraint operations_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint operations_kind_check check ((kind = ANY (ARRAY['model'::text, 'tool'::text, 'compaction'::text]))) NOT VALID,
  constraint operations_status_check check ((status = ANY (ARRAY['pending'::text, 'awaiting_approval'::text, 'ready'::text, 'running'::text, 'awaiting_result'::text, 'awaiting_session'::text, 'succeeded'::text, 'failed'::text, 'denied'::text, 'cancelled'::text, 'unknown'::text])))
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02);

create table approvals (
  organization_id uuid not null,
  operation_id uuid not null,
  session_id uuid not null,
  agent_id uuid not null,
  environment text not null,
  name text not null,
  input json,
  -- The tool's schema at the time of the call; an edited input is checked against it.
  input_schema json not null,
  edited_input json,
  -- Whether an approval also covers later calls of the tool in this session (the policy asks once).
  once boolean not null,
  status text not null,
  reason text,
  resolved_by json,
  requested_at timestamptz not null,
  resolved_at timestamptz,
  expires_at timestamptz,
  -- Who may decide an approval, as the agent said when the call was requested; null: any person or key that can decide approvals.
  approvers json,
  -- If the approvers exclude requesters: who they were when the call was requested, as in sessions.requesters.
  requesters text[],
  -- What each approver decided. The approval is decided once as many as it needs have approved the same input, or one has denied it.
  -- Empty in rows of an earlier release: `status` and `resolved_by` have their one decision.
  decisions json default '[]'::json not null,
  constraint approvals_pkey primary key (organization_id, operation_id),
  constraint approvals_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade,
  constraint approvals_approvers_check check (((status <> 'approved'::text) OR (approvers IS NULL) OR (json_array_length(decisions) >= COALESCE(((approvers ->> 'count'::text))::integer, 1)))) NOT VALID,
  constraint approvals_status_check check ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'expired'::text, 'cancelled'::text])))
);
create index approvals_by_environment on approvals (organization_id, environment, status, operation_id);
create index approvals_by_session on approvals (organization_id, session_id);
create index approvals_by_agent on approvals (organization_id, agent_id, environment, status, operation_id);

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
  -- The node that this subscription is assigned to.
  node_id uuid,
  -- Incremented by each assignment and each change. A node with an older epoch can neither start a delivery nor skip chunks.
  epoch integer default 0 not null,
  -- The health of the destination (webhooks/sending/health-rules.ts): failing since when, consecutive failures, the session if all
  -- failures are of one, the time of the next probe, and whether the warning was recorded.
  failing_since timestamptz,
  failures integer default 0 not null,
  failing_session_id uuid,
  -- The outcome of the last attempt, and the HTTP status of its response.
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
-- For subscriptions that are not assigned, or assigned to a node that is gone.
create index webhook_subscriptions_by_node on webhook_subscriptions (node_id) WHERE (status = 'enabled'::text);

-- The current delivery of each session that has one (sessions.delivery_id). Its range is stored before the first attempt and never
-- changes. When the delivery ends, its row moves to webhook_deliveries.
create table pending_deliveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  delivery_id uuid not null,
  session_id uuid not null,
  -- The cursor that the receiver had acknowledged before; empty for the first delivery of a session.
  previous_cursor text not null,
  -- The range of chunks: from is the position before the first chunk, to the position of the last.
  from_turn integer not null,
  from_seq bigint not null,
  to_turn integer not null,
  to_seq bigint not null,
  -- One letter for each chunk type (webhooks/sending/delivery-row.ts).
  chunk_types text not null,
  -- The timestamp of the payload.
  occurred_at timestamptz not null,
  -- The latest attempts, as JSON (webhooks/sending/stored-attempt.ts).
  attempts text[] default '{}'::text[] not null,
  attempt_count integer default 0 not null,
  -- How many waits of the retry schedule were used; not every attempt uses one.
  retries integer default 0 not null,
  -- Set only while the delivery waits for a retry.
  next_attempt_at timestamptz,
  -- The receiver's Retry-After: no attempt before this time.
  not_before timestamptz,
  -- The exact payload, stored from the first failure on.
  body text,
  created_at timestamptz not null,
  constraint pending_deliveries_pkey primary key (organization_id, webhook_subscription_id, delivery_id)
);
create index pending_deliveries_retry on pending_deliveries (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

-- Deliveries that have ended, kept for the API and the console. A row changes only if its delivery is sent again. Columns as in
-- pending_deliveries.
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
  -- Set only while the delivery waits to be sent again.
  next_attempt_at timestamptz,
  created_at timestamptz not null,
  finished_at timestamptz not null,
  constraint webhook_deliveries_pkey primary key (organization_id, webhook_subscription_id, delivery_id),
  constraint webhook_deliveries_status_check check ((status = ANY (ARRAY['succeeded'::text, 'exhausted'::text, 'cancelled'::text])))
) with (autovacuum_analyze_scale_factor=0.5);
create index webhook_deliveries_by_session on webhook_deliveries (organization_id, session_id, delivery_id);
create index webhook_deliveries_not_accepted on webhook_deliveries (organization_id, webhook_subscription_id, status, delivery_id) WHERE (status <> 'succeeded'::text);
create index webhook_deliveries_resend on webhook_deliveries (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

-- What the built-in test receiver received (webhooks/sending/test-receiver.ts): the last hundred requests of a subscription, deleted with it.
create table received_webhooks (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  received_webhook_id uuid not null,
  -- The session whose chunks it contains. The row is deleted with the session.
  session_id uuid,
  headers json not null,
  body text not null,
  truncated boolean not null,
  verified boolean not null,
  received_at timestamptz not null,
  constraint received_webhooks_pkey primary key (organization_id, webhook_subscription_id, received_webhook_id),
  constraint received_webhooks_organization_id_webhook_subscription_id_fkey foreign key (organization_id, webhook_subscription_id) references webhook_subscriptions(organization_id, webhook_subscription_id) on delete cascade
);

-- Requests to redeliver (webhooks/recovery.ts). The delivery positions of the sessions are rewound a few sessions at a time.
create table webhook_recoveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  recovery_id uuid not null,
  -- All sessions of the environment, from the first chunk committed at this time or later;
  since timestamptz,
  -- or one session, from the chunk after a position.
  session_id uuid,
  turn integer,
  seq bigint,
  -- Progress: first over the open sessions by id, then over the ended ones by the time of their end.
  after_session_id uuid not null,
  after_ended_at timestamptz,
  ended_before timestamptz,
  created_at timestamptz not null,
  constraint webhook_recoveries_pkey primary key (organization_id, webhook_subscription_id, recovery_id),
  constraint webhook_recoveries_organization_id_webhook_subscription_id_fkey foreign key (organization_id, webhook_subscription_id) references webhook_subscriptions(organization_id, webhook_subscription_id)
);

-- Tokens and cost of model calls, at the prices of that time. The rows outlive their session. Compaction soon adds a call to the
-- totals of its day, so each call is in exactly one of the two tables.
create table model_usage (
  organization_id uuid not null,
  -- The id of the operation.
  usage_id uuid not null,
  occurred_at timestamptz not null,
  agent_id uuid not null,
  environment text not null,
  -- provider/model
  model text not null,
  -- Including cached tokens.
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  -- Null if the model had no price.
  cost_usd numeric,
  cache_write_tokens bigint default 0 not null,
  -- Null: the session has no end user, or the end user was erased.
  end_user_id text,
  key_id uuid,
  web_searches bigint default 0 not null,
  constraint model_usage_pkey primary key (organization_id, usage_id)
) with (autovacuum_analyze_scale_factor=0.5);
-- For what a key has spent today, before its calls are in the sums.
create index model_usage_by_key on model_usage (organization_id, key_id, occurred_at) WHERE (key_id IS NOT NULL);

create table model_usage_days (
  organization_id uuid not null,
  -- In UTC.
  day date not null,
  agent_id uuid not null,
  environment text not null,
  model text not null,
  steps bigint not null,
  -- Steps whose model had no price.
  unpriced_steps bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  -- Of the steps with a price.
  cost_usd numeric not null,
  cache_write_tokens bigint default 0 not null,
  web_searches bigint default 0 not null,
  constraint model_usage_days_pkey primary key (organization_id, day, agent_id, environment, model)
);

-- A schedule opens a session at each of its occurrences: those of a cron expression, or the single instant `at`.
--
-- next_at is the next occurrence; null while the schedule is paused and after `at`. The transaction that opens the session advances
-- it, under the row's lock and only from the value that was read. Each occurrence therefore happens once, across nodes, restarts and
-- lost responses.
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
  end_user json,
  key_id uuid,
  -- Who created and changed it.
  requesters text[] default '{}'::text[] not null,
  -- Null: it has none.
  name text,
  constraint schedules_pkey primary key (organization_id, schedule_id),
  constraint schedules_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id),
  constraint schedules_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name),
  constraint schedules_check check (((cron IS NULL) = (timezone IS NULL))),
  constraint schedules_check1 check (((cron IS NULL) <> (at IS NULL))),
  constraint schedules_status_check check ((status = ANY (ARRAY['enabled'::text, 'paused'::text])))
);
create index schedules_due on schedules (next_at, schedule_id) WHERE (status = 'enabled'::text);

-- The outcome of each occurrence.
create table schedule_runs (
  organization_id uuid not null,
  schedule_id uuid not null,
  scheduled_at timestamptz not null,
  status text not null,
  -- The session that was opened; it may be deleted before this row.
  session_id uuid,
  error json,
  created_at timestamptz not null,
  -- Whether a caller started it, instead of its time.
  is_manual boolean default false not null,
  constraint schedule_runs_pkey primary key (organization_id, schedule_id, scheduled_at),
  constraint schedule_runs_organization_id_schedule_id_fkey foreign key (organization_id, schedule_id) references schedules(organization_id, schedule_id) on delete cascade,
  constraint schedule_runs_status_check check ((status = ANY (ARRAY['opened'::text, 'missed'::text, 'failed'::text])))
);
create index schedule_runs_by_session on schedule_runs (organization_id, session_id) WHERE (session_id IS NOT NULL);

-- The event log. A change inserts into events_pending, without a lock that requests would share. The sequencer moves committed rows
-- into events, and assigns sequence and hash.
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
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02);
-- For the filters of the log: by resource, session, actor, environment and type.
create index events_resource on events (organization_id, (((body -> 'resource'::text) ->> 'id'::text)), sequence);
create index events_session on events (organization_id, ((body ->> 'sessionId'::text)), sequence) WHERE ((body ->> 'sessionId'::text) IS NOT NULL);
create index events_actor on events (organization_id, (((body -> 'actor'::text) ->> 'id'::text)), sequence);
create index events_environment on events (organization_id, ((body ->> 'environment'::text)), sequence) WHERE ((body ->> 'environment'::text) IS NOT NULL);
create index events_type on events (organization_id, ((body ->> 'type'::text)), sequence);
create index events_agent on events (organization_id, ((body ->> 'agentId'::text)), sequence) WHERE ((body ->> 'agentId'::text) IS NOT NULL);
create index events_environment_type on events (organization_id, ((body ->> 'environment'::text)), ((body ->> 'type'::text)), sequence) WHERE ((body ->> 'environment'::text) IS NOT NULL);

create table event_heads (
  organization_id uuid not null,
  -- The last record in events, and its hash.
  sequence bigint not null,
  hash bytea not null,
  -- The last record that retention has deleted: the log starts after it, and the chain of hashes starts at its hash.
  -- 0 and zeros if nothing was deleted.
  anchor_sequence bigint not null,
  anchor_hash bytea not null,
  -- The latest time of any record, and the most by which a record is earlier than one before it (events/range.ts).
  latest_at timestamptz,
  late_ms bigint default 0 not null,
  pending_from uuid default '00000000-0000-0000-0000-000000000000'::uuid not null,
  -- The last record of the event log after which all sessions can be found (sessions/search/update.ts).
  searched bigint default 0 not null,
  -- How many sessions are open, by environment, after the record `counted` of the event log (events/open-sessions.ts). Null if they have not
  -- been counted yet, as in organizations from before this column.
  open_sessions jsonb default '{}'::jsonb,
  counted bigint default 0 not null,
  -- When they were last counted one by one.
  recounted_at timestamptz,
  constraint event_heads_pkey primary key (organization_id),
  constraint event_heads_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);
create index event_heads_to_search on event_heads (organization_id) WHERE (searched < sequence);

-- When a refusal with this code was last recorded for a key or user. It limits the rate, so a flood of requests can't fill the log.
create table access_denials (
  organization_id uuid not null,
  caller_id uuid not null,
  code text not null,
  recorded_at timestamptz not null,
  constraint access_denials_pkey primary key (organization_id, caller_id, code)
);
create index access_denials_age on access_denials (recorded_at);

-- A node and its lease, which is renewed by the database's clock. Sessions and subscriptions refer to their node, so heartbeats do
-- not touch their rows. A claimed worker turn has a row as well: if the worker dies, its session is found like that of a dead node.
create table nodes (
  node_id uuid not null,
  lease_expires_at timestamptz not null,
  -- Whether the node sends webhooks and has a share of the subscriptions (webhooks/sending/shares.ts).
  delivers boolean default false not null,
  -- For a worker turn claimed with an Idempotency-Key: the claim. If it is repeated, it gets the same worker turn or none.
  claim uuid,
  started_at timestamptz default now() not null,
  -- Whether the node runs sessions and has a share of what a node leaves that dies or stops (runtime/node/share.ts). False for worker
  -- turns, and for nodes of older code, whose share the others take.
  runs boolean default false not null,
  -- Whether the node sends to destinations and has a share of them (deliveries/destinations/shares.ts).
  sends_destinations boolean default false not null,
  -- Whether the node reads the tail. Others do not write to it while a node without this is running.
  reads_tail boolean default false not null,
  constraint nodes_pkey primary key (node_id),
  constraint nodes_claim_key unique (claim)
);

-- Settings of all organizations, in one row: the address of the console as the service last reported it. The command-line tool uses
-- it in links.
create table installation (
  only_row boolean default true not null,
  console_origin text not null,
  constraint installation_pkey primary key (only_row),
  constraint installation_only_row_check check (only_row)
);

-- A fingerprint of each master key that secrets were encrypted with, newest last. A node without the newest key does not start.
create table master_keys (
  fingerprint bytea not null,
  "position" integer not null,
  recorded_at timestamptz not null,
  constraint master_keys_pkey primary key (fingerprint),
  constraint master_keys_position_key unique ("position")
);

-- The members of an organization. There is no foreign key to users, because a sharded database keeps that table on one server. A
-- user who leaves their last organization is deleted in the same transaction.
create table members (
  organization_id uuid not null,
  user_id uuid not null,
  role text not null,
  joined_at timestamptz not null,
  last_signed_in_at timestamptz,
  decides_agents uuid[],
  decides_environments text[],
  constraint members_pkey primary key (organization_id, user_id),
  constraint members_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint members_role_check check (
CASE
    WHEN ((decides_agents IS NULL) AND (decides_environments IS NULL)) THEN (role = ANY (ARRAY['viewer'::text, 'approver'::text, 'member'::text, 'admin'::text, 'owner'::text]))
    ELSE (role = ANY (ARRAY['limited viewer'::text, 'limited approver'::text, 'limited member'::text]))
END) NOT VALID
);
-- For the organizations of a user who signs in.
create index members_user on members (user_id);

-- A link that makes its recipient a member. Accepting it deletes the row, so it works once.
create table invitations (
  organization_id uuid not null,
  invitation_id uuid not null,
  -- The first invitation, created at the start of an installation without members. Its recipient names the organization.
  is_setup boolean not null,
  role text not null,
  email text,
  name text,
  -- As the event log names an actor.
  invited_by json not null,
  token_hash bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  decides_agents uuid[],
  decides_environments text[],
  constraint invitations_pkey primary key (organization_id, invitation_id),
  constraint invitations_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint invitations_role_check check (
CASE
    WHEN ((decides_agents IS NULL) AND (decides_environments IS NULL)) THEN (role = ANY (ARRAY['viewer'::text, 'approver'::text, 'member'::text, 'admin'::text, 'owner'::text]))
    ELSE (role = ANY (ARRAY['limited viewer'::text, 'limited approver'::text, 'limited member'::text]))
END) NOT VALID
);
create index invitations_expiry on invitations (expires_at);

-- A link with which a member sets a new password; using it deletes the row.
create table password_resets (
  organization_id uuid not null,
  password_reset_id uuid not null,
  user_id uuid not null,
  -- The user who created it; null if it was created by the command-line tool, for users of any number of organizations.
  made_by uuid,
  token_hash bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint password_resets_pkey primary key (organization_id, password_reset_id),
  constraint password_resets_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);
create index password_resets_expiry on password_resets (expires_at);

-- The tables of better-auth, in the shape that it requires (people/identity.ts maps the columns; a test compares).
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

-- Sign-ins to the console, unrelated to sessions of an agent. A token is useless without its signature by the master key.
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

-- How a user signs in: with a password (provider_id "credential", hashed by scrypt), or with a provider.
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
  -- The issuer whose id the account has. The same id of another issuer is another person. Null until the first sign-in after an upgrade.
  issuer text,
  constraint accounts_pkey primary key (id),
  constraint accounts_provider_id_account_id_key unique (provider_id, account_id),
  constraint accounts_user_id_fkey foreign key (user_id) references users(id) on delete cascade
);
create index accounts_user on accounts (user_id);

-- Challenges of passkeys, and the state of sign-ins with a provider. They are valid for minutes.
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

-- Summaries that replace the older messages of a session for its model. `messages` and `segments` keep everything.
create table compactions (
  organization_id uuid not null,
  session_id uuid not null,
  -- The first message that the model still gets as it is: the summary replaces those before it. The newest compaction is the one
  -- with the greatest (from_turn, from_position).
  from_turn integer not null,
  from_position integer not null,
  operation_id uuid not null,
  -- The turn in which it was written.
  turn integer not null,
  summary text not null,
  -- Estimates of what a model call reads.
  tokens_before bigint not null,
  tokens_after bigint not null,
  -- `provider/model` that wrote it; null: it only says what is left out.
  model text,
  -- If the session's model refused fewer tokens than the agent allows: what it may get from now on, and its `provider/model`.
  max_tokens bigint,
  max_tokens_of text,
  created_at timestamptz not null,
  constraint compactions_pkey primary key (organization_id, session_id, from_turn, from_position),
  constraint compactions_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
);

-- The index of forks by their origin. It is a separate table because an index on sessions would be built under a lock of that table.
create table session_forks (
  organization_id uuid not null,
  session_id uuid not null,
  origin_session_id uuid not null,
  constraint session_forks_pkey primary key (organization_id, session_id),
  constraint session_forks_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
);
create index session_forks_by_origin on session_forks (organization_id, origin_session_id, session_id);

-- A fork reads messages of other sessions where they are: whose, and of which turns. There is a row for each session that wrote some
-- of them. The origin of a fork may be a fork itself. Its rows are copied, so no reader follows a chain.
create table inherited_turns (
  organization_id uuid not null,
  -- The fork.
  session_id uuid not null,
  from_turn integer not null,
  until_turn integer not null,
  -- Of the last message. If its turn had failed, a retry in the session that wrote it adds messages that the fork does not have.
  until_position integer not null,
  -- The session that wrote the messages; it may be deleted.
  source_session_id uuid not null,
  constraint inherited_turns_pkey primary key (organization_id, session_id, from_turn),
  constraint inherited_turns_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
);
-- For the last message of a session that any fork inherits.
create index inherited_turns_by_source on inherited_turns (organization_id, source_session_id, until_turn, until_position);

-- Deleted sessions whose messages are still there: because forks inherit them, or because they are not deleted yet.
create table kept_transcripts (
  organization_id uuid not null,
  session_id uuid not null,
  -- Some of the messages may not be inherited any more.
  due boolean not null,
  constraint kept_transcripts_pkey primary key (organization_id, session_id)
);
create index kept_transcripts_due on kept_transcripts (organization_id, session_id) WHERE due;

-- Files: uploaded by a caller, or created by a tool of a session (files/).
--
-- A row is inserted before the first byte. purge_after says whether the file exists: it is null from the end of the upload until the
-- file is deleted. Any other row is what an upload left behind, or a deleted file, and is removed with its bytes after that time.
create table files (
  organization_id uuid not null,
  file_id uuid not null,
  environment text not null,
  -- Where the bytes are: `database`, in file_pieces, or the name of another store.
  store text not null,
  -- Null until the upload has ended.
  filename text,
  media_type text,
  bytes bigint,
  sha256 bytea,
  -- The session in which a tool created it.
  session_id uuid,
  purge_after timestamptz,
  -- When it was last known to be in use, to within a day.
  used_at timestamptz not null,
  created_at timestamptz not null,
  -- For an upload with a session token: what the token reaches (keys/session-token.ts). Other tokens can't use the file.
  uploaded_by uuid,
  -- Room of the storage that an upload has taken which has not ended.
  reserved_bytes bigint default 0 not null,
  -- Who uploaded it, as `uploadedBy` shows it: `type`, `id` and `name`. Null for a file that a tool created.
  uploader jsonb,
  -- Uploaded with a session token, and named by no message yet.
  is_unsent boolean default false not null,
  constraint files_pkey primary key (organization_id, file_id)
) with (autovacuum_vacuum_scale_factor=0.02);
create index files_by_environment on files (organization_id, environment, file_id) WHERE (purge_after IS NULL);
create index files_by_session on files (organization_id, session_id) WHERE (session_id IS NOT NULL);
create index files_unused on files (organization_id, used_at) WHERE (purge_after IS NULL);
create index files_purge on files (purge_after) WHERE (purge_after IS NOT NULL);
create index files_by_uploader on files (organization_id, is_unsent, COALESCE((uploader ->> 'id'::text), (uploaded_by)::text)) WHERE (uploaded_by IS NOT NULL);

-- The bytes of a file, in order, each piece but the last of 1 MiB. They are not compressed: most media already are, and a part of an
-- uncompressed value is read without the rest.
create table file_pieces (
  organization_id uuid not null,
  file_id uuid not null,
  "position" integer not null,
  bytes bytea not null,
  constraint file_pieces_pkey primary key (organization_id, file_id, "position")
) with (autovacuum_vacuum_scale_factor=0.02);
alter table file_pieces alter bytes set storage external;

-- Which sessions and schedules name which files. There is no foreign key: a row may outlive its file, and goes with its holder.
create table file_uses (
  organization_id uuid not null,
  -- A session or a schedule.
  holder_id uuid not null,
  file_id uuid not null,
  constraint file_uses_pkey primary key (organization_id, holder_id, file_id)
) with (autovacuum_vacuum_scale_factor=0.02);
create index file_uses_by_file on file_uses (organization_id, file_id);

-- The index of sessions by end user. It is a separate table because an index on sessions would be built under a lock of that table,
-- and written whenever a session starts or stops.
create table session_end_users (
  organization_id uuid not null,
  session_id uuid not null,
  end_user_id text not null,
  constraint session_end_users_pkey primary key (organization_id, session_id),
  constraint session_end_users_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
);
create index session_end_users_by_id on session_end_users (organization_id, end_user_id, session_id);

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
  web_searches bigint default 0 not null,
  constraint model_usage_end_user_days_pkey primary key (organization_id, day, environment, end_user_id)
);
create index model_usage_end_user_days_by_id on model_usage_end_user_days (organization_id, end_user_id);

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
  web_searches bigint default 0 not null,
  constraint model_usage_key_days_pkey primary key (organization_id, key_id, day, agent_id, environment)
);
create index model_usage_key_days_by_day on model_usage_key_days (organization_id, day);

-- Erasures of end users (end-users/erase.ts): the latest of each.
create table end_user_erasures (
  organization_id uuid not null,
  -- A keyed hash of the id, which stays when the erasure has finished (vault/pseudonym.ts).
  pseudonym bytea not null,
  -- Null once everything is erased.
  end_user_id text,
  -- How much was erased so far.
  sessions integer not null,
  files integer not null,
  schedules integer not null,
  -- As the event log names an actor.
  requested_by json not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  constraint end_user_erasures_pkey primary key (organization_id, pseudonym)
);
create index end_user_erasures_running on end_user_erasures (organization_id, end_user_id) WHERE (end_user_id IS NOT NULL);

-- The current minute of each key with a limit of requests. Nodes take some of its requests at a time.
create table key_request_windows (
  organization_id uuid not null,
  key_id uuid not null,
  ends_at timestamptz not null,
  -- By all nodes; more than the limit if a node wanted more than there were.
  taken bigint not null,
  constraint key_request_windows_pkey primary key (organization_id, key_id),
  constraint key_request_windows_organization_id_key_id_fkey foreign key (organization_id, key_id) references api_keys(organization_id, key_id) on delete cascade
) with (fillfactor=50);

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
  first_token_ms bigint[] default '{}'::bigint[] not null,
  turn_ms bigint[] default '{}'::bigint[] not null,
  webhook_ms bigint[] default '{}'::bigint[] not null,
  -- The last session whose turn failed with the error.
  last_session_id uuid,
  web_searches bigint default 0 not null,
  constraint analytics_pkey primary key (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by)
) with (autovacuum_vacuum_scale_factor=0.02, fillfactor=70);
-- For folding minutes, and for deleting old hours and days.
create index analytics_age on analytics (interval_seconds, starts_at);

-- Links by which anyone can read the conversation of a session (sessions/shares.ts). A link ends with its session.
create table session_shares (
  organization_id uuid not null,
  share_id uuid not null,
  session_id uuid not null,
  token_hash bytea not null,
  title text,
  -- Whether tool calls are shown, with their inputs and results.
  includes_tools boolean not null,
  created_by json not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  constraint session_shares_pkey primary key (organization_id, share_id),
  constraint session_shares_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
);
create index session_shares_of_session on session_shares (organization_id, session_id, share_id);
create index session_shares_expiry on session_shares (expires_at);

-- Definitions that run without being saved. Only sessions name them, as a version below zero. The number is a part of the SHA-256, so
-- the same draft has the same number. Drafts without an agent belong to the agent with the id of the organization, which has version 0
-- and is not listed.
create table agent_drafts (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  definition json not null,
  -- By the name of a tool: what its calls get instead of being run.
  mocks json not null,
  -- Of both.
  sha256 bytea not null,
  -- When a session was last opened with it, to within half an hour. It is deleted an hour later, unless a session runs it.
  used_at timestamptz not null,
  constraint agent_drafts_pkey primary key (organization_id, agent_id, version),
  constraint agent_drafts_organization_id_agent_id_fkey foreign key (organization_id, agent_id) references agents(organization_id, agent_id),
  constraint agent_drafts_version_check check ((version < 0))
);
create index agent_drafts_unused on agent_drafts (organization_id, used_at);

-- What the list of sessions shows and searches beyond the rows of sessions (sessions/search/update.ts). It is written in the background,
-- seconds after the messages, because inserting the words of a message into their index costs more than the rest of a turn.
create table session_search (
  organization_id uuid not null,
  session_id uuid not null,
  -- The first words of the first message; null if there is none yet.
  preview text,
  -- The words of its messages, end user and metadata, and of what never changes and is filtered by (sessions/search/words.ts).
  document tsvector not null,
  -- Up to which message.
  turn integer not null,
  "position" integer not null,
  -- How long models and tools have worked: in all turns, and in those before worked_turn. The operations of that turn and later ones are
  -- summed again.
  working_ms bigint not null,
  worked_turn integer not null,
  worked_before_ms bigint not null,
  constraint session_search_pkey primary key (organization_id, session_id),
  constraint session_search_organization_id_session_id_fkey foreign key (organization_id, session_id) references sessions(organization_id, session_id) on delete cascade
) with (autovacuum_analyze_scale_factor=0.5, autovacuum_vacuum_scale_factor=0.02, fillfactor=70);
-- Every search reads the list of entries that are pending, so it is short.
create index session_search_words on session_search USING gin (document) WITH (gin_pending_list_limit='256');

-- How far session_search has come in an organization.
create table session_search_progress (
  organization_id uuid not null,
  -- Sessions are updated after the records of the event log; this is the last record that was read.
  sequence bigint not null,
  -- Sessions from before the table existed are added newest first: those from this one on are there. Null: all are.
  added_from uuid,
  constraint session_search_progress_pkey primary key (organization_id),
  constraint session_search_progress_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

-- What sessions should cost in a day or a month of UTC (budgets/). Null: of any environment, agent or key.
create table budgets (
  organization_id uuid not null,
  name text not null,
  period text not null,
  limit_usd numeric not null,
  environment text,
  agent_id uuid,
  key_id uuid,
  -- Percentages of the limit.
  thresholds integer[] not null,
  stop boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint budgets_pkey primary key (organization_id, name),
  constraint budgets_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint budgets_period_check check ((period = ANY (ARRAY['day'::text, 'month'::text])))
);

-- Thresholds that were reached. The first node to insert the row records the event, so each alerts once in a period.
create table budget_alerts (
  organization_id uuid not null,
  name text not null,
  period_starts_at timestamptz not null,
  threshold integer not null,
  alerted_at timestamptz not null,
  constraint budget_alerts_pkey primary key (organization_id, name, period_starts_at, threshold),
  constraint budget_alerts_organization_id_name_fkey foreign key (organization_id, name) references budgets(organization_id, name) on delete cascade
);

-- How often an environment calls a model (models/limits/).
create table model_limits (
  organization_id uuid not null,
  environment text not null,
  -- `provider/model`; `*` for all models without a limit of their own, together.
  model text not null,
  requests_per_minute integer,
  tokens_per_minute bigint,
  -- It was removed while calls waited for it. They are made at once, and the row is deleted with the last of them.
  is_removed boolean default false not null,
  -- What the calls of the last minute took, by slices of two seconds: `[[start in ms since 1970, requests, tokens], …]`.
  taken json not null,
  -- How many have gone in a row while another waited.
  passed smallint default 0 not null,
  constraint model_limits_pkey primary key (organization_id, environment, model),
  constraint model_limits_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name) on delete cascade
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
  is_granted boolean default false not null,
  -- Calls that a person waits for go before the others, four for each of them (models/limits/order.ts).
  is_awaited boolean default true not null,
  constraint model_limit_waits_pkey primary key (organization_id, operation_id),
  constraint model_limit_waits_organization_id_environment_model_fkey foreign key (organization_id, environment, model) references model_limits(organization_id, environment, model) on delete cascade
);
create index model_limit_waits_in_order on model_limit_waits (organization_id, environment, model, is_granted, is_awaited, since, operation_id);

-- Announced ends of models that agents use (agents/model-endings.ts). The first node to insert the row
-- records the event, so each threshold of an announced day is recorded once.
create table model_endings (
  organization_id uuid not null,
  -- `provider/model`.
  model text not null,
  ends_at date not null,
  threshold_days smallint not null,
  recorded_at timestamptz not null,
  constraint model_endings_pkey primary key (organization_id, model, ends_at, threshold_days),
  constraint model_endings_organization_id_fkey foreign key (organization_id) references organizations(organization_id)
);

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
  header_names text[] default '{}'::text[] not null,
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
  constraint destinations_pkey primary key (organization_id, destination_id),
  constraint destinations_organization_id_environment_fkey foreign key (organization_id, environment) references environments(organization_id, name),
  constraint destinations_organization_id_fkey foreign key (organization_id) references organizations(organization_id),
  constraint destinations_status_check check ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text])))
);
-- For destinations that are not assigned, or assigned to a node that is gone.
create index destinations_by_node on destinations (node_id) WHERE (status = 'enabled'::text);

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
  attempts text[] default '{}'::text[] not null,
  attempt_count integer default 0 not null,
  -- How many waits of the retry schedule were used.
  retries integer default 0 not null,
  -- When it may be sent; set while it is pending. Those before it in its lane go first.
  due_at timestamptz,
  -- The receiver's Retry-After: no attempt before this time.
  not_before timestamptz,
  created_at timestamptz not null,
  finished_at timestamptz,
  constraint destination_deliveries_pkey primary key (organization_id, destination_id, delivery_id),
  constraint destination_deliveries_status_check check ((status = ANY (ARRAY['pending'::text, 'succeeded'::text, 'exhausted'::text, 'cancelled'::text])))
);
create index destination_deliveries_pending on destination_deliveries (organization_id, destination_id, lane, last_sequence) WHERE (status = 'pending'::text);
create index destination_deliveries_by_lane on destination_deliveries (organization_id, destination_id, lane, last_sequence);
create index destination_deliveries_not_accepted on destination_deliveries (organization_id, destination_id, status, delivery_id) WHERE (status <> 'succeeded'::text);

-- Text that was committed and is in no segment yet (journal/tail.ts): a row for each flush of a node, with the text of all its sessions
-- of an organization. What is before a session's `next_seq` is in segments as well.
create table journal_tail (
  organization_id uuid not null,
  node_id uuid not null,
  flush bigint not null,
  -- One item each for a session: its id, the seq of its last chunk, and its chunks, as in `segments.body`.
  session_ids uuid[] not null,
  seq_tos bigint[] not null,
  bodies text[] not null,
  created_at timestamptz not null,
  constraint journal_tail_pkey primary key (organization_id, node_id, flush)
) with (autovacuum_analyze_scale_factor=100, autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=100000, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table signalbox_migrations (
  version integer not null,
  name text not null,
  sha256 text not null,
  works_with integer not null,
  applied_by text not null,
  applied_at timestamptz default now() not null,
  constraint signalbox_migrations_pkey primary key (version)
);
