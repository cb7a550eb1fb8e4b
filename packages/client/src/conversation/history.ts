/**
 * The transcript of a session as far as it has been read: from its end, a page at a time, in whole turns. If a page starts within a
 * turn, its messages are held back until the start of the turn is read.
 */
import type { Signalbox } from '../client.ts';
import type { Message } from '../types.generated.ts';

// A few screens.
const pageRows = 50;
// Usually there are few new messages.
const newRows = 20;

export class History {
  readonly #client: Signalbox;
  readonly #sessionId: string;
  /** The end of a turn whose start has not been read. */
  #cutOff: Message[] = [];
  /** The cursor of earlier messages; null if there are none. */
  #earlier: string | null = null;
  /** Oldest first. */
  messages: readonly Message[] = [];
  /** Messages whose turn has not started, the next one first. */
  queued: readonly Message[] = [];

  constructor(client: Signalbox, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  get hasEarlier(): boolean {
    return this.#earlier !== null;
  }

  /** Reads what is new, at first the newest page, and returns it. */
  async read(signal?: AbortSignal): Promise<readonly Message[]> {
    const known = new Set(this.#all().map(({ messageId }) => messageId));
    if (this.messages.length > 0) await this.#readNew(signal);
    else await this.#readBefore(undefined, signal);
    return this.#all().filter(({ messageId }) => !known.has(messageId));
  }

  #all(): Message[] {
    return [...this.messages, ...this.queued];
  }

  /** Reads the page before the first message. */
  async readEarlier(signal?: AbortSignal): Promise<void> {
    if (this.#earlier !== null) await this.#readBefore(this.#earlier, signal);
  }

  /** Reads several pages if a turn is longer than one. */
  async #readBefore(cursor: string | undefined, signal?: AbortSignal): Promise<void> {
    let cutOff = cursor === undefined ? [] : this.#cutOff;
    for (let from = cursor; ; ) {
      const page = await this.#page(from, pageRows, signal);
      const read = [...page.settled, ...cutOff];
      const start = page.hasMore ? read.findIndex(({ turn }) => turn !== read[0]!.turn) : 0;
      cutOff = start === -1 ? read : read.slice(0, start);
      if (from === undefined) this.queued = page.queued;
      from = page.nextCursor;
      if (start === -1) continue;
      this.messages = [...read.slice(start), ...this.messages];
      this.#cutOff = cutOff;
      this.#earlier = page.hasMore ? from : null;
      return;
    }
  }

  /** Reads from the newest message back to the last known one. */
  async #readNew(signal?: AbortSignal): Promise<void> {
    const known = this.messages.at(-1)!.messageId;
    let found: Message[] = [];
    let queued: Message[] | undefined;
    for (let from: string | undefined; ; ) {
      const page = await this.#page(from, newRows, signal);
      queued ??= page.queued;
      const at = page.settled.findIndex(({ messageId }) => messageId === known);
      found = [...page.settled.slice(at + 1), ...found];
      if (at !== -1 || !page.hasMore) break;
      from = page.nextCursor;
    }
    this.queued = queued;
    this.messages = [...this.messages, ...found];
  }

  async #page(cursor: string | undefined, limit: number, signal?: AbortSignal) {
    const request = { order: 'desc' as const, limit, ...(cursor && { cursor }) };
    const { data, hasMore, nextCursor } = await this.#client.sessions.messages(this.#sessionId, request, { signal });
    const all = data.toReversed();
    return {
      settled: all.filter(({ turn }) => turn !== null),
      queued: all.filter(({ turn }) => turn === null),
      hasMore,
      nextCursor,
    };
  }
}
