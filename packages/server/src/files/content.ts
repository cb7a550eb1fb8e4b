// Reading files.
import type { Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { notFound } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type FileRow, fileColumns } from './file-row.ts';
import type { ByteRange } from './store.ts';

/** A file whose content can be read. */
export interface OpenFile extends FileRow {
  /** In pieces of at most 1 MiB. Throws if the content is gone: the file was deleted meanwhile. Ends early if `signal` is aborted. */
  read(range?: ByteRange, signal?: AbortSignal): AsyncGenerator<Uint8Array>;
}

/** Undefined if there is no such file (any more). */
export async function openFile(
  { db, files }: Pick<Platform, 'db' | 'files'>,
  organizationId: string,
  fileId: string,
): Promise<OpenFile | undefined> {
  const [row] = await db.query<FileRow & { store: string }>(sql`
    select ${fileColumns}, f.store from files f
    where f.organization_id = ${organizationId} and f.file_id = ${fileId} and f.purge_after is null`);
  return row && opened(files, organizationId, row);
}

function opened(files: Platform['files'], organizationId: string, row: FileRow & { store: string }): OpenFile {
  const store = files.named(row.store);
  const { fileId, bytes } = row;
  return {
    ...row,
    read: (range = { start: 0, end: bytes }, signal) => store.read({ organizationId, fileId }, range, signal),
  };
}

/** The files that exist and that the session uses, by id. Its model may read no others, even if a message or a result names them. */
export async function openUsedFiles(
  { db, files }: Pick<Platform, 'db' | 'files'>,
  organizationId: string,
  sessionId: string,
  fileIds: readonly string[],
): Promise<Map<string, OpenFile>> {
  const rows = await db.query<FileRow & { store: string }>(sql`
    select ${fileColumns}, f.store from file_uses u
    join files f on f.organization_id = u.organization_id and f.file_id = u.file_id and f.purge_after is null
    where u.organization_id = ${organizationId} and u.holder_id = ${sessionId} and u.file_id = any(${fileIds}::uuid[])`);
  return new Map(rows.map((row) => [row.fileId, opened(files, organizationId, row)]));
}

/** The whole content, at most 32 MiB. */
export async function contentOf(file: OpenFile, signal?: AbortSignal): Promise<Buffer> {
  const content = Buffer.allocUnsafeSlow(file.bytes);
  let at = 0;
  for await (const piece of file.read(undefined, signal)) {
    content.set(piece, at);
    at += piece.length;
  }
  signal?.throwIfAborted();
  return content;
}

export async function getFileContent(ctx: PoolContext, input: Input<'getFileContent'>): Promise<OpenFile> {
  const file = await openFile(ctx, ctx.organizationId, uuidOf('file', input.fileId));
  if (!file) throw notFound('file');
  return file;
}
