// What a share link shows to anyone who has it: the conversation of its session. The token names the organization and the link, so the
// look-up needs no global table, and proves nothing until its hash was compared. Every request looks it up again: a link that was
// revoked or has expired, or whose session was deleted, shows nothing more.
import type { Message, Session } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { type OpenFile, openFile } from '../../files/content.ts';
import { parseSecret, sameHash } from '../../keys/secret.ts';
import { ApiError, notFound } from '../../lib/api-error.ts';
import type { PoolContext } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import { namedFiles } from '../../session-rows/named-files.ts';
import { listMessages } from '../messages.ts';

/** A page of a shared session, newest message first. */
export interface SharedSession {
  title: string | null;
  includesTools: boolean;
  expiresAt: Date;
  status: Session['status'];
  createdAt: Date;
  messages: Message[];
  page: { hasMore: boolean; nextCursor: string };
}

interface Row {
  sessionId: string;
  tokenHash: Buffer;
  title: string | null;
  includesTools: boolean;
  expiresAt: Date;
  status: Session['status'];
  createdAt: Date;
}

type SharePlatform = Pick<Platform, 'db' | 'files' | 'clock'>;

const PAGE_MESSAGES = 100;
// Compared in place of the hash of a link that doesn't exist: no text has this hash.
const NO_HASH = Buffer.alloc(32);

/** Throws 404 `link_invalid` for a link that never existed, has expired or was revoked. */
export async function readShared(
  platform: SharePlatform,
  token: string,
  cursor: string | undefined,
): Promise<SharedSession> {
  const { organizationId, row } = await find(platform, token);
  const { sessionId: id, title, includesTools, expiresAt, status, createdAt } = row;
  const sessionId = formatId('ses', id);
  const request = { sessionId, order: 'desc' as const, limit: PAGE_MESSAGES, ...(cursor && { cursor }) };
  const { data, page } = await listMessages({ db: platform.db, organizationId } as PoolContext, request);
  const messages = data.flatMap((message) => {
    if (message.rejected) return [];
    const content = includesTools ? message.content : message.content.filter(isConversation);
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return { title, includesTools, expiresAt, status, createdAt, messages, page };
}

function isConversation({ type }: Message['content'][number]): boolean {
  return type === 'text' || type === 'file';
}

/** A file of the messages that the link shows. Throws 404 like `readShared`, or for any other file. */
export async function openSharedFile(platform: SharePlatform, token: string, fileId: string): Promise<OpenFile> {
  const { organizationId, row } = await find(platform, token);
  const id = uuidOf('file', fileId);
  const shown = await platform.db.query(isShown(organizationId, row, id));
  const file = shown.length > 0 ? await openFile(platform, organizationId, id) : undefined;
  if (!file) throw notFound('file');
  return file;
}

/** Whether a message that the link shows names the file. With tools, the link shows all that the session uses. */
function isShown(organizationId: string, { sessionId, includesTools }: Row, fileId: string): Sql {
  const id = formatId('file', fileId);
  // A queued message is shown as well.
  const isSaid = sql`(
    ${id} in (select n.file_id from (${namedFiles(organizationId, sessionId, { inTools: false, fileId: id })}) n)
    or exists (
      select 1 from session_inbox i
      where i.organization_id = ${organizationId} and i.session_id = ${sessionId} and i.kind = 'message'
        and (i.body->'content')::jsonb @> ${JSON.stringify([{ type: 'file', fileId: id }])}::jsonb))`;
  return sql`
    select 1 from file_uses u
    where u.organization_id = ${organizationId} and u.holder_id = ${sessionId} and u.file_id = ${fileId}
      and (${includesTools} or ${isSaid})`;
}

async function find({ db, clock }: SharePlatform, token: string): Promise<{ organizationId: string; row: Row }> {
  const secret = parseSecret(token, 'sbs');
  if (!secret) throw invalid();
  const { organizationId, keyId: shareId, hash } = secret;
  const [row] = await db.query<Row>(sql`
    select h.session_id as "sessionId", h.token_hash as "tokenHash", h.title, h.includes_tools as "includesTools",
      h.expires_at as "expiresAt", s.status, s.created_at as "createdAt"
    from session_shares h
    join sessions s on s.organization_id = h.organization_id and s.session_id = h.session_id
    where h.organization_id = ${organizationId} and h.share_id = ${shareId}`);
  const isRight = sameHash(row?.tokenHash ?? NO_HASH, hash);
  if (!row || !isRight || row.expiresAt <= clock.now()) throw invalid();
  return { organizationId, row };
}

function invalid(): ApiError {
  return new ApiError('link_invalid', 'This link has expired or was revoked, or is incomplete. Ask for a new one.');
}
