// JSON that a model or a server wrote.
import { MAX_JSON_DEPTH } from '../text.ts';

/**
 * The value; undefined if the text is not JSON or is nested too deeply. An integer that a double can't represent becomes the string of
 * its digits: order numbers are often that long, and a rounded one would be another order's. So does any number beyond a double, which
 * would be stored as null.
 */
export function parseJson(text: string): unknown {
  try {
    const read: unknown = JSON.parse(text);
    const value: unknown = MAYBE_INEXACT.test(text) ? JSON.parse(withExactNumbers(text)) : read;
    return isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** A double represents all shorter integers exactly, and smaller exponents. */
const MAYBE_INEXACT = /\d{16}|\d[eE]\+?\d{3}/;
/** Matches strings too, so that digits in them are skipped. */
const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;

function withExactNumbers(json: string): string {
  return json.replace(STRINGS_AND_NUMBERS, (token) => {
    if (token.startsWith('"')) return token;
    const number = Number(token);
    const isExact = INTEGER.test(token) ? String(number) === token || token === '-0' : Number.isFinite(number);
    return isExact ? token : `"${token}"`;
  });
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}
