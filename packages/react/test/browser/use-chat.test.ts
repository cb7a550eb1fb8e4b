// `useChat` of the AI SDK over `SignalboxTransport` in React's strict mode, in a real browser against a real service.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startWorld } from '../support/world.ts';
import { type PageServer, servePage } from './page-server.ts';

const world = startWorld();
let server: PageServer;
beforeAll(async () => {
  server = await servePage(world.service);
});
afterAll(() => server.close());

const open = () => server.open({ chat: '', agent: world.agentId });
const lines = (page: Page) => () => page.getByRole('listitem').allInnerTexts();
const status = (page: Page) => () => page.getByRole('status').innerText();
const sessionOf = (page: Page) => new URL(page.url()).searchParams.get('session')!;

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
}

test('text is shown while it is written, and the next message continues the session', async () => {
  const page = await open();
  const finish = world.nextInTwo('It is ', { text: 'blue.' });
  await say(page, 'The sky?');
  await expect.poll(lines(page)).toEqual(['user: The sky?', 'assistant: It is']);
  expect(await status(page)()).toBe('streaming');
  finish();
  await expect.poll(lines(page)).toEqual(['user: The sky?', 'assistant: It is blue.']);
  await expect.poll(status(page)).toBe('ready');
  world.next({ text: 'Green.' });
  await say(page, 'Grass?');
  await expect.poll(async () => (await lines(page)()).slice(2)).toEqual(['user: Grass?', 'assistant: Green.']);
  expect((await world.client.sessions.get(sessionOf(page))).turn).toBe(2);
});

test('a reload in the middle of a text continues it, shows nothing twice and interrupts nothing', async () => {
  const page = await open();
  const finish = world.nextInTwo('It is ', { text: 'blue.' });
  await say(page, 'The sky?');
  await expect.poll(lines(page)).toEqual(['user: The sky?', 'assistant: It is']);
  await page.reload();
  await expect.poll(status(page)).toBe('streaming');
  expect(await lines(page)()).toEqual(['user: The sky?', 'assistant: It is']);
  finish();
  await expect.poll(status(page)).toBe('ready');
  expect(await lines(page)()).toEqual(['user: The sky?', 'assistant: It is blue.']);
  expect(await world.client.sessions.get(sessionOf(page))).toMatchObject({ turn: 1, stopReason: 'endTurn' });
});

test('a call that a button approves after a reload runs once', async () => {
  const page = await open();
  world.next({ text: 'One moment. ', toolCalls: [{ name: 'refund', arguments: { cents: 4900 } }] }, { text: ' Done.' });
  await say(page, 'Refund');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Approve' }).click();
  const all = ['user: Refund', 'assistant: One moment. [output-available] Done.'];
  await expect.poll(lines(page)).toEqual(all);
  await expect.poll(status(page)).toBe('ready');
  expect(world.refunds).toEqual([{ cents: 4900 }]);
});

test('stop interrupts the turn, and the chat continues with the next message', async () => {
  const page = await open();
  world.nextInTwo('Endless ', { text: 'text' });
  await say(page, 'Talk');
  await expect.poll(lines(page)).toEqual(['user: Talk', 'assistant: Endless']);
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect.poll(status(page)).toBe('ready');
  await expect
    .poll(() => world.client.sessions.get(sessionOf(page)))
    .toMatchObject({ status: 'idle', stopReason: 'interrupted' });
  world.next({ text: 'Short.' });
  await say(page, 'Short, please');
  const all = ['user: Talk', 'assistant: Endless', 'user: Short, please', 'assistant: Short.'];
  await expect.poll(lines(page)).toEqual(all);
});
