// Keeps session_search up to date, in the background, so that no turn waits for it.
//
// The event log is its queue: a session that opens, waits, becomes idle, ends or changes writes a record in the same transaction.
// A pass reads the records after the last one that was read, adds what is new in their sessions, and stores how far it came in the
// same transaction; a crash repeats the pass. The row with the position is locked, so one node at a time does it for an organization, and
// others skip it. Sessions from before the table existed are added newest first, when there are no records to read.
//
// Deleting a session deletes its row by the foreign key.
import type { Event, MessagePart, Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../../db/db.ts';
import { textArray } from '../../db/values.ts';
import { uuidOf } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import { isOfSource, transcriptSources } from '../state/inherited.ts';
import { addWordsOfParts, addWordsOfSession, previewOf } from './texts.ts';
import { fixedWords, MAX_WORDS } from './words.ts';

const RECORDS = 500;
const OLD_SESSIONS = 200;
// What one statement reads: of so many sessions, of each so many messages and so many bytes, or one message.
const SESSIONS = 20;
const MESSAGES = 200;
const MAX_READ_BYTES = 256 * 1024;
// Sorts after every other one.
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The records after which a session may have more to find. */
const changes: ReadonlySet<string> = new Set<Event['type']>([
  'session.created',
  'session.forked',
  'session.updated',
  'session.waiting',
  'session.idle',
  'session.completed',
  'session.failed',
  'session.cancelled',
]);

/** Organizations whose sessions have changed, or are not all there yet. */
export async function organizationsToUpdate({ shards }: Pick<Platform, 'shards'>): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for sessions to make searchable',
    (within) => sql`
    select h.organization_id as "organizationId" from event_heads h
    left join session_search_progress p on p.organization_id = h.organization_id
    where (p.organization_id is null or p.sequence < h.sequence or p.added_from is not null) ${within(sql`h.organization_id`)}
    limit 1000`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

interface Progress {
  sequence: number;
  addedFrom: string | null;
  /** Of the event log. */
  anchorSequence: number;
}

/** One pass. Returns whether there may be more to do. */
export function updateSearch(db: Db, organizationId: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const progress = await lockProgress(tx, organizationId);
    if (!progress) return false;
    // After a long pause, retention has deleted records that were not read: all sessions are visited again.
    const isBehind = progress.anchorSequence > progress.sequence;
    const sequence = Math.max(progress.sequence, progress.anchorSequence);
    let addedFrom = isBehind ? LAST_ID : progress.addedFrom;
    const records = await tx.query<{ sequence: number; type: string; sessionId: string | null }>(sql`
      select e.sequence, e.body->>'type' as type, e.body->>'sessionId' as "sessionId" from events e
      where e.organization_id = ${organizationId} and e.sequence > ${sequence} order by e.sequence limit ${RECORDS}`);
    const ofSessions = records.filter(({ type, sessionId }) => sessionId !== null && changes.has(type));
    const idsOf = (some: typeof records) => new Set(some.map(({ sessionId }) => uuidOf('ses', sessionId!)));
    const replaced = idsOf(ofSessions.filter(({ type }) => type === 'session.updated'));
    await update(tx, organizationId, [...idsOf(ofSessions)], replaced);
    if (records.length < RECORDS && addedFrom !== null) addedFrom = await addOld(tx, organizationId, addedFrom);
    await tx.query(sql`
      update session_search_progress set sequence = ${records.at(-1)?.sequence ?? sequence}, added_from = ${addedFrom}
      where organization_id = ${organizationId}`);
    return records.length === RECORDS || addedFrom !== null;
  });
}

/** Undefined while another node does it. */
async function lockProgress(tx: Tx, organizationId: string): Promise<Progress | undefined> {
  await tx.query(sql`
    insert into session_search_progress (organization_id, sequence, added_from)
    select h.organization_id, h.sequence, ${LAST_ID}::uuid from event_heads h
    where h.organization_id = ${organizationId} and not exists (
      select 1 from session_search_progress p where p.organization_id = ${organizationId})
    on conflict do nothing`);
  const [progress] = await tx.query<Omit<Progress, 'anchorSequence'>>(sql`
    select p.sequence, p.added_from as "addedFrom" from session_search_progress p
    where p.organization_id = ${organizationId} for update skip locked`);
  if (!progress) return undefined;
  const [head] = await tx.query<Pick<Progress, 'anchorSequence'>>(sql`
    select h.anchor_sequence as "anchorSequence" from event_heads h where h.organization_id = ${organizationId}`);
  return { ...progress, ...head! };
}

/** Returns the last session that was added; null if there are no more. */
async function addOld(tx: Tx, organizationId: string, addedFrom: string): Promise<string | null> {
  const rows = await tx.query<{ sessionId: string }>(sql`
    select s.session_id as "sessionId" from sessions s
    where s.organization_id = ${organizationId} and s.session_id < ${addedFrom}
    order by s.session_id desc limit ${OLD_SESSIONS}`);
  const ids = rows.map(({ sessionId }) => sessionId);
  await update(tx, organizationId, ids, new Set());
  return ids.length < OLD_SESSIONS ? null : ids.at(-1)!;
}

