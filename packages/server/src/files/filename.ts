// The name of a file, as an upload or a tool gives it.
import { invalidField } from '../lib/api-error.ts';

const MAX_CHARACTERS = 255;
// Control characters, and those that reverse the direction of text: `photo<U+202E>gnp.exe` looks like `photoexe.png`.
const FORBIDDEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** The `X-Filename` of a request, without a path; null if it has none. Throws 400. */
export function filenameOf(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null;
  const name = withoutPath(decoded(String(header)));
  const wrong = whatIsWrongWith(name);
  if (wrong) throw invalidField('X-Filename', wrong);
  return name;
}

/** The `filename` of a part of a form, without a path. Throws 400. */
export function filenameOfPart(given: string): string {
  const name = withoutPath(given.toWellFormed());
  const wrong = whatIsWrongWith(name);
  if (wrong) throw invalidField('filename', wrong);
  return name;
}

/** The name that a tool gives its file; null if it can't be one. */
export function filenameFromTool(given: string): string | null {
  const name = withoutPath(given.toWellFormed());
  return whatIsWrongWith(name) === undefined ? name : null;
}

function withoutPath(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1).trim();
}

/** Some clients send the bytes of the name, which Node reads as Latin-1, and others encode it. */
function decoded(header: string): string {
  try {
    return decodeURIComponent(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1')));
  } catch {
    throw invalidField('X-Filename', 'must be percent-encoded UTF-8, as by encodeURIComponent');
  }
}

function whatIsWrongWith(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'must be the name of a file';
  if (name.length > MAX_CHARACTERS) return `must have at most ${MAX_CHARACTERS} characters`;
  if (FORBIDDEN.test(name)) return 'must not contain control characters';
  return undefined;
}
