// `useSession` in React's strict mode, in a real browser against a real service.
import type { Page } from 'playwright-core';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../server/test/support/service.ts';
import { App, clientAt } from './page/app.tsx';
import { type PageServer, servePage } from './page-server.ts';

let service: TestService;
let server: PageServer;

beforeAll(async () => {
  service = await startTestService();
  server = await servePage(service);
});
afterAll(() => server.close());
beforeEach(() => {
  server.requests.length = 0;
  server.markup = '';
});

const words = Array.from({ length: 60 }, (_, index) => `w${index + 1}`).join(' ');

async function talker(): Promise<string> {
  const settings = { script: [{ text: words, tokenDelayMs: 10 }, { text: 'You said: {{input}}' }] };
  const model = { provider: 'scripted' as const, model: 'demo', settings };
  return (await service.client.agents.create({ name: 'Talker', model })).agentId;
}

const open = (query: Record<string, string>) => server.open(query);
const lines = (page: Page) => () => page.getByRole('listitem').allInnerTexts();
const streams = () => server.requests.filter((one) => one.includes('/stream'));

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
}

test('two components that are mounted twice show one session over one stream, and open it once', async () => {
  const page = await open({ agent: await talker() });
  await expect.poll(() => page.getByRole('status').innerText()).toBe('new 0');
  await say(page, 'Hello');
  await expect.poll(lines(page)).toEqual(['user: Hello', `assistant: ${words}`]);
  await expect.poll(() => page.getByRole('status').innerText()).toBe('idle 2');
  await say(page, 'Again');
  await expect.poll(lines(page)).toHaveLength(4);
  await expect.poll(() => page.getByRole('status').innerText()).toBe('idle 4');
  expect(server.requests.filter((one) => one.startsWith('POST'))).toHaveLength(2);
  expect(streams()).toHaveLength(1);
});

test('a component that is removed in the middle of a text has all of it when it is shown again', async () => {
  const page = await open({ agent: await talker() });
  await say(page, 'Hello');
  await page.getByText('w10').waitFor();
  await page.getByRole('button', { name: 'Hide' }).click();
  expect(await page.getByRole('listitem').count()).toBe(0);
  await page.getByRole('button', { name: 'Show' }).click();
  expect((await lines(page)())[0]).toBe('user: Hello');
  await expect.poll(lines(page)).toEqual(['user: Hello', `assistant: ${words}`]);
  expect(streams()).toHaveLength(1);
});

test('a page that gets the id of the session that it opened shows the same, and one that drops it begins a new one', async () => {
  const page = await open({ agent: await talker() });
  await say(page, 'Hello');
  await page.getByText('w10').waitFor();
  await page.getByRole('button', { name: 'Remember' }).click();
  await expect.poll(lines(page)).toEqual(['user: Hello', `assistant: ${words}`]);
  expect(streams()).toHaveLength(1);
  const first = await page.locator('form').getAttribute('data-session');
  await page.getByRole('button', { name: 'New' }).click();
  await expect.poll(lines(page)).toEqual([]);
  await say(page, 'Something else');
  await expect.poll(lines(page)).toEqual(['user: Something else', `assistant: ${words}`]);
  expect(await page.locator('form').getAttribute('data-session')).not.toBe(first);
});

test('a reload in the middle of a word shows the text to its end', async () => {
  const agentId = await talker();
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'Go' });
  const page = await open({ agent: agentId, session: sessionId });
  await page.getByText('w10').waitFor();
  await page.reload();
  await expect.poll(lines(page)).toEqual(['user: Go', `assistant: ${words}`]);
});

test('a page is rendered on a server without a request, and the browser takes it over', async () => {
  const agentId = await talker();
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'Go' });
  const client = clientAt(server.url);
  server.markup = renderToString(createElement(App, { agentId, sessionId, client }));
  expect(server.markup).toMatch(/loading<!-- --> <!-- -->0/);
  expect(server.requests).toEqual([]);
  const page = await open({ agent: agentId, session: sessionId });
  await expect.poll(lines(page)).toEqual(['user: Go', `assistant: ${words}`]);
});
