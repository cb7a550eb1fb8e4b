#!/usr/bin/env node
// `npm create signalbox`: asks for a folder and a model, and writes a project there.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import * as prompts from '@clack/prompts';
import { filesIn, nameOf, writeProject } from './project.ts';
import { providers, scripted, servers } from './providers.ts';
import { findTarballs } from './tarballs.ts';

const manifest = createRequire(import.meta.url)('create-signalbox/package.json') as { version: string };
const choices = [...Object.keys(providers), scripted, ...Object.keys(servers)];

const help = `Creates a project with an agent, a chat page and a webhook receiver.

  npm create signalbox@latest [FOLDER] [-- --provider NAME] [--model NAME] [--packages DIRECTORY]

  --provider NAME        ${[...Object.keys(providers), scripted].join(', ')}. scripted needs no key.
                         Or a server with OpenAI’s API:
                         ${Object.keys(servers).join(', ')}.
  --model NAME           the model of a server
  --packages DIRECTORY   take the packages of Signalbox from the tarballs there, instead of from npm
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      provider: { type: 'string' },
      model: { type: 'string' },
      packages: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (positionals.length > 1) return refuse(`Name one folder, not ${positionals.length}.`);
  if (values.provider !== undefined && !choices.includes(values.provider)) {
    return refuse(`There is no provider "${values.provider}". Choose from ${choices.join(', ')}.`);
  }
  const isOfServer = values.provider !== undefined && values.provider in servers;
  if (values.model !== undefined && (!isOfServer || values.model.trim() === '')) {
    return refuse('--model names a model of the server that --provider names.');
  }
  const problem = positionals[0] === undefined ? undefined : problemOf(positionals[0]);
  if (problem) return refuse(problem);
  const { version } = manifest;
  const tarballs = values.packages === undefined ? undefined : findTarballs(values.packages, version);
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  if (!isTerminal && (positionals[0] === undefined || values.provider === undefined)) {
    return refuse(
      'Without a terminal, name the folder and the provider: npm create signalbox my-app -- --provider scripted',
    );
  }

  if (!isTerminal && isOfServer && values.model === undefined) {
    return refuse(`Name a model of ${values.provider}, such as --model NAME.`);
  }

  const folder = positionals[0] ?? (await askFolder());
  const provider = folder && (values.provider ?? (await askProvider()));
  if (!folder || !provider) return 130;
  const model = values.model?.trim() ?? (provider in servers ? await askModel(servers[provider]!.label) : '');
  if (model === undefined) return 130;
  writeProject(resolve(folder), {
    name: nameOf(resolve(folder).split(/[/\\]/).at(-1) ?? ''),
    provider,
    model,
    version,
    tarballs,
  });
  process.stdout.write(nextSteps(folder, provider));
  return 0;
}

function problemOf(folder: string): string | undefined {
  if (folder.trim() === '') return 'The folder needs a name.';
  const files = filesIn(resolve(folder));
  if (files.length === 0) return undefined;
  return `${folder} is not empty: it has ${files.slice(0, 3).join(', ')}${files.length > 3 ? ' …' : ''}. Choose another folder.`;
}

/** Undefined if the user leaves with Ctrl-C or Escape. */
async function askFolder(): Promise<string | undefined> {
  const folder = await prompts.text({
    message: 'Where should the project be?',
    initialValue: 'my-app',
    validate: (value) => problemOf(value ?? ''),
  });
  return prompts.isCancel(folder) ? undefined : folder;
}

async function askProvider(): Promise<string | undefined> {
  const provider = await prompts.select({
    message: 'Which model should the agent use?',
    options: [
      { value: scripted, label: 'A script', hint: 'no key, no cost: to look around' },
      ...Object.entries(providers).map(([value, { label, model }]) => ({ value, label, hint: model })),
      ...Object.entries(servers).map(([value, { label, baseUrl }]) => ({ value, label, hint: baseUrl })),
    ],
  });
  return prompts.isCancel(provider) ? undefined : provider;
}

async function askModel(server: string): Promise<string | undefined> {
  const model = await prompts.text({
    message: `Which model of ${server}?`,
    validate: (value) => (value?.trim() ? undefined : 'Enter the name that the server gives it.'),
  });
  return prompts.isCancel(model) ? undefined : model.trim();
}

function nextSteps(folder: string, provider: string): string {
  const key = (providers[provider] ?? servers[provider])?.key;
  const steps = [
    ...(resolve(folder) === process.cwd()
      ? []
      : [`cd ${/[^\w./-]/.test(folder) ? `'${folder.replaceAll("'", "'\\''")}'` : folder}`]),
    'npm install',
    ...(key ? [`# Add your key to .env: ${key}=…`] : []),
    'npm run dev',
  ];
  return `\nDone. Next:\n\n${steps.map((step) => `  ${styleText('cyan', step)}\n`).join('')}\n`;
}

function refuse(problem: string): number {
  process.stderr.write(`${problem}\n`);
  return 2;
}

try {
  process.exitCode = await main();
} catch (error) {
  // Thrown by parseArgs.
  const isUsage = String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS');
  process.stderr.write(`${(error as Error).message}\n${isUsage ? `\n${help}` : ''}`);
  process.exitCode = isUsage ? 2 : 1;
}
