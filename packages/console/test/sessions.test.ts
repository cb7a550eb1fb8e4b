// Sessions in the console, in a real browser on a real service.
import type { Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

let console: TestConsole;
let member: Person;
let viewer: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
  viewer = await console.person('viewer', 'Vito Viewer');
});

type Script = {
  text?: string;
  tokenDelayMs?: number;
  toolCalls?: { name: string; input: object }[];
  failWith?: 'refusal' | 'rejected';
}[];

const lookUp = { type: 'client' as const, name: 'look_up', description: 'Looks up.', inputSchema: { type: 'object' } };

async function createAgent(script: Script, name = 'Helper', tools: object[] = [lookUp]): Promise<string> {
  const { agentId } = await console.service.client.agents.create({
    name,
    model: { provider: 'scripted', model: 'demo', settings: { script } },
    tools: tools as (typeof lookUp)[],
  });
  return agentId;
}

async function openSession(
  script: Script,
  { input = 'go', name, tools, ...more }: { input?: string; name?: string; tools?: object[]; metadata?: object } = {},
): Promise<string> {
  const agentId = await createAgent(script, name, tools);
  const opened = { agentId, environment: 'staging', input, ...(more as { metadata?: Record<string, string> }) };
  return (await console.service.client.sessions.open(opened)).sessionId;
}

const untilStatus = (sessionId: string, status: string) =>
  expect.poll(async () => (await console.service.client.sessions.get(sessionId)).status).toBe(status);

const conversation = (page: Page) => page.getByRole('region', { name: 'Conversation' });
const box = (page: Page) => page.getByRole('textbox', { name: 'Message' });

const tab = (page: Page, name: string) => page.getByRole('tab', { name });
/** Nothing is wider than the screen. */
const expectNoHorizontalScroll = (page: Page) =>
  expect
    .poll(() => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'))
    .toBeLessThanOrEqual(0);

test('the agent’s text streams in, and the message box starts the next turn', async () => {
  const sessionId = await openSession([
    { text: 'one two three four five', tokenDelayMs: 40 },
    { text: 'You said {{input}}.' },
  ]);
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).getByText('one two').waitFor();
  await conversation(page).getByText('one two three four five').waitFor();
  await box(page).fill('first line');
  await box(page).press('Shift+Enter');
  await box(page).pressSequentially('second line');
  await box(page).press('Enter');
  await conversation(page).getByText('You said first line').waitFor();
  await expect.poll(() => box(page).inputValue()).toBe('');
  const said = page.getByRole('log', { name: 'New messages' });
  await expect.poll(() => said.getByText('You said first line').count()).toBe(1);
  await expectAccessible(page);
});

test('an approval is decided and a tool result entered within the conversation', async () => {
  const asking = { ...lookUp, approval: 'always' };
  const script = [
    { text: 'I look.', toolCalls: [{ name: 'look_up', input: { order: '1042' } }] },
    { text: 'Found it.' },
  ];
  const sessionId = await openSession(script, { tools: [asking] });
  await untilStatus(sessionId, 'waiting');
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).getByText('waiting for approval').waitFor();
  await conversation(page).getByText('1042').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await conversation(page).getByText('approved by you').first().waitFor();
  await page.getByRole('button', { name: 'Enter result' }).click();
  await page.getByLabel('JSON').check();
  await page.getByLabel('Output').fill('{"state": ');
  await page.getByRole('button', { name: 'Enter result' }).click();
  await page.getByText('This is not valid JSON').waitFor();
  await page.getByLabel('Output').fill('{"state":"sent"}');
  await page.getByRole('button', { name: 'Enter result' }).click();
  await conversation(page).getByText('Found it.').waitFor();
  // A call is one line, which opens to its output.
  await conversation(page).getByRole('button', { name: 'Look up' }).click();
  await conversation(page).locator('pre').getByText('"sent"').waitFor();
  // The transcript shows the same.
  await page.reload();
  await conversation(page).getByText('Found it.').waitFor();
  await conversation(page).getByText('approved by you').first().waitFor();
  expect(await conversation(page).getByRole('listitem').filter({ hasText: 'I look.' }).count()).toBe(1);
  expect(await conversation(page).getByText('waiting for').count()).toBe(0);

  await tab(page, 'Trace').click();
  await page.getByRole('row', { name: /Approval of Look up, approved .*\d m?s/ }).waitFor();
  await page.getByRole('row', { name: /Tool Look up, succeeded .*\d m?s/ }).waitFor();
  await expectAccessible(page);

  // A step opens with the keyboard, and its address can be shared.
  const steps = page.getByRole('treegrid');
  await steps.focus();
  for (const key of ['ArrowDown', 'Enter']) await page.keyboard.press(key);
  const step = page.getByRole('dialog', { name: 'scripted/demo' });
  await step.getByRole('heading', { name: '1 message' }).waitFor();
  await expectAccessible(page);
  await step.getByRole('button', { name: 'Next call' }).click();
  const call = page.getByRole('dialog', { name: 'Look up' });
  await call.getByRole('tab', { name: 'Details' }).click();
  await call.getByText('approved', { exact: true }).first().waitFor();
  await page.reload();
  await call.getByText('"sent"').waitFor();
  await page.keyboard.press('Escape');
  await call.waitFor({ state: 'detached' });
  await page.getByRole('row', { name: /^Turn 1/ }).waitFor();
});

