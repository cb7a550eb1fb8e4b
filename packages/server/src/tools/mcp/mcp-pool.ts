// Connections to MCP servers, kept for some minutes between calls. What a server keeps for its client (a browser, a transaction)
// belongs to the key: only callers that may share it use the same key.

import { OVER, orAborted } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import type { McpConnection } from './mcp-connection.ts';

export interface Lease {
  readonly connection: McpConnection;
  /** Whether the connection existed already, so the server may have forgotten its session. */
  readonly kept: boolean;
  /** Marks the connection as unusable: the next caller opens another. */
  discard(): void;
  /** Call exactly once. */
  release(): void;
}

/** Limits the memory that idle sessions take, at the servers and here. */
const MAX_KEPT = 1000;

interface Entry {
  readonly opening: Promise<McpConnection>;
  users: number;
  /** Aborted when it is used again, or removed. */
  unused: AbortController;
}

export class McpPool {
  readonly #clock: Clock;
  readonly #keepMs: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  readonly #ending = new Set<Promise<void>>();

  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  /** The connection for `key`; concurrent callers wait for the same one. Throws what `open` throws, or the signal's reason. */
  async take(key: string, open: () => Promise<McpConnection>, signal: AbortSignal): Promise<Lease> {
    const present = this.#entries.get(key);
    const entry = present ?? { opening: open(), users: 0, unused: new AbortController() };
    if (!present) entry.opening.catch(() => this.#forget(key, entry));
    entry.users += 1;
    entry.unused.abort(OVER);
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#makeRoom();
    try {
      return {
        connection: await orAborted(entry.opening, signal),
        kept: present !== undefined,
        discard: () => this.#forget(key, entry),
        release: () => this.#release(key, entry),
      };
    } catch (error) {
      this.#release(key, entry);
      throw error;
    }
  }

  /** Closes all connections, and aborts the calls that are running on them. */
  async close(): Promise<void> {
    for (const [key, entry] of this.#entries) {
      this.#forget(key, entry);
      this.#end(entry);
    }
    await Promise.all(this.#ending);
  }

  #release(key: string, entry: Entry): void {
    entry.users -= 1;
    if (entry.users > 0) return;
    const endUnused = () => {
      // It may have been taken at the very moment at which its time was up.
      if (entry.users > 0) return;
      this.#forget(key, entry);
      this.#end(entry);
    };
    if (this.#entries.get(key) === entry) {
      entry.unused = new AbortController();
      this.#clock.sleep(this.#keepMs, entry.unused.signal).then(endUnused, () => {});
    } else {
      endUnused();
    }
  }

  #forget(key: string, entry: Entry): void {
    entry.unused.abort(OVER);
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  #end(entry: Entry): void {
    const ended = entry.opening.then((connection) => connection.close()).catch(() => {});
    this.#ending.add(ended);
    void ended.then(() => this.#ending.delete(ended));
  }

  #makeRoom(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= MAX_KEPT) return;
      if (entry.users > 0) continue;
      this.#forget(key, entry);
      this.#end(entry);
    }
  }
}
