// Files: bytes that messages can name.
//
//   receive.ts        content arrives: typed by its bytes (media-type.ts), stored as far as there is room (room.ts)
//   stores.ts         where the bytes are: in the database (database-store.ts) or in another store
//   content.ts        reading them
//   create.ts         what tools return
//   message-files.ts  files in messages
//   retention.ts, purge.ts   when files go, and their bytes
//
// A file belongs to an environment and never changes. Its row is the file; whether it exists is `purge_after` (0005_files.sql).
import type { Input, Result } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import { recordEvent } from '../events/record.ts';
import { notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { type FileRow, fileColumns, fileEvent, viewFile } from './file-row.ts';
import { keepFile, type ReceivedFile } from './receive.ts';
import { retireFiles } from './retention.ts';

/** The content has been received. */
export async function uploadFile(
  ctx: Context,
  { received }: Input<'uploadFile'> & { received: ReceivedFile },
): Promise<Result<'uploadFile'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    await keepFile(tx, ctx, ctx, received);
    return { file: viewFile(received) };
  });
}

/** Newest first. */
export async function listFiles(ctx: Context, input: Input<'listFiles'>): Promise<Result<'listFiles'>> {
  const request = pageRequest(`files:${ctx.organizationId}:${input.environment ?? ''}`, input);
  const rows = await ctx.db.query<FileRow>(sql`
    select ${fileColumns} from files f
    where f.organization_id = ${ctx.organizationId} and f.purge_after is null
      ${input.environment === undefined ? empty : sql`and f.environment = ${input.environment}`}
      ${request.after === undefined ? empty : sql`and f.file_id < ${request.after}`}
    order by f.file_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.fileId, viewFile);
}

export async function getFile(ctx: Context, input: Input<'getFile'>): Promise<Result<'getFile'>> {
  return { file: viewFile(await readFile(ctx, uuidOf('file', input.fileId))) };
}

/** Messages that name it stay as they are. */
export async function deleteFile(ctx: Context, input: Input<'deleteFile'>): Promise<Result<'deleteFile'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const fileId = uuidOf('file', input.fileId);
    const file = await readFile(ctx, fileId);
    const now = ctx.clock.now();
    // Another request may have deleted it in between.
    if ((await retireFiles(tx, organizationId, [fileId], now)) === 0) throw notFound('file');
    await tx.query(recordEvent(ctx, now, { type: 'file.deleted', ...(await fileEvent(tx, organizationId, file)) }));
    return { fileId: input.fileId, deleted: true };
  });
}

async function readFile(
  { db, organizationId }: Pick<Context, 'db' | 'organizationId'>,
  fileId: string,
): Promise<FileRow> {
  const [row] = await db.query<FileRow>(sql`
    select ${fileColumns} from files f
    where f.organization_id = ${organizationId} and f.file_id = ${fileId} and f.purge_after is null`);
  if (!row) throw notFound('file');
  return row;
}
