// A session that is shared by a link, for someone who is not signed in.
import { beforeAll, expect, test } from 'vitest';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
beforeAll(async () => {
  console = await startConsole();
});

test('a link that a member creates shows the conversation to anyone, follows it, and shows nothing once it is revoked', async () => {
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name: 'Hidden name',
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: {
        script: [{ text: '# Found\n\n- **one**\n\n![x](https://tracker.example/p.gif)' }, { text: 'Later.' }],
      },
    },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Where is it?' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  const page = await console.open(console.owner, `/sessions/${sessionId}`);
  await page.getByRole('button', { name: 'Share' }).click();
  await expectAccessible(page);
  await page.getByLabel('Title').fill('A parcel');
  await page.getByRole('button', { name: 'Create link' }).press('Enter');
  const link = (await page.getByRole('region', { name: 'The new link' }).locator('pre').textContent())!;
  watchSecret(new URL(link).hash.slice(1));

  const visitor = await newPage({ viewport: { width: 360, height: 740 } });
  const hosts = new Set<string>();
  const urls: string[] = [];
  visitor.on('request', (request) => {
    hosts.add(new URL(request.url()).origin);
    urls.push(request.url());
  });
  const response = await visitor.goto(link);
  expect(response!.headers()['x-robots-tag']).toBe('noindex, nofollow');
  await visitor.getByRole('heading', { level: 1, name: 'A parcel' }).waitFor();
  await visitor.getByRole('heading', { name: 'Found' }).waitFor();
  await visitor.getByText('Where is it?').waitFor();
  await visitor.getByRole('button', { name: 'Show image from tracker.example' }).waitFor();
  expect(await visitor.locator('body').innerText()).not.toContain('Hidden name');
  expect(await visitor.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await expectAccessible(visitor);

  await client.sessions.sendMessage(sessionId, { content: 'And now?' });
  await visitor.getByText('Later.').waitFor();
  await page.getByRole('button', { name: 'Revoke A parcel' }).click();
  await visitor.getByText('expired or was revoked').waitFor();
  expect(await visitor.getByText('Later.').count()).toBe(0);
  expect([...hosts]).toEqual([console.origin]);
  // The secret is in no address that a server sees.
  expect(urls.filter((url) => url.includes('sbs_') && !url.startsWith(`${console.origin}/console/share#`))).toEqual([]);
});
