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
  const files = async () => (await client.files.list({ environment: 'staging' })).data;
  await expect
    .poll(async () => (await files()).map(({ filename }) => filename).toSorted())
    .toEqual(['drawing.svg', 'parcel.png', 'pasted.csv']);
  const data = await files();
  await client.files.delete(data.find(({ filename }) => filename === 'parcel.png')!.fileId);
  await page.reload();
  await conversation.getByText('This file was deleted.').waitFor();
});

/** Two pages; the second is wide and has a link, and a script that runs when the file is opened. */
function twoPages(): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >> >>',
    '<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 5 0 R >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 100] /Contents 6 0 R /Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 400 100] /A << /S /URI /URI (https://example.com/) >> >>] >>',
    '<< /Length 25 >>\nstream\n1 0 0 rg 0 0 200 100 re f\nendstream',
    '<< /Length 25 >>\nstream\n0 0 1 rg 0 0 400 100 re f\nendstream',
  ];
  let text = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return Buffer.from(text, 'latin1');
}

test('files are attached to the first message of a session, and the pages of a PDF are shown without running anything in it', async () => {
  const console = await startConsole();
  const member = await console.person('member');
  const { client } = console.service;
  await client.agents.create({
    name: 'Reader',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: 'Seen.' }] } },
  });
  const page = await console.open(member, '/sessions');
  await page.getByRole('button', { name: 'New session' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'New session' });
  await dialog.getByLabel('Files to attach').setInputFiles([
    { name: 'contract.pdf', mimeType: 'application/pdf', buffer: twoPages() },
    { name: 'broken.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4\nnothing else') },
  ]);
  await page.evaluate(
    `(() => {
      const box = document.querySelector('.message-box');
      const files = new DataTransfer();
      files.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }));
      box.dispatchEvent(new DragEvent('dragover', { dataTransfer: files, bubbles: true, cancelable: true }));
      box.dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }));
      const pasted = new DataTransfer();
      pasted.items.add(new File(['pasted'], 'pasted.csv', { type: 'text/csv' }));
      const event = new ClipboardEvent('paste', { clipboardData: pasted, bubbles: true, cancelable: true });
      box.querySelector('textarea').dispatchEvent(event);
    })()`,
  );
  const attached = dialog.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
  await attached.filter({ hasText: 'pasted.csv' }).waitFor();
  expect(await attached.count()).toBe(4);
  await dialog.getByRole('button', { name: 'Remove dropped.txt' }).click();
  await expect.poll(() => attached.locator('progress').count()).toBe(0);
  // The files belong to its environment.
  expect(await dialog.getByLabel('Environment').isDisabled()).toBe(true);
  await expectAccessible(page);
  await dialog.getByLabel('First message').fill('Is this right?');
  await dialog.getByRole('button', { name: 'Start session' }).click();

  const conversation = page.getByRole('region', { name: 'Conversation' });
  await conversation.getByText('Seen.').waitFor();
  const names = await conversation.locator('figcaption').allInnerTexts();
  expect(names.map((name) => name.split('\n')[0])).toEqual(['contract.pdf', 'broken.pdf', 'pasted.csv']);
  const shown = conversation.locator('.file', { hasText: 'contract.pdf' });
  await shown.getByRole('button', { name: 'Show pages' }).click();
  const middleOf = () =>
    page.evaluate(
      `(() => {
        const canvas = document.querySelector('.file canvas');
        const at = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data;
        return [canvas.dataset.page, ...at].join(' ');
      })()`,
    );
  await shown.getByRole('img', { name: 'Page 1 of contract.pdf' }).waitFor();
  await expect.poll(middleOf, { timeout: 10_000 }).toBe('1 255 0 0 255');
  if (process.env.SIGNALBOX_SCREENSHOTS) {
    await page.screenshot({ path: `${process.env.SIGNALBOX_SCREENSHOTS}/pdf.png` });
  }
  await shown.getByRole('button', { name: 'Next page' }).click();
  await expect.poll(middleOf, { timeout: 10_000 }).toBe('2 0 0 255 255');
  expect(await conversation.locator('.file a, .file iframe, .file object, .file embed').count()).toBe(0);
  await expectAccessible(page);
  const broken = conversation.locator('.file', { hasText: 'broken.pdf' });
  await broken.getByRole('button', { name: 'Show pages' }).click();
  await broken.getByText('This PDF can’t be shown.').waitFor();
});

test('the files of a long session are found in its first messages, and a session without files says so', async () => {
  const console = await startConsole();
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  const { fileId } = await client.files.upload(png, { environment: 'staging', filename: 'parcel.png' });
  const talk = async (first: NonNullable<Parameters<typeof client.sessions.open>[0]['input']>) => {
    const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: first });
    const idleAfter = async (turn: number) =>
      await expect.poll(async () => await client.sessions.get(sessionId)).toMatchObject({ status: 'idle', turn });
    await idleAfter(1);
    // The page loads fifty messages at first, and each turn has two.
    for (let turn = 2; turn <= 55; turn++) {
      await client.sessions.sendMessage(sessionId, { content: `message ${turn}` });
      await idleAfter(turn);
    }
    return sessionId;
  };
  const [withFile, without] = await Promise.all([
    talk([
      { type: 'text', text: 'Look at this' },
      { type: 'file', fileId },
    ]),
    talk('Nothing to look at'),
  ]);
  const page = await console.open(console.owner, `/sessions/${withFile}?tab=files`);
  await page.getByText('Attached in turn 1').waitFor();
  await page.getByRole('img', { name: 'parcel.png' }).waitFor();
  await page.goto(page.url().replace(withFile, without));
  await page.getByRole('heading', { name: 'No files', exact: true }).waitFor();
  expect(await page.getByRole('button', { name: /earlier messages/ }).count()).toBe(0);
}, 120_000);
