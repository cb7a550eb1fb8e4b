// Sends a file that is generated, or read from its store, while it is sent. It waits for a slow client, and ends when the client leaves.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { closedSignal } from '../connection/closed.ts';
import { type Write, writeBytes, writeText } from './unread-bound.ts';

/** The response that a file is sent with. */
export interface FileResponse {
  status: 200 | 206;
  headers: OutgoingHttpHeaders;
  /** Parts of the body. Throws if it can't continue. */
  read(signal: AbortSignal): AsyncGenerator<string | Uint8Array>;
}

/** Rejects if the file could not be read or was ended early. The connection is then cut, so that the client doesn't take a part for the whole. */
export async function writeFile(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  over: AbortSignal,
  write: Write,
  file: FileResponse,
): Promise<void> {
  const end = AbortSignal.any([closedSignal(response), over]);
  response.writeHead(file.status, { ...headers, ...file.headers });
  if (response.req.method === 'HEAD') return void response.end();
  try {
    for await (const part of file.read(end)) {
      await (typeof part === 'string' ? writeText(write, part, end) : writeBytes(write, part, end));
    }
    end.throwIfAborted();
    response.end();
  } catch (error) {
    response.destroy();
    if (!end.aborted) throw error;
  }
}