interface Searchable {
  sessionId: string;
  environment: string;
  agentId: string;
  endUserId: string | null;
  endUserName: string | null;
  metadata: Session['metadata'];
  forkedAtTurn: number | null;
  preview: string | null;
  /** -1 if it has no row. */
  turn: number;
  position: number;
  /** In its row. */
  words: number;
  workingMs: number;
  workedTurn: number;
  workedBeforeMs: number;
}

/** `replaced`: sessions whose words are collected anew, because some may be gone. */
async function update(
  tx: Tx,
  organizationId: string,
  ids: readonly string[],
  replaced: ReadonlySet<string>,
): Promise<void> {
  // In the order in which deletions lock them.
  const ordered = ids.toSorted();
  for (let at = 0; at < ordered.length; at += SESSIONS) {
    await updateSome(tx, organizationId, ordered.slice(at, at + SESSIONS), replaced);
  }
}

async function updateSome(
  tx: Tx,
  organizationId: string,
  ids: readonly string[],
  replaced: ReadonlySet<string>,
): Promise<void> {
  // Those without a row are locked, so that they are there when it is inserted. The others are not, so that no append meets a lock.
  await tx.query(sql`
    select 1 from sessions s
    where s.organization_id = ${organizationId} and s.session_id = any(${[...ids]}::uuid[]) and not exists (
      select 1 from session_search x where x.organization_id = ${organizationId} and x.session_id = s.session_id)
    order by s.session_id for key share`);
  const rows = await tx.query<Searchable>(sql`
    select s.session_id as "sessionId", s.environment, s.agent_id as "agentId", s.end_user_id as "endUserId",
      s.end_user_name as "endUserName", s.metadata, s.forked_at_turn as "forkedAtTurn", x.preview,
      coalesce(x.turn, -1) as turn, coalesce(x.position, -1) as position, coalesce(length(x.document), 0) as words,
      coalesce(x.working_ms, 0) as "workingMs", coalesce(x.worked_turn, 0) as "workedTurn", coalesce(x.worked_before_ms, 0) as "workedBeforeMs"
    from sessions s
    left join session_search x on x.organization_id = s.organization_id and x.session_id = s.session_id
    where s.organization_id = ${organizationId} and s.session_id = any(${[...ids]}::uuid[])`);
  const worked = await readWork(tx, organizationId, rows);
  const drafts = rows.map((row) => new Draft(organizationId, row, replaced.has(row.sessionId)));
  for (let open = drafts; open.length > 0; ) {
    const messages = await readMessages(tx, organizationId, open);
    for (const draft of open) draft.add(messages.get(draft.sessionId) ?? []);
    open = open.filter((draft) => draft.hasMore);
  }
  for (const draft of drafts) {
    const work = worked.get(draft.sessionId)!;
    // Many records change nothing that is found, such as the end of a session that was idle.
    if (draft.isChanged(work)) tx.write(upsert(organizationId, draft, work));
  }
}

/** What becomes the row of one session. */
class Draft {
  readonly sessionId: string;
  readonly words = new Set<string>();
  readonly isReplaced: boolean;
  turn: number;
  position: number;
  preview: string | null;
  hasMore = true;
  readonly #before: Searchable;
  readonly #firstOwnTurn: number;
  readonly #wordsBefore: number;

  constructor(organizationId: string, row: Searchable, isReplaced: boolean) {
    this.#before = row;
    this.sessionId = row.sessionId;
    this.isReplaced = isReplaced;
    this.turn = isReplaced ? -1 : row.turn;
    this.position = isReplaced ? -1 : row.position;
    this.preview = row.preview;
    this.#firstOwnTurn = (row.forkedAtTurn ?? 0) + 1;
    this.#wordsBefore = isReplaced ? 0 : row.words;
    if (this.turn >= 0) return;
    for (const word of fixedWords({ organizationId, ...row })) this.words.add(word);
    addWordsOfSession(this.words, row);
  }

