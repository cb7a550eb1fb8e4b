// Webhooks in the browser: set them up, watch them, and fix them when they fail.

import { webhooks } from '@signalbox/client';
import type { Page } from 'playwright-core';
import sql from 'sql-template-tag';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { createReceiver, type Receiver } from '../../server/test/support/receiver.ts';
import { watchSecret } from '../../server/test/support/service.ts';
import { expectAccessible } from './support/axe.ts';
import { startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
let agentId: string;
let environments = 0;
const receivers: Receiver[] = [];

beforeAll(async () => {
  console = await startConsole();
  const settings = { script: [{ text: 'Hello there' }] };
  const model = { provider: 'scripted' as const, model: 'greeter', settings };
  ({ agentId } = await console.service.client.agents.create({ name: 'Greeter', model }));
});

afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

async function receiverOf(answer?: Receiver['respond']): Promise<Receiver> {
  const receiver = await createReceiver(answer);
  receivers.push(receiver);
  return receiver;
}

/** Creates an environment for one test. */
async function createEnvironment(): Promise<string> {
  const { name } = await console.service.client.environments.create({ name: `place-${++environments}` });
  return name;
}

async function createSubscription(url: string): Promise<string> {
  const name = await createEnvironment();
  await console.service.client.webhookSubscriptions.create({ environment: name, url });
  return name;
}

function startSession(name: string) {
  return console.service.client.sessions.open({ agentId, environment: name, input: 'Hi' });
}

async function secretShown(page: Page): Promise<string> {
  const secret = (await page.getByRole('dialog').locator('pre').first().textContent())!;
  expect(secret).toMatch(/^whsec_/);
  watchSecret(secret.slice('whsec_'.length));
  return secret;
}

test('a webhook is added with the keyboard; its secret verifies deliveries, is shown once and then leaves the page', async () => {
  const name = await createEnvironment();
  const receiver = await receiverOf();
  const page = await console.open(console.owner, '/webhooks');
  await page.getByRole('button', { name: 'Add webhook' }).first().focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Add webhook' });
  await dialog.getByLabel('Environment').selectOption(name);
  await dialog.getByRole('textbox', { name: 'Endpoint URL' }).fill('https://10.0.0.1/hook');
  await page.keyboard.press('Enter');
  await dialog.getByRole('textbox', { name: 'Endpoint URL' }).and(page.locator('[aria-invalid=true]')).waitFor();
  await dialog.getByRole('textbox', { name: 'Endpoint URL' }).fill(receiver.url);
  await page.keyboard.press('Enter');
  await page.getByText('Copy the secret now. It won’t be shown again.').waitFor();
  const secret = await secretShown(page);
  await page.getByText('webhooks.receiver({').waitFor();
  await expectAccessible(page);
  // Escape does not close it by accident.
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  await page
    .getByRole('heading', { name: `Webhook of ${name}` })
    .and(page.locator(':focus'))
    .waitFor();
  const bare = secret.slice('whsec_'.length);
  expect(await page.content()).not.toContain(bare);
  expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).not.toContain(bare);

  await page.getByRole('button', { name: 'Send test delivery' }).click();
  await page.getByText('Accepted with 200.').waitFor();
  const [{ body, headers } = { body: '', headers: {} }] = receiver.received;
  expect((await webhooks.verify(body, headers, secret)).sessionId).toBe('ses_test');
  expect(await page.content()).not.toContain(bare);
});

