// Links and names in the documentation have a target, and the program it shows is the one that the tests run.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  chunkTypes,
  defaultChunkTypes,
  errorCodes,
  eventTypes,
  idPrefixes,
  modelServers,
  voidableChunkTypes,
} from '@signalbox/contract';
import { expect, test } from 'vitest';
import { anchorOf, groups, placeOf, pages as sitePages } from '../docs/.vitepress/pages.ts';
import { servers } from '../packages/create-signalbox/src/providers.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/{README,SKILL}.md'], { cwd: root }).toSorted();
const read = (page: string) => readFileSync(join(root, page), 'utf8');

test('every link to a file or an image leads to one', () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/(?:\]\(|\b(?:src|srcset|href)=")(?!https?:|mailto:)([^)#"]+)/g)].map(
      ([, target = '']) => ({
        page,
        target,
      }),
    ),
  );
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter(({ page, target }) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
});

test('every id in the documentation begins as the ids of its kind do', () => {
  const kinds = pages.flatMap((page) => [...read(page).matchAll(/\b([a-z]+)_01[a-z0-9]+/g)].map(([, kind]) => kind));
  expect(kinds.length).toBeGreaterThan(20);
  expect([...new Set(kinds)].filter((kind) => !idPrefixes.some((prefix) => prefix === kind))).toEqual([]);
});

/** The anchors of a page's headings, as GitHub derives them. */
const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));

test('every link to a heading leads to one', () => {
  const links = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].map(([, target, anchor = '']) => ({
      page,
      target: target ? join(dirname(page), target) : page,
      anchor,
    })),
  );
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter(({ target, anchor }) => !anchorsOf(target).includes(anchor))).toEqual([]);
});

test('every file that the documentation names by its path from the root exists', () => {
  const names = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/architecture.md', 'docs/proof.md'].flatMap(
    (page) => [...read(page).matchAll(/`((?:packages|test|docs|examples)\/[\w./-]+)`/g)].map(([, name = '']) => name),
  );
  expect(names.length).toBeGreaterThan(10);
  // NNNN is the number of a migration, VERSION that of a release; a dist folder is built.
  expect(names.filter((name) => !/NNNN|VERSION|\/dist$/.test(name) && !existsSync(join(root, name)))).toEqual([]);
});

test('SECURITY.md names tests that exist', () => {
  const tests = [...read('SECURITY.md').matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, name = '']) => name);
  expect(new Set(tests).size).toBeGreaterThan(20);
  expect(tests.filter((name) => !existsSync(join(root, name)))).toEqual([]);
});

test('docs/proof.md names what `npm run prove` runs, and nothing else', () => {
  const proofs = [...read('scripts/prove.mjs').matchAll(/\bname: '(\w+)'/g)].map(([, name]) => name);
  const named = [...read('docs/proof.md').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(named.length).toBeGreaterThan(0);
  expect(named.toSorted()).toEqual(proofs.toSorted());
});

test('docs/guides/models.md has the servers of the table, and no others', () => {
  const [, shown = ''] = /\n## Servers\n([\s\S]*?)\n## /.exec(read('docs/guides/models.md')) ?? [];
  const rows = shown.split('\n').filter((line) => /^\| (?!server |-)/.test(line));
  const code = (text: string | undefined) => (text === undefined ? '' : `\`${text}\``);
  expect(
    rows.map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    ),
  ).toEqual(modelServers.map(({ name, label, baseUrl, keyName }) => [label, code(name), code(baseUrl), code(keyName)]));
});

test('create-signalbox, which has no other package, has the same servers', () => {
  const expected = modelServers.map(({ name, label, baseUrl, keyName }) => [name, { label, baseUrl, key: keyName }]);
  expect(servers).toEqual(Object.fromEntries(expected));
});

// Without the import that explains errors.
test('the program in the README is examples/quickstart.ts', () => {
  const program = read('examples/quickstart.ts');
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(read('README.md')) ?? [];
  expect(shown).toBe(program.slice(program.indexOf('import {')));
});

test('the program in the tutorial is examples/tutorial/refund.ts', () => {
  const program = read('examples/tutorial/refund.ts');
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(read('docs/tutorial.md')) ?? [];
  expect(shown).toBe(program.slice(program.indexOf('import {')));
});

test('docs/guides/event-log.md lists every type of record, and no other', () => {
  const [, rows = ''] = /\| types \| \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(read('docs/guides/event-log.md')) ?? [];
  const kinds = rows.split('\n').flatMap((row) => {
    let noun = '';
    return [...(row.split('|')[1] ?? '').matchAll(/`(?:(\w+)\.)?(\w+)`/g)].map(([, said, verb]) => {
      noun = said ?? noun;
      return `${noun}.${verb}`;
    });
  });
  expect(kinds.toSorted()).toEqual(eventTypes.toSorted());
});

