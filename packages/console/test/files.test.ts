// Files in a conversation: attached by button, drop and paste, shown if they are images, and harmless whatever they are.
import { expect, test } from 'vitest';
import { png } from '../../server/test/support/files.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole } from './support/console.ts';

test('a user attaches files by button, drop and paste, sees images, downloads the rest, and nothing in them runs', async () => {
  const console = await startConsole();
  const member = await console.person('member');
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name: 'Reader',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: 'Seen.' }] } },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging' });
  const page = await console.open(member, `/sessions/${sessionId}`);
  const attached = page.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
  const send = page.getByRole('button', { name: 'Send', exact: true });

  await page.getByLabel('Files to attach').setInputFiles([
    { name: 'parcel.png', mimeType: 'image/png', buffer: png },
    { name: 'empty.txt', mimeType: 'text/plain', buffer: Buffer.alloc(0) },
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') },
  ]);
  await attached.filter({ hasText: 'The file is empty.' }).waitFor();
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>window.hacked = true</script></svg>';
  await page.evaluate(
    `(() => {
      const files = new DataTransfer();
      files.items.add(new File([${JSON.stringify(svg)}], 'drawing.svg', { type: 'image/svg+xml' }));
      const box = document.querySelector('form.composer');
      box.dispatchEvent(new DragEvent('dragover', { dataTransfer: files, bubbles: true, cancelable: true }));
      box.dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }));
      const pasted = new DataTransfer();
      pasted.items.add(new File(['pasted'], 'pasted.csv', { type: 'text/csv' }));
      const event = new ClipboardEvent('paste', { clipboardData: pasted, bubbles: true, cancelable: true });
      box.querySelector('textarea').dispatchEvent(event);
    })()`,
  );
  await attached.filter({ hasText: 'pasted.csv' }).waitFor();
  expect(await attached.count()).toBe(5);
  await page.getByRole('button', { name: 'Remove notes.txt' }).click();
  await page.getByRole('button', { name: 'Remove empty.txt' }).click();
  await expect.poll(() => send.getAttribute('aria-disabled')).toBeNull();
  await expectAccessible(page);
  await page.getByRole('textbox', { name: 'Message' }).fill('Is this parcel damaged?');
  await send.click();

  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('Seen.').waitFor();
  const image = conversation.getByRole('img', { name: 'parcel.png' });
  await image.waitFor();
  await expect.poll(() => page.evaluate("document.querySelector('.file img').naturalWidth")).toBe(1);
  // A drawing can contain scripts, so it is only a download.
  expect(await conversation.getByRole('img').count()).toBe(1);
  const names = await conversation.locator('figcaption').allInnerTexts();
  expect(names.map((name) => name.split('\n')[0])).toEqual(['parcel.png', 'drawing.svg', 'pasted.csv']);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    conversation.locator('.file', { hasText: 'drawing.svg' }).getByRole('button', { name: 'Download' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('drawing.svg');
  expect(await page.evaluate('window.hacked')).toBeUndefined();
  await expectAccessible(page);
  if (process.env.SIGNALBOX_SCREENSHOTS) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${process.env.SIGNALBOX_SCREENSHOTS}/files-${colorScheme}.png` });
    }
  }

  // What was removed before it was sent is deleted, and a deleted image says so.
  const { data } = await client.files.list({ environment: 'staging' });
  expect(data.map(({ filename }) => filename).toSorted()).toEqual(['drawing.svg', 'parcel.png', 'pasted.csv']);
  await client.files.delete(data.find(({ filename }) => filename === 'parcel.png')!.fileId);
  await page.reload();
  await conversation.getByText('This file was deleted.').waitFor();
});
