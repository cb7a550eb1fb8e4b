// The state of nodes and sessions, read from the database, for tests whose nodes are separate processes.

import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { uuidOf } from '../../src/lib/ids.ts';

const CHANGES = `
  (select coalesce(sum(case when x.body->>'type' in ('session.created', 'session.forked') then 1 else -1 end), 0) from x
  where x.body->>'type' in ('session.created', 'session.forked', 'session.completed', 'session.failed', 'session.cancelled'))`;

/**
 * Finds rows that should not exist once all sessions are idle or ended, work that no node would ever finish, and a kept number of open
 * sessions that is not theirs, with the records that are not counted yet.
 */
export const LEFTOVERS = `
  select 'a session is held or to stop' as what from sessions where node_id is not null or stop is not null
  union all select 'a session has text in the tail' from sessions where tail_node is not null
  union all select 'an operation is not finished: ' || status from operations where finished_at is null
  union all select 'something is left in an inbox' from session_inbox
  union all select 'an approval is pending' from approvals where status = 'pending'
  union all select 'the number of open sessions is wrong: ' || h.open_sessions::text from event_heads h
  where (select count(*) from sessions s where s.organization_id = h.organization_id and s.ended_at is null) <>
    (select coalesce(sum(k.value::int), 0) from jsonb_each_text(h.open_sessions) k)
    + (with x as (select body from events_pending p where p.organization_id = h.organization_id) select ${CHANGES})
    + (with x as (select body from events e where e.organization_id = h.organization_id and e.sequence > h.counted) select ${CHANGES})`;

export async function leftoversIn(url: string): Promise<string[]> {
  return (await ask<{ what: string }>(url, LEFTOVERS)).map(({ what }) => what);
}

/** The node that runs the session; null if none does. */
export async function nodeOf(url: string, sessionId: string): Promise<string | null> {
  const [row] = await ask<{ node_id: string | null }>(url, 'select node_id from sessions where session_id = $1', [
    uuidOf('ses', sessionId),
  ]);
  return row!.node_id;
}

/** The number of sessions that a node runs. */
export async function countSessionsOf(url: string, nodeId: string): Promise<number> {
  return (await ask(url, 'select from sessions where node_id = $1', [nodeId])).length;
}

const LISTENERS = `
  select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen %'`;

/** The connections on which nodes receive wake-ups. */
export async function listenersOn(url: string): Promise<number[]> {
  return (await ask<{ pid: number }>(url, LISTENERS)).map(({ pid }) => pid);
}

/** Closes these connections and returns those that it closed. */
export async function endListenersOn(url: string): Promise<number[]> {
  const rows = await ask<{ pid: number }>(
    url,
    `with l as materialized (${LISTENERS}) select pid from l where pg_terminate_backend(pid)`,
  );
  return rows.map(({ pid }) => pid);
}
