// Runs one command line: finds the command, parses its arguments, and prints what went wrong.
import { version } from '@signalbox/client';
import { type Command, type Noun, UsageError } from './command.ts';
import { nouns } from './commands.ts';
import { errorText } from './errors.ts';
import { commandHelp, nounHelp, overviewHelp } from './help.ts';
import { didYouMean, parse } from './parse.ts';
import type { Terminal } from './terminal.ts';

/** Resolves to the exit status: 0 success, 1 failure, 2 wrong usage. */
export async function runCommandLine(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const result = await dispatch(argv, terminal);
    return typeof result === 'number' ? result : 0;
  } catch (error) {
    await terminal.stderr.write(await errorText(error as Error, terminal));
    return ['UsageError', 'ConfigError'].includes((error as Error).name) ? 2 : 1;
  }
}

async function dispatch(argv: readonly string[], terminal: Terminal): Promise<unknown> {
  const { stdout } = terminal;
  const [first = '--help', ...rest] = argv;
  if (first === '--version' || first === '-v') return stdout.write(`${version}\n`);
  if (first === 'help') return dispatch([...rest, '--help'], terminal);
  if (first === '--help' || first === '-h') return stdout.write(overviewHelp(nouns, stdout));

  const noun = nouns.find(({ name }) => name === first);
  if (!noun) throw new UsageError(await unknownCommand(first, rest), '--help');
  const commands = await noun.load();
  const { definition, args } = find(noun, commands, rest);
  if (!definition) return stdout.write(nounHelp(noun, commands, stdout));

  const command = [noun.name, definition.name].filter(Boolean).join(' ');
  const parsed = parse(definition, command, args, terminal.clock);
  if (parsed.help) return stdout.write(commandHelp(command, definition, stdout));
  return definition.run({ values: parsed.values as never, args: parsed.args as never, terminal, command });
}

/** The command that follows its noun; none if only help is wanted. */
function find(noun: Noun, commands: readonly Command[], [verb, ...args]: string[]) {
  const only = commands.find(({ name }) => name === '');
  if (only) return { definition: only, args: verb === undefined ? [] : [verb, ...args] };
  if (verb === undefined || verb === '--help' || verb === '-h') return { definition: undefined, args: [] };
  const definition = commands.find(({ name }) => name === verb);
  if (definition) return { definition, args };
  const names = commands.map(({ name }) => name);
  const hint = didYouMean(verb, names) || `; there are ${names.join(', ')}`;
  throw new UsageError(`${noun.name}: there is no "${verb}"${hint}`, `${noun.name} --help`);
}

async function unknownCommand(word: string, [second]: readonly string[]): Promise<string> {
  if (word.startsWith('-')) return `options follow the command, but ${word} is first`;
  const names = nouns.map(({ name }) => name);
  // `list sessions`
  const swapped = names.includes(second ?? '') ? ` (did you mean ${second} ${word}?)` : '';
  return `there is no command "${word}"${swapped || (await withVerb(word)) || didYouMean(word, names)}`;
}

/** The command of a noun that this is the verb of: `chat` is `sessions chat`. */
async function withVerb(word: string): Promise<string> {
  // `start` has no verbs, and loads the service.
  const others = nouns.filter(({ name }) => name !== 'start');
  const found = await Promise.all(
    others.map(async ({ name, load }) => ((await load()).some((one) => one.name === word) ? [`${name} ${word}`] : [])),
  );
  const commands = found.flat();
  // Many nouns have a `list`.
  return commands.length === 0 || commands.length > 3 ? '' : ` (did you mean ${commands.join(' or ')}?)`;
}
