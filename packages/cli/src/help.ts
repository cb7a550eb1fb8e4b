// Help, from the data of the commands.
import type { Scope } from '@signalbox/client';
import type { Command, Noun, Option, Options } from './command.ts';
import type { Output } from './terminal.ts';
import { columns, leftWidthOf, wrap } from './text.ts';

/** Wider lines are hard to read. */
const MAX_WIDTH = 110;
const widthFor = (output: Output) => Math.min(output.columns ?? MAX_WIDTH, MAX_WIDTH);

export function overviewHelp(nouns: readonly Noun[], output: Output): string {
  const rows = nouns.map(({ group, name, summary }) => ({ group, row: [name, summary] as const }));
  return `Signalbox, a self-hosted platform for running AI agents.

${output.styled('bold', 'Usage:')} signalbox COMMAND [options]

${sections(rows, output)}
  signalbox COMMAND --help    what a command does, its options, and examples
  signalbox --version
`;
}

export function nounHelp(noun: Noun, commands: readonly Command[], output: Output): string {
  const rows = commands.map((command) => ({
    group: 'Commands',
    row: [usageOf(noun.name, command), command.summary] as const,
  }));
  const examples = commands.flatMap(({ examples: all = [] }) => all.slice(0, 1)).slice(0, 4);
  return `${noun.summary}.

${sections(rows, output)}${examplesOf(examples, output)}
  signalbox ${noun.name} COMMAND --help    the options of a command, and examples
`;
}

export function commandHelp(fullName: string, command: Command, output: Output): string {
  const width = widthFor(output);
  const { summary, details, arguments: args = {}, options = {}, variables = {}, examples = [], needs } = command;
  const paragraphs = (details ?? '').split('\n\n').filter(Boolean);
  const [noun = '', ...verb] = fullName.split(' ');
  const rows = [
    ...Object.entries(args).map(([name, { about }]) => ({
      group: 'Arguments',
      row: [name.toUpperCase(), about] as const,
    })),
    ...visible(options).map(([name, option]) => ({
      group: option.group ?? 'Options',
      row: [optionUsage(name, option), aboutOf(option)] as const,
    })),
    ...Object.entries(variables).map(([name, { about, group = 'Environment variables' }]) => ({
      group,
      row: [name, about] as const,
    })),
  ];
  return [
    `${summary}.\n`,
    `${output.styled('bold', 'Usage:')} signalbox ${usageOf(noun, { ...command, name: verb.join(' ') })}${hasOptions(options) ? ' [options]' : ''}\n`,
    ...paragraphs.map((paragraph) => `${wrap(paragraph.replaceAll('\n', ' '), width)}\n`),
    ...(rows.length > 0 ? [sections(rows, output)] : []),
    ...(examples.length > 0 ? [examplesOf(examples, output).slice(1)] : []),
    ...(needs === undefined ? [] : [`${wrap(needsText(needs), width)}\n`]),
  ].join('\n');
}

const ofAdmin: readonly Scope[] = ['keys:manage', 'secrets:manage', 'organization:manage'];

export function needsText(needs: readonly Scope[]): string {
  if (needs.length === 0) return 'Works with any API key.';
  const permission = needs.some((scope) => ofAdmin.includes(scope))
    ? 'admin'
    : needs.every((scope) => scope.endsWith(':read'))
      ? 'read'
      : 'write';
  return `Needs an API key with ${needs.length === 1 ? 'the scope' : 'the scopes'} ${needs.join(', ')} (permission ${permission}).`;
}

/** Rows below the headings of their groups. All have the same columns, so that the eye finds its way. */
function sections(rows: readonly { group: string; row: readonly [string, string] }[], output: Output): string {
  const leftWidth = leftWidthOf(rows.map(({ row }) => row));
  const options = { width: widthFor(output), leftWidth };
  return [...grouped(rows, ({ group }) => group)]
    .map(
      ([group, members]) =>
        `${output.styled('bold', `${group}:`)}\n${columns(
          members.map(({ row }) => row),
          options,
        )}`,
    )
    .join('\n');
}

/** `sessions watch SESSION`. */
export function usageOf(noun: string, { name, arguments: args = {}, options = {} }: Command): string {
  const words = Object.entries(args).map(([argument, { optional, many }]) => {
    const word = argument.toUpperCase() + (many ? '…' : '');
    return optional ? `[${word}]` : word;
  });
  const required = visible(options)
    .filter(([, option]) => option.required)
    .map(([option, definition]) => optionUsage(option, definition, false));
  return [noun, name, ...words, ...required].filter(Boolean).join(' ');
}

export function visible(options: Options): [string, Option][] {
  return Object.entries(options).filter(([, { hidden }]) => !hidden);
}

const hasOptions = (options: Options) => visible(options).some(([, { required }]) => !required);

/** `-q, --quiet` or `--status STATUS`. */
export function optionUsage(
  name: string,
  { type, value, short, choices, multiple, variable }: Option,
  whole = true,
): string {
  const placeholder = value ?? (choices && choices.length <= 4 ? choices.join('|') : placeholders[type]);
  const text = `--${name}${placeholder === '' ? '' : ` ${placeholder}`}`;
  if (!whole) return text;
  return `${short === undefined ? '' : `-${short}, `}${text}${multiple ? ' …' : ''}${variable === undefined ? '' : `, ${variable}`}`;
}

const placeholders: Record<Option['type'], string> = {
  string: 'TEXT',
  boolean: '',
  integer: 'N',
  number: 'NUMBER',
  time: 'TIME',
  json: 'JSON',
  list: 'A,B',
};

export function aboutOf({ about, choices, value, multiple }: Option): string {
  const isListed = choices && (choices.length > 4 || value !== undefined);
  return `${about}${isListed ? `: ${choices.join(', ')}` : ''}${multiple ? '; can be repeated' : ''}`;
}

/** An example as it is typed: one that is more than a single command names the program itself. */
export function exampleLine(line: string): string {
  return line.includes('signalbox ') ? line : `signalbox ${line}`;
}

function examplesOf(examples: readonly (readonly [string, string])[], output: Output): string {
  if (examples.length === 0) return '';
  const lines = examples.map(([line, about]) => `  ${output.styled('dim', `# ${about}`)}\n  ${exampleLine(line)}\n`);
  return `\n${output.styled('bold', 'Examples:')}\n${lines.join('\n')}`;
}

/** In the order in which the groups appear first. */
function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
