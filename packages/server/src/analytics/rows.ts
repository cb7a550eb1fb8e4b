// A row of analytics: the counts and latencies of an interval, and how rows are written and read.
import sql, { type Sql } from 'sql-template-tag';
import { type Histogram, pack } from './histogram.ts';

/** The agent of what is of no agent, and who counted what several nodes did. */
export const NO_ID = '00000000-0000-0000-0000-000000000000';
/**
 * What all agents of an environment did, with all models. It is counted beside what each of them did, so reports that are of no agent
 * or model read few rows however many there are.
 */
export const ALL_AGENTS = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export const counters = [
  'sessionsOpened',
  'sessionsCompleted',
  'sessionsFailed',
  'sessionsCancelled',
  'turns',
  'turnsFailed',
  'modelCallsFailed',
  'toolCalls',
  'toolCallsFailed',
  'webhookAttempts',
  'webhookAttemptsFailed',
  'modelCalls',
  'tokens',
  'webSearches',
] as const;
export type Counter = (typeof counters)[number];

export const latencies = ['firstTokenMs', 'turnMs', 'webhookMs'] as const;
export type Latency = (typeof latencies)[number];

export interface RowKey {
  organizationId: string;
  intervalSeconds: number;
  /** In milliseconds. */
  startsAt: number;
  environment: string;
  agentId: string;
  model: string;
  errorCode: string;
  countedBy: string;
}

export interface Row extends RowKey {
  counts: Map<Counter, number>;
  latencies: Record<Latency, Histogram>;
  costUsd: string;
  lastSessionId: string | null;
}

export function emptyRow(key: RowKey): Row {
  return {
    ...key,
    counts: new Map(),
    latencies: { firstTokenMs: new Map(), turnMs: new Map(), webhookMs: new Map() },
    costUsd: '0',
    lastSessionId: null,
  };
}

export function addCount({ counts }: Row, what: Counter, count = 1): void {
  counts.set(what, (counts.get(what) ?? 0) + count);
}

/** Inserts rows, or replaces them, so writing them twice is the same as once. */
export function writeRows(rows: readonly Row[]): Sql {
  const organizations = [...new Set(rows.map(({ organizationId }) => organizationId))];
  const values = rows.map(({ counts, latencies: histograms, ...row }) => ({
    ...row,
    startsAt: new Date(row.startsAt).toISOString(),
    ...Object.fromEntries(counters.map((name) => [name, counts.get(name) ?? 0])),
    ...Object.fromEntries(latencies.map((name) => [name, pack(histograms[name])])),
  }));
  return sql`
    insert into analytics (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by,
      sessions_opened, sessions_completed, sessions_failed, sessions_cancelled, turns, turns_failed, model_calls_failed,
      tool_calls, tool_calls_failed, webhook_attempts, webhook_attempts_failed, model_calls, tokens, web_searches, cost_usd,
      first_token_ms, turn_ms, webhook_ms, last_session_id)
    select o.organization_id, r."intervalSeconds", r."startsAt", r.environment, r."agentId", r.model, r."errorCode", r."countedBy",
      r."sessionsOpened", r."sessionsCompleted", r."sessionsFailed", r."sessionsCancelled", r.turns, r."turnsFailed",
      r."modelCallsFailed", r."toolCalls", r."toolCallsFailed", r."webhookAttempts", r."webhookAttemptsFailed",
      r."modelCalls", r.tokens, r."webSearches", r."costUsd", r."firstTokenMs", r."turnMs", r."webhookMs", r."lastSessionId"
    from json_to_recordset(${JSON.stringify(values)}::json) as r("organizationId" uuid, "intervalSeconds" integer,
      "startsAt" timestamptz, environment text, "agentId" uuid, model text, "errorCode" text, "countedBy" uuid,
      "sessionsOpened" bigint, "sessionsCompleted" bigint, "sessionsFailed" bigint, "sessionsCancelled" bigint, turns bigint,
      "turnsFailed" bigint, "modelCallsFailed" bigint, "toolCalls" bigint, "toolCallsFailed" bigint, "webhookAttempts" bigint,
      "webhookAttemptsFailed" bigint, "modelCalls" bigint, tokens bigint, "webSearches" bigint, "costUsd" numeric, "firstTokenMs" bigint[],
      "turnMs" bigint[], "webhookMs" bigint[], "lastSessionId" uuid)
    join organizations o on o.organization_id = r."organizationId"
    where o.organization_id = any(${organizations}::uuid[])
    on conflict (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by) do update set
      sessions_opened = excluded.sessions_opened, sessions_completed = excluded.sessions_completed,
      sessions_failed = excluded.sessions_failed, sessions_cancelled = excluded.sessions_cancelled, turns = excluded.turns,
      turns_failed = excluded.turns_failed, model_calls_failed = excluded.model_calls_failed, tool_calls = excluded.tool_calls,
      tool_calls_failed = excluded.tool_calls_failed, webhook_attempts = excluded.webhook_attempts,
      webhook_attempts_failed = excluded.webhook_attempts_failed, model_calls = excluded.model_calls,
      tokens = excluded.tokens, web_searches = excluded.web_searches, cost_usd = excluded.cost_usd, first_token_ms = excluded.first_token_ms,
      turn_ms = excluded.turn_ms, webhook_ms = excluded.webhook_ms, last_session_id = excluded.last_session_id`;
}