test('rotating a secret shows each next step until the receiver has accepted the new one', async () => {
  const name = await createEnvironment();
  const made = console.service.client.webhookSubscriptions;
  const known: string[] = [];
  const receiver = await receiverOf(async ({ body, headers }) =>
    webhooks.verify(body, headers, known).then(
      () => 200,
      () => 401,
    ),
  );
  const { signingSecret } = await made.create({ environment: name, url: receiver.url });
  known.push(signingSecret!);
  const page = await console.open(console.owner, `/webhooks/${name}`);
  await page.getByRole('button', { name: 'Send test delivery' }).click();
  await page.getByText('Version 1. The receiver has accepted it.').waitFor();

  await page.getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByRole('radio', { name: /^1 hour/ }).check();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByText('Both are valid until').waitFor();
  const next = await secretShown(page);
  await page.getByText('SIGNALBOX_SIGNING_SECRET=whsec_new…,whsec_old…').waitFor();
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  await page.getByRole('button', { name: 'Rotate secret' }).and(page.locator(':focus')).waitFor();
  expect(await page.content()).not.toContain(next.slice('whsec_'.length));

  const now = page.locator('[aria-current=step]');
  await now.getByText('Add the new secret to the receiver').waitFor();
  // The receiver knows only the old secret, and loses nothing.
  await page.getByRole('button', { name: 'Send test delivery' }).click();
  await page.getByText('Accepted with 200.').waitFor();
  await page.getByText('Signed with secret version 1').waitFor();
  await page.getByText('Version 2. The receiver has not accepted it yet.').waitFor();
  await expectAccessible(page);

  known.unshift(next);
  await page.getByRole('button', { name: 'Send test delivery' }).click();
  await page.getByText('Signed with secret version 2').waitFor();
  await now.getByText('Remove the old secret').waitFor();
  const { confirmedSecretVersion, previousSecretExpiresAt } = await made.get(name);
  expect(confirmedSecretVersion).toBe(2);
  await now.locator(`time[datetime="${previousSecretExpiresAt}"]`).first().waitFor();
});

test('a failing receiver is explained with its response as text; once fixed it gets what was queued, and a resend sends everything again', async () => {
  const hostile = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  const receiver = await receiverOf(() => ({ status: 502, headers: { 'content-type': 'text/html' }, body: hostile }));
  const name = await createSubscription(receiver.url);
  const { sessionId } = await startSession(name);
  await receiver.first(1);
  const page = await console.open(console.owner, `/webhooks/${name}`);
  await page.getByText('The last attempt failed').waitFor();
  await page.getByText('The receiver failed with 502.').waitFor();
  await page.getByRole('link', { name: 'Show the delivery and the response' }).click();
  const drawer = page.getByRole('dialog', { name: 'Delivery' });
  await drawer.getByText(hostile).first().waitFor();
  expect(await page.title()).toBe(`Webhook of ${name} · Signalbox`);
  // The request as it was sent.
  const { deliveryId } = receiver.received[0]!;
  await drawer.getByText(deliveryId).first().waitFor();
  await drawer.getByText(`"${sessionId}"`).waitFor();
  await expectAccessible(page);

  receiver.respond = () => 200;
  await drawer.getByRole('button', { name: 'Retry now' }).click();
  await drawer.getByText('the receiver returned 2xx').waitFor();
  await drawer.getByText('Accepted with 200').first().waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Deliveries' }).click();
  await page.getByText('The last attempt failed').waitFor({ state: 'detached' });

  const { deliveries } = console.service.client.webhookSubscriptions;
  const isAllIn = async () => (await deliveries.list(name, { status: 'pending' })).data.length === 0;
  await expect.poll(isAllIn).toBe(true);
  const before = receiver.received.length;
  await page.getByRole('button', { name: 'Resend since' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resend', exact: true }).click();
  await page.getByRole('textbox', { name: 'Since' }).and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByRole('textbox', { name: 'Since' }).fill('2020-01-01T00:00:00');
  await page.getByRole('dialog').getByRole('button', { name: 'Resend', exact: true }).click();
  await page.getByText('Resending').waitFor();
  await receiver.first(before + 1);
  const again = receiver.received[before]!.envelope;
  expect([again.sessionId, again.chunks[0]]).toMatchObject([sessionId, { turn: 1, seq: 1 }]);
});

test('a disabled webhook says why, queues deliveries, and sends them when it is enabled', async () => {
  const receiver = await receiverOf(() => 410);
  const name = await createSubscription(receiver.url);
  const { sessionId } = await startSession(name);
  const page = await console.open(console.owner, `/webhooks/${name}`);
  await page.getByText('Disabled because the receiver returned 410').waitFor();
  await page.getByText('make the receiver return 2xx and enable the webhook').waitFor();
  receiver.respond = () => 200;
  const before = receiver.received.length;
  await page.getByRole('button', { name: 'Enable webhook' }).click();
  await receiver.first(before + 1);
  expect(receiver.received[before]!.envelope.sessionId).toBe(sessionId);
  await page.getByText('Disabled because').waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'Actions for this webhook' }).click();
  await page.getByRole('menuitem', { name: 'Pause' }).click();
  await page.getByText('Deliveries are queued. Enable the webhook').waitFor();
  await page.getByRole('button', { name: 'Enable webhook' }).click();
  await page.getByText('Deliveries are queued. Enable the webhook').waitFor({ state: 'detached' });
});

