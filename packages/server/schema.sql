-- The schema that the migrations make, for reading. Written by `npm run schema`; do not edit: a test compares it.

create table access_denials (
  organization_id uuid not null,
  caller_id uuid not null,
  code text not null,
  recorded_at timestamp with time zone not null,
  constraint access_denials_pkey PRIMARY KEY (organization_id, caller_id, code)
);
CREATE INDEX access_denials_age ON public.access_denials USING btree (recorded_at);

create table accounts (
  id uuid not null,
  user_id uuid not null,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamp with time zone,
  refresh_token_expires_at timestamp with time zone,
  scope text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_provider_id_account_id_key UNIQUE (provider_id, account_id),
  constraint accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX accounts_user ON public.accounts USING btree (user_id);

create table agent_versions (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  definition json not null,
  created_at timestamp with time zone not null,
  constraint agent_versions_pkey PRIMARY KEY (organization_id, agent_id, version),
  constraint agent_versions_organization_id_agent_id_fkey FOREIGN KEY (organization_id, agent_id) REFERENCES agents(organization_id, agent_id)
);

create table agents (
  organization_id uuid not null,
  agent_id uuid not null,
  version integer not null,
  unavailable_servers jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  archived_at timestamp with time zone,
  constraint agents_pkey PRIMARY KEY (organization_id, agent_id),
  constraint agents_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);

create table api_keys (
  organization_id uuid not null,
  key_id uuid not null,
  name text not null,
  permission text not null,
  expires_at timestamp with time zone,
  allowed_ips text[],
  environments text[],
  metadata json not null,
  secret_hash bytea not null,
  secret_preview text not null,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (organization_id, key_id),
  constraint api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint api_keys_permission_check CHECK ((permission = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text])))
);
CREATE INDEX api_keys_deleted ON public.api_keys USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

create table approvals (
  organization_id uuid not null,
  operation_id uuid not null,
  session_id uuid not null,
  agent_id uuid not null,
  environment text not null,
  name text not null,
  input json,
  input_schema json not null,
  edited_input json,
  once boolean not null,
  status text not null,
  reason text,
  resolved_by json,
  requested_at timestamp with time zone not null,
  resolved_at timestamp with time zone,
  expires_at timestamp with time zone,
  constraint approvals_pkey PRIMARY KEY (organization_id, operation_id),
  constraint approvals_organization_id_session_id_fkey FOREIGN KEY (organization_id, session_id) REFERENCES sessions(organization_id, session_id) ON DELETE CASCADE,
  constraint approvals_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'expired'::text, 'cancelled'::text])))
);
CREATE INDEX approvals_by_environment ON public.approvals USING btree (organization_id, environment, status, operation_id);
CREATE INDEX approvals_by_session ON public.approvals USING btree (organization_id, session_id);

create table environment_secrets (
  organization_id uuid not null,
  environment text not null,
  name text not null,
  sealed_value bytea not null,
  allowed_hosts text[] not null,
  version integer not null,
  updated_at timestamp with time zone not null,
  constraint environment_secrets_pkey PRIMARY KEY (organization_id, environment, name),
  constraint environment_secrets_organization_id_environment_fkey FOREIGN KEY (organization_id, environment) REFERENCES environments(organization_id, name) ON DELETE CASCADE
);

create table environments (
  organization_id uuid not null,
  name text not null,
  environment_id uuid not null,
  keep_sessions_days integer,
  created_at timestamp with time zone not null,
  constraint environments_pkey PRIMARY KEY (organization_id, name),
  constraint environments_organization_id_environment_id_key UNIQUE (organization_id, environment_id),
  constraint environments_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);

create table event_heads (
  organization_id uuid not null,
  sequence bigint not null,
  hash bytea not null,
  anchor_sequence bigint not null,
  anchor_hash bytea not null,
  latest_at timestamp with time zone,
  late_ms bigint default 0 not null,
  constraint event_heads_pkey PRIMARY KEY (organization_id),
  constraint event_heads_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);

