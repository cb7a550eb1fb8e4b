// The media type of a file, by its bytes. What an upload claims only chooses among kinds of text, which no bytes distinguish, and says in
// which charset a text may be if it is not UTF-8: `text/csv; charset=windows-1252`.
import { inputMediaOf } from '@signalbox/contract';
import { charsetNamed, createTextReader, type TextReader } from './text-reader.ts';

export interface MediaTypeDetector {
  /** The content in order, in chunks of any size. */
  add(chunk: Uint8Array): void;
  /** Once all of it was added. */
  detect(): Promise<string>;
}

export interface ClaimedType {
  /** The `Content-Type` of the upload. */
  readonly claimedType: string | undefined;
  readonly filename: string | null;
}

/** Ample for every signature. The library bounds what it unpacks of an archive, and this bounds it further. */
const HEAD_BYTES = 64 * 1024;

const CLAIMABLE = ['text/plain', 'text/csv', 'text/markdown', 'text/html', 'application/json'];
/** What browsers on Windows call a CSV. A workbook of Excel is not text, whatever it is called. */
const CSV_TYPE = /^application\/((x-)?csv|vnd\.ms-excel)$/;
const TEXT_NAME = /\.(csv|tsv|txt|md|html?|json|xml|ya?ml|log|sql|srt|vtt|ics|vcf)$/i;
// A text can begin with the two letters of an image format. These formats are themselves text, or may be.
const MAY_BE_TEXT = /^text\/|^application\/(pdf|rtf|xml|postscript|eps)$/;
const PDF = 'application/pdf';
const UNKNOWN = 'application/octet-stream';

export function createMediaTypeDetector({ claimedType = '', filename }: ClaimedType): MediaTypeDetector {
  const reader = readerFor(claimedType, filename);
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  let headBytes = 0;

  return {
    add(chunk) {
      const missing = chunk.subarray(0, HEAD_BYTES - headBytes);
      head.set(missing, headBytes);
      headBytes += missing.length;
      reader.add(chunk);
    },
    async detect() {
      const start = head.subarray(0, headBytes);
      const charset = reader.charset();
      // Loaded with the first file: a start takes longer with it, and most installations have no files.
      const { fileTypeFromBuffer } = await import('file-type');
      // It rejects for content that contradicts its own signature.
      const found = await fileTypeFromBuffer(start).catch(() => undefined);
      if (charset === undefined) return found?.mime ?? (offsetOfPdf(start) < 0 ? UNKNOWN : PDF);
      const type = textType(found?.mime, start, essenceOf(claimedType));
      return charset === 'utf-8' || inputMediaOf(type) !== 'text' ? type : `${type}; charset=${charset}`;
    },
  };
}

function readerFor(claimedType: string, filename: string | null): TextReader {
  const declared = charsetNamed(charsetParameter(claimedType));
  const isTextType = inputMediaOf(claimedType) === 'text' || CSV_TYPE.test(essenceOf(claimedType));
  return createTextReader({
    isClaimed: declared !== undefined || isTextType || TEXT_NAME.test(filename ?? ''),
    declared,
  });
}

function textType(found: string | undefined, start: Buffer, claimed: string): string {
  if (found !== undefined && MAY_BE_TEXT.test(found)) return found;
  // A text may be about PDF, and quote the beginning of one.
  const offset = offsetOfPdf(start);
  const isPdf = offset >= 0 && (claimed === PDF || PRINTER_JOB.test(start.toString('latin1', 0, offset)));
  return isPdf ? PDF : (CLAIMABLE.find((type) => type === claimed) ?? 'text/plain');
}

/** White space, and the job header that a printer driver puts before a document. */
const PRINTER_JOB = /^(\s|\xef\xbb\xbf|\p{Cc}%-12345X|@PJL[^\n]*\n)*$/u;
/** As far as the readers of PDF look for its first line. */
const PDF_HEADER_BYTES = 1024;

/** Where the PDF begins in these bytes, which begin its file: scanners, printers and web servers put some before it. -1 if it doesn't. */
export function offsetOfPdf(start: Uint8Array): number {
  const text = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, PDF_HEADER_BYTES)).toString('latin1');
  return text.search(/%PDF-\d/);
}

function essenceOf(contentType: string): string {
  return contentType.split(';')[0]!.trim().toLowerCase();
}

function charsetParameter(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1];
}

/** Decodes the bytes of a text of this type. What is not in its charset becomes U+FFFD. */
export function textDecoderOf(mediaType: string): TextDecoder {
  return new TextDecoder(charsetNamed(charsetParameter(mediaType)) ?? 'utf-8');
}

/** What a server sends as this type, if it is text in any charset; otherwise null. UTF-8 may have NULs, unlike that of a file. */
export function decodedText(bytes: Uint8Array, claimedType: string): string | null {
  const reader = readerFor(claimedType, null);
  reader.add(bytes);
  const charset = reader.charset();
  try {
    return new TextDecoder(charset, { fatal: charset === undefined }).decode(bytes);
  } catch {
    return null;
  }
}
