// Commands and requests that the documentation shows exist: the commands of `signalbox`, the scripts of npm, the operations of the API.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import type { Command } from '../packages/cli/src/command.ts';
import { nouns } from '../packages/cli/src/commands.ts';
import newProject from '../packages/create-signalbox/template/_package.json' with { type: 'json' };
import { root } from './sources.ts';

const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/{README,SKILL}.md', 'examples/**/*.md'], {
  cwd: root,
  // Decisions and the changelog tell of the past.
  exclude: ['docs/decisions/**', 'CHANGELOG.md', '**/node_modules/**'],
}).toSorted();

interface Line {
  place: string;
  text: string;
}

/** Lines of shell in a page, with continued lines joined. */
const shellLines: Line[] = pages.flatMap((page) => {
  const text = readFileSync(join(root, page), 'utf8');
  const blocks = [
    ...[...text.matchAll(/^```(?:sh|bash|shell)\n([\s\S]*?)^```/gm)].map(([, block = '']) => block),
    ...[...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/(?<=\n\n)(?: {4}\S.*\n)(?: {4}.*\n|\n(?= {4}))*/g)].map(
      ([block]) => block,
    ),
  ];
  return blocks.flatMap((block) =>
    block
      .replaceAll(/\\\n\s*/g, ' ')
      .split('\n')
      .map((line) => ({ place: page, text: line.trim() })),
  );
});
/** Inline code. */
const spans: Line[] = pages.flatMap((page) =>
  [
    ...readFileSync(join(root, page), 'utf8')
      .replaceAll(/^```[\s\S]*?^```/gm, '')
      .matchAll(/`([^`\n]+)`/g),
  ].map(([, text = '']) => ({
    place: page,
    text,
  })),
);

test('every `signalbox` command in the documentation exists, with its options', async () => {
  const commands = new Map<string, Command>();
  for (const noun of nouns) {
    for (const command of await noun.load()) commands.set(`${noun.name} ${command.name}`.trim(), command);
  }
  const shown = [
    ...shellLines.flatMap(({ place, text }) =>
      [...text.matchAll(/\bnpx signalbox ([^|)#]*)/g)].map(([, line = '']) => ({ place, line })),
    ),
    ...spans.flatMap(({ place, text }) => {
      const [, line] = /^(?:npx )?signalbox (.+)$/.exec(text) ?? [];
      return line === undefined ? [] : [{ place, line }];
    }),
  ];
  expect(shown.length).toBeGreaterThan(40);
  const wrong = shown.filter(({ line }) => {
    const words = line.split(/\s+/);
    const [noun = '', verb = ''] = words;
    if (!/^[a-z-]+$/.test(noun) || noun === '--version' || noun === '--help') return false;
    // `signalbox users …` is about all of them.
    if (!/^[a-z][a-z-]*$/.test(verb) && !commands.has(noun)) return !nouns.some(({ name }) => name === noun);
    const command = commands.get(noun) ?? commands.get(`${noun} ${verb}`);
    const known = [
      'help',
      'json',
      ...Object.keys(command?.options ?? {}),
      ...(command?.needs ? ['url', 'timeout'] : []),
    ];
    const options = [...line.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/(?<=\s)--([a-z][a-z-]*)/g)].map(
      ([, name = '']) => name,
    );
    return !command || !options.every((name) => known.includes(name));
  });
  expect(wrong).toEqual([]);
  // `start` loads the whole service, which takes seconds on a busy machine.
}, 300_000);

test('every npm script and every program that the documentation runs exists', () => {
  const texts = [...shellLines, ...spans];
  const scripts = texts.flatMap(({ place, text }) =>
    [...text.matchAll(/\bnpm (?:run )?(start|test|run [\w:-]+)(?! -w)\b/g)].map(([, name = '']) => ({
      place,
      name: name.replace('run ', ''),
    })),
  );
  const programs = texts.flatMap(({ place, text }) =>
    [...text.matchAll(/\bnode ((?:examples|scripts|packages)\/[\w./-]+)/g)].map(([, name = '']) => ({ place, name })),
  );
  expect(scripts.length + programs.length).toBeGreaterThan(15);
  expect(programs.filter(({ name }) => !existsSync(join(root, name)))).toEqual([]);
  const known = { ...manifest.scripts, ...newProject.scripts };
  expect(scripts.filter(({ name }) => !(name in known))).toEqual([]);
});

test('every request that the documentation shows is an operation of the API', () => {
  const { paths } = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, unknown>>;
  };
  const operations = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]+\}/g, '*')}`),
    ),
  );
  const requests = [
    ...spans.flatMap(({ place, text }) => {
      const [, method, path] = /^(GET|POST|PUT|PATCH|DELETE) (\/[^\s?]*)/.exec(text) ?? [];
      return path === undefined ? [] : [{ place, method, path }];
    }),
    ...shellLines.flatMap(({ place, text }) => {
      const [, path] = /\bcurl\b.*?(\/api\/v1\/[^\s"'?]*)/.exec(text) ?? [];
      const method = /-X (\w+)/.exec(text)?.[1] ?? (/ (?:-d|--data|--data-binary|-F) /.test(text) ? 'POST' : 'GET');
      return path === undefined ? [] : [{ place, method, path }];
    }),
  ].filter(({ path }) => !/^\/(healthz|readyz|metrics|console|docs|llms\.txt)/.test(path) && !path.includes('…'));
  expect(requests.length).toBeGreaterThan(30);
  const wrong = requests.filter(({ method, path }) => {
    const full = path.startsWith('/api/v1') ? path : `/api/v1${path}`;
    // Also an example of an id: `/sessions/ses_01k9…`.
    return !operations.has(`${method} ${full.replaceAll(/\{[^}]+\}|<[^>]+>/g, '*')}`);
  });
  expect(wrong).toEqual([]);
});
