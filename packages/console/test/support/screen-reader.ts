// What a user needs who listens to a page.
import type { Page } from 'playwright-core';

const WITHOUT_NAME =
  /^\s*- (button|link|textbox|searchbox|checkbox|radio|combobox|switch|tab|menuitem|img|navigation|dialog|treegrid)( \[[^\]]*\])*:?$/;

/** What is missing to move around in the page: one main part, headings without gaps, and a name for each control. */
export async function problemsOfReading(page: Page): Promise<string[]> {
  const lines = (await page.locator('body').ariaSnapshot()).split('\n');
  const mains = lines.filter((line) => /^\s*- main\b/.test(line)).length;
  const problems = lines.filter((line) => WITHOUT_NAME.test(line)).map((line) => `no name: ${line.trim()}`);
  if (mains !== 1) problems.push(`${mains} parts are main`);
  // The heading of the page is in the bar above.
  let last = 1;
  for (const [heading, level] of (await page.locator('main').ariaSnapshot()).matchAll(/- heading .*\[level=(\d)\]/g)) {
    if (Number(level) > last + 1) problems.push(`after level ${last}: ${heading}`);
    last = Number(level);
  }
  return problems;
}

const PART =
  /^\s*- '?((?:heading|region|navigation|search|searchbox|table|columnheader|tab|article|figure|radiogroup|textbox|treegrid) "[^"]+")/;

/** What a screen reader can jump to within the page, in its order: `region "Needs you"`. */
export async function partsOf(page: Page): Promise<string[]> {
  const lines = (await page.locator('main').ariaSnapshot()).split('\n');
  return lines.flatMap((line) => PART.exec(line)?.[1] ?? []);
}
