// A transcript longer than one page of the API, in a real browser on a real service.
import { expect, test, vi } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

test('a long transcript opens at its end; earlier messages load on scroll or click without moving the page', async () => {
  const console = await startConsole();
  const member = await console.person('member');
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name: 'Echo',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: { script: [{ failWith: 'refusal' }, { text: 'You said {{input}}.' }] },
    },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'message 1' });
  for (let number = 2; number <= 60; number += 1)
    await client.sessions.sendMessage(sessionId, { content: `message ${number}` });
  await client.sessions.close(sessionId);
  // Sixty turns take a few seconds on a busy machine.
  const status = async () => (await client.sessions.get(sessionId)).status;
  await expect.poll(status, { timeout: 120_000 }).toBe('completed');
  const page = await console.open(member, `/sessions/${sessionId}`, phone);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  const answer = (number: number) => conversation.getByText(`You said message ${number}.`, { exact: true });
  // A text is replaced once, by its Markdown; in between it has no box.
  const topOf = async (number: number) =>
    Math.round((await vi.waitUntil(() => answer(number).boundingBox(), { timeout: 30_000 })).y);
  const isSeen = (number: number) => async () => {
    const top = await topOf(number);
    return top >= 0 && top < phone.viewport.height;
  };
  // The session has ended, but opens at its end because its start is not loaded.
  await answer(60).waitFor();
  await expect.poll(isSeen(60)).toBe(true);
  expect(await answer(37).count()).toBe(1);
  expect(await answer(36).count()).toBe(0);

  // After a jump up and a small scroll, earlier messages load automatically, above the visible ones.
  const earlier = page.getByRole('button', { name: 'Show earlier' });
  await page.evaluate('scrollTo(0, 900)');
  await page.evaluate('scrollTo(0, 800)');
  const at = await topOf(45);
  await answer(12).waitFor();
  expect(Math.abs((await topOf(45)) - at)).toBeLessThan(3);
  expect(await answer(2).count()).toBe(0);

  await earlier.focus();
  const before = await topOf(12);
  await page.keyboard.press('Enter');
  await answer(2).waitFor();
  expect(Math.abs((await topOf(12)) - before)).toBeLessThan(3);
  // Everything is loaded, and the focus moved from the button to the loaded entries.
  await expect.poll(() => earlier.count()).toBe(0);
  await page.locator('.conversation:focus').waitFor();
  expect(await conversation.getByText(/^You said message/).count()).toBe(59);
  // Old turns also say why they ended.
  await conversation.getByText('refused to respond').waitFor();
  expect(await page.getByRole('log', { name: 'New messages' }).getByRole('paragraph').count()).toBe(0);
  await expectAccessible(page);
}, 240_000);

test('of six hundred calls the page holds at most four hundred, and shows all of them to who scrolls up and down again', async () => {
  const service = await startConsole();
  const member = await service.person('member');
  const { client } = service.service;
  const script = Array.from({ length: 30 }, (_, step) => ({
    toolCalls: Array.from({ length: 20 }, (_, call) => ({ name: 'missing', input: { call: step * 20 + call } })),
  }));
  const { agentId } = await client.agents.create({
    name: 'Busy',
    model: { provider: 'scripted', model: 'demo', settings: { script: [...script, { text: 'All done.' }] } },
    limits: { maxStepsPerTurn: 40 },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status, { timeout: 120_000 }).toBe('idle');
  const page = await service.open(member, `/sessions/${sessionId}`);
  await page.getByText('All done.').waitFor();
  const entries = page.locator('.entries > li[data-turn]');
  const call = (number: number) => page.locator('.gist').getByText(String(number), { exact: true });
  const scroll = async (direction: 'up' | 'down', number: number) => {
    await vi.waitUntil(
      async () => {
        expect(await entries.count()).toBeLessThanOrEqual(400);
        await page.evaluate(`scrollBy(0, ${direction === 'up' ? -700 : 700})`);
        return (await call(number).count()) === 1;
      },
      { timeout: 60_000 },
    );
  };
  await call(599).waitFor();
  expect(await call(0).count()).toBe(0);
  await scroll('up', 0);
  expect(await call(599).count()).toBe(0);
  await page.evaluate('scrollTo(0, 0)');
  await scroll('down', 599);
  expect(await call(0).count()).toBe(0);
  await scroll('up', 0);
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await page.getByText('All done.').waitFor();
  await expect
    .poll(() => page.evaluate('document.documentElement.scrollHeight - scrollY - innerHeight'))
    .toBeLessThan(80);
}, 240_000);
