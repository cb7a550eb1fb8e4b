// What commands print: lists page by page, single resources, and lines for programs.
import type { Page, PageRequest } from '@signalbox/client';
import type { Options } from './command.ts';
import { type Column, Table } from './table.ts';
import type { Terminal } from './terminal.ts';
import { padEnd, widthOf } from './text.ts';
import { relativeTime } from './time.ts';

export const listOptions = {
  limit: { type: 'integer', min: 1, about: 'at most this many (20)' },
  all: { type: 'boolean', about: 'all of them' },
  quiet: { type: 'boolean', short: 'q', about: 'print only their ids, one per line' },
} as const satisfies Options;

export interface ListValues {
  limit: number | undefined;
  all: boolean | undefined;
  quiet: boolean | undefined;
  json: boolean | undefined;
}

const DEFAULT_LIMIT = 20;
const MAX_PAGE = 100;

/**
 * Prints a list while it is read, so that its length needs no memory. `describe` returns the columns for a page, after it has looked up what
 * they need, such as the names of agents.
 */
export function printList<T>(
  input: ListInput,
  list: ListPages<T>,
  {
    id,
    describe,
  }: { id(item: T): string; describe(items: readonly T[]): Promise<readonly Column<T>[]> | readonly Column<T>[] },
): Promise<void> {
  let table: Table<T> | undefined;
  return printPages(input, list, id, async (items) => {
    const columns = await describe(items);
    table ??= new Table(input.terminal.stdout, columns);
    await table.print(items);
  });
}

/** The same, with a text of several lines for each item. */
export function printTexts<T>(
  input: ListInput,
  list: ListPages<T>,
  { id, text }: { id(item: T): string; text(item: T): string },
): Promise<void> {
  return printPages(input, list, id, (items) => input.terminal.stdout.write(items.map(text).join('')));
}

type ListInput = { values: ListValues; terminal: Terminal };
type ListPages<T> = (page: { limit: number }) => PageRequest<T>;

async function printPages<T>(
  { values, terminal }: ListInput,
  list: ListPages<T>,
  id: (item: T) => string,
  print: (items: readonly T[]) => Promise<void>,
): Promise<void> {
  const { stdout, stderr } = terminal;
  let left = values.all ? Number.POSITIVE_INFINITY : (values.limit ?? DEFAULT_LIMIT);
  let count = 0;
  for (let page = await list({ limit: Math.min(left, MAX_PAGE) }); ; page = await next(page)) {
    const items = page.data.slice(0, left);
    left -= items.length;
    count += items.length;
    if (values.json) await stdout.write(items.map((item) => `${JSON.stringify(item)}\n`).join(''));
    else if (values.quiet) await stdout.write(items.map((item) => `${id(item)}\n`).join(''));
    else if (items.length > 0) await print(items);
    if (left > 0 && page.hasMore) continue;
    const isCut = left === 0 && (page.hasMore || page.data.length > items.length);
    if (isCut && stdout.isTTY && !values.json && !values.quiet)
      await stderr.write(`${stderr.styled('dim', `There are more. Show them with --limit ${count * 5}, or --all.`)}\n`);
    break;
  }
  if (count === 0 && !values.json && !values.quiet) await stderr.write('None.\n');
}

async function next<T>(page: Page<T>): Promise<Page<T>> {
  return await page.nextPage();
}

/** A resource as lines of label and value; without those that are null, undefined or empty. */
export async function printRecord(
  terminal: Terminal,
  fields: readonly (readonly [string, string | null | undefined])[],
) {
  const { stdout } = terminal;
  const rows = fields.filter((field): field is [string, string] => !!field[1]);
  const width = Math.max(0, ...rows.map(([label]) => widthOf(label))) + 2;
  const lines = rows.map(([label, value]) => {
    const text = value.split('\n').join(`\n${' '.repeat(width)}`);
    return `${stdout.styled('dim', padEnd(label, width))}${text}\n`;
  });
  await stdout.write(lines.join(''));
}

/** One line of JSON with `json`, otherwise `text`. */
export async function printResult(
  { values, terminal }: { values: { json: boolean | undefined }; terminal: Terminal },
  result: unknown,
  text: string | (() => Promise<unknown>),
): Promise<void> {
  if (values.json) await terminal.stdout.write(`${JSON.stringify(result)}\n`);
  else if (typeof text === 'string') await terminal.stdout.write(`${text}\n`);
  else await text();
}

/** On a terminal `5 min ago`, otherwise the time itself. */
export function timeText(iso: string | null | undefined, { stdout, clock }: Terminal): string {
  if (!iso) return '';
  return stdout.isTTY ? relativeTime(iso, clock) : iso;
}
