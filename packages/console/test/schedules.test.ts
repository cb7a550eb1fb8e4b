// Schedules in the console, in a real browser on a real service whose clock the test controls.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManualClock } from '../../server/test/support/manual-clock.ts';
import { expectAccessible } from './support/axe.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

const HOUR_MS = 3_600_000;
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const clock = createManualClock(new Date());

let console: TestConsole;
let member: Person;
let viewer: Person;
let agentId: string;
beforeAll(async () => {
  console = await startConsole({ clock });
  member = await console.person('member', 'Mara Member');
  viewer = await console.person('viewer', 'Vito Viewer');
  ({ agentId } = await createAgent('Reporter'));
});

// The open pages' requests wait on this clock, too.
afterAll(() => clock.passWhile(console.service.stop()));

const createAgent = (name: string) =>
  console.service.client.agents.create({
    name,
    model: { provider: 'scripted', model: 'r', settings: { script: [{ text: 'Report: {{input}}' }] } },
  });

/** Advances the clock until the schedule has had a run. */
async function untilRun(scheduleId: string): Promise<void> {
  await clock.passUntil(async () => (await console.service.client.schedules.get(scheduleId)).lastRun !== null);
}

test('a schedule is created, described in plain words, edited, paused, enabled and deleted', async () => {
  const { client } = console.service;
  const page = await console.open(member, '/schedules', { timezoneId: 'Europe/Berlin' });
  await page.getByRole('heading', { name: 'No schedules yet' }).waitFor();
  // In the empty list; there is another one in the header.
  await page.getByRole('button', { name: 'New schedule' }).last().click();
  const dialog = page.getByRole('dialog', { name: 'New schedule' });
  await dialog.getByText('= Monday to Friday at 09:00').waitFor();
  expect(await dialog.getByLabel('Time zone').inputValue()).toBe('Europe/Berlin');
  await dialog.getByLabel('Cron expression').fill('0 9 30 2 *');
  await dialog.getByLabel('First message').fill('Summarize the night.');
  await dialog.getByRole('button', { name: 'Create schedule' }).click();
  // The service refuses a time that never comes, at its field.
  await dialog.getByLabel('Cron expression').and(page.locator('[aria-invalid]')).waitFor();
  await expectAccessible(page);
  await dialog.getByLabel('Cron expression').fill('30 7 * * mon');
  await dialog.getByText('= every Monday at 07:30').waitFor();
  await dialog.getByText('More options').click();
  await dialog.getByLabel('Max steps').fill('5');
  await dialog.getByLabel('Metadata').fill('team = support');
  await dialog.getByRole('button', { name: 'Create schedule' }).click();
  await dialog.waitFor({ state: 'detached' });
  const row = page.getByRole('row', { name: /Reporter/ });
  await row.getByText('Every Monday at 07:30').waitFor();
  await row.getByText('enabled').waitFor();
  const [made] = (await client.schedules.list()).data;
  expect(made).toMatchObject({
    agentId,
    cron: '30 7 * * mon',
    timezone: 'Europe/Berlin',
    input: 'Summarize the night.',
    budget: { maxSteps: 5 },
    metadata: { team: 'support' },
    closeOnIdle: true,
  });

  await row.getByRole('button', { name: /Actions for the schedule of Reporter/ }).click();
  await page.getByRole('menuitem', { name: 'Pause' }).click();
  await row.getByText('paused').waitFor();
  await row.getByRole('link', { name: 'Reporter' }).click();
  await page.getByRole('heading', { name: 'Schedule of Reporter' }).waitFor();
  await page.getByText('none while paused').waitFor();
  await page.getByText('at most 5 steps per session').waitFor();
  await page.getByRole('heading', { name: 'No runs yet' }).waitFor();

  const actions = page.getByRole('button', { name: 'Actions for this schedule' });
  await actions.click();
  await page.getByRole('menuitem', { name: 'Enable' }).click();
  await expect.poll(async () => (await client.schedules.get(made!.scheduleId)).status).toBe('enabled');
  await actions.press('Enter');
  await page.getByRole('menuitem', { name: 'Edit' }).press('Enter');
  const edit = page.getByRole('dialog', { name: 'Edit schedule' });
  await edit.getByLabel('Once').check();
  await edit.getByRole('button', { name: 'Save' }).click();
  await edit.getByText('Enter a date and a time.', { exact: true }).waitFor();
  const at = new Date(clock.now().getTime() + 24 * HOUR_MS);
  at.setUTCSeconds(0, 0);
  const inBerlin = new Date(at).toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' }).replace(' ', 'T');
  await edit.getByLabel('Date and time', { exact: true }).fill(inBerlin);
  await edit.getByRole('button', { name: 'Save' }).click();
  await edit.waitFor({ state: 'detached' });
  expect(await client.schedules.get(made!.scheduleId)).toMatchObject({
    cron: null,
    timezone: null,
    at: at.toISOString(),
    input: 'Summarize the night.',
  });

  await actions.press('Enter');
  await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
  await page.getByRole('button', { name: 'Delete schedule' }).press('Enter');
  await page.getByRole('heading', { name: 'Schedules', level: 1 }).waitFor();
  await expect(client.schedules.get(made!.scheduleId)).rejects.toMatchObject({ status: 404 });
});

