// Which files belong to agents: those that one of their sessions or schedules names, or that a tool created in one of their sessions. A
// file can belong to several agents. A new upload belongs to none until it is used. Each is a condition on `files f`.
import sql, { type Sql } from 'sql-template-tag';

/** One of the agents has it. */
export function fileBelongsTo(agents: readonly string[]): Sql {
  const own = sql`any(${[...agents]}::uuid[])`;
  return sql`(
    exists (
      select 1 from sessions s
      where s.organization_id = f.organization_id and s.session_id = f.session_id and s.agent_id = ${own})
    or exists (
      select 1 from file_uses u
      left join sessions s on s.organization_id = u.organization_id and s.session_id = u.holder_id
      left join schedules c on c.organization_id = u.organization_id and c.schedule_id = u.holder_id
      where u.organization_id = f.organization_id and u.file_id = f.file_id
        and coalesce(s.agent_id, c.agent_id) = ${own}))`;
}

/** One of the agents has it and no other. */
export function fileIsOnlyOf(agents: readonly string[]): Sql {
  const other = sql`all(${[...agents]}::uuid[])`;
  return sql`(${fileBelongsTo(agents)}
    and not exists (
      select 1 from sessions s
      where s.organization_id = f.organization_id and s.session_id = f.session_id and s.agent_id <> ${other})
    and not exists (
      select 1 from file_uses u
      left join sessions s on s.organization_id = u.organization_id and s.session_id = u.holder_id
      left join schedules c on c.organization_id = u.organization_id and c.schedule_id = u.holder_id
      where u.organization_id = f.organization_id and u.file_id = f.file_id
        and coalesce(s.agent_id, c.agent_id) <> ${other}))`;
}

/** A message to one of the agents may name it: the file is one of theirs, or new. */
export function fileIsUsableBy(agents: readonly string[]): Sql {
  return sql`(${fileBelongsTo(agents)}
    or f.session_id is null and not exists (
      select 1 from file_uses u where u.organization_id = f.organization_id and u.file_id = f.file_id))`;
}
