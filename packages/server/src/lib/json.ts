// JSON that a model or a server wrote.
import { MAX_JSON_DEPTH } from './text.ts';

/**
 * The value; undefined if the text is not JSON or is nested too deeply. An integer that a double can't represent becomes the string of
 * its digits: order numbers are often that long, and a rounded one would be another order's.
 */
export function parseJson(text: string): unknown {
  try {
    const read: unknown = JSON.parse(text);
    const value: unknown = LONG_INTEGER.test(text) ? JSON.parse(withExactIntegers(text)) : read;
    return isDeeperThan(value, MAX_JSON_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** A double represents all shorter integers exactly. */
const LONG_INTEGER = /\d{16}/;
/** Matches strings too, so that digits in them are skipped. */
const STRINGS_AND_LONG_INTEGERS = /"(?:[^"\\]|\\.)*"|(?<![\w.+-])-?\d{16,}(?![\d.eE])/g;

function withExactIntegers(json: string): string {
  return json.replace(STRINGS_AND_LONG_INTEGERS, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : `"${token}"`,
  );
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}