test('docs/README.md, from which the site takes its pages, lists every page in docs/ once', () => {
  const listed = groups.flatMap(({ pages: some }) => some.map(({ file }) => file));
  const inDocs = globSync('docs/**/*.md', { cwd: root, exclude: ['docs/README.md', 'docs/decisions/[0-9]*.md'] });
  expect(listed.filter((file) => file.startsWith('docs/')).toSorted()).toEqual(inDocs.toSorted());
  expect(new Set(listed).size).toBe(listed.length);
  // A page without a description would be a mere name in llms.txt.
  expect(groups.flatMap(({ pages: some }) => some.filter(({ about }) => about === ''))).toEqual([]);
});

test('no two pages have the same place in the site', () => {
  expect(new Set(sitePages.map(placeOf)).size).toBe(sitePages.length);
});

test('docs/troubleshooting.md has a cause and a fix for every error code, and names no code that does not exist', () => {
  const rows = read('docs/troubleshooting.md')
    .split(/^(?=### A session is stuck)|^A turn that fails/m)[0]!
    .split('\n')
    .filter((line) => /^\| `[a-z_]+`/.test(line))
    .map((line) => line.split(' | '));
  const codes = rows.flatMap(([first = '']) => [...first.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code));
  expect(codes.toSorted()).toEqual(Object.keys(errorCodes).toSorted());
  expect(rows.filter(([, cause, fix]) => !cause?.trim() || !fix?.replace('|', '').trim())).toEqual([]);
});

test('docs/reference/chunks.md has every type of chunk with its fields, and the defaults of webhooks', () => {
  const page = read('docs/reference/chunks.md');
  const names = (cell = '') => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name]) => name!);
  const rows = [...page.matchAll(/^\| `([\w.]+)` \| .* \| (.+) \|$/gm)].map(([, type = '', fields]) => [
    type,
    names(fields).toSorted(),
  ]);
  const { schemas } = JSON.parse(read('openapi.json')).components as {
    schemas: Record<string, { properties: Record<string, { const?: string }> }>;
  };
  const contract = chunkTypes.map((name) => {
    const { properties } = Object.values(schemas).find((schema) => schema.properties?.type?.const === name)!;
    return [
      name,
      Object.keys(properties)
        .filter((field) => !['type', 'turn', 'seq'].includes(field))
        .toSorted(),
    ];
  });
  expect(rows).toEqual(contract);
  const [, defaults] = /^\| a webhook subscription \|.*; by default (.*) \|$/m.exec(page) ?? [];
  expect(names(defaults)).toEqual([...defaultChunkTypes]);
  const [, voidable] = /gets one of ([\s\S]*?) gets/.exec(page) ?? [];
  expect(names(voidable)).toEqual([...voidableChunkTypes]);
});

test('docs/reference/limits.md has the limits of the contract', () => {
  interface Schema {
    [keyword: string]: unknown;
    $ref?: string;
    properties?: Record<string, Schema>;
  }
  const { schemas } = JSON.parse(read('openapi.json')).components as { schemas: Record<string, Schema> };
  /** The schema and the alternatives that it consists of. */
  const unfold = (schema: Schema): Schema[] => {
    if (schema.$ref) return unfold(schemas[schema.$ref.split('/').at(-1)!]!);
    const parts = [schema.anyOf, schema.oneOf, schema.items ? [schema.items] : []].flatMap(
      (one) => (one ?? []) as Schema[],
    );
    return [schema, ...parts.flatMap(unfold)];
  };
  const rows = [...read('docs/reference/limits.md').matchAll(/^\| [^|]+ \| ([\d,]+)[^|]* \| `([\w.]+)` \|$/gm)];
  expect(rows.length).toBeGreaterThan(15);
  const wrong = rows.flatMap(([row, number = '', path = '']) => {
    const [name = '', ...fields] = path.split('.');
    const found = fields.reduce(
      (from, field) => from.flatMap(({ properties }) => (properties?.[field] ? unfold(properties[field]) : [])),
      unfold(schemas[name]!),
    );
    const limits = found.flatMap(({ maxLength, maxItems, maximum, maxProperties }) => [
      maxLength,
      maxItems,
      maximum,
      maxProperties,
    ]);
    return limits.includes(Number(number.replaceAll(',', ''))) ? [] : [row];
  });
  expect(wrong).toEqual([]);
});

test('every decision is listed', () => {
  const listed = [...read('docs/decisions/README.md').matchAll(/\]\((\d{4}-[\w-]+\.md)\)/g)].map(([, name]) => name);
  expect(listed).toEqual(globSync('*.md', { cwd: join(root, 'docs/decisions'), exclude: ['README.md'] }).toSorted());
});
