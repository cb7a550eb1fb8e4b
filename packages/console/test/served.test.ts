// What the browser loads before sign-in: how much, from where, and under which policy.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../server/test/support/service.ts';
import { newPage } from './support/browser.ts';
import { consoleDir } from './support/console-dir.ts';

// With what most pages need.
const FIRST_LOAD_BYTES = 200_000;
const PAGE_BYTES = 60_000;
// Without HTTP/2 in front, a browser loads six at a time.
const FIRST_LOAD_FILES = 6;
const PAGE_FILES = 20;

interface Chunk {
  file: string;
  css?: string[];
  imports?: string[];
  dynamicImports?: string[];
}

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ consoleDir });
});

/** What the browser loads for these entries of the manifest: their scripts and styles, and those that they import. */
function filesOf(
  manifest: Record<string, Chunk>,
  names: readonly string[],
): { names: Set<string>; files: Set<string> } {
  const needed = new Set<string>();
  const need = (name: string) => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const imported of manifest[name]!.imports ?? []) need(imported);
  };
  for (const name of names) need(name);
  return {
    names: needed,
    files: new Set([...needed].flatMap((name) => [manifest[name]!.file, ...(manifest[name]!.css ?? [])])),
  };
}

const compressedSize = (files: Iterable<string>) =>
  [...files].reduce((sum, file) => sum + readFileSync(join(consoleDir, `${file}.br`)).length, 0);