test('a message during a turn is queued, or stops the turn', async () => {
  const words = Array.from({ length: 400 }, (_, index) => `w${index}`).join(' ');
  const sessionId = await openSession([{ text: words, tokenDelayMs: 50 }, { text: 'Then {{input}}.' }]);
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).getByText('w1 ').waitFor();
  await box(page).fill('later');
  await box(page).press('Enter');
  await conversation(page).getByRole('listitem').filter({ hasText: 'later' }).getByText('queued').waitFor();
  await page.getByText('Now (stop this turn)').click();
  await box(page).fill('now');
  await box(page).press('Enter');
  await conversation(page).getByText('Then now.').waitFor();
  await conversation(page).getByText('Then later.').waitFor();
  await conversation(page).getByText('The turn was interrupted.').waitFor();
  await untilStatus(sessionId, 'idle');
  await expect.poll(() => conversation(page).getByText('queued').count()).toBe(0);
});

test('interrupt, close, cancel and delete work with the keyboard, and ask for confirmation', async () => {
  const sessionId = await openSession([{ text: 'slow '.repeat(500), tokenDelayMs: 100 }]);
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).getByText('slow slow').waitFor();
  // The time in the head counts while the model works.
  await page.getByText(/^\d+(\.\d)? s working$/).waitFor();
  await page.getByRole('button', { name: 'Interrupt' }).press('Enter');
  await untilStatus(sessionId, 'idle');
  await conversation(page).getByText('The turn was interrupted.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Interrupt' }).count()).toBe(0);

  const actions = page.getByRole('button', { name: 'Actions for this session' });
  await actions.press('Enter');
  await page.getByRole('menuitem', { name: 'Copy link' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('End');
  await page.getByRole('menuitem', { name: 'Cancel' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Cancel this session?' }).waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await actions.and(page.locator(':focus')).waitFor();
  expect((await console.service.client.sessions.get(sessionId)).status).toBe('idle');
  await actions.press('Enter');
  await page.getByRole('menuitem', { name: 'Cancel' }).press('Enter');
  await page.getByRole('button', { name: 'Cancel session' }).press('Enter');
  await untilStatus(sessionId, 'cancelled');
  await page.getByText('accepts no more messages').waitFor();
  await actions.and(page.locator(':focus')).waitFor();

  await actions.press('Enter');
  await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
  await page.getByRole('button', { name: 'Delete session' }).press('Enter');
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  await expect(console.service.client.sessions.get(sessionId)).rejects.toMatchObject({ status: 404 });
});

test('a turn that failed says why, and continues on the page when it is retried', async () => {
  const sessionId = await openSession(
    [{ text: 'I look.', toolCalls: [{ name: 'look_up', input: {} }] }, { failWith: 'rejected' }, { text: 'Found it.' }],
    { name: 'Recovering' },
  );
  await untilStatus(sessionId, 'waiting');
  const { client } = console.service;
  const { waitingFor } = await client.sessions.get(sessionId);
  await client.sessions.sendToolResult(sessionId, { toolCallId: waitingFor!.toolCallIds[0]!, output: { found: true } });
  await untilStatus(sessionId, 'idle');

  const watching = await console.open(viewer, `/sessions/${sessionId}`);
  await conversation(watching).getByText('Turn failed', { exact: true }).waitFor();
  expect(await watching.getByRole('button', { name: 'Retry turn' }).count()).toBe(0);

  const page = await console.open(member, '/sessions?status=idle');
  const row = page.getByRole('row').filter({ hasText: 'Recovering' });
  await row.getByText('turn failed').waitFor();
  await row.getByText('The script lets the model reject the request').waitFor();
  await row.getByRole('link').click();
  await conversation(page).getByText('The script lets the model reject the request').waitFor();
  await expectAccessible(page);
  await conversation(page).getByRole('button', { name: 'Retry turn' }).click();
  await conversation(page).getByText('Found it.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Retry turn' }).count()).toBe(0);
  await expect.poll(() => conversation(page).getByText('I look.').count()).toBe(1);
  await conversation(watching).getByText('Found it.').waitFor();
  expect((await client.sessions.get(sessionId)).turn).toBe(1);
  await page.reload();
  await conversation(page).getByText('Found it.').waitFor();
  expect(await conversation(page).getByText('Turn failed', { exact: true }).count()).toBe(0);
});

