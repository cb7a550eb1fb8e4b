// The files that the messages of a transcript name. A session may use others as well: files of queued messages, and what a tool returned
// in a call that was cut off. So file_uses (files/message-files.ts) says which files a session keeps, and this which ones its messages
// show.
import sql, { empty, type Sql } from 'sql-template-tag';
import { isOfSource, transcriptSources } from './inherited.ts';

interface Which {
  /** Also those in results of tools, whose output is a file or a list with files. */
  inTools: boolean;
  /** Only this one. */
  fileId?: string;
}

/** Their ids as text, in the column `file_id`, once for each message. */
export function namedFiles(organizationId: string, sessionId: string, { inTools, fileId = 'file_' }: Which): Sql {
  const inResults = sql`
    union all select jsonb_path_query(m.content, '$[*].output ? (@.type == "file").fileId')`;
  return sql`
    select n.file_id #>> '{}' as file_id
    from (${transcriptSources({ organizationId, sessionId })}) s
    cross join lateral (
      -- The offset keeps the content from being converted twice.
      select m.content::jsonb as content from messages m
      where m.organization_id = ${organizationId} and ${isOfSource} ${inTools ? empty : sql`and m.role <> 'tool'`}
        and strpos(m.content::text, ${`"${fileId}`}) > 0 offset 0) m
    cross join lateral (
      select jsonb_path_query(m.content, '$[*] ? (@.type == "file").fileId')
      ${inTools ? inResults : empty}) n(file_id)`;
}
