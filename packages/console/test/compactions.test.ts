// Where a conversation became a summary for its model, in the browser.
import { expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

test('a conversation shows where its messages were summarized, and the summary, as text', async () => {
  const console = await startConsole();
  const member = await console.person('member');
  const { client } = console.service;
  const hostile = '<img src=x onerror="window.hacked = true">';
  const { agentId } = await client.agents.create({
    name: 'Helper',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: { script: [{ text: 'First.' }, { text: 'Second.' }, { text: 'Third.' }] },
    },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'One' });
  const idle = () => expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  await idle();
  await client.sessions.sendMessage(sessionId, { content: `Two ${hostile}` });
  await idle();
  const page = await console.open(member, `/sessions/${sessionId}`);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('Second.').waitFor();
  // It appears while the page is open, and stays in its place when the conversation continues.
  await client.sessions.compact(sessionId);
  const line = conversation.getByText(/^Messages up to turn 2 are summarized for the model: [\d,]+ → [\d,]+ tokens/);
  await line.waitFor();
  await idle();
  await client.sessions.sendMessage(sessionId, { content: 'Three' });
  await conversation.getByText('Three', { exact: true }).waitFor();
  await conversation.getByText('Third.').waitFor();
  const texts = await conversation
    .getByText(/^(One|First\.|Two|Second\.|Messages up to .*|Three|Third\.)/)
    .allInnerTexts();
  expect(texts.map((text) => text.split(' ', 1)[0])).toEqual([
    'One',
    'First.',
    'Two',
    'Second.',
    'Messages',
    'Three',
    'Third.',
  ]);

  await line.click();
  // The beginning of the messages, as the scripted model writes it.
  const shown = conversation.locator('[data-kind=compaction]');
  await expect.poll(() => shown.innerText()).toContain('By scripted/demo. The transcript keeps the messages.');
  expect(await shown.locator('img').count()).toBe(0);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
  await expectAccessible(page);
  await page.reload();
  await line.waitFor();
  expect(await line.count()).toBe(1);

  const small = await console.open(member, `/sessions/${sessionId}`, phone);
  const lineThere = small.getByText(/^Messages up to turn 2 are summarized/);
  await lineThere.waitFor();
  await lineThere.click();
  expect(await small.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await expectAccessible(small);
  const directory = process.env.SIGNALBOX_SCREENSHOTS;
  if (directory) {
    await line.click();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${directory}/compaction-${colorScheme}.png` });
    }
    await lineThere.scrollIntoViewIfNeeded();
    await small.screenshot({ path: `${directory}/compaction-phone.png` });
  }
});
