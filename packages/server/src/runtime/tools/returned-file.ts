// A file in a result, before it is stored. Tools put it into the value that they return, by itself or in a list; `storeFiles` replaces
// it with the file that messages name, or with a description if it can't be stored.
import type { FilePart } from '@signalbox/contract';
import type { Redact, Redacted } from './redact.ts';
import type { ToolOutcome } from './tool.ts';

/** The files of one result. */
const FILES_MAX = 20;

export interface FileToSave {
  readonly content: Uint8Array;
  /** As the tool says; the file gets the type that its bytes have. */
  readonly mediaType: string | undefined;
  readonly filename: Redacted | undefined;
}

/** Stores a file for the session of the call. Resolves with the reason, which may be shown, if it can't be stored. */
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

/** Without `save`, every file is described. A file with a secret that the tool's server was sent is never stored. */
export async function storeFiles(outcome: ToolOutcome, redact: Redact, save?: SaveFile): Promise<ToolOutcome> {
  if (outcome.error !== undefined) return outcome;
  const { output } = outcome;
  let left = FILES_MAX;
  async function stored(value: unknown): Promise<unknown> {
    if (!(value instanceof ReturnedFile)) return value;
    const { file, description } = value;
    const note = (why: string) => ({ ...description, bytes: file.content.length, note: why });
    if (!save) return note('the bytes are not shown');
    if (left === 0) return note(`a result can have ${FILES_MAX} files`);
    const raw = Buffer.from(file.content.buffer, file.content.byteOffset, file.content.length).toString('latin1');
    if (redact(raw) !== raw) return note('it contains a secret, so it was not stored');
    left -= 1;
    const part = await save(file);
    return typeof part === 'string' ? note(part) : part;
  }
  if (!Array.isArray(output)) return { output: await stored(output) };
  const values: unknown[] = [];
  // One after the other: all of them are in memory already, and storing each takes a connection to the database.
  for (const value of output) values.push(await stored(value));
  return { output: values };
}
