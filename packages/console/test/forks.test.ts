// Forking a session in the console and comparing it with its origin, in a real browser on a real service.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const desktop = { viewport: { width: 1440, height: 900 } };

let console: TestConsole;
let member: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
});

const modelSaying = (text: string) => ({
  provider: 'scripted' as const,
  model: 'demo',
  settings: { script: [{ text }] },
});

/** A session with these finished turns, of an agent whose second version responds in another way. */
async function conversation(...messages: string[]): Promise<string> {
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Refund desk', model: modelSaying('First: {{input}}.') });
  const [input = '', ...more] = messages;
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input });
  for (const content of more) await client.sessions.sendMessage(sessionId, { content });
  await expect
    .poll(async () => {
      const { status, turn } = await client.sessions.get(sessionId);
      return [status, turn];
    })
    .toEqual(['idle', messages.length]);
  await client.agents.update(agentId, { model: modelSaying('Second: {{input}}.') });
  return sessionId;
}

const side = (page: Page, name: string) => page.getByRole('region', { name, exact: true });
const said = (page: Page, name: string, text: string) => side(page, name).getByRole('listitem').getByText(text);
const widthLeft = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

test('a message is tried again in a fork with another version, and both conversations are next to each other', async () => {
  const origin = await conversation('Hello', 'Refund order 1042', 'Thanks');
  const page = await console.open(member, `/sessions/${origin}`, desktop);
  await page.getByRole('button', { name: 'Fork at turn 2' }).click();
  const dialog = page.getByRole('dialog', { name: 'Fork at turn 2' });
  expect(await dialog.getByLabel('Next message').inputValue()).toBe('Refund order 1042');
  await expectAccessible(page);
  await dialog.getByLabel('Next message').fill('Refund order 1042 in part');
  await dialog.getByLabel('Agent version').selectOption('2');
  await dialog.getByRole('button', { name: 'Open fork' }).click();

  await page.getByRole('heading', { level: 1, name: 'Compare sessions' }).waitFor();
  await side(page, 'Fork').getByText('Second: Refund order 1042 in part.').waitFor();
  await side(page, 'Original session').getByText('First: Refund order 1042.').waitFor();
  await page.getByText('Turn 1 is the same in both.').waitFor();
  // What they share is left out.
  expect(await page.getByText('First: Hello.').count()).toBe(0);
  await side(page, 'Fork').getByText('Agent version 2').waitFor();
  await side(page, 'Original session').getByText('2 turns').waitFor();
  const [left, right] = await Promise.all(
    ['Original session', 'Fork'].map(async (name) => (await side(page, name).boundingBox())!),
  );
  expect(Math.abs(left!.y - right!.y)).toBeLessThan(2);
  expect(right!.x).toBeGreaterThan(left!.x + left!.width);
  await expectAccessible(page);

  // Each takes messages.
  await side(page, 'Fork').getByRole('textbox', { name: 'Message' }).fill('And now?');
  await side(page, 'Fork').getByRole('textbox', { name: 'Message' }).press('Enter');
  await said(page, 'Fork', 'Second: And now?.').waitFor();
  expect(await side(page, 'Original session').getByText('And now?').count()).toBe(0);

  await page.getByRole('link', { name: 'Open fork' }).click();
  const whole = page.getByRole('region', { name: 'Conversation' });
  await whole.getByText('First: Hello.').waitFor();
  await whole.getByText('Forked here from').waitFor();
  const details = page.getByRole('complementary', { name: 'About this session' });
  await page.getByRole('tab', { name: 'Details' }).click();
  await details.getByText('after turn 1').waitFor();
  await details.getByRole('link', { name: /^ses_/ }).click();
  await page.getByRole('tab', { name: 'Details' }).click();
  await details.getByRole('heading', { name: 'Forks' }).waitFor();
  await details.getByRole('link', { name: 'Compare' }).click();
  await said(page, 'Fork', 'Second: And now?.').waitFor();
});

test('a fork after a turn waits for a message; on a phone the two sessions are one below the other', async () => {
  const origin = await conversation('Hello', 'Refund order 1042');
  const page = await console.open(member, `/sessions/${origin}`, phone);
  await page.getByRole('button', { name: 'Fork at turn 2' }).click();
  await page.getByLabel('After turn 2').check();
  expect(await page.getByLabel('Next message').inputValue()).toBe('');
  await page.getByRole('button', { name: 'Open fork' }).click();
  await side(page, 'Fork').getByText('Nothing follows yet').waitFor();
  const [above, below] = await Promise.all(
    ['Original session', 'Fork'].map(async (name) => (await side(page, name).boundingBox())!),
  );
  expect(below!.y).toBeGreaterThanOrEqual(above!.y + above!.height);
  await expect.poll(() => widthLeft(page)).toBeLessThanOrEqual(0);
  await expectAccessible(page);
});

test('a fork can be compared with another fork of its origin, and stays readable when the origin is deleted', async () => {
  const origin = await conversation('Hello', 'Refund order 1042');
  const { client } = console.service;
  const fork = async (input: string) => (await client.sessions.fork(origin, { atTurn: 1, input })).sessionId;
  const [one, other] = [await fork('First try'), await fork('Other try')];
  const page = await console.open(member, `/sessions/${one}/compare`, desktop);
  await side(page, 'Fork').getByText('Second: First try.').waitFor();
  await page.getByLabel('Compare with').selectOption({ label: `Another fork (…${other.slice(-6)})` });
  await side(page, 'Another fork').getByText('Second: Other try.').waitFor();
  await client.sessions.cancel(origin);
  await client.sessions.delete(origin);
  await page.goto(`${console.origin}/console/${console.organizationId}/sessions/${one}/compare`);
  await page.getByText('It was deleted.').waitFor();
  await page.getByRole('link', { name: 'Open fork' }).click();
  await page.getByRole('region', { name: 'Conversation' }).getByText('First: Hello.').waitFor();
});

test('a message with a file is tried again with its file', async () => {
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Reader', model: modelSaying('Read.') });
  const { fileId } = await client.files.upload(new TextEncoder().encode('a list'), {
    environment: 'staging',
    filename: 'list.txt',
  });
  const input = [
    { type: 'text' as const, text: 'Read this' },
    { type: 'file' as const, fileId },
  ];
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input });
  const page = await console.open(member, `/sessions/${sessionId}`, desktop);
  await page.getByText('Read.').first().waitFor();
  await page.getByRole('button', { name: 'Fork at turn 1' }).click();
  await page.getByText('Sent with 1 file of this message.').waitFor();
  await page.getByRole('button', { name: 'Open fork' }).click();
  await side(page, 'Fork').getByText('list.txt').waitFor();
  await said(page, 'Fork', 'Read.').waitFor();
});

test('a viewer sees forks and can’t create them', async () => {
  const origin = await conversation('Hello');
  const viewer = await console.person('viewer');
  const page = await console.open(viewer, `/sessions/${origin}`, desktop);
  await page.getByText('First: Hello.').waitFor();
  expect(await page.getByRole('button', { name: /^Fork/ }).count()).toBe(0);
});
