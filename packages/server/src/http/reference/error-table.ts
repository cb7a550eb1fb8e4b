// The table of error codes in docs/reference/errors.md.
import { type ErrorCode, errorCodes, type Route } from '@signalbox/contract';
import { codesOf } from './codes.ts';

const BEGIN = '<!-- error codes: written by npm run openapi -->\n';
const END = '<!-- end -->\n';

/** The text with the table between its marks. */
export function withErrorTable(text: string, routes: Record<string, Route>): string {
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error('The marks of the table are missing');
  return `${before}${BEGIN}\n${errorTable(routes)}\n${END}${after}`;
}

function errorTable(routes: Record<string, Route>): string {
  // Operations of the console are not part of the public API, but their errors have codes too.
  const operations = Object.entries(routes).map(([name, route]) => ({ name, codes: codesOf(route) }));
  const rows = (Object.keys(errorCodes) as ErrorCode[]).map((code) => {
    const [status, title] = errorCodes[code];
    const names = operations.filter(({ codes }) => codes.includes(code)).map(({ name }) => name);
    const ofPath = code === 'method_not_allowed' ? 'other methods of a path' : undefined;
    return `| \`${code}\` | ${status} | ${title} | ${ofPath ?? where(names, operations.length)} |`;
  });
  return ['| code | status | title | operations |', '|---|---|---|---|', ...rows, ''].join('\n');
}

/** More names than this say less than their number. */
const MAX_NAMES = 6;

function where(names: readonly string[], all: number): string {
  if (names.length === 0) return 'sign-in and the console';
  if (names.length === all) return 'all';
  return names.length > MAX_NAMES ? `${names.length} operations` : names.map((name) => `\`${name}\``).join(', ');
}
