/**
 * Writes the model that is suggested for each provider (`exampleModel` in packages/contract/src/providers.ts) into every text that
 * names one of its models: providers retire models, and the first thing that a reader tries has to work.
 *
 *     node scripts/example-models.ts     the first step of `npm run generate`
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownProviders, type ProviderName } from '@signalbox/contract';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The names of a provider's models. `o3` alone could be anything, so it counts only as a whole string or after its provider. */
export const modelNames: Partial<Record<ProviderName, RegExp>> = {
  openai: /(?<![\w.-])(?:(?:chat)?gpt-\d(?:[\w.-]*\w)?|o\d-[a-z][\w-]*\w|(?<=openai\/|['"`])o\d(?!\w))/g,
  anthropic: /(?<![\w.-])claude-\w(?:[\w.-]*\w)?/g,
  google: /(?<![\w.-])gemini-\w(?:[\w.-]*\w)?/g,
};

/** Texts that people read, and code that shows such texts. Tests use names as data. */
const texts = [
  '*.md',
  'openapi.json',
  'docs/**/*.{md,ts}',
  '{packages,examples,deploy}/**/*.{md,ts,tsx,mjs,json,yaml,html,txt}',
  'packages/create-signalbox/template/*',
];

/** Files in which a name is a fact, with the reason. */
export const facts: Readonly<Record<string, string>> = {
  'CHANGELOG.md': 'says what a release suggested',
  'packages/contract/src/model-facts.ts': 'knows older models, too',
  'packages/server/src/usage/known-models.json': 'is about all models',
};

const isLeftOut = (path: string) => /(^|\/)(node_modules|dist|test)(\/|$)|\.test\.tsx?$/.test(path) || path in facts;

export function textFiles(): string[] {
  const found = globSync(texts, { cwd: root, exclude: isLeftOut }).map((path) => path.replaceAll('\\', '/'));
  return [...new Set(found)].filter((path) => !isLeftOut(path)).toSorted();
}

/** The text with the suggested model in place of every other model of its provider. */
export function withExampleModels(text: string): string {
  return ownProviders.reduce(
    (written, { name, exampleModel }) => written.replace(modelNames[name] ?? /(?!)/g, exampleModel),
    text,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const file of textFiles()) {
    const text = readFileSync(join(root, file), 'utf8');
    const written = withExampleModels(text);
    if (written === text) continue;
    writeFileSync(join(root, file), written);
    console.log(file);
  }
}
