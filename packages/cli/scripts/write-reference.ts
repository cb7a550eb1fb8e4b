// Writes the list of commands in docs/reference/command-line.md, from the commands themselves.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Command, Option } from '../src/command.ts';
import { nouns } from '../src/commands.ts';
import { aboutOf, exampleLine, needsText, optionUsage, usageOf, visible } from '../src/help.ts';
import { listOptions } from '../src/print.ts';
import { serviceOptions } from '../src/service.ts';

export const page = fileURLToPath(new URL('../../../docs/reference/command-line.md', import.meta.url));
const marker = '<!-- From here on, `npm run generate` writes this page from packages/cli/src/commands. -->';

/** The page with its generated part brought up to date. */
export async function referenceOf(text: string): Promise<string> {
  const [written] = text.split(marker);
  const sections = await Promise.all(
    nouns.map(async ({ name, summary, load }) => {
      const commands = await load();
      const only = commands.length === 1 && commands[0]!.name === '';
      const parts = commands.map((command) => commandText(name, command, only));
      return `## ${name}\n\n${only ? '' : `${escaped(summary)}.\n\n`}${parts.join('\n')}`;
    }),
  );
  return `${written}${marker}\n\n${sections.join('\n')}`;
}

const described = new Map<string, Option>(Object.entries({ ...listOptions, ...serviceOptions }));

function commandText(noun: string, command: Command, isOnly: boolean): string {
  const { summary, details, arguments: args = {}, options = {}, needs, examples = [] } = command;
  // The settings of `start` have a page of their own.
  const own = noun === 'start' ? [] : visible(options).filter(([name, option]) => described.get(name) !== option);
  const rows = [
    ...Object.entries(args).map(([name, { about }]) => [`\`${name.toUpperCase()}\``, about] as const),
    ...own.map(([name, option]) => [`\`${optionUsage(name, option)}\``, aboutOf(option)] as const),
  ];
  const shared = visible(options).flatMap(([name, option]) =>
    described.get(name) === option ? [`\`--${name}\``] : [],
  );
  const table = rows.map(([left, right]) => `| ${left.replaceAll('|', '\\|')} | ${escaped(right)} |\n`).join('');
  const lines = examples.map(([line, about]) => `# ${about}\n${exampleLine(line)}\n`);
  const paragraphs = [
    `${escaped(summary)}.${details === undefined ? '' : ` ${escaped(details.replaceAll('\n', ' '))}`}`,
    ...(needs === undefined ? [] : [needsText(needs)]),
    ...(shared.length > 0 ? [`Also ${shared.join(', ')}.`] : []),
  ];
  return [
    ...(isOnly ? [] : [`### ${[noun, command.name].join(' ')}\n`]),
    `\`signalbox ${usageOf(noun, command)}\`\n`,
    `${paragraphs.join(' ')}\n`,
    ...(table === '' ? [] : [`| | |\n|---|---|\n${table}`]),
    ...(lines.length === 0 ? [] : [`\`\`\`sh\n${lines.join('')}\`\`\`\n`]),
  ].join('\n');
}

/** Text in Markdown: no table cell ends early, and no placeholder becomes a tag. */
function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('*', '\\*');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(page, await referenceOf(await readFile(page, 'utf8')));
}
