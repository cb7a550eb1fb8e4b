// The inbox of approvals, in real browsers on a real service: lists, groups, selections, and who is notified.
import type { Approvers } from '@signalbox/client';
import type { Locator, Page } from 'playwright-core';
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

/** Opens a session that asks for these refunds, and returns the ids of its approvals, in this order. */
async function askMany(name: string, orders: string[], by: Approvers = {}): Promise<string[]> {
  const { client } = console.service;
  const { agentId } = await client.agents.create({
    name,
    model: {
      provider: 'scripted',
      model: 'x',
      settings: {
        script: [
          {
            text: 'I refund.',
            toolCalls: orders.map((order) => ({ name: 'refund_order', input: { order, cents: 500 } })),
          },
          { text: 'Done.' },
        ],
      },
    },
    tools: [
      {
        type: 'client',
        name: 'refund_order',
        description: 'Pays.',
        inputSchema: { type: 'object' },
        approval: { policy: 'always', by },
      },
    ],
  });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'Two glasses are broken.',
  });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  const ids: string[] = [];
  for await (const { operationId } of client.approvals.list({ sessionId, limit: 100 })) ids.push(operationId);
  return ids;
}

const approval = (operationId: string) => console.service.client.approvals.get(operationId);
const hasFocus = (element: Locator) => element.and(element.page().locator(':focus')).isVisible();
/** The approval of an order on the page. */
const itemOf = (page: Page, order: string) => page.getByRole('article').filter({ hasText: order });

test('the filters are in the URL, and decided approvals are listed with who decided them', async () => {
  const [denied = '', approved = ''] = await askMany('Desk G', ['filter-1', 'filter-2']);
  await console.owner.client.approvals.deny(denied);
  await member.client.approvals.approve(approved);
  const page = await console.open(member, '/approvals?status=denied&environment=production', {
    viewport: { width: 1440, height: 900 },
  });
  await page.getByRole('row', { name: /Refund order.*denied.*Olga Owner/ }).waitFor();
  await expectAccessible(page);
  expect(await page.getByRole('navigation', { name: 'Status' }).locator('[aria-current]').allTextContents()).toEqual([
    'Denied',
  ]);
  await page.getByRole('link', { name: 'Approved' }).click();
  await page
    .getByRole('row', { name: /approved.*you/ })
    .first()
    .waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    status: 'approved',
    environment: 'production',
  });
  await page.getByRole('button', { name: /production/ }).click();
  await page.getByRole('menuitemcheckbox', { name: 'staging' }).click();
  await page.getByRole('heading', { name: 'No approved approvals' }).waitFor();
  const [pending = ''] = await askMany('Desk H', ['order-of-session']);
  const { sessionId } = await approval(pending);
  await page.goto(
    `${console.origin}/console/${console.organizationId}/approvals?sessionId=${sessionId}&environment=production`,
  );
  await itemOf(page, 'order-of-session').waitFor();
  await page.getByRole('button', { name: 'Remove the filter Session' }).click();
  await expect.poll(() => new URL(page.url()).searchParams.has('sessionId')).toBe(false);
  await console.service.client.approvals.deny(pending);
});

test('26 approvals are a line each in groups, with the words of the user, and a selection is decided in two steps', async () => {
  const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => `bulk-${from + n}`);
  const groups = [
    await askMany(`Desk A ${'with a long name '.repeat(11)}`, numbers(100, 20)),
    await askMany('Desk B', numbers(200, 6)),
  ];
  const page = await console.open(member, '/approvals', { viewport: { width: 1440, height: 900 } });
  await itemOf(page, 'bulk-205').waitFor();
  expect(await page.getByRole('article').count()).toBe(26);
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(1800);
  await itemOf(page, 'bulk-100').getByText('Two glasses are broken.').waitFor();
  await expectAccessible(page);
  // The name of the agent gives way to that of the tool.
  const cut = () =>
    page
      .locator('.approval-group h2')
      .evaluateAll((names) => names.filter((name) => name.scrollWidth > name.clientWidth).length);
  expect(await cut()).toBe(0);

  // The selection and the focus are seen.
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  const selected = page.locator('article:focus');
  expect(await selected.evaluate((item) => [getComputedStyle(item).outlineStyle, item.dataset.selected])).toEqual([
    'solid',
    'true',
  ]);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.getByRole('toolbar', { name: 'Selected approvals' }).getByText('2 selected').waitFor();
  await page.keyboard.press('Shift+D');
  const dialog = page.getByRole('dialog', { name: 'Deny 2 of refund_order?' });
  await dialog.getByText('Same in all: cents 500').waitFor();
  await dialog.getByRole('heading', { name: /^Refund order by Desk A .* in production$/ }).waitFor();
  await dialog.getByRole('cell', { name: 'bulk-100' }).waitFor();
  expect(await dialog.getByRole('cell').count()).toBe(2);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  expect((await approval(groups[0]![0]!)).status).toBe('pending');
  await page.keyboard.press('Shift+D');
  await dialog.getByLabel('Reason').fill('Seen in bulk');
  await page.keyboard.press('Enter');
  for (const id of groups[0]!.slice(0, 2)) {
    await expect.poll(async () => (await approval(id)).status).toBe('denied');
    expect((await approval(id)).reason).toBe('Seen in bulk');
  }
  await itemOf(page, 'bulk-101').getByText('denied').waitFor();
  await page.getByText('24 pending, oldest first.').waitFor();

  // A whole group; another one folded away.
  await page
    .getByRole('region', { name: 'Refund order' })
    .first()
    .getByRole('button', { name: /Desk A/ })
    .click();
  expect(await page.getByRole('article').count()).toBe(6);
  await page.getByRole('button', { name: 'Approve 6 of refund_order…' }).click();
  const confirm = page.getByRole('button', { name: 'Approve 6 now' });
  // The second click of a double click decides nothing.
  const opened = await page.evaluate(() => performance.now());
  await confirm.click();
  await page.waitForFunction((since) => performance.now() - since > 500, opened);
  if (await confirm.isVisible()) await confirm.click();
  for (const id of groups[1]!) await expect.poll(async () => (await approval(id)).status).toBe('approved');
  await console.service.client.approvals.resolveMany({ operationIds: groups[0]!.slice(2), decision: 'denied' });
  await page.getByText('No pending approvals.').waitFor();
});