test('an exhausted delivery says what the receiver is missing, and its session is resent from there', async () => {
  const receiver = await receiverOf();
  const name = await createSubscription(receiver.url);
  const { sessionId } = await startSession(name);
  const { deliveries } = console.service.client.webhookSubscriptions;
  const { db } = console.service;
  // The last chunk is delivered, and so is everything before it.
  const delivered = () => receiver.received.flatMap(({ envelope }) => envelope.chunks);
  await expect
    .poll(() => delivered().some((chunk) => chunk.type === 'session.status' && chunk.status === 'idle'))
    .toBe(true);
  await expect.poll(async () => (await deliveries.list(name, { status: 'pending' })).data.length).toBe(0);
  const { deliveryId } = (await deliveries.list(name, { sessionId, limit: 100 })).data.at(-1)!;
  await db.query(sql`
    update webhook_deliveries d set status = 'exhausted' from webhook_subscriptions w
    where w.webhook_subscription_id = d.webhook_subscription_id and w.environment = ${name} and d.previous_cursor = ''`);
  const page = await console.open(console.owner, `/webhooks/${name}?tab=deliveries&status=exhausted`);
  await page.getByRole('row', { name: /^ses_/ }).getByRole('link').click();
  await expect.poll(() => new URL(page.url()).searchParams.get('delivery')).toBe(deliveryId);
  await page.getByText('Delivery failed after the last retry').waitFor();
  const before = receiver.received.length;
  await page.getByRole('button', { name: 'Resend the session from here' }).click();
  expect(await page.getByRole('textbox', { name: 'Cursor' }).inputValue()).toBe('turn_0:seq_0');
  const recover = page.getByRole('dialog', { name: 'Resend from the journal' });
  await recover.getByRole('button', { name: 'Resend', exact: true }).click();
  await receiver.first(before + 1);
  const again = receiver.received[before]!.envelope;
  expect([again.sessionId, again.chunks[0]]).toMatchObject([sessionId, { turn: 1, seq: 1 }]);
});

test('a blocked webhook says why and how to fix it', async () => {
  const name = await createSubscription('https://example.com/hook');
  await console.service.db.query(sql`
    update webhook_subscriptions set sealed_secret = '\\x00' where environment = ${name}`);
  const page = await console.open(console.owner, '/webhooks');
  await page.getByRole('row', { name }).getByText('blocked').waitFor();
  await page.getByRole('link', { name }).click();
  await page.getByText('Deliveries are blocked').waitFor();
  await page.getByText('or rotate the secret with a grace period of 0 seconds').waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('1 webhook subscription that cannot send').waitFor();
});

test('a degraded webhook says since when it fails, when it is retried and when it will be disabled, and then how to enable it', async () => {
  const name = await createSubscription('https://example.com/hook');
  const { db } = console.service;
  await db.query(sql`
    update webhook_subscriptions set failing_since = now() - interval '30 hours', degraded = true, failures = 40,
      last_failure_at = now(), probe_at = now() + interval '14 minutes 30 seconds'
    where environment = ${name}`);
  const { health } = await console.service.client.webhookSubscriptions.get(name);
  const disabledAt = new Date(new Date(health.failingSince!).getTime() + 5 * 86_400_000).toISOString();
  const page = await console.open(console.owner, '/webhooks');
  await page.getByRole('row', { name }).getByText('degraded').waitFor();
  await page.getByRole('link', { name }).click();
  await page.getByText('Degraded: failing for more than a day').waitFor();
  await page.getByText('Deliveries are queued and will be sent in order once it recovers.').waitFor();
  await page.locator(`time[datetime="${health.failingSince}"]`).waitFor();
  await page.locator(`time[datetime="${health.nextProbeAt}"]`).getByText('in 14 min').waitFor();
  await page.locator(`time[datetime="${disabledAt}"]`).waitFor();
  await db.query(sql`
    update webhook_subscriptions set status = 'disabled', disabled_reason = 'failing', epoch = epoch + 1
    where environment = ${name}`);
  await page.reload();
  await page.getByText('Disabled because the receiver failed for 5 days').waitFor();
  await page.getByRole('button', { name: 'Enable webhook' }).click();
  await page.getByText('nothing sent yet').waitFor();
});

