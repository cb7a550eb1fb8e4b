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

/** Text of somebody else, as a terminal can show it: what would steer the terminal, or could not be seen, is a mark. */
export function shown(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/** Lines of two columns, the first as wide as it needs to be. */
export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}\n`).join('');
}
