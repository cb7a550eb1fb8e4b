// A cache of recent segments, shared by all readers of the node: each segment by the position that it follows, with the envelopes
// built from it. An entry can be dropped at any time and is then read from the journal again, so readers only keep positions.
//
// It has two halves. Entries that are used move to the young half. When that is full, or at each `age`, it becomes the old half, and
// the previous old half is dropped with all entries that were not used since.
import { formatCursor, type Position } from './cursor.ts';
import type { Segment } from './segment.ts';

/** An envelope as JSON, with its cursor. A long one is UTF-8, to be written in parts. */
export interface Text {
  readonly cursor: string;
  readonly json: string | Buffer;
}

export interface Following {
  readonly segment: Segment;
  /** Nothing follows it. */
  readonly isTerminal: boolean;
  /** The session is idle after it, or has ended. */
  readonly endsWork: boolean;
}

export interface Recent {
  /** The segment that follows a position, if it is known. */
  get(sessionId: string, after: Position): Following | undefined;
  put(sessionId: string, after: Position, segment: Segment): Following;
  /** Calls `make` unless it was called for this name before. It returns undefined if there is nothing to show. */
  text(following: Following, name: string, make: () => Text | undefined): Text | undefined;
  age(): void;
  /** Drops the segments of a session. */
  forget(sessionId: string): void;
  /** The size of the cache: at most twice the limit of a half, plus what was added last. */
  bytes(): number;
}

interface Entry extends Following {
  readonly texts: Map<string, Text | undefined>;
  bytes: number;
}

interface Half {
  entries: Map<string, Entry>;
  bytes: number;
}

const MAX_HALF_BYTES = 32 * 1024 * 1024;
// The overhead of a segment and of a text, in addition to the body and the JSON.
const ENTRY_BYTES = 512;

export function createRecent(maxHalfBytes = MAX_HALF_BYTES): Recent {
  let young: Half = { entries: new Map(), bytes: 0 };
  let old: Half = { entries: new Map(), bytes: 0 };

  function age(): void {
    old = young;
    young = { entries: new Map(), bytes: 0 };
  }

  function add(key: string, entry: Entry): void {
    makeRoom(entry.bytes);
    young.entries.set(key, entry);
    young.bytes += entry.bytes;
  }

  function makeRoom(bytes: number): void {
    if (young.bytes > 0 && young.bytes + bytes > maxHalfBytes) age();
  }

  function find(key: string): Entry | undefined {
    const entry = young.entries.get(key);
    if (entry) return entry;
    const older = old.entries.get(key);
    if (!older) return undefined;
    old.entries.delete(key);
    old.bytes -= older.bytes;
    add(key, older);
    return older;
  }

  return {
    get: (sessionId, after) => find(keyOf(sessionId, after)),

    put(sessionId, after, segment) {
      const key = keyOf(sessionId, after);
      const known = find(key);
      if (known) return known;
      const bytes = ENTRY_BYTES + sizeOf(segment.body);
      const entry: Entry = { segment, ...endOf(segment), texts: new Map(), bytes };
      add(key, entry);
      return entry;
    },

    text(following, name, make) {
      const entry = following as Entry;
      if (entry.texts.has(name)) return entry.texts.get(name);
      const text = make();
      const bytes = ENTRY_BYTES + sizeOf(text?.json ?? '');
      entry.texts.set(name, text);
      entry.bytes += bytes;
      young.bytes += bytes;
      makeRoom(0);
      return text;
    },

    age,
    forget(sessionId) {
      for (const half of [young, old]) {
        for (const [key, { bytes }] of half.entries) {
          if (!key.startsWith(sessionId)) continue;
          half.entries.delete(key);
          half.bytes -= bytes;
        }
      }
    },
    bytes: () => young.bytes + old.bytes,
  };
}

function keyOf(sessionId: string, after: Position): string {
  return `${sessionId} ${formatCursor(after)}`;
}

function sizeOf(text: string | Buffer): number {
  return typeof text === 'string' ? 2 * text.length : text.length;
}

/** A status that ends the session, or leaves it idle, is the last chunk of its segment. */
function endOf({ body }: Segment): Pick<Following, 'isTerminal' | 'endsWork'> {
  // In text, the quotation marks are escaped.
  if (!/"status":"(idle|completed|failed|cancelled)"/.test(body)) return { isTerminal: false, endsWork: false };
  const last = (JSON.parse(body) as unknown[]).at(-1) as { type?: string; status?: string };
  const status = last.type === 'session.status' ? last.status : undefined;
  const isTerminal = status === 'completed' || status === 'failed' || status === 'cancelled';
  return { isTerminal, endsWork: isTerminal || status === 'idle' };
}
