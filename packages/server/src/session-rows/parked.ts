// Sessions that are parked until their models are called again.
import type { Model } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import type { Platform } from '../platform.ts';
import type { SessionRow } from './session.ts';

/** Whether the session waits for models that did not respond; not for one that asks for fewer requests. */
export function waitsForOutage({ waitingFor }: Pick<SessionRow, 'waitingFor'>): boolean {
  const code = waitingFor?.type === 'model' ? waitingFor.error?.code : undefined;
  return code === 'model_unavailable' || code === 'model_timeout';
}

/** Whether its model call waits for a limit of the environment (models/limits/). */
export function waitsForLimit({ waitingFor }: Pick<SessionRow, 'waitingFor'>): boolean {
  return waitingFor?.type === 'model' && waitingFor.error?.code === 'model_limit_reached';
}

/** Gives its waiting call a place among the calls that a person waits for, by the time at which it began to wait. */
export function goBeforeOthers({
  organizationId,
  sessionId,
  turn,
}: Pick<SessionRow, 'organizationId' | 'sessionId' | 'turn'>): Sql {
  return sql`
    update model_limit_waits w set is_awaited = true from operations o
    where o.organization_id = ${organizationId} and o.session_id = ${sessionId} and o.turn = ${turn}
      and o.kind <> 'tool' and o.status = 'pending'
      and w.organization_id = ${organizationId} and w.operation_id = o.operation_id and not w.is_awaited`;
}

/** Lets a node call the models of a parked session now. The caller holds the row's lock. */
export async function callModelsNow(
  tx: Tx,
  row: Pick<SessionRow, 'organizationId' | 'sessionId' | 'turn'>,
  { wake, now }: { wake: Platform['wake']; now: Date },
): Promise<void> {
  await Promise.all([
    tx.query(sql`
      update sessions set runnable_at = ${now}
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId} and node_id is null`),
    tx.query(sql`
      update operations set retry_at = ${now}
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId} and turn = ${row.turn}
        and kind <> 'tool' and status = 'pending'`),
  ]);
  tx.afterCommit(() => wake.publish('runnable', row));
}

// A session that waits for longer does so because its provider asked for it. Of the index of all sessions with a deadline, only the
// entries until then are read.
const WOKEN_WITHIN_MS = 10 * 60_000;

/** Lets any node continue sessions that wait for this model, at most `limit`. Returns their ids. */
export async function wakeParked(
  db: Queryable,
  { organizationId, environment, config }: { organizationId: string; environment: string; config: Model },
  limit: number,
  now: Date,
): Promise<string[]> {
  const { provider, model = null, baseUrl = null, apiKeySecret = null } = config;
  const rows = await db.query<{ sessionId: string }>(sql`
    with found as (
      select s.session_id, s.turn from sessions s
      cross join lateral (
        select v.definition->'model' as model from agent_versions v
        where v.organization_id = ${organizationId} and v.agent_id = s.agent_id and v.version = s.agent_version
        union all
        select d.definition->'model' from agent_drafts d
        where d.organization_id = ${organizationId} and d.agent_id = s.agent_id and d.version = s.agent_version) a
      where s.organization_id = ${organizationId} and s.environment = ${environment} and s.status = 'waiting'
        and s.node_id is null and s.runnable_at > ${now} and s.runnable_at <= ${new Date(now.getTime() + WOKEN_WITHIN_MS)}
        and (s.queue is not null or s.status <> 'running')
        and s.waiting_for->>'type' = 'model' and s.waiting_for->'error'->>'code' in ('model_unavailable', 'model_timeout')
        and exists (
          select from (
            select a.model as named union all select a.model->'compaction'
            union all select json_array_elements(a.model->'fallbacks')) m
          where m.named->>'provider' = ${provider} and m.named->>'model' is not distinct from ${model}::text
            and m.named->>'baseUrl' is not distinct from ${baseUrl}::text
            and m.named->>'apiKeySecret' is not distinct from ${apiKeySecret}::text)
      order by s.runnable_at, s.session_id limit ${limit}
      for no key update of s skip locked),
    woken as (
      update sessions s set runnable_at = ${now} from found f
      where s.organization_id = ${organizationId} and s.session_id = f.session_id and s.node_id is null
      returning s.session_id, s.turn),
    called as (
      update operations o set retry_at = ${now} from woken w
      where o.organization_id = ${organizationId} and o.session_id = w.session_id and o.turn = w.turn
        and o.kind <> 'tool' and o.status = 'pending')
    select session_id as "sessionId" from woken`);
  return rows.map(({ sessionId }) => sessionId);
}
