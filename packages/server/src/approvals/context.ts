// The messages before a call, for an approver who reads a list: a few, cut short, and read with the approvals by the same statement.
//
// Its cost has a bound that does not depend on how long the session or its messages are: the newest messages of the session up to the
// turn of the call, and of those only what is not stored as a large value.
import { CONTEXT_CHARACTERS, CONTEXT_MESSAGES, type Input } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';

// Most messages between two texts are calls and results.
const MAX_LOOKED_AT = 12;
// As stored, compressed. Reading a hundred messages of a mebibyte each would take seconds.
const MAX_STORED_BYTES = 64 * 1024;

/** The column `context` for `selectApprovals`, if the request includes it. */
export function contextIf(
  organizationId: string,
  { include }: Pick<Input<'listApprovals'>, 'include'>,
): Sql | undefined {
  if (include !== 'context') return undefined;
  return sql`,
    (select coalesce(json_agg(json_build_object('role', t.role, 'text', left(coalesce(t.text, ''), ${CONTEXT_CHARACTERS}),
        'isCut', t.text is null or length(t.text) > ${CONTEXT_CHARACTERS},
        'createdAt', to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by t.turn, t.position), '[]')
      from (
        select m.turn, m.position, m.role, m.created_at, p.text
        from operations o
        cross join lateral (
          select turn, position, role, content, created_at from messages
          where organization_id = ${organizationId} and session_id = a.session_id and turn <= o.turn
            and created_at <= a.requested_at
          order by turn desc, position desc limit ${MAX_LOOKED_AT}) m
        cross join lateral (
          select case when pg_column_size(m.content) <= ${MAX_STORED_BYTES} then (
            select coalesce(string_agg(part->>'text', chr(10)), '') from json_array_elements(m.content) part
            where part->>'type' = 'text') end as text) p
        where o.organization_id = ${organizationId} and o.operation_id = a.operation_id and m.role <> 'tool'
          and p.text is distinct from ''
        order by m.turn desc, m.position desc limit ${CONTEXT_MESSAGES}) t) as context`;
}