test('a new session is started in a dialog, and its page opens', async () => {
  await createAgent([{ text: 'Hello, {{input}}.' }], 'Greeter');
  const page = await console.open(member, '/sessions');
  await page.getByRole('button', { name: 'New session' }).click();
  const dialog = page.getByRole('dialog', { name: 'New session' });
  await dialog.getByLabel('Agent').selectOption({ label: 'Greeter' });
  await dialog.getByLabel('Environment').selectOption('staging');
  await dialog.getByLabel('First message').fill('world');
  // Hebrew and Arabic are written from the right.
  expect(await dialog.getByLabel('First message').getAttribute('dir')).toBe('auto');
  await dialog.getByLabel('Close after the first turn').check();
  await dialog.getByText('More options').click();
  await dialog.getByLabel('Max steps').fill('some');
  await dialog.getByRole('button', { name: 'Start session' }).click();
  await dialog.getByLabel('Max steps').and(page.locator('[aria-invalid]')).waitFor();
  await dialog.getByLabel('Max steps').fill('3');
  await dialog.getByLabel('End user', { exact: true }).fill('cus_1');
  await dialog.getByLabel('Metadata').fill('customer = 17');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Start session' }).click();
  await conversation(page).getByText('Hello, world.').waitFor();
  await page.getByText('accepts no more messages').waitFor();
  await page.getByRole('heading', { name: /^Greeter · / }).waitFor();
  await tab(page, 'Details').click();
  await page.getByText('of 3, including child sessions').waitFor();
  const [opened] = (await console.service.client.sessions.list({ limit: 1 })).data;
  expect(opened).toMatchObject({ budget: { maxSteps: 3 }, endUser: { id: 'cus_1' }, metadata: { customer: 17 } });
});

