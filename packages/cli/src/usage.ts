// Parsing the command line, and formatting text for a terminal.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** Wrong usage. The message refers to the help. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  constructor(problem: string, seeAlso: string) {
    super(`${problem}. See: signalbox ${seeAlso}`);
  }
}

/** A file can't be read; the message says why. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** Parses the options of a `command` without other arguments; adds `--help`. Throws `UsageError`. */
export function parseOptions<T extends ParseArgsOptionsConfig>(command: string, args: string[], options: T) {
  try {
    const { values } = parseArgs({ args, options: { ...options, help: { type: 'boolean' } }, allowPositionals: false });
    return values;
  } catch (error) {
    // The rest of Node's message explains positional arguments, which this command doesn't have.
    const [problem = ''] = (error as Error).message.split(/\.(?:\s|$)/);
    throw new UsageError(`${command}: ${problem}`, `${command} --help`);
  }
}

/** Parses a command that also takes `names`, as in `sessions watch SESSION`. With `--help` they can be missing. Throws `UsageError`. */
export function parseCommand<T extends ParseArgsOptionsConfig>(
  command: string,
  seeAlso: string,
  args: string[],
  names: readonly string[],
  options: T,
) {
  let parsed: ReturnType<typeof parseArgs<{ options: T & { help: { type: 'boolean' } }; allowPositionals: true }>>;
  try {
    parsed = parseArgs({ args, options: { ...options, help: { type: 'boolean' } }, allowPositionals: true }) as never;
  } catch (error) {
    const [problem = ''] = (error as Error).message.split(/\.(?:\s|$)/);
    throw new UsageError(`${command}: ${problem}`, seeAlso);
  }
  const { values, positionals } = parsed;
  if (!(values as { help?: boolean }).help && positionals.length !== names.length) {
    const takes = names.length === 0 ? 'takes no arguments' : `needs ${names.join(' and ')}`;
    throw new UsageError(`${command}: ${takes}`, seeAlso);
  }
  return { values, names: positionals };
}

/** Untrusted text, safe for a terminal: control characters and invisible characters become U+FFFD. */
export function shown(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/** The same, with line feeds kept. */
export function shownLines(text: string): string {
  return text.split('\n').map(shown).join('\n');
}

/** A table of columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** Lines of two columns, indented; the first is as wide as its widest cell. */
export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}\n`).join('');
}
