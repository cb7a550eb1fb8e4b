// A file in a result, before it is stored. Tools put it into the value that they return, by itself or in a list; `storeFiles` replaces
// it with the file that messages name, or with a description if it can't be stored.
import type { FilePart } from '@signalbox/contract';
import { createSearch, type Redact, type Redacted } from './redact.ts';
import type { ToolOutcome } from './tool.ts';

/** The files of one result. */
const FILES_MAX = 20;

export interface FileToSave {
  /** Can be read once. */
  readonly content: AsyncIterable<Uint8Array>;
  /** As the tool says; the file gets the type that its bytes have. */
  readonly mediaType: string | undefined;
  readonly filename: Redacted | undefined;
  /** The length of the content in bytes, if it is known. */
  readonly length: number | undefined;
}

/** Stores a file for the session of the call. Resolves with the reason, which may be shown, if it can't be stored. Throws what the content throws. */
export type SaveFile = (file: FileToSave) => Promise<FilePart | string>;

export class ReturnedFile {
  readonly file: FileToSave;
  /** What the model gets if the file is not stored. */
  readonly description: Readonly<Record<string, unknown>>;

  constructor(file: FileToSave, description: Readonly<Record<string, unknown>>) {
    this.file = file;
    this.description = description;
  }
}

class HasSecret extends Error {}

/**
 * Without `save`, every file is described. A file with a secret that the tool's server was sent is never stored. Throws what the content
 * of a file throws. `onBytes` is called with the size of each file that was read to its end.
 */
export async function storeFiles(
  outcome: ToolOutcome,
  redact: Redact,
  save: SaveFile | undefined,
  onBytes: (bytes: number) => void = () => {},
): Promise<ToolOutcome> {
  if (outcome.error !== undefined) return outcome;
  const { output } = outcome;
  let left = FILES_MAX;

  async function stored(value: unknown): Promise<unknown> {
    if (!(value instanceof ReturnedFile)) return value;
    const { file, description } = value;
    const read = readOnce(file.content, redact);
    const note = (why: string) => ({ ...description, ...(read.isWhole && { bytes: read.bytes }), note: why });
    if (!save || left === 0) {
      await read.discard();
      onBytes(read.bytes);
      return note(save ? `a result can have ${FILES_MAX} files` : 'the bytes are not shown');
    }
    try {
      left -= 1;
      const part = await save({ ...file, content: read.content });
      onBytes(read.bytes);
      return typeof part === 'string' ? note(part) : part;
    } catch (error) {
      if (!(error instanceof HasSecret)) throw error;
      onBytes(read.bytes);
      return note('it contains a secret, so it was not stored');
    }
  }

  if (!Array.isArray(output)) return { output: await stored(output) };
  const values: unknown[] = [];
  // One after the other: storing each takes memory, and a connection to the database.
  for (const value of output) values.push(await stored(value));
  return { output: values };
}

/** A content that throws `HasSecret` where it has a secret. */
function readOnce(content: AsyncIterable<Uint8Array>, redact: Redact) {
  const hasSecret = createSearch(redact);
  const read = { bytes: 0, isWhole: false, content: searched(), discard };
  return read;

  async function* searched(): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      read.bytes += chunk.length;
      if (hasSecret(chunk)) throw new HasSecret();
      yield chunk;
    }
    read.isWhole = true;
  }

  async function discard(): Promise<void> {
    for await (const { length } of content) read.bytes += length;
    read.isWhole = true;
  }
}
