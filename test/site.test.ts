// The documentation as a site, built as `npm run docs` builds it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressOf, pages } from '../docs/.vitepress/pages.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = mkdtempSync(join(tmpdir(), 'signalbox-site-'));
const read = (file: string) => readFileSync(join(site, file), 'utf8');
const files = (pattern: string) => globSync(pattern, { cwd: site }).toSorted();
/** The file that serves an address. */
const fileAt = (address: string) => `${address.slice(1)}${address.endsWith('/') ? 'index' : ''}.html`;

/** Runs a script. Not synchronously: the runner of the tests would wait for this process without a sign of life. */
async function run(script: string, ...args: string[]): Promise<void> {
  // VitePress builds for production unless the environment says that this is a test.
  const child = spawn(process.execPath, [join(root, script), ...args], {
    cwd: root,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [status] = await once(child, 'close');
  expect(status, output).toBe(0);
}

// Ten seconds on an idle machine, and more than a minute on a busy one.
beforeAll(async () => {
  await run('packages/console/scripts/build.mjs');
  await run('node_modules/vitepress/bin/vitepress.js', 'build', 'docs', '--outDir', site);
}, 600_000);
afterAll(() => rmSync(site, { recursive: true }));

test('every page is built, as HTML and as Markdown', () => {
  expect(pages.length).toBeGreaterThan(60);
  expect(pages.filter((page) => !existsSync(join(site, fileAt(addressOf(page)))))).toEqual([]);
  expect(pages.filter((page) => !existsSync(join(site, fileAt(addressOf(page)).replace(/html$/, 'md'))))).toEqual([]);
});

test('every link within the site leads to a page, and to a heading if it names one', () => {
  const wrong: string[] = [];
  let count = 0;
  for (const page of files('**/*.html').filter((file) => file !== '404.html')) {
    for (const [, href = ''] of read(page).matchAll(/<a\b[^>]*\bhref="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      count += 1;
      const [path = '', anchor] = href.split('#');
      const target = path === '' ? page : fileAt(path.startsWith('/') ? path : join('/', dirname(page), path));
      const isThere = existsSync(join(site, target)) || existsSync(join(site, path));
      const hasHeading = !anchor || (isThere && read(target).includes(`id="${decodeURIComponent(anchor)}"`));
      if (!isThere || !hasHeading) wrong.push(`${page}: ${href}`);
    }
  }
  expect(count).toBeGreaterThan(1000);
  expect([...new Set(wrong)]).toEqual([]);
});

test('the site loads no script, style, font or image from another host', () => {
  const foreign = [
    ...files('**/*.html').flatMap((file) =>
      [
        ...read(file).matchAll(
          /<(?:script|link|img|source|iframe)\b[^>]*\b(?:src|srcset|href)="((?:https?:)?\/\/[^"]*)"/g,
        ),
      ].map(([, url]) => `${file}: ${url}`),
    ),
    ...files('{assets/**/*.css,**/*.html}').flatMap((file) =>
      [...read(file).matchAll(/(?:url\(|@import )["']?((?:https?:)?\/\/[^)"']*)/g)].map(([, url]) => `${file}: ${url}`),
    ),
  ];
  expect(foreign).toEqual([]);
});

test('a page transfers at most 200 KB until it can be used', () => {
  const sizes = new Map<string, number>();
  const sizeOf = (file: string) => {
    const size = sizes.get(file) ?? gzipSync(readFileSync(join(site, file))).length;
    sizes.set(file, size);
    return size;
  };
  const heavy = pages.flatMap((page) => {
    const html = fileAt(addressOf(page));
    // Lazy images are loaded when the reader comes near them.
    const loaded = [
      ...read(html).matchAll(/<(?:script|link|img)\b(?![^>]*\bloading="lazy")[^>]*\b(?:src|href)="\/(assets\/[^"]+)"/g),
    ].map(([, file = '']) => file);
    const bytes = [html, ...new Set(loaded)].reduce((sum, file) => sum + sizeOf(file), 0);
    return bytes > 200_000 ? [`${page}: ${bytes}`] : [];
  });
  expect(heavy).toEqual([]);
});

test('llms.txt names every page of the table of contents, at an address that exists', () => {
  const addresses = [...read('llms.txt').matchAll(/^- \[[^\]]+\]\(\/([^)]+)\)/gm)].map(([, address = '']) => address);
  expect(addresses.length).toBeGreaterThan(25);
  expect(addresses.filter((address) => !existsSync(join(site, address)))).toEqual([]);
  const all = read('llms-full.txt');
  expect(addresses.filter((address) => !all.includes(read(address).split('\n')[0]!))).toEqual([]);
});

test('what a page shows between braces is text, not an expression of the framework of the site', () => {
  const shown = read('guides/tools.html')
    .replaceAll('&#123;', '{')
    .replaceAll(/<[^>]+>/g, '');
  expect(shown).toContain('{{input.cents}}');
});

test('the API reference is the page of the service, without what only a service can do, and has all of its files', () => {
  const page = read('reference/api.html');
  expect(page).not.toContain('nonce');
  const scripts = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, address = '']) => address);
  expect(scripts.length).toBeGreaterThan(3);
  expect(scripts.filter((address) => !existsSync(join(site, address)))).toEqual([]);
  const code = files('console/assets/reference-*.js').map(read).join();
  const [scalar = ''] = code.match(/\/console\/assets\/scalar-[\w-]+\.js/) ?? [];
  expect(existsSync(join(site, scalar))).toBe(true);
  expect(JSON.parse(read('openapi.json'))).toHaveProperty('openapi');
});
