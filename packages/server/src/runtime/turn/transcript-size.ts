// The maximum size of a transcript. The event loop reads, serializes and sends all of it with every model call and with every turn
// that a worker claims.
import type { SessionError } from '@signalbox/contract';
import type { TurnState } from './turn.ts';

/** About a million tokens: as much as models can read. */
const TRANSCRIPT_MAX_BYTES = 4 * 1024 * 1024;

const TOO_LONG: SessionError = {
  code: 'transcript_too_long',
  message: 'The transcript of the session would have more than 4 MiB. Open another session.',
};

const LEFT_OUT = 'The result is not shown: the transcript would have more than 4 MiB.';

type Entry = TurnState['transcript'][number];
type Part = Entry['content'][number];

/** Sizes of entries and parts as JSON, cached: they never change, and each step adds few. */
const sizes = new WeakMap<object, number>();

/** For an entry whose size was measured when it was read. */
export function knowSize(entry: Entry, bytes: number): void {
  sizes.set(entry, bytes);
}

/** The error if the transcript with what is to be added is too long; undefined if it is not. */
export function refusalOfLength(transcript: readonly Entry[], more: Entry['content'] = []): SessionError | undefined {
  return howManyFit(transcript, more) < more.length || howManyFit([], transcript) < transcript.length
    ? TOO_LONG
    : undefined;
}

/** For a turn that is stopped: results that do not fit are replaced by an error for the model. */
export function thatFit(transcript: readonly Entry[], results: Entry['content']): Entry['content'] {
  const count = howManyFit(transcript, results);
  return results.map((part, index) =>
    index < count || part.type !== 'tool_result'
      ? part
      : { type: part.type, toolCallId: part.toolCallId, error: LEFT_OUT },
  );
}

/** How many of these fit after a transcript. Stops at the first that does not: a step may have results of 100 MiB. */
function howManyFit(transcript: readonly Entry[], some: readonly (Entry | Part)[]): number {
  let left = TRANSCRIPT_MAX_BYTES;
  for (const entry of transcript) left -= sizeOf(entry);
  const end = some.findIndex((one) => {
    left -= sizeOf(one);
    return left < 0;
  });
  return end === -1 ? some.length : end;
}

function sizeOf(one: Entry | Part): number {
  const known = sizes.get(one);
  if (known !== undefined) return known;
  const size =
    'role' in one ? one.content.reduce((sum, part) => sum + sizeOf(part), jsonBytes(one.providerData)) : jsonBytes(one);
  sizes.set(one, size);
  return size;
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}
