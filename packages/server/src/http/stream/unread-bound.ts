// Bounds the data that waits for clients in this node's memory, all together. Each connection has a bound of its own (sse.ts), but there
// may be thousands. Beyond this bound the slowest client of the organization with the most waiting data is disconnected: the one that
// has taken nothing for longest. Clients of a stream resume at their cursor.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../../lib/log.ts';
import { onceClosed } from '../connection/closed.ts';

/** Writes to a client, and resolves when the connection has room for more. Rejects if the signal is aborted first. */
export type Write = (part: string | Uint8Array, closed: AbortSignal) => Promise<void>;

export interface UnreadBound {
  /** Counts bytes that wait for a client, until the returned function is called. May close the connection at once. */
  wait(response: ServerResponse | Socket, organizationId: string, bytes: number): () => void;
  writerOf(response: ServerResponse, organizationId: string): Write;
  /** Counts a response that is sent as a whole, if it is long, until its connection has taken it. */
  count(response: ServerResponse, organizationId: string, payload: unknown): void;
}

interface Waiting {
  readonly response: ServerResponse | Socket;
  readonly bytes: number;
}

/** The responses of an organization; the one that has waited longest is first. */
interface Share {
  bytes: number;
  readonly waiting: Set<Waiting>;
}

// Shorter responses are not counted: there are never more of them than requests in flight.
const LONG_CHARACTERS = 64 * 1024;
const MEGABYTE = 1024 * 1024;

export function createUnreadBound(maxMegabytes: number, log: Pick<Log, 'warn'>): UnreadBound {
  const shares = new Map<string, Share>();
  let total = 0;

  function wait(response: ServerResponse | Socket, organizationId: string, bytes: number): () => void {
    const waiting = { response, bytes };
    const share = shares.get(organizationId) ?? { bytes: 0, waiting: new Set() };
    shares.set(organizationId, share);
    share.waiting.add(waiting);
    share.bytes += bytes;
    total += bytes;
    while (total > maxMegabytes * MEGABYTE) closeSlowest();
    return () => forget(organizationId, waiting);
  }

  function forget(organizationId: string, waiting: Waiting): void {
    const share = shares.get(organizationId);
    if (!share?.waiting.delete(waiting)) return;
    share.bytes -= waiting.bytes;
    total -= waiting.bytes;
    if (share.waiting.size === 0) shares.delete(organizationId);
  }

  function closeSlowest(): void {
    const [organizationId, { waiting }] = [...shares].reduce((most, one) =>
      one[1].bytes > most[1].bytes ? one : most,
    );
    const [slowest] = waiting;
    forget(organizationId, slowest!);
    slowest!.response.destroy();
    log.warn({ organizationId }, 'closed the slowest reader: too much was waiting for readers on this node');
  }

  return {
    wait,
    writerOf: (response, organizationId) => async (part, closed) => {
      if (response.write(part)) return;
      const done = wait(response, organizationId, Buffer.byteLength(part));
      try {
        await once(response, 'drain', { signal: closed });
      } finally {
        done();
      }
    },
    count(response, organizationId, payload) {
      if (typeof payload !== 'string' || payload.length <= LONG_CHARACTERS) return;
      onceClosed(response, wait(response, organizationId, Buffer.byteLength(payload)));
    },
  };
}

// A connection takes 16 KiB before it says to wait (server.ts). With a piece of this many characters of 3 bytes it buffers less than
// 64 KiB.
const PIECE_CHARACTERS = 15 * 1024;
const PART_BYTES = 64 * 1024;

/** Writes a text of any length, with 64 KiB of it in the buffer at a time. Rejects when `closed` is aborted. */
export async function writeText(write: Write, text: string, closed: AbortSignal): Promise<void> {
  for (let from = 0; from < text.length; ) {
    let to = from + PIECE_CHARACTERS;
    // Never splits a surrogate pair.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1;
    await write(text.slice(from, to), closed);
    from = to;
  }
}

/** Writes bytes, holding 64 KiB of them at a time. Rejects when `closed` is aborted. */
export async function writeBytes(write: Write, bytes: Uint8Array, closed: AbortSignal): Promise<void> {
  for (let from = 0; from < bytes.length; from += PART_BYTES) {
    await write(bytes.subarray(from, from + PART_BYTES), closed);
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
