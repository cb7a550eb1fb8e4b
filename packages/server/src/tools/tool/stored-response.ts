// The response of a tool's server as it is stored for people who debug the call: its status and headers, and the beginning of a body
// that the call's result does not have. Limited, and without secrets.
//
// Values that were sent are redacted, in every form that `Redact` knows. Headers that usually carry a credential lose their value,
// because the server may have created it. A server could split a secret over several headers, so they are searched together as well.
import type { StoredResponse } from '../../session-rows/operation-trace.ts';
import type { Redact } from './redact.ts';
import { shownText } from './result.ts';

const MAX_HEADERS = 64;
const HEADER_MAX_CHARACTERS = 1024;
const BODY_MAX_CHARACTERS = 16 * 1024;

export const REMOVED = '[removed]';
const CREDENTIAL =
  /^(set-)?cookie2?$|authorization$|token|secret|passw|api-?key|access-?key|session|signature|credential|csrf|xsrf|jwt/i;

type Head = { readonly status: number; readonly headers: Readonly<Record<string, string | string[] | undefined>> };

/** `text`: the body, if it is to be stored. */
export function storedResponse(
  { status, headers }: Head,
  bytes: number,
  redact: Redact,
  text?: string,
): StoredResponse {
  const body = text === undefined ? {} : { body: shownText(text, redact).slice(0, BODY_MAX_CHARACTERS).toWellFormed() };
  return { status, headers: storedHeaders(headers, redact), bytes, ...body };
}

/** The headers of a request or a response, without secrets. */
export function storedHeaders(headers: Head['headers'], redact: Redact): [string, string][] {
  const all = Object.entries(headers)
    .flatMap(([name, value]) => [value ?? []].flat().map((one): [string, string] => [name, one]))
    .slice(0, MAX_HEADERS)
    .map(([name, value]): [string, string] => [name, CREDENTIAL.test(name) ? REMOVED : value]);
  const values = all.map(([, value]) => value);
  const shown = values.map((value) => shownText(value, redact));
  // More is found in the whole than in its parts only if a secret is split.
  const isSplit = shownText(values.join(''), redact) !== shown.join('');
  return all.map(([name], index) => {
    const value = isSplit ? REMOVED : shown[index]!;
    return [cut(shownText(name, redact)), cut(value)];
  });
}

function cut(text: string): string {
  return text.length > HEADER_MAX_CHARACTERS ? `${text.slice(0, HEADER_MAX_CHARACTERS).toWellFormed()}…` : text;
}
