// The chunks of a session from a turn on, read page by page as the user scrolls.
import type { Chunk, ChunkType, Signalbox } from '@signalbox/client';

// The service's maximum.
const PAGE_CHUNKS = 1000;
const LIVE_MS = 400;

export class ChunkList {
  readonly rows: { chunk: Chunk; timestamp: string }[] = [];
  /** The last read reached the end. */
  isAtEnd = false;
  error: unknown;
  readonly #client: Signalbox;
  readonly #sessionId: string;
  readonly #types: readonly ChunkType[] | undefined;
  readonly #changed: () => void;
  #cursor: string | null;
  #over = new AbortController();
  #reading: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    client: Signalbox,
    sessionId: string,
    { type, fromTurn }: { type: ChunkType | undefined; fromTurn: number },
    changed: () => void,
  ) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#types = type && [type];
    this.#changed = changed;
    this.#cursor = fromTurn > 0 ? `turn_${fromTurn}:seq_0` : null;
  }

  /** How far it has read, even if no chunk there has the requested type. */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** Reads the next page, or new chunks. Concurrent calls share one read. */
  more(): Promise<void> {
    this.#reading ??= this.#read(this.#over.signal);
    return this.#reading;
  }

  /** Schedules a read after `LIVE_MS`, because live chunks are many and small. */
  soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.more();
    }, LIVE_MS);
  }

  /** Reads all remaining pages. */
  async readAll(): Promise<void> {
    do await this.more();
    while (!this.isAtEnd && this.error === undefined && !this.#over.signal.aborted);
  }

  /** Aborts the current read; `more` starts again. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#over.abort();
    this.#over = new AbortController();
    this.#reading = undefined;
  }

  async #read(signal: AbortSignal): Promise<void> {
    try {
      const request = { limit: PAGE_CHUNKS, types: this.#types, ...(this.#cursor && { cursor: this.#cursor }) };
      const page = await this.#client.sessions.chunks(this.#sessionId, request, { signal });
      if (signal.aborted) return;
      for (const { chunks, timestamp } of page.data) {
        for (const chunk of chunks) this.rows.push({ chunk, timestamp });
      }
      this.#cursor = page.nextCursor || null;
      this.isAtEnd = !page.hasMore;
      this.error = undefined;
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
    }
    this.#reading = undefined;
    this.#changed();
  }
}