create table events (
  organization_id uuid not null,
  sequence bigint not null,
  event_id uuid not null,
  body jsonb not null,
  occurred_at timestamp with time zone not null,
  hash bytea not null,
  constraint events_pkey PRIMARY KEY (organization_id, sequence),
  constraint events_organization_id_event_id_key UNIQUE (organization_id, event_id)
) with (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX events_actor ON public.events USING btree (organization_id, (((body -> 'actor'::text) ->> 'id'::text)), sequence);
CREATE INDEX events_environment ON public.events USING btree (organization_id, ((body ->> 'environment'::text)), sequence) WHERE ((body ->> 'environment'::text) IS NOT NULL);
CREATE INDEX events_resource ON public.events USING btree (organization_id, (((body -> 'resource'::text) ->> 'id'::text)), sequence);
CREATE INDEX events_session ON public.events USING btree (organization_id, ((body ->> 'sessionId'::text)), sequence) WHERE ((body ->> 'sessionId'::text) IS NOT NULL);
CREATE INDEX events_type ON public.events USING btree (organization_id, ((body ->> 'type'::text)), sequence);

create table events_pending (
  organization_id uuid not null,
  event_id uuid not null,
  body jsonb not null,
  occurred_at timestamp with time zone not null,
  constraint events_pending_pkey PRIMARY KEY (organization_id, event_id)
);

create table idempotency_records (
  organization_id uuid not null,
  caller_id uuid not null,
  idempotency_key text not null,
  fingerprint bytea not null,
  status integer,
  body text,
  sealed_body bytea,
  expires_at timestamp with time zone not null,
  constraint idempotency_records_pkey PRIMARY KEY (organization_id, caller_id, idempotency_key)
) with (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX idempotency_records_expiry ON public.idempotency_records USING btree (expires_at);

create table installation (
  only_row boolean default true not null,
  console_origin text not null,
  constraint installation_pkey PRIMARY KEY (only_row),
  constraint installation_only_row_check CHECK (only_row)
);

create table invitations (
  organization_id uuid not null,
  invitation_id uuid not null,
  is_setup boolean not null,
  role text not null,
  email text,
  name text,
  invited_by json not null,
  token_hash bytea not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint invitations_pkey PRIMARY KEY (organization_id, invitation_id),
  constraint invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint invitations_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'member'::text, 'admin'::text, 'owner'::text])))
);
CREATE INDEX invitations_expiry ON public.invitations USING btree (expires_at);

create table master_keys (
  fingerprint bytea not null,
  "position" integer not null,
  recorded_at timestamp with time zone not null,
  constraint master_keys_pkey PRIMARY KEY (fingerprint),
  constraint master_keys_position_key UNIQUE ("position")
);

create table members (
  organization_id uuid not null,
  user_id uuid not null,
  role text not null,
  joined_at timestamp with time zone not null,
  last_signed_in_at timestamp with time zone,
  constraint members_pkey PRIMARY KEY (organization_id, user_id),
  constraint members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint members_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'member'::text, 'admin'::text, 'owner'::text])))
);
CREATE INDEX members_user ON public.members USING btree (user_id);

create table messages (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  "position" integer not null,
  message_id uuid not null,
  role text not null,
  content json not null,
  provider_data json,
  created_at timestamp with time zone not null,
  constraint messages_pkey PRIMARY KEY (organization_id, session_id, turn, "position"),
  constraint messages_organization_id_session_id_fkey FOREIGN KEY (organization_id, session_id) REFERENCES sessions(organization_id, session_id) ON DELETE CASCADE,
  constraint messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text])))
) with (autovacuum_vacuum_scale_factor=0.02);

create table model_usage (
  organization_id uuid not null,
  usage_id uuid not null,
  occurred_at timestamp with time zone not null,
  agent_id uuid not null,
  environment text not null,
  model text not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  cost_usd numeric,
  constraint model_usage_pkey PRIMARY KEY (organization_id, usage_id)
);

create table model_usage_days (
  organization_id uuid not null,
  day date not null,
  agent_id uuid not null,
  environment text not null,
  model text not null,
  steps bigint not null,
  unpriced_steps bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  cost_usd numeric not null,
  constraint model_usage_days_pkey PRIMARY KEY (organization_id, day, agent_id, environment, model)
);

create table operations (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  step integer not null,
  index integer not null,
  operation_id uuid not null,
  kind text not null,
  status text not null,
  tool text,
  tool_type text,
  input json,
  output json,
  error text,
  usage json,
  from_seq bigint,
  failures integer default 0 not null,
  retry_at timestamp with time zone,
  repeatable boolean default false not null,
  expires_at timestamp with time zone,
  child_session_id uuid,
  agent_version integer,
  unavailable_servers json,
  created_at timestamp with time zone not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint operations_pkey PRIMARY KEY (organization_id, session_id, turn, step, index),
  constraint operations_organization_id_operation_id_key UNIQUE (organization_id, operation_id),
  constraint operations_organization_id_session_id_fkey FOREIGN KEY (organization_id, session_id) REFERENCES sessions(organization_id, session_id) ON DELETE CASCADE,
  constraint operations_kind_check CHECK ((kind = ANY (ARRAY['model'::text, 'tool'::text]))),
  constraint operations_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'awaiting_approval'::text, 'ready'::text, 'running'::text, 'awaiting_result'::text, 'awaiting_session'::text, 'succeeded'::text, 'failed'::text, 'denied'::text, 'cancelled'::text, 'unknown'::text])))
) with (autovacuum_vacuum_scale_factor=0.02);

