// A file that is made while it is sent. A reader that is slow is waited for; one that goes ends the making.
import { once } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FileStream } from '../events/export.ts';

/** Rejects where the making failed; the connection is then cut, so that nobody takes what came for the whole. */
export async function writeFile(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  file: FileStream,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  if (response.destroyed) gone.abort();
  response.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-disposition': `attachment; filename="${file.fileName}"`,
    'x-content-type-options': 'nosniff',
  });
  if (response.req.method === 'HEAD') return void response.end();
  try {
    for await (const piece of file.read(gone.signal)) {
      if (piece !== '' && !response.write(piece)) await once(response, 'drain', { signal: gone.signal });
    }
    response.end();
  } catch (error) {
    response.destroy();
    if (!gone.signal.aborted) throw error;
  }
}