test('a session that is loading is not called a new one, and its tabs stay where they are', async () => {
  const sessionId = await openSession([{ text: 'Fine.' }], { input: 'How are you?', name: 'Greeter' });
  await untilStatus(sessionId, 'idle');
  const page = await console.open(viewer, '/sessions');
  const { promise: answer, resolve: respond } = Promise.withResolvers<void>();
  const late = new RegExp(`/agents/agt_|/sessions/${sessionId}/messages|/webhook_subscriptions`);
  await page.route(late, async (route) => {
    await answer;
    await route.continue();
  });
  await page.goto(`${console.origin}/console/${console.organizationId}/sessions/${sessionId}`);
  await tab(page, 'Details').waitFor();
  const title = page.getByRole('heading', { level: 1 });
  const places = async () =>
    await page
      .getByRole('tab')
      .evaluateAll((all) => all.map((one) => [one.textContent, one.getBoundingClientRect().x]));
  expect(await title.innerText()).toBe('Session');
  const before = await places();
  respond();
  await expect.poll(() => title.innerText()).toBe('Greeter · How are you?');
  expect(await places()).toEqual(before);
  await tab(page, 'Webhooks').click();
  await page.getByText('staging has no webhook').waitFor();
  // A ring is for the keyboard.
  const hasRing = (name: string) => tab(page, name).evaluate((one) => one.matches(':focus-visible'));
  expect(await hasRing('Webhooks')).toBe(false);
  // Another button opens a menu, or pastes, and chooses nothing.
  for (const button of ['right', 'middle'] as const) {
    await tab(page, 'Details').click({ button });
    expect(await tab(page, 'Webhooks').getAttribute('aria-selected')).toBe('true');
  }
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => hasRing('Details')).toBe(true);
  await page.keyboard.press('ArrowLeft');
  await page.getByText('staging has no webhook').waitFor();
  await page.getByRole('link', { name: 'Open webhooks' }).click();
  await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
});

test('a viewer sees everything and is offered no changes', async () => {
  const sessionId = await openSession([{ toolCalls: [{ name: 'look_up', input: {} }] }]);
  await untilStatus(sessionId, 'waiting');
  const page = await console.open(viewer, `/sessions/${sessionId}`);
  await conversation(page).getByText('waiting for result').waitFor();
  await page.getByText('You need the member role to send messages').waitFor();
  for (const name of ['Interrupt', 'Share', 'Fork at turn 1', 'Enter result', 'Send'])
    expect(await page.getByRole('button', { name }).count(), name).toBe(0);
  await page.getByRole('button', { name: 'Actions for this session' }).click();
  expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Copy link']);
  await page.keyboard.press('Escape');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Sessions' }).click();
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  expect(await page.getByRole('button', { name: 'New session' }).count()).toBe(0);
  await expect(viewer.client.sessions.cancel(sessionId)).rejects.toMatchObject({ status: 403 });
});

test('parent and child sessions link to each other', async () => {
  const child = await createAgent([{ text: 'Child says hi.' }], 'Assistant');
  const tool = { type: 'agent', name: 'ask_assistant', description: 'Asks.', agentId: child };
  const sessionId = await openSession(
    [{ toolCalls: [{ name: 'ask_assistant', input: { input: 'hi' } }] }, { text: 'Done.' }],
    {
      tools: [tool],
      name: 'Chief',
    },
  );
  await untilStatus(sessionId, 'idle');
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).getByRole('link', { name: 'Child session' }).click();
  await page.getByRole('heading', { name: /^Assistant · / }).waitFor();
  await conversation(page).getByText('Child says hi.').waitFor();
  await tab(page, 'Details').click();
  await page.getByRole('link', { name: 'Parent session' }).click();
  await page.getByRole('heading', { name: /^Chief · / }).waitFor();
  await tab(page, 'Details').click();
  await page
    .getByRole('complementary', { name: 'About this session' })
    .getByRole('link', { name: 'Assistant' })
    .waitFor();
});