test('each run shows its session, that it was missed, or why it failed', async () => {
  const { client } = console.service;
  const schedule = { agentId, environment: 'staging', cron: '0 * * * *', input: 'now' };
  const { scheduleId } = await client.schedules.create(schedule);
  const archived = await createAgent('Retired');
  const { scheduleId: failing } = await client.schedules.create({ ...schedule, agentId: archived.agentId });
  await client.agents.archive(archived.agentId);
  await clock.advance(3 * HOUR_MS);
  await untilRun(scheduleId);
  await untilRun(failing);

  const page = await console.open(member, `/schedules/${scheduleId}`, phone);
  const rows = page.getByRole('table', { name: 'Runs, newest first' }).getByRole('row');
  await rows.filter({ hasText: 'completed' }).getByRole('link').waitFor();
  await rows.filter({ hasText: 'missed' }).first().getByText('The service was not running').waitFor();
  await expectAccessible(page);
  // The radio buttons are covered by their labels.
  const only = (label: string) => page.getByRole('radiogroup', { name: 'Status' }).getByText(label).click();
  await only('Missed');
  await expect.poll(() => rows.filter({ hasText: 'completed' }).count()).toBe(0);
  await page.reload();
  await rows.filter({ hasText: 'missed' }).first().waitFor();
  await only('All');
  await rows.filter({ hasText: 'completed' }).getByRole('link').click();
  await page.getByText('Report: now').waitFor();

  await page.goto(`${console.origin}/console/${console.organizationId}/schedules/${failing}`);
  await page.getByText('Its agent is archived').waitFor();
  await rows.filter({ hasText: 'failed' }).getByText('agent_archived').waitFor();
});

test('a schedule whose sessions fail is marked in the list, on its page, in the navigation and on the overview; its page until one succeeds', async () => {
  const { client } = console.service;
  const script = [{ failWith: 'rejected' as const }];
  const failing = await client.agents.create({
    name: 'Broken reporter',
    model: { provider: 'scripted', model: 'r', settings: { script } },
  });
  const { scheduleId } = await client.schedules.create({
    agentId: failing.agentId,
    environment: 'staging',
    cron: '0 9 * * *',
    input: 'now',
  });
  const page = await console.open(member, '/schedules', { viewport: { width: 1440, height: 900 } });
  const row = page.getByRole('row', { name: /^Broken reporter/ });
  await row.getByText('enabled').waitFor();
  const marked = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Schedules failing' });
  expect(await marked.count()).toBe(0);
  // Without a reload: the list follows the events of sessions.
  for (const badge of ['1 run', '2 runs']) {
    await client.schedules.run(scheduleId);
    await clock.passUntil(() => row.getByText(badge, { exact: true }).isVisible());
  }
  await row.getByText('failing', { exact: true }).waitFor();
  await row.getByText('failed', { exact: true }).waitFor();
  await clock.passUntil(() => marked.isVisible());
  await expectAccessible(page);

  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('link', { name: '1 schedule whose last run failed' }).click();
  await page.getByRole('link', { name: 'Broken reporter' }).click();
  await page.getByRole('heading', { name: 'Schedule of Broken reporter' }).waitFor();
  await page.getByText('2 runs failed in a row').waitFor();
  const runs = page.getByRole('table', { name: 'Runs, newest first' }).getByRole('row');
  await expect.poll(() => runs.filter({ hasText: 'failed' }).filter({ hasText: 'model_rejected' }).count()).toBe(2);
  await expectAccessible(page);
  const [newest] = (await client.schedules.runs(scheduleId)).data;
  expect(await page.getByRole('link', { name: 'Open the last session' }).getAttribute('href')).toContain(
    newest!.sessionId,
  );

  await client.schedules.update(scheduleId, { agentId });
  await page.getByRole('button', { name: 'Run now' }).click();
  await clock.passUntil(() => runs.filter({ hasText: 'completed' }).isVisible());
  await clock.passUntil(() => page.getByText('failed in a row').isHidden());
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Failed').click();
  await expect.poll(() => runs.filter({ hasText: 'completed' }).count()).toBe(0);
  await expect.poll(() => runs.filter({ hasText: 'model_rejected' }).count()).toBe(2);
});

