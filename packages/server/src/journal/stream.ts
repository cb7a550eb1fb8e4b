// Streams of parts that are taken one at a time, by a reader that has room. While there is no part, nothing waits: no promise, no
// generator. An open stream is one small object.
import type { ChunkType } from '@signalbox/contract';
import { OVER } from '../lib/aborted.ts';

/** A part of an envelope as JSON, with the envelope's cursor. A string is a whole envelope, or if it is empty only a cursor. */
export interface StreamPart {
  cursor: string;
  json: string | Buffer;
  isFirst: boolean;
  isLast: boolean;
}

export interface StreamReader {
  /** The next part, if it is in memory. If not, `onMore` is called when there is one, or when the stream has ended. */
  take(): StreamPart | undefined;
  /** Set when nothing follows what was taken, with the error if one ended the stream. */
  readonly end: StreamEnd | undefined;
  /** Nothing more is taken. */
  close(): void;
}

export interface StreamEnd {
  readonly error?: unknown;
}

export interface JournalStream {
  /** `onMore` is never called before this returns. */
  open(onMore: () => void): StreamReader;
}

/** A stream without a part. */
export const emptyStream: JournalStream = { open: () => ({ take: () => undefined, end: {}, close() {} }) };

/** A stream of what a generator yields. The generator runs only while its reader has room; at the end its signal is aborted. */
export function streamOf(read: (signal: AbortSignal) => AsyncGenerator<StreamPart>): JournalStream {
  return {
    open(onMore) {
      const closed = new AbortController();
      const parts = read(closed.signal);
      let next: StreamPart | undefined;
      let end: StreamEnd | undefined;
      let isRunning = false;

      async function run(): Promise<void> {
        isRunning = true;
        try {
          const { done, value } = await parts.next();
          if (done) end = {};
          else next = value;
        } catch (error) {
          end = { error };
        }
        isRunning = false;
        if (!closed.signal.aborted) onMore();
      }

      return {
        take() {
          const part = next;
          next = undefined;
          if (!part && !end && !isRunning) void run();
          return part;
        },
        get end() {
          return end;
        },
        close() {
          closed.abort(OVER);
          // It may wait for a part to be taken.
          parts.return(undefined).catch(() => {});
        },
      };
    },
  };
}

/** How a journal is followed. */
export interface FollowOptions {
  /** Only chunks of these types. */
  readonly types?: ReadonlySet<ChunkType> | undefined;
  /** For a session token, which does not see all of a chunk. */
  readonly forToken?: boolean;
  /** The stream also ends when the session is idle. */
  readonly untilIdle?: boolean;
}
