// The inbox of a session: what API calls leave for the node that runs it, and messages that are queued for a later turn.
//
// `inbox` on the session row counts the entries. A node that parks the session makes its update conditional on the count it
// knows, so it can't miss an entry that arrives at the same time.
import type { ApprovalProgress, MessagePart } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { Fenced } from '../journal/append.ts';
import { ApiError } from '../lib/api-error.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import type { SessionRow } from './session.ts';

/** A message, which will have a turn of its own, or a change of an operation, which has to be shown. */
export type InboxBody =
  | { kind: 'message'; content: MessagePart[]; steer?: boolean; traceParent?: string }
  /** With `progress`: one of several approvers has approved. */
  | {
      kind: 'approval';
      operationId: string;
      decision: 'approved' | 'denied';
      reason?: string;
      progress?: ApprovalProgress;
    }
  | { kind: 'tool_result'; operationId: string };

/** The message that begins a turn. */
export interface TurnInput {
  messageId: string;
  content: MessagePart[];
  /** The W3C `traceparent` of the request that sent it; undefined or null if it had none. */
  traceParent?: string | null | undefined;
}

/** An entry as it is read: without the content of messages, which can be many and long. */
export type InboxEntry = (Exclude<InboxBody, { kind: 'message' }> | { kind: 'message'; steer: boolean | null }) & {
  inboxId: string;
  position: number;
};

// Each message that is sent reads the number of entries, and each has a turn of its own: this many take hours.
const MAX_QUEUED = 1_000;

/** Adds an entry and returns its id, which for a message is the message id. The caller holds the row's lock. */
export async function addToInbox(
  tx: Tx,
  row: SessionRow,
  { kind, ...body }: InboxBody,
  { wake, now }: { wake: Platform['wake']; now: Date },
): Promise<string> {
  const inboxId = newUuid();
  await Promise.all([
    tx.query(sql`
      insert into session_inbox (organization_id, session_id, inbox_id, position, kind, body, created_at)
      select s.organization_id, s.session_id, ${inboxId}, (
        select coalesce(max(i.position), 0) + 1 from session_inbox i
        where i.organization_id = ${row.organizationId} and i.session_id = ${row.sessionId}
      ), ${kind}, ${JSON.stringify(body)}, ${now}
      from sessions s where s.organization_id = ${row.organizationId} and s.session_id = ${row.sessionId}`),
    tx.query(sql`
      update sessions set inbox = inbox + 1
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId}`),
  ]);
  row.inbox += 1;
  tx.afterCommit(() => wake.publish('inbox', row));
  return inboxId;
}

/** Throws 429 `queue_full`. */
export function requireRoomInQueue({ inbox }: SessionRow): void {
  if (inbox < MAX_QUEUED) return;
  const detail = `The session has ${MAX_QUEUED} queued messages. Each has a turn of its own: wait until some have begun.`;
  throw new ApiError('queue_full', detail, { retryAfterSeconds: 5 });
}

/** The entries after a position, oldest first. */
export async function readInbox(
  db: Queryable,
  organizationId: string,
  sessionId: string,
  after = 0,
): Promise<InboxEntry[]> {
  const rows = await db.query<{ inboxId: string; position: number; kind: InboxBody['kind']; body: object }>(sql`
    select inbox_id as "inboxId", position, kind,
      case when kind = 'message' then json_build_object('steer', body->'steer') else body end as body
    from session_inbox
    where organization_id = ${organizationId} and session_id = ${sessionId} and position > ${after}
    order by position`);
  return rows.map(({ inboxId, position, kind, body }) => ({ inboxId, position, kind, ...body }) as InboxEntry);
}

/** The message whose turn begins next. Throws `Fenced` if the session was deleted. */
export async function readQueuedMessage(
  db: Queryable,
  { organizationId, sessionId }: { organizationId: string; sessionId: string },
  messageId: string,
): Promise<TurnInput> {
  const [row] = await db.query<{ content: MessagePart[]; traceParent: string | null }>(sql`
    select body->'content' as content, body->>'traceParent' as "traceParent" from session_inbox
    where organization_id = ${organizationId} and session_id = ${sessionId} and inbox_id = ${messageId}`);
  if (!row) throw new Fenced();
  return { messageId, ...row };
}

/** Deletes entries. The caller lowers `inbox` on the session row in the same transaction. */
export function deleteFromInbox(
  owner: { organizationId: string; sessionId: string },
  entries: readonly InboxEntry[],
): Sql {
  return sql`
    delete from session_inbox
    where organization_id = ${owner.organizationId} and session_id = ${owner.sessionId}
      and inbox_id = any(${entries.map(({ inboxId }) => inboxId)}::uuid[])`;
}
