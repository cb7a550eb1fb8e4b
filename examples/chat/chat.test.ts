// The chat as users have it: the example's own server, a real service and a real browser.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bothSchemes, expectAccessible } from '../../packages/console/test/support/axe.ts';
import { newPage, type Page } from '../../packages/console/test/support/browser.ts';
import { type Clock, systemClock } from '../../packages/server/src/lib/clock.ts';
import { startTestService, type TestService } from '../../packages/server/test/support/service.ts';
import { type Running, runProgram } from '../run-program.ts';

let service: TestService;
let chat: Running;
let url: string;
/** How far the service's clock is ahead. */
let aheadMs = 0;
const clock: Clock = { ...systemClock, now: () => new Date(systemClock.now().getTime() + aheadMs) };

beforeAll(async () => {
  service = await startTestService({ clock });
  const access = { SIGNALBOX_URL: service.url, SIGNALBOX_API_KEY: service.adminKey };
  chat = runProgram('chat/server.ts', [], { ...access, PORT: '0', TOKEN_SECONDS: '60' });
  await chat.until('Chat on ');
  url = /Chat on (\S+)/.exec(chat.printed)![1]!;
});
afterAll(() => chat.process.kill());

/** A browser of its own, and therefore a user of its own. */
async function open(address = url): Promise<Page> {
  const page = await newPage({ viewport: { width: 900, height: 800 } });
  await page.goto(address);
  return page;
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

const texts = (page: Page, name: string) => () => page.getByRole('article', { name }).locator('> p').allInnerTexts();
const replies = (page: Page) => texts(page, 'Order desk');
const isOver = (page: Page) => expect.poll(() => page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
const sessionOf = (page: Page) => new URL(page.url()).hash.slice(1);

const offer =
  'Order 1017 is two espresso cups, packed but not shipped yet, so I can cancel it. You get the whole 48 euros back, on the card that you paid with. Shall I?';
const done = 'Order 1017 is cancelled, and 48.00 EUR is on its way back. Is there anything else that I can do for you?';
const echo = (text: string) =>
  `You wrote: “${text}”. I only follow a script, so this is all I can say. What is real is everything around me: reload this page while I write, pull the network cable, or restart the service. I continue in the middle of the sentence, and nothing is lost or shown twice.`;

/** A chat whose next reply is the echo, which takes two seconds. */
async function openEchoing(): Promise<Page> {
  const page = await open();
  await say(page, 'Please cancel my order 1017');
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(replies(page)).toEqual([offer, done]);
  await isOver(page);
  return page;
}

test('the user approves a call in the page, which then runs it', async () => {
  const page = await open();
  await expectAccessible(page, 'html', bothSchemes);
  await page.getByRole('button', { name: 'Please cancel my order 1017' }).click();
  await page.getByText('Thinking…').waitFor();
  const approval = page.getByRole('region', { name: 'Cancel order?' });
  await approval.waitFor();
  expect(await approval.innerText()).toContain('48.00 EUR');
  await expectAccessible(page, 'html', bothSchemes);
  // Only the end user is asked.
  const [pending] = (await service.client.approvals.list({ sessionId: sessionOf(page) })).data;
  expect(pending).toMatchObject({ status: 'pending', by: { endUser: true } });
  await approval.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(replies(page)).toEqual([offer, done]);
  expect(await approval.count()).toBe(0);
  await page.getByText('Cancel order', { exact: true }).waitFor();
  await expectAccessible(page, 'html', bothSchemes);
  const [resolved] = (await service.client.approvals.list({ sessionId: sessionOf(page) })).data;
  expect(resolved).toMatchObject({ status: 'approved', resolvedBy: { type: 'end_user' } });
});

test('a sentence continues after a reload and after a loss of the network, nothing is shown twice, and what was written meanwhile is sent once', async () => {
  const page = await openEchoing();
  await say(page, 'One');
  await page.getByText('What is real').waitFor();
  await page.reload();
  await page.getByText('nothing is lost or shown twice.').waitFor();
  expect(await replies(page)()).toEqual([offer, done, echo('One')]);
  expect(await texts(page, 'You')()).toEqual(['Please cancel my order 1017', 'One']);
  await isOver(page);

  // The page works as before, and continues when it loses its network and has it again.
  await say(page, 'Two');
  await page.getByText('You wrote: “Two”').waitFor();
  await page.context().setOffline(true);
  await page.getByText('Reconnecting').waitFor();
  await say(page, 'Three');
  await expect.poll(texts(page, 'You')).toEqual(['Please cancel my order 1017', 'One', 'Two', 'Three']);
  await page.context().setOffline(false);
  await expect.poll(replies(page)).toEqual([offer, done, echo('One'), echo('Two'), echo('Three')]);
  expect(await texts(page, 'You')()).toEqual(['Please cancel my order 1017', 'One', 'Two', 'Three']);
  expect(await page.getByText('Reconnecting').count()).toBe(0);
  expect(await page.getByRole('alert').count()).toBe(0);
  const { data } = await service.client.sessions.messages(sessionOf(page));
  expect(data.filter(({ role }) => role === 'user')).toHaveLength(4);
});

test('a token that expires in the middle of a sentence is replaced', async () => {
  const page = await openEchoing();
  let tokens = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/api/token')) tokens += 1;
  });
  await say(page, 'One');
  await page.getByText('What is real').waitFor();
  aheadMs += 61_000;
  // The stream connects again, with a token that has expired.
  await page.context().setOffline(true);
  await page.context().setOffline(false);
  await page.getByText('nothing is lost or shown twice.').waitFor();
  expect(await replies(page)()).toEqual([offer, done, echo('One')]);
  await isOver(page);
  expect(tokens).toBe(1);
  aheadMs += 61_000;
  await say(page, 'Two');
  await expect.poll(async () => (await replies(page)()).at(-1)).toBe(echo('Two'));
  expect(tokens).toBe(2);
  expect(await page.getByRole('alert').count()).toBe(0);
});

test('the chat of another user does not exist', async () => {
  const page = await open();
  await say(page, 'Please cancel my order 1017');
  await page.getByRole('region', { name: 'Cancel order?' }).waitFor();
  const other = await open(`${url}#${sessionOf(page)}`);
  await other.getByRole('alert').getByText('does not exist, or it is not yours').waitFor();
  expect(await other.getByRole('article').count()).toBe(0);
  await other.getByRole('button', { name: 'New chat' }).click();
  await other.getByText('How can we help?').waitFor();
  expect(await other.getByRole('alert').count()).toBe(0);
});