create table organizations (
  organization_id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint organizations_pkey PRIMARY KEY (organization_id)
);

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
  created_at timestamp with time zone,
  constraint passkeys_pkey PRIMARY KEY (id),
  constraint passkeys_credential_id_key UNIQUE (credential_id),
  constraint passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX passkeys_user ON public.passkeys USING btree (user_id);

create table password_resets (
  organization_id uuid not null,
  password_reset_id uuid not null,
  user_id uuid not null,
  made_by uuid,
  token_hash bytea not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint password_resets_pkey PRIMARY KEY (organization_id, password_reset_id),
  constraint password_resets_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX password_resets_expiry ON public.password_resets USING btree (expires_at);

create table pending_deliveries (
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
  occurred_at timestamp with time zone not null,
  attempts text[] default '{}'::text[] not null,
  attempt_count integer default 0 not null,
  retries integer default 0 not null,
  next_attempt_at timestamp with time zone,
  not_before timestamp with time zone,
  body text,
  created_at timestamp with time zone not null,
  constraint pending_deliveries_pkey PRIMARY KEY (organization_id, webhook_subscription_id, delivery_id)
);
CREATE INDEX pending_deliveries_retry ON public.pending_deliveries USING btree (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

create table received_webhooks (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  received_webhook_id uuid not null,
  session_id uuid,
  headers json not null,
  body text not null,
  truncated boolean not null,
  verified boolean not null,
  received_at timestamp with time zone not null,
  constraint received_webhooks_pkey PRIMARY KEY (organization_id, webhook_subscription_id, received_webhook_id),
  constraint received_webhooks_organization_id_webhook_subscription_id_fkey FOREIGN KEY (organization_id, webhook_subscription_id) REFERENCES webhook_subscriptions(organization_id, webhook_subscription_id) ON DELETE CASCADE
);

create table retired_key_secrets (
  organization_id uuid not null,
  key_id uuid not null,
  secret_hash bytea not null,
  retired_at timestamp with time zone not null,
  constraint retired_key_secrets_pkey PRIMARY KEY (organization_id, key_id, secret_hash),
  constraint retired_key_secrets_organization_id_key_id_fkey FOREIGN KEY (organization_id, key_id) REFERENCES api_keys(organization_id, key_id) ON DELETE CASCADE
);
CREATE INDEX retired_key_secrets_age ON public.retired_key_secrets USING btree (retired_at);

create table schedule_runs (
  organization_id uuid not null,
  schedule_id uuid not null,
  scheduled_at timestamp with time zone not null,
  status text not null,
  session_id uuid,
  error json,
  created_at timestamp with time zone not null,
  constraint schedule_runs_pkey PRIMARY KEY (organization_id, schedule_id, scheduled_at),
  constraint schedule_runs_organization_id_schedule_id_fkey FOREIGN KEY (organization_id, schedule_id) REFERENCES schedules(organization_id, schedule_id) ON DELETE CASCADE,
  constraint schedule_runs_status_check CHECK ((status = ANY (ARRAY['opened'::text, 'missed'::text, 'failed'::text])))
);

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
  at timestamp with time zone,
  status text not null,
  close_on_idle boolean not null,
  next_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint schedules_pkey PRIMARY KEY (organization_id, schedule_id),
  constraint schedules_organization_id_agent_id_fkey FOREIGN KEY (organization_id, agent_id) REFERENCES agents(organization_id, agent_id),
  constraint schedules_organization_id_environment_fkey FOREIGN KEY (organization_id, environment) REFERENCES environments(organization_id, name),
  constraint schedules_check CHECK (((cron IS NULL) = (timezone IS NULL))),
  constraint schedules_check1 CHECK (((cron IS NULL) <> (at IS NULL))),
  constraint schedules_status_check CHECK ((status = ANY (ARRAY['enabled'::text, 'paused'::text])))
);
CREATE INDEX schedules_due ON public.schedules USING btree (next_at, schedule_id) WHERE (status = 'enabled'::text);

create table segments (
  organization_id uuid not null,
  session_id uuid not null,
  turn integer not null,
  seq_to bigint not null,
  seq_from bigint not null,
  body text not null,
  created_at timestamp with time zone not null,
  constraint segments_pkey PRIMARY KEY (organization_id, session_id, turn, seq_to)
) with (autovacuum_vacuum_scale_factor=0.02);

create table session_inbox (
  organization_id uuid not null,
  session_id uuid not null,
  inbox_id uuid not null,
  "position" integer not null,
  kind text not null,
  body json not null,
  created_at timestamp with time zone not null,
  constraint session_inbox_pkey PRIMARY KEY (organization_id, session_id, inbox_id),
  constraint session_inbox_organization_id_session_id_fkey FOREIGN KEY (organization_id, session_id) REFERENCES sessions(organization_id, session_id) ON DELETE CASCADE,
  constraint session_inbox_kind_check CHECK ((kind = ANY (ARRAY['message'::text, 'approval'::text, 'tool_result'::text])))
);

create table session_metadata (
  organization_id uuid not null,
  pair bigint not null,
  session_id uuid not null,
  constraint session_metadata_pkey PRIMARY KEY (organization_id, pair, session_id)
);

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
  epoch integer default 0 not null,
  worker_id uuid,
  crashes smallint default 0 not null,
  runnable_at timestamp with time zone,
  queue text,
  stop text,
  turn_deadline timestamp with time zone,
  turn_left_ms bigint,
  trace_parent text,
  granted_tools text[] default '{}'::text[] not null,
  parent_session_id uuid,
  parent_operation_id uuid,
  root_session_id uuid,
  depth integer default 0 not null,
  parent_due boolean default false not null,
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
  cost_usd numeric,
  model_calls integer default 0 not null,
  delivery_due boolean default false not null,
  delivery_subscription_id uuid,
  delivered_turn integer default 0 not null,
  delivered_seq bigint default 0 not null,
  delivery_id uuid,
  acknowledged_cursor text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint sessions_pkey PRIMARY KEY (organization_id, session_id),
  constraint sessions_organization_id_agent_id_fkey FOREIGN KEY (organization_id, agent_id) REFERENCES agents(organization_id, agent_id),
  constraint sessions_status_check CHECK ((status = ANY (ARRAY['idle'::text, 'running'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
  constraint sessions_stop_check CHECK ((stop = ANY (ARRAY['interrupt'::text, 'cancel'::text])))
) with (fillfactor=70);
CREATE INDEX sessions_by_agent ON public.sessions USING btree (organization_id, agent_id, environment, status, session_id);
CREATE INDEX sessions_by_environment ON public.sessions USING btree (organization_id, environment, status, session_id);
CREATE INDEX sessions_by_parent ON public.sessions USING btree (organization_id, parent_session_id, session_id) WHERE (parent_session_id IS NOT NULL);
CREATE INDEX sessions_by_root ON public.sessions USING btree (organization_id, root_session_id, session_id) WHERE (root_session_id IS NOT NULL);
CREATE INDEX sessions_due ON public.sessions USING btree (organization_id, delivery_subscription_id, session_id) WHERE delivery_due;
CREATE INDEX sessions_ended ON public.sessions USING btree (organization_id, environment, status, ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX sessions_held ON public.sessions USING btree (worker_id) WHERE (worker_id IS NOT NULL);
CREATE INDEX sessions_offered ON public.sessions USING btree (organization_id, queue, session_id) WHERE ((worker_id IS NULL) AND (queue IS NOT NULL));
CREATE INDEX sessions_parent_due ON public.sessions USING btree (organization_id, session_id) WHERE parent_due;
CREATE INDEX sessions_ready ON public.sessions USING btree (organization_id, runnable_at) WHERE ((worker_id IS NULL) AND (runnable_at IS NOT NULL) AND (queue IS NULL) AND (status = 'running'::text));
CREATE INDEX sessions_retention ON public.sessions USING btree (organization_id, environment, ended_at) WHERE ((ended_at IS NOT NULL) AND (root_session_id IS NULL));
CREATE INDEX sessions_runnable ON public.sessions USING btree (runnable_at) WHERE ((worker_id IS NULL) AND (runnable_at IS NOT NULL));
CREATE INDEX sessions_timed ON public.sessions USING btree (runnable_at, session_id) WHERE ((worker_id IS NULL) AND (runnable_at IS NOT NULL) AND ((queue IS NOT NULL) OR (status <> 'running'::text)));

create table sign_ins (
  id uuid not null,
  user_id uuid not null,
  token text not null,
  expires_at timestamp with time zone not null,
  ip_address text,
  user_agent text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint sign_ins_pkey PRIMARY KEY (id),
  constraint sign_ins_token_key UNIQUE (token),
  constraint sign_ins_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX sign_ins_expiry ON public.sign_ins USING btree (expires_at);
CREATE INDEX sign_ins_user ON public.sign_ins USING btree (user_id);

create table signalbox_migrations (
  version integer not null,
  name text not null,
  sha256 text not null,
  works_with integer not null,
  applied_by text not null,
  applied_at timestamp with time zone default now() not null,
  constraint signalbox_migrations_pkey PRIMARY KEY (version)
);

create table users (
  id uuid not null,
  name text not null,
  email text not null,
  email_verified boolean not null,
  image text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint users_pkey PRIMARY KEY (id),
  constraint users_email_key UNIQUE (email)
);

create table verifications (
  id uuid not null,
  identifier text not null,
  value text not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint verifications_pkey PRIMARY KEY (id)
);
CREATE INDEX verifications_expiry ON public.verifications USING btree (expires_at);
CREATE INDEX verifications_identifier ON public.verifications USING btree (identifier);

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
  occurred_at timestamp with time zone not null,
  status text not null,
  attempts text[] not null,
  attempt_count integer not null,
  next_attempt_at timestamp with time zone,
  created_at timestamp with time zone not null,
  finished_at timestamp with time zone not null,
  constraint webhook_deliveries_pkey PRIMARY KEY (organization_id, webhook_subscription_id, delivery_id),
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['succeeded'::text, 'exhausted'::text, 'cancelled'::text])))
);
CREATE INDEX webhook_deliveries_by_session ON public.webhook_deliveries USING btree (organization_id, session_id, delivery_id);
CREATE INDEX webhook_deliveries_not_accepted ON public.webhook_deliveries USING btree (organization_id, webhook_subscription_id, status, delivery_id) WHERE (status <> 'succeeded'::text);
CREATE INDEX webhook_deliveries_resend ON public.webhook_deliveries USING btree (organization_id, webhook_subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

create table webhook_recoveries (
  organization_id uuid not null,
  webhook_subscription_id uuid not null,
  recovery_id uuid not null,
  since timestamp with time zone,
  session_id uuid,
  turn integer,
  seq bigint,
  after_session_id uuid not null,
  after_ended_at timestamp with time zone,
  ended_before timestamp with time zone,
  created_at timestamp with time zone not null,
  constraint webhook_recoveries_pkey PRIMARY KEY (organization_id, webhook_subscription_id, recovery_id),
  constraint webhook_recoveries_organization_id_webhook_subscription_id_fkey FOREIGN KEY (organization_id, webhook_subscription_id) REFERENCES webhook_subscriptions(organization_id, webhook_subscription_id)
);

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
  previous_secret_expires_at timestamp with time zone,
  confirmed_secret_version integer,
  worker_id uuid,
  epoch integer default 0 not null,
  failing_since timestamp with time zone,
  failures integer default 0 not null,
  failing_session_id uuid,
  last_error text,
  last_status integer,
  probe_at timestamp with time zone,
  degraded boolean default false not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  last_success_at timestamp with time zone,
  last_failure_at timestamp with time zone,
  constraint webhook_subscriptions_pkey PRIMARY KEY (organization_id, environment),
  constraint webhook_subscriptions_organization_id_webhook_subscription__key UNIQUE (organization_id, webhook_subscription_id),
  constraint webhook_subscriptions_organization_id_environment_fkey FOREIGN KEY (organization_id, environment) REFERENCES environments(organization_id, name),
  constraint webhook_subscriptions_status_check CHECK ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text])))
);
CREATE INDEX webhook_subscriptions_held ON public.webhook_subscriptions USING btree (worker_id) WHERE (status = 'enabled'::text);

create table workers (
  worker_id uuid not null,
  lease_expires_at timestamp with time zone not null,
  delivers boolean default false not null,
  claim uuid,
  started_at timestamp with time zone default now() not null,
  constraint workers_pkey PRIMARY KEY (worker_id),
  constraint workers_claim_key UNIQUE (claim)
);
