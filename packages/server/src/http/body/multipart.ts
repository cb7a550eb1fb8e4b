// The file in a `multipart/form-data` body, which is read as it arrives: a few chunks at a time are in memory.
//
// The form has one part, the file. Anything after it is refused, and the file with it, so nothing that a client sends is ignored.
import type { Readable } from 'node:stream';
import { MIMEType } from 'node:util';
import { Dicer } from '@fastify/busboy';
import { filenameIn } from '../../files/disposition.ts';
import { OVER, onceAborted } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';

export interface FormFile {
  /** As in the part; undefined if it has none. */
  readonly filename: string | undefined;
  /** With its parameters. */
  readonly contentType: string;
  /** Throws 400 if the rest of the form is not as described. */
  readonly content: AsyncIterable<Buffer>;
  /** Call when nothing more of it is read. */
  end(): void;
}

/** What surrounds the content of the file: two boundaries, and the headers of its part. */
export const FORM_OVERHEAD_BYTES = 16 * 1024;
const HEADER_BYTES = 8 * 1024;

/** Resolves with the beginning of the file. Throws 400 if there is none. */
export async function fileOfForm(contentType: string, body: AsyncIterable<Buffer>): Promise<FormFile> {
  const parser = parserOf(contentType);
  const found = Promise.withResolvers<Pick<FormFile, 'filename' | 'contentType'> & { stream: Readable }>();
  const over = new AbortController();
  let file: Readable | undefined;
  let problem: Error | undefined;

  function fail(error: Error): void {
    problem ??= error;
    over.abort(error);
    found.reject(problem);
    file?.destroy(problem);
  }
  parser.on('part', (part) => {
    // The parser has the same error. Its reader may have ended already.
    part.on('error', () => {});
    part.on('header', (header) => {
      const { filename, contentType } = headOf(header as PartHeader);
      if (filename === undefined && contentType !== 'application/octet-stream')
        fail(invalidForm('can have only the file, in a part with a `filename`: all else is in the query'));
      else if (file) fail(invalidForm('has more than one file'));
      if (over.signal.aborted) return void part.resume();
      file = part;
      found.resolve({ stream: part, filename: filename || undefined, contentType });
    });
  });
  parser.on('error', (error: unknown) => fail(invalidForm(`can't be read: ${(error as Error).message}`)));
  const stopped = new Promise<void>((resolve) => onceAborted(over.signal, resolve));
  const ended = new Promise<void>((resolve) => parser.once('finish', resolve));

  async function feed(): Promise<void> {
    for await (const chunk of body) {
      if (over.signal.aborted) return;
      // The callback comes when the reader of the file has room for more.
      await Promise.race([stopped, new Promise<void>((resolve) => parser.write(chunk, () => resolve()))]);
    }
    parser.end();
    await ended;
    if (!file) throw invalidForm('has no file');
  }
  const fed = feed().catch((error: Error) => fail(error));

  const { stream, ...head } = await found.promise;
  async function* content(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of stream) yield chunk as Buffer;
      await fed;
      if (problem) throw problem;
    } catch (error) {
      throw problem ?? error;
    }
  }
  return { ...head, content: content(), end: () => over.abort(OVER) };
}

function parserOf(contentType: string): Dicer {
  const boundary = boundaryIn(contentType);
  if (!boundary) throw invalidForm("can't be read: its `Content-Type` has no boundary");
  const config = { boundary, maxHeaderPairs: 20, maxHeaderSize: HEADER_BYTES };
  return new Dicer(config);
}

function boundaryIn(contentType: string): string | null {
  try {
    return new MIMEType(contentType).params.get('boundary');
  } catch {
    return null;
  }
}

/** Each header's values, by its name in lower case. */
type PartHeader = Readonly<Record<string, readonly string[] | undefined>>;

function headOf(header: PartHeader): Pick<FormFile, 'filename' | 'contentType'> {
  const [disposition = ''] = header['content-disposition'] ?? [];
  // Browsers encode a quotation mark in a name, and some clients put a backslash before it.
  const multipart = !disposition.includes('\\"');
  return { filename: filenameIn(disposition, { multipart }), contentType: header['content-type']?.[0] ?? 'text/plain' };
}

function invalidForm(what: string): ApiError {
  return new ApiError('invalid_request', `The form ${what}.`, { errors: [{ path: '', message: what }] });
}