test('a decision on several is shown at once; what the service refuses, or never hears, is pending again with the reason', async () => {
  const ids = await askMany('Desk C', ['roll-1', 'roll-2', 'roll-3']);
  const page = await console.open(member, '/approvals', { viewport: { width: 1440, height: 900 } });
  await itemOf(page, 'roll-3').waitFor();
  const approveAll = async () => {
    await page.getByRole('button', { name: /^Approve \d of refund_order…$/ }).press('Enter');
    await page.getByRole('button', { name: /^Approve \d now$/ }).press('Enter');
  };
  // The service does not respond.
  let answer = (_: 'fail' | 'continue') => {};
  await page.route('**/approvals/resolve', async (route) => {
    const how = await new Promise<'fail' | 'continue'>((resolve) => {
      answer = resolve;
    });
    if (how === 'fail')
      await route.fulfill({
        status: 400,
        contentType: 'application/problem+json',
        body: '{"code":"invalid_request","detail":"No.","status":400,"title":"","type":"","requestId":"req_1"}',
      });
    else await route.continue();
  });
  await approveAll();
  await itemOf(page, 'roll-1').getByText('approved').waitFor();
  expect((await approval(ids[0]!)).status).toBe('pending');
  answer('fail');
  await itemOf(page, 'roll-1').getByText('Not decided').waitFor();
  await itemOf(page, 'roll-1').getByRole('button', { name: 'Approve', exact: true }).waitFor();

  // Another person is faster with one of them.
  await approveAll();
  await itemOf(page, 'roll-2').getByText('approved').waitFor();
  await page.route('**/api/v1/events**', (route) => route.abort());
  await console.owner.client.approvals.deny(ids[1]!, { reason: 'Not this one.' });
  answer('continue');
  await itemOf(page, 'roll-2').getByText('denied').waitFor();
  await itemOf(page, 'roll-2').getByText('Not this one.').waitFor();
  expect(await Promise.all(ids.map(async (id) => (await approval(id)).status))).toEqual([
    'approved',
    'denied',
    'approved',
  ]);
});