test('a delivery that waits because the receiver fails says so, and that it is sent after the next probe', async () => {
  const receiver = await receiverOf(() => ({ status: 503, headers: { 'retry-after': '3000' } }));
  const name = await createSubscription(receiver.url);
  const { webhookSubscriptions } = console.service.client;
  const probeAt = async () => (await webhookSubscriptions.get(name)).health.nextProbeAt;
  // Each fails once, until the destination is probed.
  for (let n = 0; n < 5; n++) await startSession(name);
  await expect.poll(probeAt).not.toBe(null);
  // As those that were prepared when the first probe was due.
  const [delivery] = (await webhookSubscriptions.deliveries.list(name)).data;
  const { deliveryId, sessionId } = delivery!;
  await console.service.db.query(sql`
    update pending_deliveries d set attempt_count = 0, next_attempt_at = null from webhook_subscriptions w
    where w.webhook_subscription_id = d.webhook_subscription_id and w.environment = ${name}`);
  expect(await webhookSubscriptions.deliveries.get(name, deliveryId)).toMatchObject({ attemptCount: 0 });
  const page = await console.open(console.owner, `/webhooks/${name}?tab=deliveries`);
  const row = page.getByRole('row').filter({ has: page.getByTitle(sessionId) });
  await row.getByText(/^waits for the next probe, in \d+ min$/).waitFor();
  await row.getByRole('link').click();
  await page.getByRole('dialog', { name: 'Delivery' }).getByText('waits for the next probe').waitFor();
  await webhookSubscriptions.update(name, { status: 'paused' });
  await row.getByText('waits until the webhook is enabled').waitFor();
});

