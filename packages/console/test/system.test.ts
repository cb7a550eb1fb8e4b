// The parts of the console on /console/_system: what they look like, in light and in dark, and what they do.
import { readdirSync, readFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { startTestService } from '../../server/test/support/service.ts';
import { bothSchemes, expectAccessible } from './support/axe.ts';
import { newPage } from './support/browser.ts';
import { consoleDir } from './support/console-dir.ts';
import { clearPictures, comparePicture, isWriting } from './support/pictures.ts';

// The browser from the npm package (support/browser.ts). Others draw differently.
const isPinned = process.platform === 'linux' && process.arch === 'x64' && !process.env.SIGNALBOX_TEST_BROWSER;

let page: Page;
beforeAll(async () => {
  const service = await startTestService({ consoleDir });
  page = await newPage({
    viewport: { width: 960, height: 900 },
    reducedMotion: 'reduce',
    locale: 'en',
    timezoneId: 'UTC',
  });
  await page.goto(`${service.url}/console/_system`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.evaluate('document.fonts.ready');
});

const specimens = () =>
  page.locator('[data-specimen]').evaluateAll((all) => all.map((one) => one.getAttribute('data-specimen')!));

/** Each starts on a whole pixel, so that no picture depends on what is above its part. */
const alignSpecimens = () =>
  page.locator('[data-specimen]').evaluateAll((all) => {
    for (const one of all as HTMLElement[]) one.style.minHeight = '';
    for (const one of all as HTMLElement[]) {
      const { top, height } = one.getBoundingClientRect();
      one.style.marginTop = `${Math.ceil(top + scrollY) - (top + scrollY)}px`;
      one.style.minHeight = `${Math.ceil(height)}px`;
    }
  });

/** Parts that float, with what opens them. */
const floating: [name: string, opener: string, part: (page: Page) => Locator][] = [
  ['menu', 'More actions', (page) => page.getByRole('menu')],
  ['tooltip', 'Delete', (page) => page.locator('.tooltip')],
  ['popover', 'Filter', (page) => page.getByRole('dialog', { name: 'Add a filter' })],
  ['columns', 'Columns', (page) => page.getByRole('menu')],
  ['dialog', 'Open a dialog', (page) => page.getByRole('dialog')],
  ['drawer', 'Open a drawer', (page) => page.getByRole('dialog')],
  ['secret', 'Show a secret once', (page) => page.getByRole('dialog')],
  ['toast', 'Show a toast', (page) => page.locator('.toast')],
];

test('every part looks as in its picture, in light and in dark, and what floats passes axe in dark', async () => {
  clearPictures();
  const wrong: (string | undefined)[] = [];
  const names: string[] = [];
  async function compare(name: string, part: Locator): Promise<void> {
    const picture = await part.screenshot({ animations: 'disabled', caret: 'hide' });
    names.push(`${name}.png`);
    if (isWriting || isPinned) wrong.push(comparePicture(name, picture));
  }
  await page.locator('.cm-lintRange').waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await alignSpecimens();
    for (const name of await specimens()) {
      await compare(`${name}-${colorScheme}`, page.locator(`[data-specimen="${name}"]`));
    }
    for (const [name, opener, part] of floating) {
      const button = page.getByRole('button', { name: opener, exact: true }).first();
      if (name === 'tooltip') await button.hover();
      else await button.click();
      await compare(`${name}-${colorScheme}`, part(page));
      // In light, keyboard.test.ts checks the menus and dialogs of the pages. A toast would not stay for it.
      if (colorScheme === 'dark' && name !== 'toast') {
        await expectAccessible(page, '[role=menu], [role=dialog], dialog[open], .tooltip', ['dark']);
        await page.emulateMedia({ colorScheme });
      }
      if (name === 'tooltip' || name === 'toast') await page.mouse.move(0, 0);
      // Not by Escape, because it would be lost.
      else if (name === 'secret') await page.getByRole('button', { name: 'I’ve saved it' }).click();
      else await page.keyboard.press('Escape');
      await part(page).waitFor({ state: 'detached' });
    }
    await page.setViewportSize({ width: 360, height: 800 });
    await alignSpecimens();
    for (const name of ['table', 'filters']) {
      await compare(`${name}-phone-${colorScheme}`, page.locator(`[data-specimen="${name}"]`));
    }
    await page.setViewportSize({ width: 960, height: 900 });
  }
  expect(
    wrong.filter((problem) => problem !== undefined),
    'If that is what you meant: npm run pictures. See packages/console/test/pictures/.different',
  ).toEqual([]);
  const stored = readdirSync(new URL('pictures/', import.meta.url)).filter((file) => file.endsWith('.png'));
  expect(stored.toSorted()).toEqual(names.toSorted());
}, 180_000);

test('every part of ui/ is on the page of parts', () => {
  const directory = new URL('../src/', import.meta.url);
  // Components that need an organization, or are a page themselves or a part of others.
  const elsewhere = [
    'admins-only',
    'change-history',
    'dollars',
    'export-menu',
    'page',
    'popover',
    'session-link',
    'slow',
    'standalone-page',
    'too-long',
    'unavailable',
  ];
  const parts = readdirSync(new URL('ui/', directory)).flatMap((file) => /^([a-z-]+)\.tsx$/.exec(file)?.[1] ?? []);
  const used = readdirSync(new URL('pages/system/', directory))
    .filter((file) => file.endsWith('.tsx'))
    .flatMap((file) => [
      ...readFileSync(new URL(`pages/system/${file}`, directory), 'utf8').matchAll(/\/ui\/([a-z-]+)\.tsx'/g),
    ])
    .map(([, name]) => name!);
  expect(parts.filter((name) => !used.includes(name) && !elsewhere.includes(name))).toEqual([]);
});

test('every part fits a phone, and passes axe in light and dark', async () => {
  for (const width of [360, 960]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await expectAccessible(page, 'html', bothSchemes);
  }
});

test('a table is used by keyboard: j and k move, x selects, Enter opens, and nothing happens in a field', async () => {
  const table = page.getByRole('region', { name: 'Table', exact: true });
  const focused = () => page.evaluate(() => document.activeElement?.closest('tr')?.getAttribute('data-index') ?? null);
  await page.getByRole('searchbox', { name: 'Search sessions' }).focus();
  await page.keyboard.press('j');
  expect(await focused()).toBe(null);
  await page.keyboard.press('Backspace');
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('j');
  expect(await focused()).toBe('0');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  expect(await focused()).toBe('1');
  await page.keyboard.press('x');
  await table.getByText('2 selected').waitFor();
  await page.keyboard.press('x');
  await table.getByText('1 selected').waitFor();
  await table.getByRole('checkbox', { name: 'Select all' }).check();
  await table.getByText('5 selected').waitFor();
  await table.getByRole('button', { name: 'Clear' }).click();
  expect(await table.getByRole('toolbar').count()).toBe(0);
  await table.getByRole('columnheader', { name: 'Duration' }).getByRole('button').click();
  await table.getByRole('columnheader', { name: 'Duration' }).and(page.locator('[aria-sort="ascending"]')).waitFor();
  await table.getByRole('button', { name: 'Columns' }).click();
  await page.getByRole('menuitemcheckbox', { name: 'End user' }).click();
  await table.getByRole('columnheader', { name: 'End user' }).waitFor({ state: 'detached' });
});

test('the menu of columns names those that are chosen and have no room', async () => {
  await page.setViewportSize({ width: 960, height: 900 });
  const table = page.getByRole('region', { name: 'Table', exact: true });
  await table.getByRole('button', { name: 'Columns' }).click();
  const options = page.getByRole('menuitemcheckbox');
  expect(await options.allInnerTexts()).toEqual(['End user', expect.stringMatching(/^ID\s+no room$/)]);
  await page.setViewportSize({ width: 1440, height: 900 });
  await options.filter({ hasText: 'no room' }).waitFor({ state: 'detached' });
});

test('filters are chosen, changed and removed by keyboard, and a view keeps them', async () => {
  const filters = page.getByRole('region', { name: 'Filters', exact: true });
  const bar = filters.getByRole('search').first();
  await bar.getByRole('button', { name: 'Filter', exact: true }).press('Enter');
  await page.getByRole('dialog', { name: 'Add a filter' }).getByRole('button', { name: 'End user' }).press('Enter');
  await page.keyboard.type('cus_1181');
  await page.keyboard.press('Enter');
  await bar.getByRole('button', { name: 'End user is cus_1181' }).waitFor();
  await filters.getByRole('button', { name: 'Save view' }).click();
  await page.getByRole('textbox', { name: 'Name' }).last().fill('Mine');
  await page.keyboard.press('Enter');
  await filters.getByRole('button', { name: 'All', exact: true }).click();
  expect(await bar.getByRole('button', { name: /^Remove the filter/ }).count()).toBe(0);
  await filters.getByRole('button', { name: 'Mine', exact: true }).click();
  await bar.getByRole('button', { name: 'Remove the filter Status' }).click();
  await bar.getByRole('button', { name: 'End user is cus_1181' }).waitFor();
});

test('a dialog keeps the focus and a drawer does not; Escape closes both and returns the focus', async () => {
  for (const [opener, name] of [
    ['Open a dialog', 'Delete Refund desk?'],
    ['Open a drawer', 'refund_order'],
  ] as const) {
    const button = page.getByRole('button', { name: opener });
    await button.click();
    await page.getByRole('dialog', { name }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name }).waitFor({ state: 'detached' });
    expect(await button.evaluate((element) => element === document.activeElement), opener).toBe(true);
  }
});
