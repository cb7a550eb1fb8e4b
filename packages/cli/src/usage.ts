// Reading the command line.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** The command was called wrongly; says how to find out what is right. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  constructor(problem: string, seeAlso: string) {
    super(`${problem}. See: signalbox ${seeAlso}`);
  }
}

/** A file that was named can't be read; says why. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** The options of `command`, which takes nothing else. `--help` comes with it. Throws `UsageError`. */
export function parseOptions<T extends ParseArgsOptionsConfig>(command: string, args: string[], options: T) {
  try {
    const { values } = parseArgs({ args, options: { ...options, help: { type: 'boolean' } }, allowPositionals: false });
    return values;
  } catch (error) {
    // Node's message goes on to explain positional arguments, which there are none of.
    const [problem = ''] = (error as Error).message.split(/\.(?:\s|$)/);
    throw new UsageError(`${command}: ${problem}`, `${command} --help`);
  }
}

/** Of a command that is given `names` too, as in `sessions watch SESSION`. With `--help` none need be there. */
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
    const takes = names.length === 0 ? 'it takes no names' : `it takes ${names.join(' and ')}`;
    throw new UsageError(`${command}: ${takes}`, seeAlso);
  }
  return { values, names: positionals };
}

/** Text of somebody else, as a terminal can show it: what would steer the terminal, or could not be seen, is a mark. */
export function shown(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/** The same, in lines as they are. */
export function shownLines(text: string): string {
  return text.split('\n').map(shown).join('\n');
}

/** Lines of columns, each as wide as it needs to be; the last one is not filled up. */
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

/** Lines of two columns, the first as wide as it needs to be. */
export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}\n`).join('');
}
