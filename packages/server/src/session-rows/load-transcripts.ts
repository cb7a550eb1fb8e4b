// Loading what models get of transcripts: without the messages that a summary replaces, however many these are.

import sql from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import type { Compaction } from './compactions.ts';
import { isOfSource, sourcesOfEach } from './inherited.ts';
import { type LeftOutColumn, leftOutOf, withoutMessages } from './left-out.ts';
import { contentOf, type TranscriptEntry } from './transcript.ts';

/** As the database has it. */
interface Entry extends Omit<TranscriptEntry, 'content'> {
  content: string;
  n: number;
  bytes: number;
  compaction: Compaction | null;
}

export interface Loaded<R> {
  row: R;
  /** Without replaced messages; the pinned ones come first. Notes are in place of messages that are left out. */
  transcript: TranscriptEntry[];
  compaction: Compaction | null;
  /** Size of the transcript as JSON. */
  bytes: number;
}

// Sizes as stored, mostly compressed. A session with a longer transcript is loaded by itself.
const LOADED_AT_ONCE_BYTES = 4 * 1024 * 1024;

/** Loads the transcripts of the first of these: at least one, and as many more as may be loaded at once. All of one shard. */
export async function loadTranscripts<R extends { organizationId: string; sessionId: string; leftOut: LeftOutColumn }>(
  db: Queryable,
  rows: readonly R[],
): Promise<Loaded<R>[]> {
  const organizations = rows.map(({ organizationId }) => organizationId);
  const ids = rows.map(({ sessionId }) => sessionId);
  const scope = [...new Set(organizations)];
  const columns = sql`m.turn, m.position, m.message_id, m.role, m.content, m.provider_data, m.created_at`;
  const ofSource = sql`m.organization_id = any(${scope}::uuid[]) and m.organization_id = s.org and ${isOfSource}`;
  const entries = await db.query<Entry | { n: number; turn: null; compaction: Compaction | null }>(sql`
    with loaded as (select * from unnest(${organizations}::uuid[], ${ids}::uuid[]) with ordinality as h(org, sid, n)),
      newest as materialized (
        select h.n, k.* from loaded h
        cross join lateral (
          select x.from_turn, x.from_position, x.summary, x.max_tokens, x.max_tokens_of from compactions x
          where x.organization_id = any(${scope}::uuid[]) and x.organization_id = h.org and x.session_id = h.sid
          order by x.from_turn desc, x.from_position desc limit 1) k)
    select n::integer, turn, position, message_id as "messageId", role, content::text as content, provider_data as "providerData",
      created_at as "createdAt", octet_length(content::text) + coalesce(octet_length(provider_data::text), 0) as bytes,
      -- Once for each session.
      case when row_number() over (partition by n order by turn, position) = 1 then compaction end as compaction
    from (
      select s.n, m.*,
        case when k.n is not null then json_build_object('from', json_build_object('turn', k.from_turn,
          'position', k.from_position), 'summary', k.summary, 'maxTokens', k.max_tokens, 'maxTokensOf', k.max_tokens_of
        ) end as compaction,
        -- What is stored before this session's own: reading its size does not read the value.
        sum(coalesce(pg_column_size(m.content), 0) + coalesce(pg_column_size(m.provider_data), 0))
          over (order by s.n range between unbounded preceding and 1 preceding) as before
      from (${sourcesOfEach(sql`loaded`, scope)}) s
      left join newest k on k.n = s.n
      left join lateral (
        -- The offset keeps it a look-up for each session, rather than a join with all messages there are.
        (select ${columns} from messages m
        where ${ofSource} and (m.turn, m.position) >= (coalesce(k.from_turn, 0), coalesce(k.from_position, 0))
        offset 0)
        union all
        (select ${columns} from messages m
        where ${ofSource} and m.position = 0 and m.turn in (1, k.from_turn)
          and (m.turn, m.position) < (k.from_turn, k.from_position)
        offset 0)) m on true) found
    where before is null or before < ${LOADED_AT_ONCE_BYTES}
    order by n, turn, position`);
  const transcripts = Map.groupBy(entries, ({ n }) => n);
  const loaded: Loaded<R>[] = [];
  for (const [index, row] of rows.slice(0, transcripts.size).entries()) {
    const found = transcripts.get(index + 1)!;
    const ofSession = found.filter((entry): entry is Entry => entry.turn !== null);
    loaded.push({
      row,
      transcript: withoutMessages(await readEntries(ofSession), leftOutOf(row.leftOut)),
      compaction: found.find(({ compaction }) => compaction !== null)?.compaction ?? null,
      bytes: ofSession.reduce((sum, { bytes }) => sum + bytes, 0),
    });
  }
  return loaded;
}

/** Shorter texts are parsed at once. */
const LONG_CHARACTERS = 64 * 1024;

/** Lets other work run after each long message, which takes tens of milliseconds. */
async function readEntries(entries: readonly Entry[]): Promise<TranscriptEntry[]> {
  const read: TranscriptEntry[] = [];
  for (const { n: _, bytes: __, compaction: ___, content, ...entry } of entries) {
    if (content.length > LONG_CHARACTERS) await new Promise<void>((resolve) => setImmediate(resolve));
    read.push({ ...entry, content: contentOf(content) });
  }
  return read;
}
