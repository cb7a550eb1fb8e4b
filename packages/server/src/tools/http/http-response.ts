// The response of an `http` tool's server, read as far as its kind requires: a text as a whole, a file as it is stored.
//
// An image, a PDF or audio is a file. Other types may be either, and their bytes decide: a text is UTF-8 from its beginning to its end.
import { inputMediaOf } from '@signalbox/contract';
import type { OpenResponse, ResponseHead } from '../../egress/exchange.ts';
import { COPIES_OF_TEXT, type HeldMemory, UNCOUNTED_BYTES } from '../../lib/memory.ts';
import { RESPONSE_MAX_BYTES, TOO_LONG } from '../tool/result.ts';

const FILE_MAX_MIB = 8;
const FILE_MAX_BYTES = FILE_MAX_MIB * 1024 * 1024;
const FILE_TOO_LONG = `the file is larger than ${FILE_MAX_MIB} MiB`;

/** Why a response was not read to its end, and how much of it was. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
  readonly bytes: number;

  constructor(message: string, bytes: number) {
    super(message);
    this.bytes = bytes;
  }
}

export type Received =
  | { readonly text: Buffer; readonly content?: undefined }
  /** Throws `TooLong`, and the `EgressError` of the exchange. */
  | { readonly content: AsyncIterable<Uint8Array>; readonly text?: undefined };

/** Throws `TooLong`, the `EgressError` of the exchange, and what `held` throws. `pieceBytes`: of the store. */
export async function receive(response: OpenResponse, held: HeldMemory, pieceBytes: number): Promise<Received> {
  if (!mayBeFile(response)) return { text: await readText(response, held) };
  const length = lengthOf(response) ?? FILE_MAX_BYTES;
  if (length > FILE_MAX_BYTES) throw new TooLong(FILE_TOO_LONG, 0);
  // What arrives, and its copy in the request that stores it.
  await held.take(2 * Math.min(pieceBytes, length));
  return await textOrFile(response);
}

async function readText({ body, ...head }: OpenResponse, held: HeldMemory): Promise<Buffer> {
  const length = Math.min(lengthOf(head) ?? RESPONSE_MAX_BYTES, RESPONSE_MAX_BYTES);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > RESPONSE_MAX_BYTES) throw new TooLong(`the response is ${TOO_LONG}`, RESPONSE_MAX_BYTES);
    chunks.push(chunk);
    if (bytes > UNCOUNTED_BYTES) await held.take(COPIES_OF_TEXT * length);
  }
  return Buffer.concat(chunks);
}

async function textOrFile({ body, ...head }: OpenResponse): Promise<Received> {
  const chunks = atMost(body, FILE_MAX_BYTES);
  const check = createTextCheck(!isMedia(head));
  const beginning: Uint8Array[] = [];
  let bytes = 0;
  do {
    const { done, value } = await chunks.next();
    check.add(value ?? undefined);
    if (done) break;
    beginning.push(value);
    bytes += value.length;
  } while (check.isText && bytes <= RESPONSE_MAX_BYTES);
  if (bytes === 0 || (check.isText && bytes <= RESPONSE_MAX_BYTES)) return { text: Buffer.concat(beginning) };

  async function* content(): AsyncGenerator<Uint8Array> {
    for (let chunk = beginning.shift(); chunk; chunk = beginning.shift()) yield chunk;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      check.add(chunk);
      yield chunk;
    }
    check.add(undefined);
    if (check.isText) throw new TooLong(`the response is ${TOO_LONG}`, bytes);
  }
  return { content: content() };
}

/** Undefined is the end. */
function createTextCheck(isText: boolean) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const check = {
    isText,
    add(chunk: Uint8Array | undefined): void {
      try {
        if (check.isText) decoder.decode(chunk, { stream: chunk !== undefined });
      } catch {
        check.isText = false;
      }
    },
  };
  return check;
}

async function* atMost(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new TooLong(FILE_TOO_LONG, maxBytes);
    yield chunk;
  }
}

export function rawHeader({ headers }: ResponseHead, name: string): string {
  return [headers[name] ?? ''].flat()[0]?.trim() ?? '';
}

export function header(head: ResponseHead, name: string): string {
  return rawHeader(head, name).toLowerCase();
}

/** The length of the body in bytes, if the server says it. */
export function lengthOf(head: ResponseHead): number | undefined {
  const length = rawHeader(head, 'content-length');
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}

function isMedia(head: ResponseHead): boolean {
  const media = inputMediaOf(header(head, 'content-type'));
  return media !== null && media !== 'text';
}

function mayBeFile(head: ResponseHead): boolean {
  const { status } = head;
  if (status < 200 || status >= 300 || isCompressed(head)) return false;
  const type = header(head, 'content-type');
  return isMedia(head) || (inputMediaOf(type) === null && /^(image|video|font|application)\//.test(type));
}

/** Although we did not ask for that. */
export function isCompressed(head: ResponseHead): boolean {
  return !['', 'identity'].includes(header(head, 'content-encoding'));
}
