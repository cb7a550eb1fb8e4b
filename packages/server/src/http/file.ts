// A file that is made while it is sent. A reader that is slow is waited for; one that goes ends the making.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FileStream } from '../events/export.ts';
import { closedSignal } from './closed.ts';
import { writeText } from './unread.ts';

/** Rejects where the making failed; the connection is then cut, so that nobody takes what came for the whole. */
export async function writeFile(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  file: FileStream,
): Promise<void> {
  const closed = closedSignal(response);
  response.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-disposition': `attachment; filename="${file.fileName}"`,
    'x-content-type-options': 'nosniff',
  });
  if (response.req.method === 'HEAD') return void response.end();
  try {
    for await (const piece of file.read(closed)) {
      await writeText(response, piece, closed);
    }
    response.end();
  } catch (error) {
    response.destroy();
    if (!closed.aborted) throw error;
  }
}
