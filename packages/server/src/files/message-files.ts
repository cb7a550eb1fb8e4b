// Files in messages: what callers send names a file, and what is stored says what it is. A session or schedule that names a file keeps
// it from being deleted as unused.
import type { Content, MessagePart } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { type FileRow, fileColumns, filePart } from './file-row.ts';
import { fileIsUsableBy } from './files-of-agents.ts';

const DAY_MS = 24 * 3600 * 1000;

export interface Holder {
  organizationId: string;
  environment: string;
  /** The session or schedule. */
  holderId: string;
  /** The name of the field with the content. */
  field: string;
  /** A key that is limited to agents may name only their files and new ones; a session token those that are its own (`usableBy`). */
  caller: Pick<Context, 'token' | 'callerId' | 'agents'>;
}

/** The parts of a message without files as they are stored; undefined if it has some. A string is short for one part of text. */
export function textParts(content: Content): MessagePart[] | undefined {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.every((part) => part.type === 'text') ? content : undefined;
}

/** The parts of a message as they are stored. 422 `file_invalid` for a file that is not in the environment. */
export async function messageParts(tx: Tx, holder: Holder, content: Content, now: Date): Promise<MessagePart[]> {
  const texts = textParts(content);
  if (texts) return texts;
  const parts = content as Exclude<Content, string>;
  const ids = parts.flatMap((part) => (part.type === 'file' ? [uuidOf('file', part.fileId)] : []));
  const files = await useFiles(tx, holder, ids, now);
  return parts.map((part, index) => {
    if (part.type !== 'file') return part;
    const file = files.get(uuidOf('file', part.fileId));
    if (file) return filePart(file);
    const path = `${holder.field}[${index}].fileId`;
    const message = `there is no file ${part.fileId} in the environment "${holder.environment}"`;
    throw new ApiError('file_invalid', `${path}: ${message}.`, { errors: [{ path, message }] });
  });
}

/** A session that continues the conversation of another uses the files that it shows. */
export function inheritUses(
  organizationId: string,
  fromSessionId: string,
  toSessionId: string,
  fileIds: readonly string[],
): Sql {
  return sql`
    insert into file_uses (organization_id, holder_id, file_id)
    select u.organization_id, ${toSessionId}, u.file_id from file_uses u
    where u.organization_id = ${organizationId} and u.holder_id = ${fromSessionId} and u.file_id = any(${[...fileIds]}::uuid[])
    on conflict do nothing`;
}

/** By id, those that exist. */
async function useFiles(tx: Tx, holder: Holder, ids: string[], now: Date): Promise<Map<string, FileRow>> {
  const { organizationId, environment, holderId } = holder;
  const isUsable = usableBy(holder);
  const [, rows] = await Promise.all([
    // Locks the files that a deletion could take away at this moment, so that it waits and then sees the use, or has deleted the file
    // first: retention looks at files that were not used for at least a day, or are unsent, and a session's deletion at files of its tools
    // (retention.ts). In the order of their ids, so that two messages with the same files do not wait for each other.
    tx.query(sql`
      with locked as (
        select f.file_id from files f
        where f.organization_id = ${organizationId} and f.file_id = any(${ids}::uuid[])
          and f.environment = ${environment} and f.purge_after is null ${isUsable}
          and (f.used_at < ${new Date(now.getTime() - DAY_MS)} or f.session_id is not null or f.is_unsent)
        order by f.file_id for no key update)
      update files f set used_at = ${now}, is_unsent = false from locked
      where f.organization_id = ${organizationId} and f.file_id = locked.file_id`),
    tx.query<FileRow>(sql`
      select ${fileColumns} from files f
      where f.organization_id = ${organizationId} and f.file_id = any(${ids}::uuid[])
        and f.environment = ${environment} and f.purge_after is null ${isUsable}`),
    tx.query(sql`
      insert into file_uses (organization_id, holder_id, file_id)
      select f.organization_id, ${holderId}, f.file_id from files f
      where f.organization_id = ${organizationId} and f.file_id = any(${ids}::uuid[])
        and f.environment = ${environment} and f.purge_after is null ${isUsable}
      on conflict do nothing`),
  ]);
  return new Map(rows.map((row) => [row.fileId, row]));
}

/** A token may name files that were uploaded with the same reach, and those that the session has already. */
function usableBy({ organizationId, holderId, caller }: Holder): Sql {
  if (caller.agents) return sql`and ${fileIsUsableBy(caller.agents)}`;
  if (!caller.token) return empty;
  return sql`
    and (f.uploaded_by = ${caller.callerId} or exists (
      select 1 from file_uses o
      where o.organization_id = ${organizationId} and o.holder_id = ${holderId} and o.file_id = f.file_id))`;
}
