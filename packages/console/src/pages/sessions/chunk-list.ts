// The chunks of a Session from a turn on, read page by page as somebody looks at them.
import type { Chunk, ChunkType, Signalbox } from '@signalbox/client';

// As many as the service gives at once.
const PAGE_CHUNKS = 1000;
const LIVE_MS = 400;

export class ChunkList {
  readonly rows: { chunk: Chunk; timestamp: string }[] = [];
  /** There was no more when it was last asked. */
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
    { type, fromTurn }: { type: ChunkType | ''; fromTurn: number },
    changed: () => void,
  ) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#types = type === '' ? undefined : [type];
    this.#changed = changed;
    this.#cursor = fromTurn > 0 ? `turn_${fromTurn}:seq_0` : null;
  }

  /** How far it has read, also where nothing there is of the type. */
  get cursor(): string | null {
    return this.#cursor;
  }

  /** Reads the next page, or what has come since. One at a time: whoever asks meanwhile waits for the same. */
  more(): Promise<void> {
    this.#reading ??= this.#read(this.#over.signal);
    return this.#reading;
  }

  /** In a moment: what comes live comes in many small pieces. */
  soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.more();
    }, LIVE_MS);
  }

  /** Reads on until there is no more. */
  async readAll(): Promise<void> {
    do await this.more();
    while (!this.isAtEnd && this.error === undefined && !this.#over.signal.aborted);
  }

  /** What is under way is given up; `more` begins anew. */
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
