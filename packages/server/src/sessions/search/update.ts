// Keeps session_search up to date, in the background, so that no turn waits for it.
//
// The event log is its queue: a session that opens, waits, becomes idle, ends or changes writes a record in the same transaction.
// A pass reads the records after the last one that was read and collects what is new in their sessions. A few sessions at a time, it
// writes their rows and how far it came in one transaction; a crash repeats what was not written. Words are collected before that
// transaction, because it takes processor time in proportion to the texts, and meanwhile no transaction should keep rows locked and
// old versions of rows alive. Of two nodes at the same position one writes, and the other discards what it has. Sessions from before
// the table existed are added newest first, when there are no records to read. When all are there, event_heads gets the number of the
// last record that was read: an index has the organizations whose log goes further, so the others cost nothing.
//
// Deleting a session deletes its row by the foreign key.
import type { MessagePart, Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { textArray } from '../../db/values.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Platform } from '../../platform.ts';
import { isOfSource, transcriptSources } from '../../session-rows/inherited.ts';
import { type LogRecord, portionsOf, SESSIONS } from './portions.ts';
import { addWordsOfParts, addWordsOfSession, previewOf } from './texts.ts';
import { fixedWords, MAX_WORDS } from './words.ts';

// How long a node leaves an organization to another one, which may stop meanwhile.
const LEFT_MS = 10_000;
const RECORDS = 500;
const OLD_SESSIONS = 200;
// What one statement reads of each session: so many messages and so many bytes, or one message.
const MESSAGES = 200;
const MAX_READ_BYTES = 256 * 1024;
// Sorts after every other one.
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export const ORGANIZATIONS_PAGE = 1_000;

/** Organizations whose sessions have changed, or are not all there yet; at most ORGANIZATIONS_PAGE from each database server. */
export async function organizationsToUpdate({ shards }: Pick<Platform, 'shards'>): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for sessions to make searchable',
    (within) => sql`
    select h.organization_id as "organizationId" from event_heads h
    where h.searched < h.sequence ${within(sql`h.organization_id`)}
    order by h.organization_id limit ${ORGANIZATIONS_PAGE}`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** As the row has it. */
interface Progress {
  sequence: number;
  addedFrom: string | null;
}

/** Passes of one node. It leaves an organization to a faster node for ten seconds, so that two do not do the same work all the time. */
export function createSearchUpdates({ db, clock }: { db: Db; clock: Pick<Clock, 'elapsedMs'> }): {
  /** Until there is nothing left to do, or another node does it. */
  update(organizationId: string, signal: AbortSignal): Promise<void>;
} {
  const leftUntilMs = new Map<string, number>();
  return {
    async update(organizationId, signal) {
      if ((leftUntilMs.get(organizationId) ?? 0) > clock.elapsedMs()) return;
      leftUntilMs.delete(organizationId);
      let outcome: Outcome = 'more';
      while (outcome === 'more' && !signal.aborted) outcome = await updateSearch(db, organizationId);
      if (outcome === 'overtaken') leftUntilMs.set(organizationId, clock.elapsedMs() + LEFT_MS);
    },
  };
}

/** `more`: there may be more to do. `overtaken`: another node does the same. */
type Outcome = 'done' | 'more' | 'overtaken';

/** One pass. */
export async function updateSearch(db: Db, organizationId: string): Promise<Outcome> {
  const found = await readProgress(db, organizationId);
  if (!found) return 'done';
  const { anchorSequence, ...stored } = found;
  let progress: Progress = stored;
  /** False if another node was faster: it continues. */
  async function advance(next: Progress, ids: Iterable<string>, replaced: ReadonlySet<string>): Promise<boolean> {
    // In the order in which deletions lock them.
    const rows = await prepare(db, organizationId, [...ids].toSorted(), replaced);
    if (!(await store(db, organizationId, progress, next, rows))) return false;
    progress = next;
    return true;
  }

  if (anchorSequence > progress.sequence) {
    // After a long pause, retention has deleted records that were not read: all sessions are visited again.
    if (!(await advance({ sequence: anchorSequence, addedFrom: LAST_ID }, [], new Set()))) return 'overtaken';
  }
  const records = await db.query<LogRecord>(sql`
    select e.sequence, e.body->>'type' as type, e.body->>'sessionId' as "sessionId" from events e
    where e.organization_id = ${organizationId} and e.sequence > ${progress.sequence} order by e.sequence limit ${RECORDS}`);
  for (const { sequence, ids, replaced } of portionsOf(records)) {
    if (!(await advance({ ...progress, sequence }, ids, replaced))) return 'overtaken';
  }
  if (records.length === RECORDS) return 'more';
  if (progress.addedFrom === null) return finish();

  const old = await db.query<{ sessionId: string }>(sql`
    select s.session_id as "sessionId" from sessions s
    where s.organization_id = ${organizationId} and s.session_id < ${progress.addedFrom}
    order by s.session_id desc limit ${OLD_SESSIONS}`);
  const ids = old.map(({ sessionId }) => sessionId);
  for (let at = 0; at < ids.length; at += SESSIONS) {
    const some = ids.slice(at, at + SESSIONS);
    if (!(await advance({ ...progress, addedFrom: some.at(-1)! }, some, new Set()))) return 'overtaken';
  }
  if (ids.length === OLD_SESSIONS) return 'more';
  return (await advance({ ...progress, addedFrom: null }, [], new Set())) ? finish() : 'overtaken';

  /** The organization is not looked at any more until its log has further records. */
  async function finish(): Promise<Outcome> {
    await db.execute(sql`
      update event_heads set searched = ${progress.sequence}
      where organization_id = ${organizationId} and searched < ${progress.sequence}`);
    return 'done';
  }
}

/** With the last record of the event log that retention has deleted. Undefined if the organization has no event log. */
async function readProgress(
  db: Db,
  organizationId: string,
): Promise<(Progress & { anchorSequence: number }) | undefined> {
  await db.query(sql`
    insert into session_search_progress (organization_id, sequence, added_from)
    select h.organization_id, h.sequence, ${LAST_ID}::uuid from event_heads h
    where h.organization_id = ${organizationId} and not exists (
      select 1 from session_search_progress p where p.organization_id = ${organizationId})
    on conflict do nothing`);
  const [progress] = await db.query<Progress & { anchorSequence: number }>(sql`
    select p.sequence, p.added_from as "addedFrom", h.anchor_sequence as "anchorSequence" from session_search_progress p
    join event_heads h on h.organization_id = p.organization_id
    where p.organization_id = ${organizationId}`);
  return progress;
}

/** Writes the rows and how far they are. False, and nothing is written, if another node has come further or is about to. */
function store(
  db: Db,
  organizationId: string,
  before: Progress,
  after: Progress,
  rows: readonly PreparedRow[],
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isOwn = await tx.execute(sql`
      select 1 from session_search_progress p
      where p.organization_id = ${organizationId} and p.sequence = ${before.sequence}
        and p.added_from is not distinct from ${before.addedFrom}::uuid
      for update skip locked`);
    if (isOwn === 0) return false;
    const added = rows.filter(({ draft }) => draft.isNew).map(({ draft }) => draft.sessionId);
    // They are locked, so that they are there when their rows are inserted. The others are not, so that no append meets a lock.
    const open =
      added.length === 0
        ? []
        : await tx.query<{ sessionId: string }>(sql`
          select s.session_id as "sessionId" from sessions s
          where s.organization_id = ${organizationId} and s.session_id = any(${added}::uuid[])
          order by s.session_id for key share`);
    const isThere = new Set(open.map(({ sessionId }) => sessionId));
    for (const row of rows) {
      if (!row.draft.isNew) tx.write(updateRow(organizationId, row));
      else if (isThere.has(row.draft.sessionId)) tx.write(insertRow(organizationId, row));
    }
    await tx.query(sql`
      update session_search_progress set sequence = ${after.sequence}, added_from = ${after.addedFrom}
      where organization_id = ${organizationId}`);
    return true;
  });
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
  /** It has no row. */
  isNew: boolean;
  /** -1 if nothing of its messages is in its row. */
  turn: number;
  position: number;
  /** In its row. */
  words: number;
  workingMs: number;
  workedTurn: number;
  workedBeforeMs: number;
}

