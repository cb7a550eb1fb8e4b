// The API reference at /docs, in a browser.
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../server/test/support/service.ts';
import { bothSchemes, expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { consoleDir } from './support/console-dir.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ consoleDir });
});

/** A page of the reference, and what the browser blocked, reported, or asked of other hosts. */
async function openReference(hash: string, options: object = {}): Promise<{ page: Page; complaints: string[] }> {
  const page = await newPage(options);
  const complaints: string[] = [];
  page.on('request', (request) => request.url().startsWith(service.url) || complaints.push(request.url()));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  await page.goto(`${service.url}/docs${hash}`);
  await page.getByRole('heading', { name: 'Signalbox' }).waitFor();
  return { page, complaints };
}

test('the page permits no inline script, no eval and no other host, and its styles only with a nonce of the response', async () => {
  const nonces = new Set<string>();
  for (let count = 0; count < 2; count += 1) {
    const response = await fetch(`${service.url}/docs`);
    const policy = response.headers.get('content-security-policy')!;
    const [, nonce = ''] = policy.match(/style-src-elem 'self' 'nonce-([A-Za-z0-9+/=]{24})'/) ?? [];
    expect(policy).toContain("default-src 'none'; script-src 'self';");
    expect(policy.replace("style-src-attr 'unsafe-inline'", '')).not.toMatch(/unsafe|https?:|\*/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toContain(`content="${nonce}"`);
    nonces.add(nonce);
  }
  expect(nonces.size).toBe(2);
});

test.each(["x'$(id)`id`", '"><script>alert(1)</script>', 'evil.example'])(
  'nothing of the Host header (%s) is in the page or in the document',
  async (host) => {
    for (const path of ['/docs', '/openapi.json', '/llms.txt']) {
      const body = await new Promise<string>((resolve, reject) => {
        get(service.url + path, { headers: { host } }, async (response) => resolve(await text(response))).on(
          'error',
          reject,
        );
      });
      expect(body).not.toContain(host);
    }
  },
);

test('an example names the address of the page, and a request to try takes the key to this service only', async () => {
  const { page, complaints } = await openReference('#listAgents');
  const operation = page.locator('section').filter({ has: page.getByRole('heading', { name: 'List agents' }) });
  await expect.poll(() => operation.last().textContent()).toContain(`new Signalbox({ baseUrl: '${service.url}' })`);

  await operation
    .last()
    .getByRole('button', { name: /Test Request/ })
    .click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('input[placeholder=Token]').fill(service.adminKey);
  const asked = page.waitForRequest(/\/api\/v1\/agents/);
  await dialog.getByRole('button', { name: /^Send/ }).last().click();
  const request = await asked;
  expect(await request.headerValue('authorization')).toBe(`Bearer ${service.adminKey}`);
  expect(await request.headerValue('cookie')).toBeNull();
  expect((await request.response())!.status()).toBe(200);
  await dialog.getByText('200 OK').waitFor();

  const kept = await page.evaluate(async () =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      location.href,
      await indexedDB.databases(),
    ]),
  );
  expect(kept).not.toContain(service.adminKey);
  expect(complaints).toEqual([]);
});

test('a link by operation or by error code leads to it, also in an open page, and so does the search by keyboard', async () => {
  const { page } = await openReference('#openSession');
  await page.getByRole('heading', { name: 'Open a session' }).waitFor();
  await expect.poll(() => page.url()).toContain('#tag/sessions/POST/api/v1/sessions');
  // As in the `type` of a Problem.
  const refused = (await (await fetch(`${service.url}/api/v1/agents`)).json()) as { type: string };
  expect(refused.type).toBe('/docs#missing_token');
  await page.evaluate(() => {
    location.hash = '#missing_token';
  });
  const row = page.getByRole('row', { name: 'missing_token 401' });
  await expect.poll(() => row.evaluate((one) => getComputedStyle(one).backgroundColor)).not.toBe('rgba(0, 0, 0, 0)');

  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').fill('Fork a session');
  await page
    .getByRole('option', { name: /Fork a session/ })
    .first()
    .waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toContain('/fork');
});

test('a link with a fragment that is not valid shows the reference', async () => {
  const { complaints } = await openReference('#%');
  expect(complaints).toEqual([]);
});

test('it fits 360, 768 and 1440 pixels, accessible in light and in dark', async () => {
  const { page, complaints } = await openReference('#openSession', { colorScheme: 'dark' });
  await page.getByRole('heading', { name: 'Open a session' }).waitFor();
  for (const width of [1440, 768, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  }
  await expectAccessible(page, 'html', bothSchemes);
  expect(complaints).toEqual([]);
});
