// Detects that the client has left. Node emits `close` once, and a listener that is added later is never called. A client may leave
// while its key is looked up, so every listener for the end of a response is added here (test/house.test.ts).
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { OVER } from '../../lib/aborted.ts';

/** Calls `fn` when the response or its connection is closed, at once if it already is. Returns a function that removes the listener. */
export function onceClosed(response: ServerResponse | Socket, fn: () => void): () => void {
  if (response.destroyed) {
    fn();
    return () => {};
  }
  // Not `once`, which would keep two more objects for each listener.
  response.on('close', fn);
  return () => void response.off('close', fn);
}

/** Aborted when the response is closed. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  onceClosed(response, () => closed.abort(OVER));
  return closed.signal;
}