test('a viewer reads schedules and is offered no changes; filters are in the URL', async () => {
  const { client } = console.service;
  await client.schedules.create({ agentId, environment: 'production', cron: '0 9 * * *', input: '<b>bold</b>' });
  const page = await console.open(viewer, '/schedules?environment=production&status=nonsense');
  const rows = page.getByRole('table', { name: 'Schedules, newest first' }).getByRole('row');
  await rows.filter({ hasText: '<b>bold</b>' }).waitFor();
  expect(await rows.count()).toBe(2);
  await page.getByRole('button', { name: 'Environment: production' }).waitFor();
  for (const name of ['New schedule', /^Actions for/, /^Run /])
    expect(await page.getByRole('button', { name }).count()).toBe(0);
  await page.getByRole('button', { name: 'Paused' }).click();
  await page.getByRole('heading', { name: 'No matching schedules' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'No matching schedules' }).waitFor();
  await page.getByRole('button', { name: 'Paused' }).and(page.locator('[aria-current=page]')).waitFor();
  // The environment, which is chosen in the frame, stays.
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await rows.filter({ hasText: '<b>bold</b>' }).waitFor();
  await page.getByRole('button', { name: 'Environment: production' }).waitFor();
});

test('a schedule is created from a preset with a name, shows its next five runs, and runs now', async () => {
  const { client } = console.service;
  const page = await console.open(member, '/schedules#new', { viewport: { width: 1440, height: 900 } });
  const dialog = page.getByRole('dialog', { name: 'New schedule' });
  await dialog.getByLabel('Name').fill('Month end');
  await dialog.getByRole('button', { name: 'First of the month' }).click();
  expect(await dialog.getByLabel('Cron expression').inputValue()).toBe('0 9 1 * *');
  await dialog.getByLabel('Time zone').fill('UTC');
  const next = page.getByRole('list', { name: 'Next runs' });
  await expect.poll(async () => new Set(await next.getByRole('listitem').allTextContents()).size).toBe(5);
  await dialog.getByRole('button', { name: 'Every hour' }).click();
  const first = next.getByRole('listitem').first().locator('time').first();
  await expect
    .poll(async () => Date.parse((await first.getAttribute('datetime')) ?? '') - clock.now().getTime())
    .toBeLessThanOrEqual(HOUR_MS);
  // What is not valid has no runs; saving it says why.
  await dialog.getByLabel('Cron expression').fill('61 * * * *');
  await next.waitFor({ state: 'detached' });
  await dialog.getByRole('button', { name: 'First of the month' }).click();
  await next.waitFor();
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Create schedule' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(new URL(page.url()).hash).toBe('');
  await page.getByRole('button', { name: 'Run Month end now' }).click();
  const listed = page.getByRole('row', { name: /^Month end/ });
  // Its sessions have no first message.
  await clock.passUntil(() => listed.getByText('idle').isVisible());
  await page.getByRole('link', { name: 'Month end' }).click();
  await page.getByRole('heading', { name: 'Month end', level: 1 }).waitFor();
  await expect.poll(() => next.getByRole('listitem').count()).toBe(5);
  await page.getByRole('button', { name: 'Run now' }).click();
  const manual = page.getByRole('table', { name: 'Runs, newest first' }).getByRole('row').filter({ hasText: 'manual' });
  await expect.poll(() => manual.getByRole('link').count()).toBe(2);
  await expectAccessible(page);
  const [{ scheduleId, nextAt } = { scheduleId: '', nextAt: '' }] = (await client.schedules.list()).data;
  const run = { manual: true, status: 'opened' };
  expect((await client.schedules.runs(scheduleId)).data).toMatchObject([run, run]);
  expect(nextAt).toMatch(/-01T09:00:00.000Z$/);
});