test('content from an agent, a tool or a program is shown as text', async () => {
  const script = '<script>document.title="owned"</script><img src=x onerror="document.title=1">';
  const turned = 'pay \u202E001 ot';
  const long = 'x'.repeat(3000);
  const toolCalls = [{ name: 'look_up', input: { [script]: turned, long } }];
  const sessionId = await openSession(
    [{ text: `${script} ${turned} ${long}`, toolCalls }, { text: '{{lastToolResult}}' }],
    {
      name: script,
      input: `[link](javascript:alert(1)) ${script}`,
      metadata: { [script.slice(0, 60)]: `${script}${turned}`, long: long.slice(0, 500) },
    },
  );
  await untilStatus(sessionId, 'waiting');
  const { waitingFor } = await console.service.client.sessions.get(sessionId);
  const output = { [script]: script, list: [turned, long] };
  await console.service.client.sessions.sendToolResult(sessionId, { toolCallId: waitingFor!.toolCallIds[0]!, output });
  await untilStatus(sessionId, 'idle');
  const page = await console.open(member, `/sessions/${sessionId}`, phone);
  await conversation(page).getByText(script).first().waitFor();
  // A character that would reverse the text is shown as its code point.
  await conversation(page).getByText('U+202E').first().waitFor();
  await expectNoHorizontalScroll(page);
  await expectAccessible(page);
  for (const name of ['Trace', 'Chunks']) {
    await tab(page, name).click();
    const seen =
      name === 'Trace'
        ? page.getByRole('row', { name: /^Turn 1/ })
        : page.getByRole('button', { name: 'turn.completed' });
    await seen.waitFor();
    await expectNoHorizontalScroll(page);
  }
  await page.goto(`${console.origin}/console/${console.organizationId}/sessions`);
  await page.getByRole('link', { name: script }).waitFor();
  await expectNoHorizontalScroll(page);
  expect(await page.title()).toContain('Sessions');
  expect(await page.locator('main script, main img, main a[href^="javascript"]').count()).toBe(0);
});

test('an image of another host is requested after a click, without a referrer, and shown in its place', async () => {
  const sessionId = await openSession([
    { text: 'Here: ![The lamp](https://images.example/lamp.png) and ![old](http://images.example/old.png)' },
  ]);
  await untilStatus(sessionId, 'idle');
  const page = await console.open(member, `/sessions/${sessionId}`);
  const asked: (string | null)[] = [];
  await page.route(/^https?:\/\/images\.example/, async (route) => {
    asked.push(route.request().url(), await route.request().headerValue('referer'));
    const red = new PNG({ width: 300, height: 200 });
    for (let at = 0; at < red.data.length; at += 4) red.data.set([255, 0, 0, 255], at);
    await route.fulfill({ contentType: 'image/png', body: PNG.sync.write(red) });
  });
  const show = conversation(page).getByRole('button', { name: 'Show image from images.example' });
  // Not for http, which the frame would not load.
  await conversation(page).getByRole('link', { name: 'Open image from images.example' }).waitFor();
  expect(await show.count()).toBe(1);
  expect(asked).toEqual([]);
  await show.press('Enter');
  const frame = conversation(page).locator('iframe[title="The lamp"]');
  const color = async () => {
    const { data, width, height } = PNG.sync.read(await frame.screenshot());
    const middle = 4 * (Math.floor(height / 2) * width + Math.floor(width / 2));
    return [...data.subarray(middle, middle + 3)];
  };
  await expect.poll(color).toEqual([255, 0, 0]);
  expect(asked).toEqual(['https://images.example/lamp.png', null]);
  await expectAccessible(page);
  await conversation(page).getByRole('button', { name: 'Hide' }).press('Enter');
  await show.and(page.locator(':focus')).waitFor();
  expect(await frame.count()).toBe(0);
});