interface PreparedRow {
  draft: Draft;
  work: Work;
}

/** What is to be written of the sessions. */
async function prepare(
  db: Db,
  organizationId: string,
  ids: readonly string[],
  replaced: ReadonlySet<string>,
): Promise<PreparedRow[]> {
  if (ids.length === 0) return [];
  const rows = await db.query<Searchable>(sql`
    select s.session_id as "sessionId", s.environment, s.agent_id as "agentId", s.end_user_id as "endUserId",
      s.end_user_name as "endUserName", s.metadata, s.forked_at_turn as "forkedAtTurn", x.preview,
      x.session_id is null as "isNew", coalesce(x.turn, -1) as turn, coalesce(x.position, -1) as position,
      coalesce(length(x.document), 0) as words, coalesce(x.working_ms, 0) as "workingMs",
      coalesce(x.worked_turn, 0) as "workedTurn", coalesce(x.worked_before_ms, 0) as "workedBeforeMs"
    from sessions s
    left join session_search x on x.organization_id = s.organization_id and x.session_id = s.session_id
    where s.organization_id = ${organizationId} and s.session_id = any(${[...ids]}::uuid[])
    order by s.session_id`);
  const worked = await readWork(db, organizationId, rows);
  const drafts = rows.map((row) => new Draft(organizationId, row, replaced.has(row.sessionId)));
  for (let open = drafts; open.length > 0; ) {
    const messages = await readMessages(db, organizationId, open);
    for (const draft of open) draft.add(messages.get(draft.sessionId) ?? []);
    open = open.filter((draft) => draft.hasMore);
  }
  // Many records change nothing that is found, such as the end of a session that was idle.
  return drafts
    .map((draft) => ({ draft, work: worked.get(draft.sessionId)! }))
    .filter(({ draft, work }) => draft.isChanged(work));
}

