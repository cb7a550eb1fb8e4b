// A file that is made while it is sent. A reader that is slow is waited for; one that goes ends the making.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FileStream } from '../../events/export.ts';
import { closedSignal } from './closed.ts';
import { type Write, writeText } from './unread-bound.ts';

/** Rejects where it could not be made, or was over before; the connection is then cut, so that nobody takes what came for the whole. */
export async function writeFile(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  over: AbortSignal,
  write: Write,
  file: FileStream,
): Promise<void> {
  const end = AbortSignal.any([closedSignal(response), over]);
  response.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-disposition': `attachment; filename="${file.fileName}"`,
    'x-content-type-options': 'nosniff',
  });
  if (response.req.method === 'HEAD') return void response.end();
  try {
    for await (const piece of file.read(end)) {
      await writeText(write, piece, end);
    }
    end.throwIfAborted();
    response.end();
  } catch (error) {
    response.destroy();
    if (!end.aborted) throw error;
  }
}
