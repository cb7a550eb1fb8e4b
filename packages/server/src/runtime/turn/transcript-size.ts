// How long a transcript may be. All of it goes with every request to a model, and with every turn that a program claims: it is read,
// written as JSON and sent by the event loop.
import type { SessionError } from '@signalbox/contract';
import type { TurnState } from './turn.ts';

/** A million tokens or so: as much as models read. */
const TRANSCRIPT_MAX_BYTES = 4 * 1024 * 1024;

const TOO_LONG: SessionError = {
  code: 'transcript_too_long',
  message: 'The transcript of the session would have more than 4 MiB. Open another session.',
};

const LEFT_OUT = 'The result is not shown: the transcript would have more than 4 MiB.';

type Entry = TurnState['transcript'][number];
type Part = Entry['content'][number];

/** Of entries and parts, as JSON. They never change, and each step brings few. */
const sizes = new WeakMap<object, number>();

/** For what was measured where it was read. */
export function knowSize(entry: Entry, bytes: number): void {
  sizes.set(entry, bytes);
}

/** Why nobody is asked with this transcript and what is to come to it; undefined if it is not too long. */
export function refusalOfLength(transcript: readonly Entry[], more: Entry['content'] = []): SessionError | undefined {
  return howManyFit(transcript, more) < more.length || howManyFit([], transcript) < transcript.length
    ? TOO_LONG
    : undefined;
}

/** For a turn that is stopped: results that do not fit are left out, each with a word to the model. */
export function thatFit(transcript: readonly Entry[], results: Entry['content']): Entry['content'] {
  const count = howManyFit(transcript, results);
  return results.map((part, index) =>
    index < count || part.type !== 'tool_result'
      ? part
      : { type: part.type, toolCallId: part.toolCallId, error: LEFT_OUT },
  );
}

/** Of these, behind a transcript. No more than that are measured: a step may have results of a hundred MiB. */
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
