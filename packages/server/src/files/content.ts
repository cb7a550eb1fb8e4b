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
  if (!row) return undefined;
  const store = files.named(row.store);
  return {
    ...row,
    read: (range = { start: 0, end: row.bytes }, signal) => store.read({ organizationId, fileId }, range, signal),
  };
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