/** What becomes the row of one session. */
class Draft {
  readonly sessionId: string;
  readonly words = new Set<string>();
  readonly isReplaced: boolean;
  readonly isNew: boolean;
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
    this.isNew = row.isNew;
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
  db: Db,
  organizationId: string,
  drafts: readonly Draft[],
): Promise<Map<string, ReadMessage[]>> {
  const rows = await db.query<ReadMessage>(sql`
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
async function readWork(db: Db, organizationId: string, rows: readonly Searchable[]): Promise<Map<string, Work>> {
  // A model call starts when it is stored; a tool call may wait for an approval first.
  const turns = await db.query<{ sessionId: string; turn: number; ms: number }>(sql`
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

function documentOf({ words }: Draft): Sql {
  return sql`array_to_tsvector(${textArray([...words])}::text[])`;
}

function insertRow(organizationId: string, { draft, work }: PreparedRow): Sql {
  const { sessionId, preview, turn, position } = draft;
  return sql`
    insert into session_search (organization_id, session_id, preview, document, turn, position, working_ms,
      worked_turn, worked_before_ms)
    values (${organizationId}, ${sessionId}, ${preview}, ${documentOf(draft)}, ${turn}, ${position}, ${work.workingMs},
      ${work.workedTurn}, ${work.workedBeforeMs})`;
}

/** Does nothing if the session was deleted meanwhile. */
function updateRow(organizationId: string, { draft, work }: PreparedRow): Sql {
  const { sessionId, preview, turn, position, isReplaced } = draft;
  const document = documentOf(draft);
  return sql`
    update session_search x set preview = ${preview}, document = ${isReplaced ? document : sql`x.document || ${document}`},
      turn = ${turn}, position = ${position}, working_ms = ${work.workingMs}, worked_turn = ${work.workedTurn},
      worked_before_ms = ${work.workedBeforeMs}
    where x.organization_id = ${organizationId} and x.session_id = ${sessionId}`;
}
