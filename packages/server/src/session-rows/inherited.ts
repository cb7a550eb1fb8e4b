// What a fork inherits: the messages of another session, up to the end of a turn.
//
// They are not copied. A row of inherited_turns says whose messages a fork reads, and for which turns. A fork of a fork gets a copy of
// the rows of its origin, so no reader follows a chain. The sources of a transcript are the session itself and those rows.
import sql, { type Sql } from 'sql-template-tag';
import type { SessionRow } from './session.ts';

/**
 * The most sessions that a transcript may be inherited from, so that reading it has a bound. A fork of a fork has one more than its
 * origin, if the origin had turns of its own.
 */
export const MAX_INHERITED_SOURCES = 100;

const NO_LIMIT = sql`2147483647`;

interface TranscriptOwner {
  organizationId: string;
  /** Or the column that has it. */
  sessionId: string | Sql;
}

/** The sources of a transcript: `session_id`, `from_turn`, `until_turn`, `until_position`. Their turns do not overlap. */
export function transcriptSources({ organizationId, sessionId }: TranscriptOwner): Sql {
  return sql`
    select ${sessionId}::uuid as session_id, 0 as from_turn, ${NO_LIMIT} as until_turn, ${NO_LIMIT} as until_position
    union all
    select i.source_session_id, i.from_turn, i.until_turn, i.until_position from inherited_turns i
    where i.organization_id = ${organizationId} and i.session_id = ${sessionId}`;
}

/** The sources of many sessions. `sessions`: a table with `n`, `org` and `sid`. Each source has the `n` and `org` of its session. */
export function sourcesOfEach(sessions: Sql, organizationIds: readonly string[]): Sql {
  return sql`
    select h.n, h.org, h.sid as session_id, 0 as from_turn, ${NO_LIMIT} as until_turn, ${NO_LIMIT} as until_position
    from ${sessions} h
    union all
    select h.n, h.org, i.source_session_id, i.from_turn, i.until_turn, i.until_position from ${sessions} h
    cross join lateral (
      -- The offset keeps it a look-up for each session.
      select x.source_session_id, x.from_turn, x.until_turn, x.until_position from inherited_turns x
      where x.organization_id = any(${[...organizationIds]}::uuid[]) and x.organization_id = h.org and x.session_id = h.sid
      offset 0) i`;
}

/** Whether the row of `messages` under the alias `m` is of the source under the alias `s`. The organization is left to the caller. */
export const isOfSource: Sql = sql`m.session_id = s.session_id and m.turn >= s.from_turn
  and (m.turn, m.position) <= (s.until_turn, s.until_position)`;

/** The rows beside that of a new fork, which has `origin`'s messages up to the end of `turn`; `lastPosition` is that of the last of them. */
export function inheritTurns(
  fork: { organizationId: string; sessionId: string },
  origin: Pick<SessionRow, 'sessionId' | 'forkedAtTurn'>,
  turn: number,
  lastPosition: number,
): Sql[] {
  const { organizationId, sessionId } = fork;
  // The summary that replaces the oldest of these messages for the model. The fork would otherwise have to write one too.
  const summary = sql`
    insert into compactions (organization_id, session_id, from_turn, from_position, operation_id, turn, summary, tokens_before,
      tokens_after, model, max_tokens, max_tokens_of, created_at)
    select c.organization_id, ${sessionId}, c.from_turn, c.from_position, c.operation_id, c.turn, c.summary, c.tokens_before,
      c.tokens_after, c.model, c.max_tokens, c.max_tokens_of, c.created_at
    from compactions c
    where c.organization_id = ${organizationId} and c.session_id = ${origin.sessionId}
      and (c.from_turn, c.from_position) <= (${turn + 1}, 0)
    order by c.from_turn desc, c.from_position desc limit 1`;
  const isIndexed = sql`
    insert into session_forks (organization_id, session_id, origin_session_id)
    values (${organizationId}, ${sessionId}, ${origin.sessionId})`;
  const firstOwnTurn = (origin.forkedAtTurn ?? 0) + 1;
  const ofOrigin = sql`
    insert into inherited_turns (organization_id, session_id, from_turn, until_turn, until_position, source_session_id)
    values (${organizationId}, ${sessionId}, ${firstOwnTurn}, ${turn}, ${lastPosition}, ${origin.sessionId})`;
  // A turn that others follow has all its messages.
  const ofItsSources = sql`
    insert into inherited_turns (organization_id, session_id, from_turn, until_turn, until_position, source_session_id)
    select i.organization_id, ${sessionId}, i.from_turn, least(i.until_turn, ${turn}),
      case when i.until_turn <= ${turn} then i.until_position else ${NO_LIMIT} end, i.source_session_id
    from inherited_turns i
    where i.organization_id = ${organizationId} and i.session_id = ${origin.sessionId} and i.from_turn <= ${turn}`;
  return [
    isIndexed,
    summary,
    ...(turn >= firstOwnTurn ? [ofOrigin] : []),
    ...(origin.forkedAtTurn && turn > 0 ? [ofItsSources] : []),
  ];
}
