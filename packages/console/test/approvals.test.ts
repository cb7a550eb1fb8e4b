// Decisions on approvals, in real browsers on a real service: by mouse, by keyboard, by two people at once, on a phone. Lists of them are
// in approvals-inbox.test.ts.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CreateAgent, Limits } from '@signalbox/client';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>';

/** The refunds that the tool made. */
const refunded: { order: string; cents: number }[] = [];
const shop = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  refunded.push(JSON.parse(Buffer.concat(parts).toString()));
  response.setHeader('content-type', 'application/json').end('{"receipt":"rf_1"}');
});

let console: TestConsole;
let member: Person;
let viewer: Person;
beforeAll(async () => {
  await once(shop.listen(0, '127.0.0.1'), 'listening');
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
  viewer = await console.person('viewer', 'Vito Viewer');
});
afterAll(() => {
  shop.closeAllConnections();
  shop.close();
});

type Approval = Extract<NonNullable<CreateAgent['tools']>[number], { type: 'http' }>['approval'];

/** Opens a session that asks for this refund, and returns when the approval is pending. */
async function askRefund(
  input: object,
  name = 'Refund desk',
  limits: Limits = {},
  approval: Approval = 'always',
): Promise<{ sessionId: string; operationId: string }> {
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name,
    model: {
      provider: 'scripted',
      model: 'support',
      settings: { script: [{ toolCalls: [{ name: 'refund_order', input }] }, { text: 'Done.' }] },
    },
    limits,
    tools: [
      {
        type: 'http',
        name: 'refund_order',
        description: 'Pays money back.',
        approval,
        inputSchema: {
          type: 'object',
          properties: { order: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
          required: ['order', 'cents'],
        },
        request: {
          method: 'POST',
          url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}/refunds`,
          body: { order: '{{input.order}}', cents: '{{input.cents}}' },
        },
      },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    for (const chunk of chunks) {
      if (chunk.type === 'approval.requested') return { sessionId, operationId: chunk.operationId };
    }
  }
  throw new Error('It ended without asking.');
}

const approval = (operationId: string) => console.service.client.approvals.get(operationId);
const refundsOf = (order: string) => refunded.filter((one) => one.order === order);
const hasFocus = (element: Locator) => element.and(element.page().locator(':focus')).isVisible();
/** The approval of an order on the page. */
const itemOf = (page: Page, order: string) => page.getByRole('article').filter({ hasText: order });

test('the title of every page has the number of pending approvals, and it updates without a reload', async () => {
  const page = await console.open(member, '/environments');
  await page.getByRole('heading', { name: 'Environments' }).waitFor();
  expect(await page.title()).toBe('Environments · Signalbox');
  const { operationId } = await askRefund({ order: 'order-title', cents: 100 });
  await expect.poll(() => page.title()).toBe('(1) Environments · Signalbox');
  await page.getByRole('link', { name: 'Approvals 1 pending' }).click();
  await itemOf(page, 'order-title').waitFor();
  expect(await page.title()).toBe('(1) Approvals · Signalbox');
  await console.service.client.approvals.deny(operationId);
  await expect.poll(() => page.title()).toBe('Approvals · Signalbox');
});

test('with the keyboard alone, Enter opens an approval, A and Enter approve it; D, a reason and Enter deny', async () => {
  const first = await askRefund({ order: 'order-key-1', cents: 100 });
  const second = await askRefund({ order: 'order-key-2', cents: 200 });
  const page = await console.open(member, '/approvals');
  await itemOf(page, 'order-key-2').waitFor();

  await page.keyboard.press('j');
  const selected = page.locator('article:focus');
  expect(await selected.evaluate((item) => getComputedStyle(item).outlineStyle), 'the selection is seen').toBe('solid');
  for (const isOpen of [true, false]) {
    await page.keyboard.press('Enter');
    await selected.locator(`[aria-expanded="${isOpen}"]`).waitFor();
  }
  await page.keyboard.press('a');
  const confirm = page.getByRole('button', { name: 'Approve now' });
  await confirm.waitFor();
  await expect.poll(() => hasFocus(confirm)).toBe(true);
  expect((await approval(first.operationId)).status).toBe('pending');
  await page.keyboard.press('Enter');
  await itemOf(page, 'order-key-1').getByText('by you').waitFor();
  await itemOf(page, 'order-key-1').getByText('The call succeeded').waitFor();
  await itemOf(page, 'order-key-1').getByText('rf_1').waitFor();
  await expect.poll(() => refundsOf('order-key-1')).toEqual([{ order: 'order-key-1', cents: 100 }]);

  // The focus stays on the decided approval, so the next key continues from there.
  await page.locator('article:focus').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('d');
  // In a text field, shortcut keys are only text.
  await page.keyboard.type('jade had a debt, and kept it');
  await page.keyboard.press('Enter');
  await itemOf(page, 'order-key-2').getByText('jade had a debt, and kept it').waitFor();
  // The page shows a decision before the service has it.
  await expect.poll(async () => (await approval(second.operationId)).status).toBe('denied');
  expect(await approval(second.operationId)).toMatchObject({
    reason: 'jade had a debt, and kept it',
    resolvedBy: { type: 'user', id: member.userId, name: 'Mara Member' },
  });
  expect(refundsOf('order-key-2')).toEqual([]);
});

test('Escape goes back without deciding, and disabled shortcuts do nothing', async () => {
  const { operationId } = await askRefund({ order: 'order-off', cents: 100 });
  const page = await console.open(member, '/approvals');
  await itemOf(page, 'order-off').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Approve', exact: true }).and(page.locator(':focus')).waitFor();
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
  await page.getByLabel('Enable keyboard shortcuts').uncheck();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('article').focus();
  await page.keyboard.press('a');
  await page.keyboard.press('Enter');
  expect(await page.getByRole('button', { name: 'Approve now' }).count()).toBe(0);
  expect((await approval(operationId)).status).toBe('pending');
  await console.service.client.approvals.deny(operationId);
});

test('of two people deciding one approval, the second sees who decided first, and what', async () => {
  const { operationId } = await askRefund({ order: 'order-two', cents: 100 });
  const [first, second] = await Promise.all([
    console.open(console.owner, `/approvals/${operationId}`),
    console.open(member, `/approvals/${operationId}`),
  ]);
  // Both have opened the decision. The first request has no response yet when the other confirms.
  await first.getByRole('button', { name: 'Deny', exact: true }).click();
  await first.getByLabel('Reason').fill('Not after 30 days.');
  await second.getByRole('button', { name: 'Approve', exact: true }).click();
  await second.route('**/api/v1/events**', (route) => route.abort());
  await second.route(`**/approvals/${operationId}/resolve`, async (route) => {
    await first.getByLabel('Reason').press('Enter');
    await first.getByText('by you').waitFor();
    await route.continue();
  });
  await second.getByRole('button', { name: 'Approve now' }).press('Enter');
  const told = second.getByRole('alert');
  await told.getByText('Olga Owner already denied it. Your decision was not used.').waitFor();
  await told.getByText('Not after 30 days.').waitFor();
  await expect
    .poll(() => approval(operationId))
    .toMatchObject({ status: 'denied', resolvedBy: { name: 'Olga Owner' } });
  expect(refundsOf('order-two')).toEqual([]);
});

test('a decision by someone else is shown in an open page, and the item keeps its place', async () => {
  const { operationId } = await askRefund({ order: 'order-reading', cents: 100 });
  const page = await console.open(member, '/approvals');
  await itemOf(page, 'order-reading').getByRole('button', { name: 'Approve', exact: true }).click();
  await console.owner.client.approvals.approve(operationId, { reason: 'it is fine' });
  await page.getByText('Olga Owner already approved it. Your decision was not used.').waitFor();
  await page.getByText('No pending approvals.').waitFor();
  await page.getByRole('button', { name: 'Hide 1 decided approval' }).click();
  expect(await page.getByRole('article').count()).toBe(0);
});

test('an edited input shows errors at their field, and a valid one is what the tool receives', async () => {
  const { operationId } = await askRefund({ order: 'order-edit', cents: 9900, note: null, fast: true });
  const page = await console.open(member, `/approvals/${operationId}`);
  await page.getByRole('button', { name: 'Edit input' }).click();
  const cents = page.getByLabel('cents');
  const send = page.getByRole('button', { name: 'Approve now' });

  await cents.fill('much');
  await send.press('Enter');
  await page.getByText('Enter a number.').waitFor();
  await cents.fill('0');
  // Enter in a field ends editing; the decision needs another press.
  await cents.press('Enter');
  expect(await hasFocus(send)).toBe(true);
  await page.keyboard.press('Enter');
  // From the service, which has the tool's schema.
  await page.getByText('must be >= 1').waitFor();
  await expect.poll(() => hasFocus(cents)).toBe(true);
  expect(await cents.getAttribute('aria-invalid')).toBe('true');
  expect((await approval(operationId)).status).toBe('pending');

  await cents.fill('4900');
  await page.getByRole('button', { name: 'Edit as JSON' }).click();
  const json = page.getByLabel('Input as JSON');
  await json.fill('{ "order": ');
  await send.press('Enter');
  await page.getByText('This is not valid JSON').waitFor();
  await json.fill('{ "order": "order-edit", "cents": 4800 }');
  await page.getByLabel('Reason').fill('half of it');
  await send.press('Enter');
  await page.getByText('The call succeeded').waitFor();
  await expect.poll(() => refundsOf('order-edit')).toEqual([{ order: 'order-edit', cents: 4800 }]);
  await page.getByText('requested: 9900').waitFor();
  expect(await approval(operationId)).toMatchObject({ editedInput: { cents: 4800 }, reason: 'half of it' });
});

test('on a phone a double tap decides nothing; an approval can cover the rest of the session', async () => {
  const { operationId, sessionId } = await askRefund({ order: 'order-phone', cents: 100 });
  const page = await console.open(member, `/approvals/${operationId}`, phone);
  for (const name of ['Deny', 'Approve']) {
    const box = (await page.getByRole('button', { name, exact: true }).boundingBox())!;
    expect(box.height).toBeGreaterThanOrEqual(44);
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.touchscreen.tap(x, y);
    await page.touchscreen.tap(x, y);
    expect((await approval(operationId)).status).toBe('pending');
    const cancel = page.getByRole('button', { name: 'Cancel' });
    if (await cancel.isVisible()) await cancel.tap();
  }
  await page.getByRole('button', { name: 'Approve', exact: true }).tap();
  await page.getByLabel(/^Don’t ask again for/).check();
  const opened = await page.evaluate(() => performance.now());
  const { width } = page.viewportSize()!;
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  await expectAccessible(page);
  // By the page's own clock, this is no longer a double tap.
  await page.waitForFunction((since) => performance.now() - since > 500, opened);
  await page.getByRole('button', { name: 'Approve now' }).tap();
  await page.getByText('The call succeeded').waitFor();
  await expect.poll(() => refundsOf('order-phone')).toHaveLength(1);
  const { data } = await console.service.client.events.list({ sessionId, type: 'approval.resolved' });
  expect(data[0]!.changes).toMatchObject({ scope: ['once', 'session'] });
});

test('approving a tool that needs approval once per session says which later calls it allows', async () => {
  const { operationId } = await askRefund({ order: 'order-once', cents: 100 }, 'Once desk', {}, 'once');
  const page = await console.open(member, `/approvals/${operationId}`, phone);
  await page.getByRole('button', { name: 'Deny', exact: true }).click();
  expect(await page.getByText('run without asking').count()).toBe(0);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await page.getByRole('button', { name: 'Approve now', description: /run without asking/ }).waitFor();
  expect(await page.getByRole('checkbox').count()).toBe(0);
  await expectAccessible(page);
  await console.service.client.approvals.deny(operationId);
});

test('of two approvers, the first sees why another has to finish, and the other finishes it: on a desktop and a narrow phone', async () => {
  for (const width of [1280, 390]) {
    const order = `order-both-${width}`;
    const { operationId } = await askRefund({ order, cents: 100 }, 'Vault', {}, { policy: 'always', by: { count: 2 } });
    const size = { viewport: { width, height: 844 } };
    const [first, second] = await Promise.all([
      console.open(member, `/approvals/${operationId}`, size),
      console.open(console.owner, `/approvals/${operationId}`, size),
    ]);
    await first.getByText('Needs 2 approvals.').waitFor();
    await first.getByRole('button', { name: 'Approve', exact: true }).press('Enter');
    await first.getByRole('button', { name: 'Approve now' }).press('Enter');
    await first.getByText('1 of 2 approvals, waiting for another person.').waitFor();
    const why = /^You have already approved.* Another approver has to decide\.$/;
    await first.getByText(why).waitFor();
    const approve = first.getByRole('button', { name: 'Approve', exact: true, description: why });
    expect(await approve.isDisabled()).toBe(true);
    expect(refundsOf(order)).toEqual([]);
    await expectAccessible(first);

    // Without a reload.
    await second.getByText('1 of 2 approvals, waiting for one more approver.').waitFor();
    await second.getByText('Mara Member approved').waitFor();
    await second.getByRole('button', { name: 'Approve', exact: true }).press('Enter');
    await second.getByRole('button', { name: 'Approve now' }).press('Enter');
    await second.getByText('The call succeeded').waitFor();
    await first.getByText('The call succeeded').waitFor();
    expect(refundsOf(order)).toEqual([{ order, cents: 100 }]);
    for (const page of [first, second]) {
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      await page.context().close();
    }
  }
});

test('one who has approved can join another who edited the input', async () => {
  const order = 'order-join';
  const { operationId } = await askRefund({ order, cents: 900 }, 'Vault', {}, { policy: 'always', by: { count: 2 } });
  const page = await console.open(member, `/approvals/${operationId}`);
  await page.getByRole('button', { name: 'Approve', exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await page.getByText('You approved').waitFor();
  await console.owner.client.approvals.approve(operationId, { input: { order, cents: 400 } });
  await page.getByRole('button', { name: 'Approve this input' }).press('Enter');
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await page.getByText('The call succeeded').waitFor();
  expect(refundsOf(order)).toEqual([{ order, cents: 400 }]);
});

test('a click right after the first one does not confirm, and a double click confirms once', async () => {
  const { operationId } = await askRefund({ order: 'order-quick', cents: 100 });
  const page = await console.open(member, `/approvals/${operationId}`);
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
  const decisions: string[] = [];
  page.on('request', (request) => request.url().endsWith('/resolve') && decisions.push(request.url()));
  await page.clock.install();
  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  const confirm = page.getByRole('button', { name: 'Approve now' });
  await confirm.click();
  await confirm.waitFor();
  expect(decisions).toEqual([]);
  await page.clock.fastForward(1000);
  await page.clock.resume();
  await confirm.dblclick();
  await page.getByText('by you').waitFor();
  expect(decisions).toHaveLength(1);
  await expect.poll(() => refundsOf('order-quick')).toHaveLength(1);
});

test('a decision after expiry is reported as too late and names no one', async () => {
  const { operationId } = await askRefund({ order: 'order-late', cents: 100 }, 'Hurried', {
    approvalTimeoutSeconds: 1,
  });
  await expect.poll(async () => (await approval(operationId)).status).toBe('expired');
  const page = await console.open(member, '/environments');
  // Until it is decided, the page sees the older state.
  let isDecided = false;
  page.on('request', (request) => {
    isDecided ||= request.url().endsWith('/resolve');
  });
  await page.route(
    ({ pathname }) => pathname === `/api/v1/approvals/${operationId}`,
    async (route) => {
      if (isDecided) return await route.continue();
      const response = await route.fetch();
      const { approval: now } = (await response.json()) as { approval: object };
      await route.fulfill({ response, json: { approval: { ...now, status: 'pending', resolvedAt: null } } });
    },
  );
  await page.goto(`${console.origin}/console/${console.organizationId}/approvals/${operationId}`);
  await page.getByRole('button', { name: 'Deny', exact: true }).click();
  await page.getByLabel('Reason').press('Enter');
  await page.getByText('Too late: the approval expired. Your decision was not used.').waitFor();
  await page.getByText('no decision in time').waitFor();
});

test('whatever an agent writes is shown as text: markup, field names, invisible characters, and long texts on demand', async () => {
  const input = {
    order: hostile,
    cents: 1,
    '<b>x</b>': 'pay \u202e0001 to',
    deep: { to: [hostile] },
    long: 'word '.repeat(500),
  };
  const { operationId } = await askRefund(input, hostile);
  const page = await console.open(viewer, `/approvals/${operationId}`);
  await page.getByText(hostile).first().waitFor();
  await page.getByText('U+202E').waitFor();
  await page.getByRole('button', { name: 'Show all 2,500 characters' }).click();
  expect(await page.getByText('word '.repeat(500).trim()).count()).toBe(1);
  expect(await page.locator('main :is(img, script, b)').count()).toBe(0);
  await expect.poll(() => page.title()).toBe('(1) Refund order · Signalbox');
  // A viewer can read everything, and the page says why there are no buttons.
  await page.getByText('You need the approver role to decide approvals').waitFor();
  expect(await page.getByRole('button', { name: /Approve|Deny|Edit/ }).count()).toBe(0);
  await page.keyboard.press('a');
  await page.keyboard.press('Enter');
  expect((await approval(operationId)).status).toBe('pending');
  await expect(viewer.client.approvals.approve(operationId)).rejects.toMatchObject({ status: 403 });

  await page.goto(page.url().replace(operationId, ''));
  await page.getByRole('article').waitFor();
  await expectAccessible(page);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await expectAccessible(page);
  await console.service.client.approvals.deny(operationId);
});

test('an approver decides, sees the session without what would change it, and can be notified', async () => {
  const approver = await console.person('approver', 'Ann Approver');
  const { operationId, sessionId } = await askRefund({ order: 'A-9', cents: 900 });
  const page = await console.open(approver, `/sessions/${sessionId}`);
  await page.getByText('You need the member role to send messages.').waitFor();
  expect(await page.getByRole('button', { name: /^(Fork|Share|Cancel)/ }).count()).toBe(0);
  await page.goto(page.url().replace(/sessions\/.*/, 'approvals'));
  await page.getByRole('button', { name: /^Noti/ }).waitFor();
  await page.goto(`${page.url()}/${operationId}`);
  await page.getByRole('button', { name: 'Approve', exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Approve now' }).press('Enter');
  await expect.poll(async () => (await approval(operationId)).status).toBe('approved');
});

test('an admin limits what an approver decides, who then sees which approvals are theirs and why the others are not', async () => {
  const approver = await console.person('approver', 'Lia Limited');
  const theirs = await askRefund({ order: 'A-10', cents: 1000 });
  const page = await console.open(console.owner, '/people');
  await page.getByRole('button', { name: 'Actions for Lia Limited' }).click();
  await page.getByRole('menuitem', { name: 'Change role' }).click();
  const dialog = page.getByRole('dialog');
  const environments = dialog.getByRole('group', { name: 'Environments to decide in' });
  await environments.getByLabel('All environments').uncheck();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('must have at least 1 item').first().waitFor();
  await environments.getByLabel('staging').check();
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page
    .getByRole('row', { name: /Lia Limited/ })
    .getByText('in staging', { exact: true })
    .waitFor();

  const hers = await console.open(approver, `/approvals/${theirs.operationId}`);
  await hers.getByText('only in certain environments, and production is not one of them').waitFor();
  expect(await hers.getByRole('button', { name: 'Approve', exact: true }).isDisabled()).toBe(true);
  await hers.goto(hers.url().replace(theirs.operationId, ''));
  await hers.getByText('Not yours to decide').first().waitFor();

  await page.getByRole('button', { name: 'Actions for Lia Limited' }).click();
  await page.getByRole('menuitem', { name: 'Change role' }).click();
  await page.getByRole('radio', { name: /^admin/ }).check();
  expect(await environments.count()).toBe(0);
  await page.getByRole('button', { name: 'Save' }).click();
  await page
    .getByRole('row', { name: /Lia Limited/ })
    .getByText('all', { exact: true })
    .waitFor();
  await console.service.client.approvals.deny(theirs.operationId);
});