test('the first load is at most 200 KB of compressed scripts and styles in 6 files, and each page at most 60 KB more', () => {
  const manifest = JSON.parse(readFileSync(join(consoleDir, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>;
  const first = filesOf(manifest, ['index.html']);
  const common = Object.keys(manifest).filter((name) => /^_common-.*\.js$/.test(name));
  const loaded = filesOf(manifest, ['index.html', ...common]).files;
  expect(compressedSize(loaded)).toBeLessThanOrEqual(FIRST_LOAD_BYTES);
  expect(first.files.size).toBeLessThanOrEqual(FIRST_LOAD_FILES);
  const pages = [...first.names]
    .flatMap((name) => manifest[name]!.dynamicImports ?? [])
    .filter((name) => name.startsWith('src/pages/'));
  expect(pages.length).toBeGreaterThan(20);
  expect(pages.filter((name) => first.names.has(name))).toEqual([]);
  const large = pages
    .map((name) => ({ name, files: filesOf(manifest, [name]).files.difference(first.files) }))
    .map(({ name, files }) => ({ name, files: files.size, bytes: compressedSize(files.difference(loaded)) }))
    .filter(({ files, bytes }) => files > PAGE_FILES || bytes > PAGE_BYTES);
  expect(large).toEqual([]);
});

test('the API reference loads nothing of the console but the theme', () => {
  const manifest = JSON.parse(readFileSync(join(consoleDir, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>;
  const files = [...filesOf(manifest, ['reference.html']).files].map((file) => file.replace(/-[^-.]{8}\./, '.'));
  expect(files.toSorted()).toEqual(['assets/reference.css', 'assets/reference.js', 'assets/theme.js']);
});

test('the first load has no editor, charts, Markdown or schemas: pages load them when they show them', () => {
  const manifest = JSON.parse(readFileSync(join(consoleDir, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>;
  const { files } = filesOf(manifest, ['index.html']);
  const first = [...files].map((file) => readFileSync(join(consoleDir, file), 'utf8')).join();
  const all = globSync('assets/!(scalar)-*.js', { cwd: consoleDir })
    .map((file) => readFileSync(join(consoleDir, file), 'utf8'))
    .join();
  // Texts that minification keeps.
  for (const mark of ['cm-content', 'chart-tooltip', 'html_block', 'hljs-', 'unevaluatedProperties']) {
    expect([mark, all.includes(mark), first.includes(mark)]).toEqual([mark, true, false]);
  }
});

test('two fonts are loaded ahead, and those of other scripts when a page contains them', async () => {
  const page = await newPage();
  const fonts: string[] = [];
  page.on('request', (request) => request.url().endsWith('.woff2') && fonts.push(request.url().split('/').at(-1)!));
  await page.goto(`${service.url}/console`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.evaluate('document.fonts.ready');
  const names = () => [...new Set(fonts.map((file) => file.replace(/-wght-normal.*/, '')))].toSorted();
  expect(names()).toEqual(['inter-latin', 'jetbrains-mono-latin']);
  await page.getByLabel('Email').fill('Київ');
  await expect.poll(names).toContain('inter-cyrillic');
});

test('assets are compressed as the browser accepts, cached as immutable, and decompress to the same bytes', async () => {
  const [file = ''] = globSync('assets/index-*.js', { cwd: consoleDir });
  const ask = (encoding: string) =>
    fetch(`${service.url}/console/${file}`, { headers: { 'accept-encoding': encoding } });
  const plain = await ask('identity');
  const compressed = await ask('br');
  expect(compressed.headers.get('content-encoding')).toBe('br');
  expect(compressed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(compressed.headers.get('x-content-type-options')).toBe('nosniff');
  const text = await plain.text();
  expect(await compressed.text()).toBe(text);
  expect(brotliDecompressSync(readFileSync(join(consoleDir, `${file}.br`))).toString()).toBe(text);
});

test('every console URL serves the page with a policy that forbids inline scripts, other sites and framing', async () => {
  for (const path of ['/console', '/console/', '/console/sign-in', '/console/org_x/sessions/ses_y?a=b']) {
    const { status, headers } = await fetch(service.url + path);
    expect([path, status]).toEqual([path, 200]);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    const policy = headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

test('the frame of a remote image loads https images only, runs nothing, and is shown only within the console', async () => {
  const frame = (src: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}/console/remote-image?${new URLSearchParams({ src, alt: '"><script>' })}`, { headers });
  const own = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-origin' };
  const response = await frame('https://t.example/a.png?b=1&c="><script>alert(1)</script>', own);
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('<img src="https://t.example/a.png?b=1&#38;c=');
  expect(text.match(/<[a-z]+/g)).toEqual(['<meta', '<title', '<style', '<img']);
  const policy = response.headers.get('content-security-policy')!.split('; ');
  expect(policy.filter((part) => !part.startsWith('style-src'))).toEqual([
    "default-src 'none'",
    'img-src https:',
    'sandbox',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ]);
  expect(response.headers.get('referrer-policy')).toBe('no-referrer');
  for (const src of [
    'http://t.example/a',
    'javascript:alert(1)',
    'data:image/png,a',
    'https://a:b@t.example/',
    '/a',
    '',
  ])
    expect([src, (await frame(src, own)).status]).toEqual([src, 400]);
  // A link to it must not show anything under our address.
  expect((await frame('https://t.example/a', { ...own, 'sec-fetch-dest': 'document' })).status).toBe(404);
  expect((await frame('https://t.example/a', { ...own, 'sec-fetch-site': 'cross-site' })).status).toBe(404);
});

test('missing files give a 404 problem, and no path escapes the console’s directory', async () => {
  const paths = ['/console/assets/none.js', '/console/api/none', '/console/assets/..%2f.vite%2fmanifest.json'];
  for (const path of [...paths, '/console/assets/%2e%2e%2findex.html']) {
    const response = await fetch(service.url + path);
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.json()).toMatchObject({ code: 'not_found', requestId: expect.stringMatching(/^req_/) });
  }
});

test('opening the console contacts only the service, and the browser blocks nothing', async () => {
  const page = await newPage();
  const hosts = new Set<string>();
  const complaints: string[] = [];
  page.on('request', (request) => hosts.add(new URL(request.url()).origin));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  await page.goto(`${service.url}/console`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect([...hosts]).toEqual([service.url]);
  expect(complaints).toEqual([]);
});

test('without a built console, its URLs say how to build it', async () => {
  const bare = await startTestService({ database: service.database });
  const response = await fetch(`${bare.url}/console`);
  expect(response.status).toBe(404);
  expect(((await response.json()) as { detail: string }).detail).toContain('npm start');
  await bare.stop();
});