test('ten thousand chunks scroll with at most a hundred in the page, and new ones are appended', async () => {
  const sessionId = await openSession([{ text: 'a '.repeat(9_999) }, { text: 'the last word' }]);
  await untilStatus(sessionId, 'idle');
  const page = await console.open(member, `/sessions/${sessionId}?tab=chunks`);
  const chunks = page.getByRole('region', { name: 'Chunks' });
  await chunks.getByText('deltas').waitFor();
  expect(await chunks.getByRole('listitem').count()).toBeLessThan(12);
  await page.getByText('Every delta', { exact: true }).click();
  const most = async () => expect(await chunks.getByRole('listitem').count()).toBeLessThan(100);
  await most();
  await page.getByRole('button', { name: 'Jump to end' }).click();
  await chunks.getByText('turn.completed').waitFor();
  await most();
  await page.getByText(/^10,\d{3} chunks$/).waitFor();
  await chunks.getByRole('button', { name: /turn.completed/ }).press('Enter');
  await chunks.getByText('"endTurn"', { exact: true }).waitFor();
  await expectAccessible(page);
  await console.service.client.sessions.sendMessage(sessionId, { content: 'more' });
  await expect.poll(async () => (await console.service.client.sessions.get(sessionId)).turn).toBe(2);
  await untilStatus(sessionId, 'idle');
  await page.getByRole('button', { name: 'Jump to end' }).click();
  await chunks.getByText(/" ?word/).waitFor();
  await most();
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: 'Type', exact: true }).click();
  await page.getByRole('button', { name: 'session.status', exact: true }).click();
  await expect.poll(() => chunks.getByRole('listitem').count()).toBe(4);
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: 'First turn', exact: true }).click();
  await page.getByLabel('First turn').fill('3');
  await page.getByLabel('First turn').press('Enter');
  await page.getByText('Enter a number from 1 to 2.').waitFor();
  await page.getByLabel('First turn').fill('2');
  await page.getByLabel('First turn').press('Enter');
  await expect.poll(() => chunks.getByRole('listitem').count()).toBe(2);
  await expectAccessible(page);
  // The filters are in the address.
  await page.reload();
  await expect.poll(() => chunks.getByRole('listitem').count()).toBe(2);
});

test('a reader who scrolled up stays there, and a click returns to the end', async () => {
  const sessionId = await openSession([{ text: 'line\n'.repeat(300), tokenDelayMs: 30 }]);
  const page = await console.open(member, `/sessions/${sessionId}`);
  const top = () => page.evaluate<number>('document.scrollingElement.scrollTop');
  const left = () =>
    page.evaluate<number>(
      'document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - document.scrollingElement.clientHeight',
    );
  // The page follows the end automatically.
  await expect.poll(top).toBeGreaterThan(200);
  await page.mouse.move(400, 300);
  await page.mouse.wheel(0, -5000);
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
  const stayed = await top();
  const height = await page.evaluate<number>('document.documentElement.scrollHeight');
  await expect.poll(() => page.evaluate<number>('document.documentElement.scrollHeight')).toBeGreaterThan(height + 100);
  expect(await top()).toBe(stayed);
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect.poll(left).toBeLessThan(80);
});

test('structured output is shown as JSON, a worker turn names its queue, and a child shows what it waits for', async () => {
  const { client } = console.service;
  const { agentId: classifier } = await client.agents.create({
    name: 'Classifier',
    model: { provider: 'scripted', model: 'demo', settings: { script: [{ text: '{"kind":"refund","sure":true}' }] } },
    outputSchema: { type: 'object', properties: { kind: { type: 'string' }, sure: { type: 'boolean' } } },
  });
  const { sessionId } = await client.sessions.open({ agentId: classifier, environment: 'staging', input: 'what?' });
  await untilStatus(sessionId, 'idle');
  const page = await console.open(member, `/sessions/${sessionId}`);
  await conversation(page).locator('pre').getByText('"refund"').waitFor();

  const { agentId: own } = await client.agents.create({ name: 'Own', model: { provider: 'worker', queue: 'support' } });
  const worked = await client.sessions.open({ agentId: own, environment: 'staging', input: 'hello' });
  await page.goto(`${console.origin}/console/${console.organizationId}/sessions/${worked.sessionId}`);
  await page.getByText('by your worker, from the queue support', { exact: true }).waitFor();

  const child = await createAgent([{ toolCalls: [{ name: 'look_up', input: {} }] }], 'Asker', [
    { ...lookUp, approval: 'always' },
  ]);
  const tool = { type: 'agent', name: 'ask_asker', description: 'Asks.', agentId: child };
  const parent = await openSession([{ toolCalls: [{ name: 'ask_asker', input: { input: 'hi' } }] }], { tools: [tool] });
  await page.goto(`${console.origin}/console/${console.organizationId}/sessions/${parent}`);
  await conversation(page).getByText('for 1 approval').waitFor();
});
