// The trace of a session, in a real browser on a real service.
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const desktop = { viewport: { width: 1440, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

let console: TestConsole;
let member: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
});

const look = { type: 'client' as const, name: 'look_up', description: '', inputSchema: { type: 'object' } };
const call = { name: 'look_up', input: { order: '1042' } };
type Script = { text?: string; toolCalls?: { name: string; input: object }[] }[];

/** `mocked`: calls return at once. */
async function open(script: Script, { mocked = false, closeOnIdle = false } = {}): Promise<string> {
  const definition = {
    name: 'Tracer',
    model: { provider: 'scripted' as const, model: 'demo', settings: { script } },
    tools: [look],
  };
  const mocks = mocked ? { look_up: { results: [{ output: { found: true } }] } } : {};
  const session = await console.service.client.sessions.open({
    draft: { definition, mocks },
    environment: 'staging',
    input: 'go',
    closeOnIdle,
  });
  return session.sessionId;
}

const until = (sessionId: string, status: string) =>
  expect.poll(async () => (await console.service.client.sessions.get(sessionId)).status).toBe(status);
const grid = (page: Page) => page.getByRole('treegrid');
const row = (page: Page, name: string | RegExp) => page.getByRole('row', { name });

test('a link to a step of an early turn shows its row, and j and k move to its neighbours', async () => {
  const { client } = console.service;
  const sessionId = await open([{ text: 'Done.' }]);
  for (let turn = 2; turn <= 40; turn++) await client.sessions.sendMessage(sessionId, { content: `message ${turn}` });
  await expect.poll(async () => (await client.sessions.get(sessionId)).turn).toBe(40);
  await until(sessionId, 'idle');
  const { data } = await client.sessions.turns(sessionId, { limit: 100 });
  const third = data.find(({ turn }) => turn === 3)!.operations[0]!;

  const page = await console.open(member, `/sessions/${sessionId}?tab=trace&step=${third.operationId}`, desktop);
  await grid(page).locator('[role="row"][aria-selected="true"]').waitFor();
  const drawer = page.getByRole('dialog', { name: 'scripted/demo' });
  await drawer.getByText('Turn 3', { exact: false }).first().waitFor();
  await page.keyboard.press('j');
  await drawer.getByText('Turn 4', { exact: false }).first().waitFor();
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  await drawer.getByText('Turn 2', { exact: false }).first().waitFor();
});

test('a turn of 400 calls has less than 100 rows in the page, and keys reach each of them', async () => {
  const calls = Array.from({ length: 20 }, () => call);
  const sessionId = await open(
    Array.from({ length: 20 }, (_, n) => ({ text: `Batch ${n}.`, toolCalls: calls })),
    { mocked: true, closeOnIdle: true },
  );
  await until(sessionId, 'completed');
  const page = await console.open(member, `/sessions/${sessionId}?tab=trace`, desktop);
  await page.getByText('400 tool calls').waitFor();
  const rows = () => grid(page).getByRole('row').count();
  expect(await rows()).toBeLessThan(100);
  await grid(page).focus();
  await page.keyboard.press('End');
  await grid(page).locator('[role="row"][aria-rowindex="421"][data-active="true"]').waitFor();
  expect(await rows()).toBeLessThan(100);
  await expectAccessible(page);
});

test('a trace grows while the session runs, and shows what waits, on a phone as well', async () => {
  const { client } = console.service;
  const sessionId = await open([{ text: 'I look.', toolCalls: [call, call] }, { text: 'Found.' }]);
  await until(sessionId, 'waiting');
  const page = await console.open(member, `/sessions/${sessionId}?tab=trace`, phone);
  await expect.poll(() => row(page, /^Tool Look up, waiting/).count()).toBe(2);
  const { waitingFor } = await client.sessions.get(sessionId);
  const [first, second] = waitingFor!.toolCallIds;
  // A call that waits has only a request.
  await row(page, /^Tool Look up, waiting/)
    .first()
    .click();
  const drawer = page.getByRole('dialog', { name: 'Look up' });
  await drawer.getByRole('tab', { name: 'Request', selected: true }).waitFor();
  await drawer.getByRole('button', { name: 'Close' }).click();
  await client.sessions.sendToolResult(sessionId, { toolCallId: first!, output: 1 });
  await row(page, /^Tool Look up, succeeded/).waitFor();
  await client.sessions.sendToolResult(sessionId, { toolCallId: second!, error: 'שגיאה: ההזמנה לא נמצאה' });
  await row(page, /^Tool Look up, failed/).waitFor();
  await expect.poll(() => row(page, /^Model scripted\/demo, succeeded/).count()).toBe(2);
  await row(page, /^Turn 1, completed/).waitFor();
  await expect
    .poll(() => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'))
    .toBeLessThanOrEqual(0);
  await expectAccessible(page);
});