test('the URL is changed, an invalid one is refused at its field, and deleting asks first', async () => {
  const [before, after] = [await receiverOf(() => 404), await receiverOf()];
  const name = await createSubscription(before.url);
  const page = await console.open(console.owner, `/webhooks/${name}`);
  const change = async (url: string) => {
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Endpoint URL' }).fill(url);
    await dialog.getByRole('button', { name: 'Save' }).click();
  };
  await page.getByRole('button', { name: 'Send test delivery' }).click();
  await page.getByText('Nothing at this path accepts a POST.').waitFor();
  await page.getByRole('button', { name: 'Actions for this webhook' }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await change('https://10.0.0.1/');
  await page.getByRole('textbox', { name: 'Endpoint URL' }).and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByRole('checkbox', { name: /tool.result/ }).check();
  await change(after.url);
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByTitle(after.url).waitFor();
  expect(await console.service.client.webhookSubscriptions.get(name)).toMatchObject({
    url: after.url,
    chunkTypes: expect.arrayContaining(['tool.result']),
  });

  await page.getByRole('button', { name: 'Actions for this webhook' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete webhook' }).click();
  await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
  await expect(console.service.client.webhookSubscriptions.get(name)).rejects.toMatchObject({ code: 'not_found' });
});

test('delivery filters are in the URL, so a reload or a shared link shows the same', async () => {
  const receiver = await receiverOf();
  const name = await createSubscription(receiver.url);
  const [first, second] = [await startSession(name), await startSession(name)];
  const page = await console.open(console.owner, `/webhooks/${name}?tab=deliveries`);
  await page.getByTitle(second.sessionId).first().waitFor();
  // The radio buttons are covered by their labels.
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Succeeded').click();
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByRole('button', { name: 'Session', exact: true }).click();
  await page.getByLabel('Session', { exact: true }).fill('not an id');
  await page.keyboard.press('Enter');
  await page.getByText('Enter the whole id of a session.').waitFor();
  await page.getByLabel('Session', { exact: true }).fill(first.sessionId);
  await page.keyboard.press('Enter');
  await page.getByTitle(second.sessionId).first().waitFor({ state: 'detached' });
  await page.reload();
  await page.getByTitle(first.sessionId).first().waitFor();
  expect(await page.getByTitle(second.sessionId).count()).toBe(0);
  expect(await page.getByRole('radio', { name: 'Succeeded' }).isChecked()).toBe(true);
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Exhausted').click();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByTitle(second.sessionId).first().waitFor();
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
  await expectAccessible(page);
});

test('the test receiver shows deliveries as they arrive and that they are verified', async () => {
  const name = await createEnvironment();
  const page = await console.open(console.owner, '/webhooks');
  await page.getByRole('button', { name: 'Add webhook' }).first().click();
  await page.getByLabel('Environment').selectOption(name);
  await page.getByRole('radio', { name: /^The test receiver/ }).check();
  await page.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click();
  await secretShown(page);
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  await page.getByRole('tab', { name: 'Test receiver' }).click();
  await page.getByText('Nothing received yet.').waitFor();
  const { sessionId } = await startSession(name);
  await page.getByText(sessionId).first().click();
  await page.getByText('verified', { exact: true }).first().waitFor();
  await page.getByText(`"sessionId"`).first().waitFor();
  await expectAccessible(page);
});

test('a viewer sees everything and can change nothing', async () => {
  const receiver = await receiverOf(() => 500);
  const name = await createSubscription(receiver.url);
  await startSession(name);
  const [{ deliveryId } = { deliveryId: '' }] = await receiver.first(1);
  const viewer = await console.person('viewer');
  const page = await console.open(viewer, '/webhooks');
  await page.getByRole('row', { name }).getByText('failing').waitFor();
  await expectAccessible(page);
  await page.getByRole('link', { name }).click();
  await page.getByText('The receiver failed with 500.').waitFor();
  await page.getByText('You need the member role to send a test delivery.').waitFor();
  await page.goto(`${console.origin}/console/${console.organizationId}/webhooks/${name}/deliveries/${deliveryId}`);
  await page.getByText('Refused with 500').first().waitFor();
  for (const changing of ['Retry now', 'Rotate secret', 'Add webhook', 'Send test delivery', 'Resend since…']) {
    expect(await page.getByRole('button', { name: changing }).count()).toBe(0);
  }
  await expect(viewer.client.webhookSubscriptions.rotateSecret(name)).rejects.toMatchObject({
    code: 'insufficient_permission',
  });
});

test('the page of an environment without a webhook offers to add one, and that of no environment leads to the list', async () => {
  const { client } = console.service;
  await client.environments.create({ name: 'silent' });
  const page = await console.open(console.owner, '/webhooks/silent');
  await page.getByRole('heading', { name: 'silent has no webhook' }).waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.getByRole('radio', { name: /^The test receiver/ }).check();
  await page.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click();
  await page.getByText('Copy the secret now. It won’t be shown again.').waitFor();
  const secret = (await page.getByRole('dialog').locator('pre').first().textContent())!;
  watchSecret(secret.slice('whsec_'.length));
  await page.getByRole('button', { name: 'I’ve saved it' }).click();
  await page.getByRole('tab', { name: 'Deliveries' }).waitFor();
  // Its row says on a phone what never happened.
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(`${console.origin}/console/${console.organizationId}/webhooks`);
  await expect.poll(() => page.getByRole('row', { name: /silent/ }).innerText()).toContain('never delivered');
  await page.goto(`${console.origin}/console/${console.organizationId}/webhooks/nowhere`);
  await page.getByRole('heading', { name: 'No such environment' }).waitFor();
  await page.getByRole('link', { name: 'All webhooks' }).click();
  await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor();
});
