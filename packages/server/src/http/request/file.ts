// Sends a file that is generated while it is sent. It waits for a slow client; generation ends when the client leaves.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FileStream } from '../../events/export.ts';
import { closedSignal } from './closed.ts';
import { type Write, writeText } from './unread-bound.ts';

/** Rejects if the file could not be generated or was ended early. The connection is then cut, so that the client doesn't take a part for the whole. */
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
