/**
 * Commands as data. A command says what it is called, what it takes and what it does; help, "did you mean", completion and
 * docs/command-line.md are derived from that. A noun (`sessions`) is a file in commands/ that exports its commands; it is loaded only
 * when it is used, because some of them load the whole service.
 */
import type { Operations, Scope } from '@signalbox/client';
import type { Terminal } from './terminal.ts';

/**
 * How the text of an option becomes its value:
 *
 * - `string`: as it is; with `choices`, one of them.
 * - `boolean`: true if the option is given; it takes no value.
 * - `integer`, `number`: a number, at least `min`.
 * - `time`: an ISO 8601 time. Accepts a date, and an age or a distance such as `2h` or `7d` (`direction`).
 * - `json`: any JSON.
 * - `list`: texts separated by commas.
 */
export interface Option {
  type: 'string' | 'boolean' | 'integer' | 'number' | 'time' | 'json' | 'list';
  /** What it does, in lower case and without a full stop; shown in the help and in the reference. */
  about: string;
  /** The placeholder of its value, such as `NAME`. Default: from the type. */
  value?: string;
  short?: string;
  choices?: readonly string[];
  /** Can be repeated; the value is an array. */
  multiple?: true;
  required?: true;
  /** For numbers. Default: 0. */
  min?: number;
  /** For times: whether `2h` is two hours ago or in two hours. Default: past. */
  direction?: 'past' | 'future';
  /** The heading of the help below which it is listed. Default: Options. */
  group?: string;
  /** The environment variable that it takes precedence over. */
  variable?: string;
  /** Accepted, but not shown. */
  hidden?: true;
}
export type Options = Readonly<Record<string, Option>>;

export interface Argument {
  about: string;
  optional?: true;
  /** Takes all arguments from here on; the value is an array. */
  many?: true;
}
/** By name in lower case, in order; shown in upper case. */
export type Arguments = Readonly<Record<string, Argument>>;

type One<O extends Option> = O extends { choices: readonly (infer C)[] }
  ? C
  : O['type'] extends 'boolean'
    ? boolean
    : O['type'] extends 'integer' | 'number'
      ? number
      : O['type'] extends 'json'
        ? unknown
        : O['type'] extends 'list'
          ? string[]
          : string;
type Value<O extends Option> = O extends { multiple: true } ? One<O>[] : One<O>;
export type Values<O extends Options> = {
  [K in keyof O]: O[K] extends { required: true } ? Value<O[K]> : Value<O[K]> | undefined;
};
export type ArgumentValues<A extends Arguments> = {
  [K in keyof A]: A[K] extends { many: true }
    ? string[]
    : A[K] extends { optional: true }
      ? string | undefined
      : string;
};

export interface Input<O extends Options = Options, A extends Arguments = Arguments> {
  values: Values<O>;
  args: ArgumentValues<A>;
  terminal: Terminal;
  /** `sessions list`: for messages. */
  command: string;
}

export interface Command<O extends Options = Options, A extends Arguments = Arguments> {
  /** The verb, `list`; empty for a noun that is itself a command, such as `start`. */
  name: string;
  /** One line: what it does, as an order, with a capital letter and without a full stop. */
  summary: string;
  /** More paragraphs for its help. */
  details?: string;
  arguments?: A;
  options?: O;
  /** Environment variables that have no option. */
  variables?: Readonly<Record<string, { about: string; group?: string }>>;
  /** Command lines without `signalbox`, and what they do. */
  examples?: readonly (readonly [line: string, about: string])[];
  /** The scopes that the key needs; empty: any key. Absent: it does not need a key. */
  needs?: readonly Scope[];
  /** The operations of the API that it can call, apart from those that only look up names. */
  operations?: readonly (keyof Operations)[];
  /** A number that it resolves to is the exit status, otherwise 0. A thrown error is printed. */
  // A method, not a property, so that a command with particular options is a `Command`.
  run(input: Input<O, A>): Promise<unknown>;
}

/** Checks a command's `run` against its own options and arguments. */
export function command<
  const O extends Options = Record<never, never>,
  const A extends Arguments = Record<never, never>,
>(definition: Command<O, A>): Command {
  return definition as unknown as Command;
}

/** A subject, such as `sessions`, or a command of its own, such as `start`. */
export interface Noun {
  name: string;
  summary: string;
  /** The heading below which `signalbox --help` lists it. */
  group: string;
  /** One command with an empty name, or several with a verb each. */
  load(): Promise<readonly Command[]>;
}

/** Wrong usage: exit status 2. The message names what is wrong and refers to the help. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  constructor(problem: string, seeAlso: string) {
    super(`${problem}. See: signalbox ${seeAlso}`);
  }
}

/** A failure that the user can fix: the message is enough, without a stack. Exit status 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
