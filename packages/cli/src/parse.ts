// From the arguments of a command to its values. Node splits them; what is wrong with them is said here, with the nearest right word.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { nearest } from '@signalbox/contract/nearest';
import { type Command, type Option, type Options, UsageError } from './command.ts';
import { type Clock, timeIn } from './time.ts';

const help: Option = { type: 'boolean', short: 'h', about: 'show this help' };

/** Throws `UsageError`. With `--help`, nothing is checked. */
export function parse(
  definition: Command,
  fullName: string,
  argv: readonly string[],
  clock: Clock,
): { help: boolean; values: Record<string, unknown>; args: Record<string, string | string[] | undefined> } {
  const options: Options = { ...definition.options, help };
  const wrong = (problem: string) => new UsageError(`${fullName}: ${problem}`, `${fullName} --help`);
  const { tokens } = parseArgs({
    args: [...argv],
    options: configOf(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  if (tokens.some((token) => token.kind === 'option' && token.name === 'help'))
    return { help: true, values: {}, args: {} };

  const given = new Map<string, unknown[]>();
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (!option) throw wrong(`there is no option ${token.rawName}${didYouMean(token.rawName, optionNames(options))}`);
    const value = textOf(token, option, wrong);
    given.set(token.name, [
      ...(given.get(token.name) ?? []),
      parseValue(`--${token.name}`, option, value, clock, wrong),
    ]);
  }

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(definition.options ?? {})) {
    const all = given.get(name);
    if (option.required && !all) throw wrong(`--${name} is missing`);
    values[name] = option.multiple ? all : all?.at(-1);
  }
  return { help: false, values, args: argumentsIn(definition, words, wrong) };
}

function configOf(options: Options): ParseArgsOptionsConfig {
  const config: ParseArgsOptionsConfig = {};
  for (const [name, { type, short }] of Object.entries(options))
    config[name] = { type: type === 'boolean' ? 'boolean' : 'string', ...(short !== undefined && { short }) };
  return config;
}

function optionNames(options: Options): string[] {
  return Object.keys(options)
    .filter((name) => !options[name]!.hidden)
    .map((name) => `--${name}`);
}

function textOf(
  { rawName, value, inlineValue }: { rawName: string; value?: string | undefined; inlineValue?: boolean | undefined },
  option: Option,
  wrong: (problem: string) => Error,
): string {
  if (option.type === 'boolean') {
    if (value !== undefined) throw wrong(`${rawName} takes no value`);
    return '';
  }
  if (value === undefined) throw wrong(`${rawName} needs a value`);
  // `--reason --json`: probably a forgotten value. Negative numbers and `-` (standard input) are values.
  if (!inlineValue && /^-(?!\d|$)/.test(value))
    throw wrong(`${rawName} needs a value (one that starts with "-" is written ${rawName}=${value})`);
  return value;
}

function parseValue(
  name: string,
  option: Option,
  text: string,
  clock: Clock,
  wrong: (problem: string) => Error,
): unknown {
  const { type, choices, min = 0 } = option;
  if (choices && !choices.includes(text))
    throw wrong(`${name} must be one of ${choices.join(', ')}${didYouMean(text, choices)}`);
  switch (type) {
    case 'boolean':
      return true;
    case 'string':
      return text;
    case 'list':
      return text.split(/[\s,]+/).filter(Boolean);
    case 'integer':
      if (!/^-?\d{1,15}$/.test(text) || Number(text) < min)
        throw wrong(`${name} must be a whole number${min > 0 ? `, ${min} or more` : ''}`);
      return Number(text);
    case 'number':
      if (text.trim() === '' || !Number.isFinite(Number(text)) || Number(text) < min)
        throw wrong(`${name} must be a number${min > 0 ? `, ${min} or more` : ''}`);
      return Number(text);
    case 'time': {
      const time = timeIn(text, option.direction ?? 'past', clock);
      if (time === undefined)
        throw wrong(`${name} must be a time such as 2027-01-31, 2027-01-31T09:00:00Z, or 7d, 12h, 30m`);
      return time;
    }
    case 'json':
      try {
        return JSON.parse(text);
      } catch (error) {
        throw wrong(`${name} is not JSON: ${(error as Error).message}`);
      }
  }
}

function argumentsIn(
  { arguments: expected = {} }: Command,
  words: readonly string[],
  wrong: (problem: string) => Error,
) {
  const args: Record<string, string | string[] | undefined> = {};
  const names = Object.keys(expected);
  const missing = names.filter((name, at) => !expected[name]!.optional && at >= words.length);
  if (missing.length > 0) throw wrong(`needs ${missing.map((name) => name.toUpperCase()).join(' and ')}`);
  if (words.length > names.length && !Object.values(expected).some(({ many }) => many)) {
    const extra = JSON.stringify(words[names.length]);
    throw wrong(names.length === 0 ? `takes no arguments, but got ${extra}` : `${extra} is one argument too many`);
  }
  for (const [at, name] of names.entries()) args[name] = expected[name]!.many ? words.slice(at) : words[at];
  return args;
}

/** ` (did you mean --status?)`, or nothing if no word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? '' : ` (did you mean ${near}?)`;
}
