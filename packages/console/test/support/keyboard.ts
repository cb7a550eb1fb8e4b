// What a user does who has no mouse, and what they must see meanwhile.
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

// More than the stops of any dialog or page of the tests, without their lists.
const MOST_STOPS = 150;

export async function hasFocus(target: Locator): Promise<boolean> {
  return (await target.and(target.page().locator(':focus')).count()) > 0;
}

/** Presses Tab until the element has the focus. */
export async function tabTo(target: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  const page = target.page();
  await target.first().waitFor();
  for (let stop = 0; stop < MOST_STOPS; stop += 1) {
    if (await hasFocus(target)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`Tab does not reach ${target}`);
}

/** Tab moves within the dialog or drawer, and never to what is behind a modal one. */
export async function expectTrapped(page: Page): Promise<void> {
  for (let stop = 0; stop < 12; stop += 1) {
    await page.keyboard.press('Tab');
    const outside = await page.evaluate(() => {
      const { activeElement } = document;
      // Between the last and the first control, the focus is in the browser's own bar.
      if (!activeElement || activeElement === document.body) return undefined;
      return activeElement.closest('dialog[open]') ? undefined : activeElement.outerHTML.slice(0, 200);
    });
    expect(outside, 'the focus left the dialog').toBeUndefined();
  }
}