test('a decision is shown at once; a refused one is pending again with its reason, and takes no focus from where the user went', async () => {
  const [first = ''] = await askMany('Desk F', ['soon-1', 'soon-2']);
  const page = await console.open(member, '/approvals', { viewport: { width: 1440, height: 900 } });
  await itemOf(page, 'soon-2').waitFor();
  let answer = (_: 'refuse' | 'continue') => {};
  await page.route('**/approvals/*/resolve', async (route) => {
    const how = await new Promise<'refuse' | 'continue'>((resolve) => {
      answer = resolve;
    });
    if (how === 'continue') return await route.continue();
    await route.fulfill({
      status: 400,
      contentType: 'application/problem+json',
      body: '{"code":"invalid_request","detail":"Not today.","status":400,"title":"","type":"","requestId":"req_1"}',
    });
  });
  const item = itemOf(page, 'soon-1');
  const isSent = () => page.waitForRequest(/\/resolve$/);
  await page.keyboard.press('j');
  await page.keyboard.press('d');
  await page.keyboard.type('Too much');
  await Promise.all([isSent(), page.keyboard.press('Enter')]);
  await item.getByText('denied').waitFor();
  await item.getByText('by you').waitFor();
  expect((await approval(first)).status).toBe('pending');
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  const other = itemOf(page, 'soon-2').getByRole('button', { name: 'Approve now' });
  await expect.poll(() => hasFocus(other)).toBe(true);
  answer('refuse');
  await item.getByRole('alert').getByText('Not today.').waitFor();
  expect(await item.getByLabel('Reason').inputValue()).toBe('Too much');
  expect(await hasFocus(other)).toBe(true);
  await page.keyboard.press('Escape');

  // A user who has left the page learns of the refusal.
  await Promise.all([isSent(), item.getByRole('button', { name: 'Deny now' }).press('Enter')]);
  await item.getByText('by you').waitFor();
  await page.getByRole('link', { name: 'Usage' }).click();
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  answer('refuse');
  await page.getByText('Not decided: Refund order. Open Approvals to try again.').waitFor();

  await page.getByRole('link', { name: /^Approvals/ }).click();
  await item.getByRole('button', { name: 'Deny', exact: true }).press('Enter');
  await Promise.all([isSent(), item.getByRole('button', { name: 'Deny now' }).press('Enter')]);
  await item.getByText('by you').waitFor();
  answer('continue');
  await expect.poll(async () => (await approval(first)).status).toBe('denied');
  await page.unroute('**/approvals/*/resolve');
  const { data: left } = await console.service.client.approvals.list({ status: 'pending' });
  await console.service.client.approvals.resolveMany({
    operationIds: left.map(({ operationId }) => operationId),
    decision: 'denied',
  });
});

test('those who may not decide an approval see why, cannot select it, and are not notified of it', async () => {
  const shown = '(globalThis.shown ??= [])';
  const page = await console.open(member, '/approvals', { viewport: { width: 1440, height: 900 } });
  await page.addInitScript(`
    globalThis.asked = 0;
    globalThis.Notification = class {
      static permission = localStorage.getItem('test.permission') ?? 'default';
      static async requestPermission() {
        globalThis.asked += 1;
        localStorage.setItem('test.permission', 'granted');
        return (Notification.permission = 'granted');
      }
      constructor(title, { body }) { ${shown}.push([title, body]); }
      close() {}
    };
    document.hasFocus = () => false;
  `);
  await page.reload();
  await page.getByText('No pending approvals.').waitFor();
  expect(await page.evaluate('asked'), 'nothing is asked before the click').toBe(0);
  await page.getByRole('button', { name: 'Notify me' }).click();
  await page.getByRole('button', { name: 'Notifications on' }).waitFor();

  const [forOwner = ''] = await askMany('Vault', ['order-vault'], { roles: ['owner'] });
  await itemOf(page, 'order-vault').getByText('Not yours to decide').waitFor();
  expect(await itemOf(page, 'order-vault').getByRole('checkbox').isDisabled()).toBe(true);
  await itemOf(page, 'order-vault').getByRole('button', { name: 'Details' }).click();
  await itemOf(page, 'order-vault')
    .getByText('Only people with the role owner may decide this; yours is member.')
    .waitFor();
  const many = await askMany('Desk D', ['burst-1', 'burst-2', 'burst-3']);
  await expect.poll(() => page.evaluate(shown)).toEqual([['3 calls waiting for approval', 'In production']]);
  await page.getByRole('button', { name: 'Notifications on' }).click();
  await page.getByRole('button', { name: 'Notify me' }).waitFor();
  await console.service.client.approvals.resolveMany({ operationIds: many, decision: 'denied' });
  await console.owner.client.approvals.deny(forOwner);
  await page.context().close();

  const other = await console.open(viewer, '/approvals');
  await other.getByText('No pending approvals.').waitFor();
  expect(await other.getByRole('button', { name: 'Notify me' }).count()).toBe(0);
});

test('on a phone a line is two lines high, a tap opens it with large buttons, and a selection has its bar', async () => {
  const ids = await askMany('Desk E', ['tap-1', 'tap-2', 'tap-3']);
  const page = await console.open(member, '/approvals', phone);
  const item = itemOf(page, 'tap-2');
  await item.waitFor();
  expect((await item.boundingBox())!.height).toBeLessThan(72);
  expect(await item.getByRole('button', { name: 'Approve', exact: true }).isVisible()).toBe(false);
  await item.locator('.line').tap();
  const approve = item.getByRole('button', { name: 'Approve', exact: true });
  expect((await approve.boundingBox())!.height).toBeGreaterThanOrEqual(44);
  await item.getByText('I refund.').waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await expectAccessible(page);
  await itemOf(page, 'tap-3').getByRole('checkbox').tap();
  await page.getByRole('button', { name: 'Deny 1…' }).tap();
  await page.getByLabel('Reason').press('Enter');
  await expect.poll(async () => (await approval(ids[2]!)).status).toBe('denied');
  await console.service.client.approvals.resolveMany({ operationIds: ids, decision: 'denied' });
});
