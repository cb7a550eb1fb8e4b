// What waits for a reader, in this node's memory. A reader that is slow is waited for, and what is written for it meanwhile is
// bounded; the connection of one that takes nothing is closed. So neither memory nor a place among the requests under way is
// held indefinitely by a caller that does not read the response.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { onceClosed } from './closed.ts';

export interface UnreadAnswers {
  /** Watches an answer until it is closed. */
  watch(response: ServerResponse): void;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 10_000;
/** For a reader that takes nothing. */
const STALLED_MS = 60_000;
// Node tells only of whole writes, and an answer may be a single one of some MiB: a slow line has this long for it.
const LEAST_BYTES_A_SECOND = 8 * 1024;

interface Answer {
  readonly response: ServerResponse;
  /** Of its connection, when it was looked at last. */
  takenBytes: number;
  /** When that was first seen to be so. */
  since: number;
}

export function watchUnread(clock: Clock): UnreadAnswers {
  const answers = new Set<Answer>();
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, stopping.signal).catch(() => {});
      const now = clock.now().getTime();
      for (const answer of answers) look(answer, now);
    }
  }

  function look(answer: Answer, now: number): void {
    const { response } = answer;
    const { socket } = response;
    if (!socket) return;
    const takenBytes = socket.bytesWritten - socket.writableLength;
    if (response.writableLength === 0 || takenBytes !== answer.takenBytes) {
      answer.takenBytes = takenBytes;
      answer.since = now;
    } else if (now - answer.since >= STALLED_MS + (response.writableLength / LEAST_BYTES_A_SECOND) * 1000) {
      socket.destroy();
    }
  }

  const running = run();
  return {
    watch(response) {
      const answer = { response, takenBytes: -1, since: 0 };
      answers.add(answer);
      onceClosed(response, () => answers.delete(answer));
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

// A connection takes 16 KiB before it says to wait (server.ts). With a piece of this many characters of 3 bytes it holds less than 64 KiB.
const PIECE_CHARACTERS = 15 * 1024;

/** Writes a text of any length, holding 64 KiB of it at a time. Rejects when `closed` is aborted. */
export async function writeText(response: ServerResponse, text: string, closed: AbortSignal): Promise<void> {
  for (let from = 0; from < text.length; ) {
    let to = from + PIECE_CHARACTERS;
    // Two halves of one character are not written apart.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1;
    await write(response, text.slice(from, to), closed);
    from = to;
  }
}

/** Resolves when there is room for more. Rejects when `closed` is aborted first. */
export async function write(response: ServerResponse, part: string | Buffer, closed: AbortSignal): Promise<void> {
  if (!response.write(part)) await once(response, 'drain', { signal: closed });
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