  add(messages: readonly ReadMessage[]): void {
    for (const { turn, position, role, content } of messages) {
      addWordsOfParts(this.words, content);
      if (role === 'user' && turn >= this.#firstOwnTurn) this.preview ??= previewOf(content);
      this.turn = turn;
      this.position = position;
    }
    const isAll = messages.length < MESSAGES && messages.at(-1)?.isLast !== false;
    this.hasMore = !isAll && this.#wordsBefore + this.words.size < MAX_WORDS;
  }

  /** Words are new only with messages, or if they are collected anew. */
  isChanged(work: Work): boolean {
    const { turn, position, workingMs, workedTurn, workedBeforeMs } = this.#before;
    return (
      this.isReplaced ||
      turn < 0 ||
      this.turn !== turn ||
      this.position !== position ||
      work.workingMs !== workingMs ||
      work.workedTurn !== workedTurn ||
      work.workedBeforeMs !== workedBeforeMs
    );
  }
}

interface ReadMessage {
  sessionId: string;
  turn: number;
  position: number;
  role: 'user' | 'assistant';
  content: MessagePart[];
  /** Whether it is the last one that the statement found. */
  isLast: boolean;
}

/** The next messages of each session, also those that a fork inherits. */
async function readMessages(
  tx: Tx,
  organizationId: string,
  drafts: readonly Draft[],
): Promise<Map<string, ReadMessage[]>> {
  const rows = await tx.query<ReadMessage>(sql`
    select k.session_id as "sessionId", m.turn, m.position, m.role, m.content, m.following = 0 as "isLast"
    from unnest(${drafts.map(({ sessionId }) => sessionId)}::uuid[], ${drafts.map(({ turn }) => turn)}::int[],
      ${drafts.map(({ position }) => position)}::int[]) k(session_id, turn, position)
    cross join lateral (
      select p.turn, p.position, p.role, p.content,
        sum(octet_length(p.content::text)) over (order by p.turn, p.position rows between unbounded preceding and 1 preceding)
          as bytes_before,
        count(*) over (order by p.turn desc, p.position desc rows between unbounded preceding and 1 preceding) as following
      from (
        select m.turn, m.position, m.role, m.content
        from (${transcriptSources({ organizationId, sessionId: sql`k.session_id` })}) s
        cross join lateral (
          select * from messages m
          where m.organization_id = ${organizationId} and ${isOfSource} and (m.turn, m.position) > (k.turn, k.position)
            and m.role <> 'tool'
          order by m.turn, m.position limit ${MESSAGES}) m
        order by m.turn, m.position limit ${MESSAGES}) p) m
    where m.bytes_before is null or m.bytes_before < ${MAX_READ_BYTES}
    order by k.session_id, m.turn, m.position`);
  return Map.groupBy(rows, ({ sessionId }) => sessionId);
}

interface Work {
  workingMs: number;
  workedTurn: number;
  workedBeforeMs: number;
}

/** Operations that ran at the same time count once. A call of a `client` tool waits for the integrator's program. */
async function readWork(tx: Tx, organizationId: string, rows: readonly Searchable[]): Promise<Map<string, Work>> {
  // A model call starts when it is stored; a tool call may wait for an approval first.
  const turns = await tx.query<{ sessionId: string; turn: number; ms: number }>(sql`
    select k.session_id as "sessionId", t.turn, t.ms
    from unnest(${rows.map(({ sessionId }) => sessionId)}::uuid[], ${rows.map(({ workedTurn }) => workedTurn)}::int[])
      k(session_id, turn)
    cross join lateral (
      select w.turn, (
        select coalesce(sum(extract(epoch from upper(r) - lower(r))) * 1000, 0)::bigint from unnest(w.ranges) r) as ms
      from (
        select o.turn, range_agg(tstzrange(b.begun_at, greatest(b.begun_at, o.finished_at))) as ranges from operations o
        cross join lateral (
          select case when o.kind = 'tool' then o.started_at else o.created_at end as begun_at) b
        where o.organization_id = ${organizationId} and o.session_id = k.session_id and o.turn >= k.turn
          and b.begun_at is not null and o.finished_at is not null and o.tool_type is distinct from 'client'
        group by o.turn) w) t
    order by k.session_id, t.turn`);
  const found = Map.groupBy(turns, ({ sessionId }) => sessionId);
  return new Map(
    rows.map(({ sessionId, workedTurn, workedBeforeMs }) => {
      const own = found.get(sessionId) ?? [];
      const last = own.at(-1);
      const before = own.slice(0, -1).reduce((sum, { ms }) => sum + ms, workedBeforeMs);
      return [
        sessionId,
        { workingMs: before + (last?.ms ?? 0), workedTurn: last?.turn ?? workedTurn, workedBeforeMs: before },
      ];
    }),
  );
}

function upsert(organizationId: string, draft: Draft, work: Work): Sql {
  const { sessionId, preview, turn, position, isReplaced } = draft;
  const words = sql`array_to_tsvector(${textArray([...draft.words])}::text[])`;
  return sql`
    insert into session_search as x (organization_id, session_id, preview, document, turn, position, working_ms,
      worked_turn, worked_before_ms)
    values (${organizationId}, ${sessionId}, ${preview}, ${words}, ${turn}, ${position}, ${work.workingMs},
      ${work.workedTurn}, ${work.workedBeforeMs})
    on conflict (organization_id, session_id) do update set
      preview = excluded.preview,
      document = ${isReplaced ? sql`excluded.document` : sql`x.document || excluded.document`},
      turn = excluded.turn, position = excluded.position, working_ms = excluded.working_ms,
      worked_turn = excluded.worked_turn, worked_before_ms = excluded.worked_before_ms`;
}
