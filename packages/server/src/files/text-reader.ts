// Whether bytes are text, and in which charset. UTF-8 is recognized by itself, and UTF-16 by its byte order mark. Everything else needs a
// claim that it is text, because nearly any bytes are text in some charset. Text that is not UTF-8 has no control characters: binary
// formats do.
import { guessCharset } from './guess-charset.ts';

export interface TextReader {
  /** The content in order, in chunks of any size. */
  add(chunk: Uint8Array): void;
  /** Once all of it was added; undefined if it is not text. */
  charset(): string | undefined;
}

interface Claim {
  /** Whether its name or its type says that it is text. */
  isClaimed: boolean;
  /** The charset in its type. */
  declared: string | undefined;
}

/** Reads on until the content is no text in its charset. */
interface Candidate {
  /** Undefined is the end. False once the content is not in this charset. */
  read(chunk: Uint8Array | undefined): boolean;
  charset(): string | undefined;
}

/** Enough to see whether a text is UTF-16. */
const START_BYTES = 1024;
/** What the charset is guessed by. More takes longer and changes nothing. */
const SAMPLE_BYTES = 4 * 1024;
/** Not white space, nor the Ctrl-Z that ends a text of DOS. What is beyond ASCII is no control character in most charsets. */
const CONTROLS = /[^\P{Cc}\s\cZ\u0080-\u009f]|[\ufffe\uffff]/u;

/** By one of its labels; undefined if there is none of this name. */
export function charsetNamed(label = ''): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

export function createTextReader(claim: Claim): TextReader {
  const start: Uint8Array[] = [];
  let startBytes = 0;
  let candidates: Candidate[] | undefined;

  function read(chunk?: Uint8Array): void {
    candidates = candidates?.filter((candidate) => candidate.read(chunk));
  }
  function begin(): void {
    const bytes = Buffer.concat(start);
    candidates = candidatesFor(bytes, claim);
    read(bytes);
  }

  return {
    add(chunk) {
      if (candidates) return read(chunk);
      start.push(chunk);
      startBytes += chunk.length;
      if (startBytes >= START_BYTES) begin();
    },
    charset() {
      if (!candidates) begin();
      read();
      return candidates?.[0]?.charset();
    },
  };
}

/** The likeliest first. */
function candidatesFor(start: Buffer, { isClaimed, declared }: Claim): Candidate[] {
  const mark = start.length >= 2 ? start.readUInt16BE(0) : 0;
  if (mark === 0xfffe) return [utf16('utf-16le', isClaimed)];
  if (mark === 0xfeff) return [utf16('utf-16be', isClaimed)];
  if (start.includes(0)) return isClaimed ? [utf16(byteOrderOf(start), false)] : [];
  return [
    // Its bytes are ASCII, and so UTF-8 as well.
    ...(declared === 'iso-2022-jp' ? [decodable(declared)] : []),
    utf8(),
    ...(declared?.startsWith('utf-16') ? [utf16(declared, true)] : []),
    ...(isClaimed ? [singleBytesOrPairs(start, declared)] : []),
  ];
}

/** The other half of an ASCII character is zero. */
function byteOrderOf(start: Buffer): string {
  const zeros = [0, 0];
  for (const [index, byte] of start.entries()) if (byte === 0) zeros[index % 2]! += 1;
  return zeros[1]! >= zeros[0]! ? 'utf-16le' : 'utf-16be';
}

function decodable(charset: string, isText: (text: string) => boolean = () => true): Candidate {
  const decoder = new TextDecoder(charset, { fatal: true });
  return {
    charset: () => charset,
    read(chunk) {
      try {
        return isText(decoder.decode(chunk, { stream: chunk !== undefined }));
      } catch {
        return false;
      }
    },
  };
}

function utf8(): Candidate {
  const { read, charset } = decodable('utf-8');
  return { charset, read: (chunk) => !chunk?.includes(0) && read(chunk) };
}

/** What only looks like it has a space or a line break if it is text. */
function utf16(charset: string, isCertain: boolean): Candidate {
  let hasSpace = isCertain;
  const { read } = decodable(charset, (text) => {
    hasSpace ||= /[\t\n\r ]/.test(text);
    return !CONTROLS.test(text);
  });
  return { read, charset: () => (hasSpace ? charset : undefined) };
}

/** A charset of Windows, of Macintosh or of East Asia. The sample begins at the first byte that is not ASCII, or one before it. */
function singleBytesOrPairs(start: Buffer, declared: string | undefined): Candidate {
  const named = charsetNamed(CHARSET_IN_TEXT.exec(start.toString('latin1', 0, START_BYTES))?.[1]);
  let sample = Buffer.alloc(0);
  return {
    read(chunk) {
      if (!chunk) return true;
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const latin1 = bytes.toString('latin1');
      const from = sample.length > 0 ? 0 : latin1.search(/[\x80-\xff]/);
      if (from >= 0 && sample.length < SAMPLE_BYTES) {
        const at = Math.max(0, from - 1);
        sample = Buffer.concat([sample, bytes.subarray(at, at + SAMPLE_BYTES - sample.length)]);
      }
      return !CONTROLS.test(latin1);
    },
    charset() {
      if (isAlmostUtf8(sample)) return 'utf-8';
      const said = [declared, named].find((charset) => charset !== undefined && isIn(sample, charset));
      return said ?? guessCharset(sample);
    },
  };
}

/** UTF-8 that was cut in the middle of a character, or joined with another text. */
function isAlmostUtf8(bytes: Uint8Array): boolean {
  const beyondAscii = new TextDecoder().decode(bytes).replace(/[\0-\x7f]/g, '');
  const wrong = beyondAscii.split('\ufffd').length - 1;
  return beyondAscii.length - wrong > wrong;
}

/** How XML and HTML say it themselves. */
const CHARSET_IN_TEXT = /<(?:\?xml|meta)\s[^>]*(?:encoding|charset)\s*=\s*["']?([\w-]+)/i;

/** The last character may be cut. */
function isIn(bytes: Uint8Array, charset: string): boolean {
  // These are recognized by their form.
  if (/^(utf|iso-2022)-/.test(charset)) return false;
  try {
    new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
