// The playground in a real browser on a real service: drafts side by side, mocked tools, saving, and replaying a turn.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { textIn, write } from './support/code-editor.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const desktop = { viewport: { width: 1440, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

let console: TestConsole;
let member: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
});

const column = (page: Page, letter: string) => page.getByRole('region', { name: `Column ${letter}` });
const output = (page: Page, letter: string) => column(page, letter).getByRole('region', { name: 'Output' });
const instructions = (page: Page) => column(page, 'A').getByRole('textbox', { name: 'Instructions' });
const runAll = (page: Page) => page.getByRole('button', { name: /^Run all/ }).click();
const message = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true });
const over = (page: Page, letter: string, status = 'completed') => output(page, letter).getByText(status).waitFor();
const act = async (page: Page, letter: string, item: string) => {
  await page.getByRole('button', { name: `Actions of column ${letter}` }).click();
  await page.getByRole('menuitem', { name: item }).click();
};
const drafts = async () => (await console.service.client.sessions.list({ draft: true, limit: 100 })).data;
const modelSaying = (text: string, more: object = {}) => ({
  provider: 'scripted' as const,
  model: 'demo',
  settings: { script: [{ text, ...more }] },
});

test('the example runs without a key, with the keyboard alone, and a reload loses nothing', async () => {
  const before = (await drafts()).length;
  const page = await console.open(member, '/playground', desktop);
  await page.getByRole('button', { name: 'Start with an example' }).click();
  await expectAccessible(page);
  await message(page).focus();
  await page.keyboard.press('Control+Enter');
  await over(page, 'A');
  await over(page, 'B');
  await output(page, 'A').getByText('mocked · returned').waitFor();
  await output(page, 'B').getByText('mocked · failed').waitFor();
  await output(page, 'A')
    .getByText(/^\d+ ms$|^\d+\.\d s$/)
    .first()
    .waitFor();
  expect((await drafts()).length - before).toBe(2);
  expect((await console.service.client.agents.list()).data).toEqual([]);
  await expectAccessible(page);

  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Compare' });
  await expect.poll(() => dialog.textContent()).toMatch(/shipped.*There is no order 1042\./s);
  // The second run read a longer result: 46 tokens in place of 42.
  await dialog.getByRole('row', { name: /^Column B .* 46 \+10%/ }).waitFor();
  await expectAccessible(page);
  await dialog.getByText('Definitions', { exact: true }).click();
  await dialog.getByText('No differences.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();

  await write(instructions(page), 'Be brief.');
  await column(page, 'A').getByText('Changed since this run.').waitFor();
  await page.reload();
  await over(page, 'A');
  await output(page, 'B').getByText('There is no order').last().waitFor();
  expect(await textIn(instructions(page))).toBe('Be brief.');
  // The models are those that the keys of the chosen environment may use.
  const model = column(page, 'A').getByRole('combobox', { name: 'Model', exact: true });
  for (const name of ['production', 'staging']) {
    await page.getByRole('combobox', { name: 'Environment', exact: true }).selectOption(name);
    await model.press('ArrowDown');
    await page.getByText(`Anthropic: no key in ${name}.`).waitFor();
    await model.press('Escape');
  }

  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Start over' }).click();
  await page.getByRole('button', { name: 'Restore the last one' }).click();
  await over(page, 'A');
});

test('several messages are turns of one session, and more messages continue the same conversation', async () => {
  const { agentId } = await console.service.client.agents.create({
    name: 'Echo',
    model: modelSaying('Heard {{input}}.'),
  });
  const page = await console.open(member, `/playground?agent=${agentId}&version=1`, desktop);
  await message(page).fill('one');
  await page.getByRole('button', { name: 'Add message' }).click();
  await page.getByRole('textbox', { name: 'Message 2' }).fill('two');
  await runAll(page);
  await output(page, 'A').getByText('Heard two.').waitFor();
  await over(page, 'A');
  await page.getByRole('button', { name: 'Add message' }).click();
  await page.getByRole('textbox', { name: 'Message 3' }).fill('three');
  await page.getByRole('button', { name: 'Send the last message' }).click();
  await output(page, 'A').getByText('Heard three.').waitFor();
  for (const text of ['Heard one.', 'Heard two.']) await output(page, 'A').getByText(text).waitFor();
  const [last, first] = (await drafts()).filter((one) => one.agentId === agentId);
  expect(last).toMatchObject({ turn: 3, forkedFrom: { sessionId: first!.sessionId, turn: 2 } });
});

test('what a run says is above the composer from its first word', async () => {
  for (const viewport of [{ width: 1280, height: 800 }, phone.viewport]) {
    const page = await console.open(member, '/playground', { viewport });
    await page.getByRole('button', { name: 'Start with an example' }).click();
    await message(page).focus();
    await page.keyboard.press('Control+Enter');
    const words = output(page, 'A').getByText('I look for order 1042 first.');
    await words.waitFor();
    const composer = page.getByRole('region', { name: 'Input' });
    const isCovered = async () => {
      const [said, input] = [(await words.boundingBox())!, (await composer.boundingBox())!];
      return said.y < 48 || said.y + said.height > input.y;
    };
    await expect.poll(isCovered, { message: `${viewport.width} px` }).toBe(false);
    await over(page, 'A');
    expect(await isCovered()).toBe(false);
    await page.context().close();
  }
});

test('a draft is saved as a version of its agent or as a new agent, and a newer version is not overwritten', async () => {
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Desk', model: modelSaying('Hi.') });
  const page = await console.open(member, `/agents/${agentId}`, desktop);
  await page.getByRole('link', { name: 'Open in playground' }).click();
  const save = column(page, 'A').getByRole('button', { name: 'Save version…' });
  expect(await save.count()).toBe(0);
  await write(instructions(page), 'Mine.');
  await column(page, 'A').getByText('from version 1, edited').waitFor();
  await save.click();
  const dialog = page.getByRole('dialog', { name: 'Save as a version of Desk' });
  await dialog.getByText('Mine.').waitFor();
  await client.agents.update(agentId, { description: 'Theirs.' });
  await dialog.getByRole('button', { name: 'Save version' }).click();
  const conflict = page.getByRole('dialog', { name: 'Version 2 was saved in the meantime' });
  await conflict.getByText('Theirs.').waitFor();
  await conflict.getByRole('button', { name: 'Save mine as a new version' }).click();
  await column(page, 'A').getByText('from version 3').waitFor();
  expect(await client.agents.get(agentId)).toMatchObject({ version: 3, instructions: 'Mine.', description: '' });

  await act(page, 'A', 'Save as new agent…');
  const created = page.getByRole('dialog', { name: 'Save as a new agent' });
  await created.getByLabel('Name').fill('Other desk');
  await created.getByRole('button', { name: 'Create agent' }).click();
  await column(page, 'A').getByText('from version 1').waitFor();
  const { data } = await client.agents.list();
  expect(data.find(({ name }) => name === 'Other desk')).toMatchObject({ instructions: 'Mine.' });
});

test('a turn of a session is repeated with what its tools returned, and no tool runs', async () => {
  const { client } = console.service;
  const call = { text: 'I refund it.', toolCalls: [{ name: 'refund', input: { cents: 5 } }] };
  const script = [{ text: 'Hello.' }, call, { text: 'Got {{lastToolResult}}.' }];
  const tool = { type: 'client' as const, description: '', inputSchema: { type: 'object' } };
  const { agentId } = await client.agents.create({
    name: 'Refunds',
    model: { provider: 'scripted', model: 'demo', settings: { script } },
    tools: [
      { ...tool, name: 'refund' },
      { ...tool, name: 'other' },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'Hi' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  await client.sessions.sendMessage(sessionId, { content: 'Refund it' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).waitingFor?.toolCallIds.length).toBe(1);
  const { waitingFor } = await client.sessions.get(sessionId);
  await client.sessions.sendToolResult(sessionId, { toolCallId: waitingFor!.toolCallIds[0]!, output: 'recorded' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');

  const page = await console.open(member, `/sessions/${sessionId}`, desktop);
  await page.getByRole('button', { name: 'Actions for this session' }).click();
  await page.getByRole('menuitem', { name: 'Open in playground' }).click();
  await page.getByText('Repeats turn 2 of a session').waitFor();
  expect(new URL(page.url()).search).not.toContain('session');
  expect(await message(page).inputValue()).toBe('Refund it');
  const mocks = column(page, 'A').getByRole('textbox', { name: /^Result of (refund|other)/ });
  expect(await mocks.first().inputValue()).toBe('"recorded"');
  expect(await mocks.nth(1).inputValue()).toContain('no recorded result');
  // The scripted model counts the calls of a session, so the fork begins its script anew.
  const { name, tools } = await client.agents.get(agentId);
  const again = {
    provider: 'scripted',
    model: 'demo',
    settings: { script: [call, { text: 'Again {{lastToolResult}}.' }] },
  };
  await column(page, 'A').getByText('Settings and definition as JSON').click();
  await write(
    column(page, 'A').getByRole('textbox', { name: 'Definition' }),
    JSON.stringify({ name, tools, model: again }),
  );
  await runAll(page);
  await output(page, 'A').getByText('Again recorded.').waitFor();
  await over(page, 'A');
  // What the session said then is what the run is compared with.
  await column(page, 'A').getByText('Original', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Compare' });
  await dialog.getByRole('row', { name: /^Original/ }).waitFor();
  await expect.poll(() => dialog.textContent()).toMatch(/Got.*recorded.*Again.*recorded/s);
  await dialog.getByRole('button', { name: 'Close' }).click();
  const [fork] = (await drafts()).filter((one) => one.forkedFrom?.sessionId === sessionId);
  expect(fork).toMatchObject({ draft: true, turn: 2, forkedFrom: { turn: 1 }, agentId });
  expect(await output(page, 'A').getByText('Hello.').count()).toBe(0);
});

test('three columns run at once: a long answer, a model that fails and a definition that is refused', async () => {
  const { client } = console.service;
  const long = 'All work and no play makes a long line. '.repeat(2_500);
  const agents = await Promise.all(
    [modelSaying('{{input}}\n\nTHE END'), { provider: 'openai' as const, model: 'gpt-none' }, modelSaying('fine')].map(
      (model, index) => client.agents.create({ name: `Ugly ${index}`, model }),
    ),
  );
  const page = await console.open(member, `/playground?agent=${agents[0]!.agentId}`, desktop);
  await column(page, 'A').waitFor();
  for (const [index, letter] of [
    [1, 'B'],
    [2, 'C'],
  ] as const) {
    await page.getByRole('button', { name: 'Add column' }).click();
    await act(page, letter, 'Load an agent…');
    await page.getByRole('dialog').getByLabel('Agent').selectOption(agents[index]!.agentId);
    await page.getByRole('dialog').getByRole('button', { name: 'Load' }).click();
    await column(page, letter)
      .getByRole('heading', { name: `Ugly ${index}` })
      .waitFor();
  }
  await column(page, 'C').getByLabel('Model', { exact: true }).fill('');
  await message(page).fill(long);
  await runAll(page);
  await column(page, 'C').getByRole('alert').getByText('Model › model').waitFor();
  await output(page, 'B').getByText('OPENAI_API_KEY').first().waitFor();
  await over(page, 'B', 'failed');
  await over(page, 'A');
  await output(page, 'A').getByText('All work and no play').last().waitFor();
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBeLessThanOrEqual(0);
  await expectAccessible(page);
});

test('runs that are created at the same moment are all shown', async () => {
  const { client } = console.service;
  const { agentId } = await client.agents.create({ name: 'Twin', model: modelSaying('Both.') });
  const page = await console.open(member, `/playground?agent=${agentId}`, desktop);
  await page.getByRole('button', { name: 'Add column' }).click();
  await column(page, 'B').waitFor();
  // The page gets both responses before it can draw one.
  await page.addInitScript(() => {
    const real = window.fetch;
    const held: (() => void)[] = [];
    window.fetch = async (input, init) => {
      const request = new Request(input, init);
      const response = await real(input, init);
      if (request.method !== 'POST' || !request.url.endsWith('/sessions')) return response;
      const text = await response.text();
      await new Promise<void>((resolve) => {
        held.push(resolve);
        if (held.length === 2) for (const release of held) release();
      });
      return Object.assign(response, { text: async () => text, json: async () => JSON.parse(text) as unknown });
    };
  });
  await page.reload();
  await message(page).fill('Go');
  await runAll(page);
  for (const letter of ['A', 'B']) await over(page, letter);
});

test('a run continues while the page is closed, and Stop ends it', async () => {
  const { client } = console.service;
  const slow = modelSaying('word '.repeat(400), { tokenDelayMs: 1_000 });
  const { agentId } = await client.agents.create({ name: 'Slow', model: slow });
  const page = await console.open(member, `/playground?agent=${agentId}`, desktop);
  await message(page).fill('Go');
  await runAll(page);
  await output(page, 'A').getByText('running').waitFor();
  const again = await page.context().newPage();
  await page.close();
  await again.goto(`${console.origin}/console/${console.organizationId}/playground`);
  await output(again, 'A').getByText('running').waitFor();
  await output(again, 'A').getByText('word').first().waitFor();
  await again.getByRole('button', { name: 'Stop' }).click();
  await over(again, 'A', 'cancelled');
});

test('on a phone columns are tabs, and a viewer reads why nothing runs', async () => {
  const page = await console.open(await console.person('viewer'), '/playground', phone);
  await page.getByRole('button', { name: 'Start with an example' }).click();
  await page.getByRole('tab', { name: 'Column B' }).click();
  expect(await column(page, 'B').isVisible()).toBe(true);
  expect(await column(page, 'A').isVisible()).toBe(false);
  await page.getByText('You need the member role to run drafts.').waitFor();
  expect(await page.getByRole('button', { name: /^Run all/ }).getAttribute('aria-disabled')).toBe('true');
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBeLessThanOrEqual(0);
  await expectAccessible(page);
});
