// Agents in the browser: find, change and compare them. Their form is in agent-form.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent, CreateAgent } from '@signalbox/client';
import { beforeAll, expect, test } from 'vitest';
import { json, name, save, unfold } from './support/agent-editor.ts';
import { expectAccessible } from './support/axe.ts';
import { textIn, write } from './support/code-editor.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';
import { consoleDir } from './support/console-dir.ts';

let console: TestConsole;
let member: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
});

const wide = { viewport: { width: 1440, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

async function createAgent(more: Partial<CreateAgent> = {}): Promise<Agent> {
  return await console.service.client.agents.create({ name: 'Helper', model: 'scripted/test', ...more });
}
const newest = (agentId: string) => console.service.client.agents.get(agentId);

test('concurrent changes are reported, and overwritten only after they were shown', async () => {
  const { agentId } = await createAgent({ instructions: 'First.' });
  const page = await console.open(member, `/agents/${agentId}`, wide);
  await name(page).fill('Mine');
  await console.service.client.agents.update(agentId, { instructions: 'Second.' });
  await page.getByText('Version 2 was saved in the meantime').waitFor();
  await save(page).click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('.cm-deletedChunk').getByText('First.').waitFor();
  await dialog.locator('.cm-line').getByText('Second.').waitFor();
  expect((await newest(agentId)).version).toBe(2);
  await dialog.getByRole('button', { name: 'Keep editing' }).click();
  expect(await name(page).inputValue()).toBe('Mine');

  await save(page).click();
  await dialog.getByText('Second.').waitFor();
  // Another change in the meantime is not overwritten unseen either.
  await console.service.client.agents.update(agentId, { instructions: 'Third.' });
  await dialog.getByRole('button', { name: 'Save mine as a new version' }).click();
  await dialog.getByText('Third.').waitFor();
  expect((await newest(agentId)).version).toBe(3);
  await dialog.getByRole('button', { name: 'Save mine as a new version' }).click();
  await page.getByText('Version 4 saved').waitFor();
  expect(await newest(agentId)).toMatchObject({ version: 4, name: 'Mine', instructions: 'First.' });

  // Without unsaved changes, the page shows the newest version automatically.
  await console.service.client.agents.update(agentId, { name: 'Theirs' });
  await page.getByText('Version 5 saved').waitFor();
  expect(await name(page).inputValue()).toBe('Theirs');
});

test('leaving with unsaved changes asks first', async () => {
  const { agentId } = await createAgent();
  const page = await console.open(member, `/agents/${agentId}`, wide);
  await name(page).fill('Half done');
  const elsewhere = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Sessions' });
  await elsewhere.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stay' }).click();
  expect(await name(page).inputValue()).toBe('Half done');
  await elsewhere.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor();
  expect((await newest(agentId)).name).toBe('Helper');
});

test('unsaved changes of an agent survive an expired session and a reload of the tab, until they are saved or discarded', async () => {
  const { agentId } = await createAgent({ name: 'Before' });
  const page = await console.open(member, `/agents/${agentId}`, wide);
  const signIn = async () => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByText('Your session has expired. Sign in again to continue.').waitFor();
    await page.getByLabel('Email').fill(member.email);
    await page.getByLabel('Password').fill(member.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const expire = async () => {
    await page.context().clearCookies();
    // The user tries to save, unless another request of the page was refused before.
    await page.keyboard.press('ControlOrMeta+s');
  };
  const restored = page.getByText('Your unsaved changes were restored.');
  await name(page).fill('After');
  await unfold(page, 'Limits');
  await page.getByLabel('Max steps per turn').fill('7');
  await expire();
  await page.getByText('Your session has expired.').waitFor();
  await expectAccessible(page);
  // Another version is saved meanwhile: the changes are still based on the one that the user saw.
  const { version } = await console.service.client.agents.update(agentId, { name: 'Theirs', expectedVersion: 1 });
  await signIn();
  await restored.waitFor();
  await expectAccessible(page);
  expect(await name(page).inputValue()).toBe('After');
  await page.getByText(`Version ${version} was saved in the meantime`).waitFor();
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await restored.waitFor({ state: 'detached' });
  expect(await name(page).inputValue()).toBe('Theirs');

  await name(page).fill('After');
  page.once('dialog', (dialog) => void dialog.accept());
  await page.reload();
  await restored.waitFor();
  await save(page).click();
  await page.getByText('Version 3 saved').waitFor();
  await restored.waitFor({ state: 'detached' });
  // Later changes are not those.
  await name(page).fill('Later');
  expect(await restored.count()).toBe(0);
  await page.getByRole('link', { name: 'Sessions' }).first().click();
  await page.getByRole('button', { name: 'Leave without saving' }).click();
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  await page.goBack();
  await expect.poll(() => name(page).inputValue()).toBe('After');
  expect(await restored.count()).toBe(0);

  // An agent that is not created yet, and a text that is not valid JSON.
  await page.goto(`${console.origin}/console/${console.organizationId}/agents/new?template=assistant`);
  const asJson = page.getByRole('tab', { name: 'JSON' });
  await asJson.click();
  await write(json(page), '{ "name": "Half');
  page.once('dialog', (dialog) => void dialog.accept());
  await page.reload();
  await restored.waitFor();
  await asJson.click();
  expect(await textIn(json(page))).toBe('{ "name": "Half');
  await write(json(page), '{ "name": "Whole", "model": "scripted/test" }');
  await expire();
  await signIn();
  await restored.waitFor();
  const create = page.getByRole('button', { name: 'Create agent' });
  await create.click();
  await page.getByRole('heading', { name: 'Whole', level: 1 }).waitFor();
  await page.goto(`${console.origin}/console/${console.organizationId}/agents/new?template=assistant`);
  await create.waitFor();
  expect(await restored.count()).toBe(0);
});

test('versions show what changed and who changed it; restoring one saves its content as a new version', async () => {
  const { agentId } = await createAgent({ instructions: 'Be kind.\nBe short.' });
  await member.client.agents.update(agentId, { instructions: 'Be kind.\nBe long.', metadata: { team: 'a' } });
  await console.service.client.agents.update(agentId, { name: 'Other' });
  const page = await console.open(member, `/agents/${agentId}/versions`, wide);
  await page.getByRole('row', { name: /Version 2 instructions, metadata .* by Mara Member/ }).waitFor();
  await page.getByRole('link', { name: 'Version 2' }).click();
  await page.getByRole('heading', { name: 'Version 2' }).and(page.locator(':focus')).waitFor();
  const diff = page.getByLabel('Changes: Instructions');
  await diff.locator('.cm-deletedChunk').getByText('Be short.').waitFor();
  await diff.locator('.cm-insertedLine, .cm-changedLine').getByText('Be long.').waitFor();
  expect(await diff.locator('.cm-changedLine').count()).toBe(1);
  await page.getByLabel('Changes: Everything else').locator('.cm-changedLine').getByText('"team": "a"').waitFor();
  await expectAccessible(page);

  await page.getByRole('link', { name: 'Version 1' }).click();
  await page.getByLabel('Compare with').selectOption({ label: 'version 3 (newest)' });
  expect(new URL(page.url()).search).toBe('?version=1&against=3');
  await page.getByRole('button', { name: 'Restore version 1' }).click();
  await page.getByRole('dialog').locator('.cm-changedLine').getByText('Be short.').waitFor();
  await page.getByRole('button', { name: 'Restore as new version' }).click();
  await page.getByRole('heading', { name: 'Version 4 (newest)' }).waitFor();
  expect(await newest(agentId)).toMatchObject({
    version: 4,
    name: 'Helper',
    instructions: 'Be kind.\nBe short.',
    metadata: {},
  });
});

test('the list finds agents beyond its first page by name, model and tool, and shows why turns of the last day failed', async () => {
  const { client } = console.service;
  const tool = { type: 'client' as const, name: 'find_parcel', description: '', inputSchema: { type: 'object' } };
  const oldest = await createAgent({ name: 'Parcel desk', model: 'anthropic/claude-sonnet-4-5', tools: [tool] });
  const { sessionId } = await client.sessions.open({
    agentId: oldest.agentId,
    environment: 'production',
    input: 'Where is it?',
    closeOnIdle: true,
  });
  for (let n = 0; n < 55; n++) await createAgent({ name: `Filler ${n}` });
  await expect
    .poll(async () => (await client.analytics.get({ groupBy: 'agent' })).groups.map((one) => one.group), {
      timeout: 60_000,
    })
    .toContain(oldest.agentId);

  const page = await console.open(member, '/agents', wide);
  await page.getByRole('link', { name: 'Filler 54' }).waitFor();
  const search = page.getByRole('searchbox');
  const row = page.getByRole('row').filter({ hasText: 'Parcel desk' });
  for (const query of ['parcel', 'find_parcel', 'sonnet desk', oldest.agentId]) {
    await search.fill(query);
    await page.waitForURL((url) => url.searchParams.get('q') === query);
    await row.waitFor();
    await page.getByRole('link', { name: 'Filler 54' }).waitFor({ state: 'detached' });
  }
  await row.getByText('1 failed').waitFor();
  expect(await row.getByRole('link', { name: 'model_key_missing' }).getAttribute('href')).toContain(sessionId);
  // The counts are of the chosen environment.
  await page.goto(`${page.url()}&environment=staging`);
  await row.waitFor();
  await row.getByText('1 failed').waitFor({ state: 'detached' });
  await search.fill('no such agent');
  await page.getByText('No matching agents').waitFor();
  await expectAccessible(page);
  // The service checks many agents for each page and may find the first ones on a later page. One that fails is not requested again and
  // again. An event of another test can ask for it once more.
  let failed = 0;
  await page.route(/\/api\/v1\/agents\?.*q=parcel/, (route) => {
    if (!route.request().url().includes('cursor=')) {
      return route.fulfill({ json: { data: [], page: { hasMore: true, nextCursor: 'next' } } });
    }
    failed += 1;
    return route.fulfill({ status: 422, json: { code: 'invalid_request', detail: 'Not now.' } });
  });
  await page.goto(`${console.origin}/console/${console.organizationId}/agents?q=parcel`);
  await page.getByRole('alert').getByText('Not now.').waitFor();
  for (let frames = 0; frames < 3; frames++) {
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => fetch(location.href).then(done)))');
  }
  expect(failed).toBeLessThan(5);
  await page.unroute(/\/api\/v1\/agents\?.*q=parcel/);
  await page.reload();
  await row.waitFor();
});

test('archiving an agent asks first; archived agents are listed separately and can’t be changed', async () => {
  await createAgent({ name: 'Old hand' });
  const page = await console.open(member, '/agents', wide);
  await page.getByRole('link', { name: 'Old hand' }).click();
  await page.getByRole('button', { name: 'Other actions' }).click();
  await page.getByRole('menuitem', { name: 'Archive' }).click();
  await page.getByText('This can’t be undone.').waitFor();
  await page.getByRole('button', { name: 'Archive', exact: true }).click();
  await page.getByText(/^Archived on/).waitFor();
  expect(await save(page).count()).toBe(0);
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Agents' }).click();
  await page.getByRole('link', { name: 'Archived' }).click();
  await page.getByRole('link', { name: 'Old hand' }).waitFor();
  expect(new URL(page.url()).search).toBe('?archived=true');
  await page.getByRole('link', { name: 'Active' }).click();
  await page.getByRole('link', { name: 'Old hand' }).waitFor({ state: 'detached' });
});

test('a viewer sees everything and is offered no changes', async () => {
  const viewer = await console.person('viewer');
  const { agentId } = await createAgent({ name: 'Look at me', instructions: 'Read me.' });
  await console.service.client.agents.update(agentId, { name: 'Look at me now' });
  const page = await console.open(viewer, '/agents', wide);
  await page.getByText('You need the member role to create agents.').waitFor();
  expect(await page.getByRole('link', { name: 'New agent' }).count()).toBe(0);
  await page.getByRole('link', { name: 'Look at me now' }).click();
  await page.getByText('You can view this agent.').waitFor();
  expect(await textIn(page.getByLabel('Instructions', { exact: true }).last())).toBe('Read me.');
  expect(await name(page).isDisabled()).toBe(true);
  expect(await save(page).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Other actions' }).count()).toBe(0);
  await expectAccessible(page);
  await page.getByRole('tab', { name: 'Try it' }).click();
  await page.getByText('You need the member role to start sessions.').waitFor();
  await page.getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('link', { name: 'Version 1' }).click();
  await page.getByLabel('Changes: Everything else').waitFor();
  expect(await page.getByRole('button', { name: /^Go back/ }).count()).toBe(0);
});

test('hostile text is shown as text, and no page is wider than a phone', async () => {
  const hostile = `<img src=x onerror="document.title='taken'">`;
  const tool = { type: 'client' as const, name: 'a'.repeat(64), description: hostile, inputSchema: { type: 'object' } };
  const { agentId } = await createAgent({
    name: `${hostile} ${'w'.repeat(150)}`,
    description: `${hostile} ${'v'.repeat(300)}`,
    instructions: `${hostile}\n${'u'.repeat(5_000)}`,
    metadata: { 'https://x': hostile },
    tools: [tool],
  });
  // U+202E reverses the direction of the text after it.
  const turned = `javascript:alert(1) ${hostile} \u202Etxet`;
  await console.service.client.agents.update(agentId, { instructions: turned, tools: [] });
  const page = await console.open(member, '/agents', phone);
  const narrow = async () =>
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.getByRole('link', { name: hostile }).waitFor();
  await narrow();
  await expectAccessible(page);
  await page.getByRole('link', { name: hostile }).click();
  await name(page).waitFor();
  await narrow();
  await expectAccessible(page);
  await page.getByRole('tab', { name: 'JSON' }).click();
  expect(await textIn(json(page))).toContain('javascript:alert(1)');
  await narrow();
  await page.getByRole('link', { name: 'Versions' }).click();
  const diff = page.getByLabel('Changes: Instructions');
  await diff.locator('.cm-deletedChunk').getByText(hostile).waitFor();
  await diff.getByText('U+202E').waitFor();
  await narrow();
  expect(await page.title()).toMatch(/^Versions of <img/);
  // The editor has an empty element, without a source, next to each code point.
  expect(await page.locator('main img:not(.cm-widgetBuffer)').count()).toBe(0);
  expect(await page.locator('main img[src]').count()).toBe(0);
});

test('schemas and the validator are loaded with the agent pages, not with the first page', () => {
  const manifest = JSON.parse(readFileSync(join(consoleDir, '.vite/manifest.json'), 'utf8')) as Record<
    string,
    { file: string; isEntry?: true; imports?: string[] }
  >;
  const load = (start: string, files = new Set<string>()): Set<string> => {
    const { file, imports = [] } = manifest[start]!;
    if (!files.has(file)) {
      files.add(file);
      for (const one of imports) load(one, files);
    }
    return files;
  };
  const textOf = (files: Set<string>) =>
    [...files].map((file) => readFileSync(join(consoleDir, file), 'utf8')).join('\n');
  const entry = Object.keys(manifest).find((key) => manifest[key]!.isEntry)!;
  const fromContract = 'The name by which the model calls the tool; unique in the agent.';
  const fromTypebox = 'additionalProperties';
  const first = textOf(load(entry));
  const editor = textOf(load('src/pages/agents/agent.tsx'));
  for (const mark of [fromContract, fromTypebox]) {
    expect(editor).toContain(mark);
    expect(first).not.toContain(mark);
    expect(textOf(load('src/pages/agents/agents.tsx'))).not.toContain(mark);
  }
  // The page's policy does not allow code from strings.
  expect(editor).not.toMatch(/\bnew Function\b|\bFunction\(|\beval\(/);
});

test('a list that is too long to stay current says so, and is loaded again on demand', async () => {
  for (let n = 0; n < 21; n++) {
    await Promise.all(Array.from({ length: 10 }, (_, at) => createAgent({ name: `Many ${10 * n + at}` })));
  }
  const page = await console.open(member, '/agents?q=Many', wide);
  const hint = page.getByText('This list is no longer updated, because more than 200 rows are loaded.');
  await page.getByRole('row', { name: /^Many/ }).first().waitFor();
  expect(await hint.count()).toBe(0);
  await expect
    .poll(async () => {
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
      return await hint.count();
    })
    .toBe(1);
  await createAgent({ name: 'Many and one more' });
  await page.getByRole('button', { name: 'Reload list' }).click();
  await page.getByRole('row', { name: /^Many and one more/ }).waitFor();
  expect(await hint.count()).toBe(0);
});
