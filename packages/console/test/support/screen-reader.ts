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
