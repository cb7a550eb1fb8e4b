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

/**
 * What is wrong with the stops of the Tab key from here to the end of the page, or the first `most` of a long one: each needs a name and a
 * visible ring, and nothing may cover it. Nothing keeps the focus, except an editor until Escape.
 */
export async function problemsOfStops(page: Page, most = 60): Promise<string[]> {
  const problems: string[] = [];
  for (let stop = 0; stop < most; stop += 1) {
    await page.keyboard.press('Tab');
    const { problem, isEnd, isEditor } = await page.evaluate(stopOf);
    if (problem !== '') problems.push(problem);
    if (isEnd) break;
    if (isEditor) await page.keyboard.press('Escape');
  }
  return problems;
}

/** In the page. */
function stopOf(): { problem: string; isEnd: boolean; isEditor: boolean } {
  const element = document.activeElement;
  if (!element || element === document.body) return { problem: '', isEnd: true, isEditor: false };
  const about = (why: string) => `${why}: ${element.outerHTML.slice(0, 160)}`;
  const { stops = new WeakSet() } = globalThis as { stops?: WeakSet<Element> };
  Object.assign(globalThis, { stops });
  // Nothing is a stop twice before the end.
  if (stops.has(element)) return { problem: about('Tab does not get past'), isEnd: true, isEditor: false };
  stops.add(element);
  return { problem: problemOf(element), isEnd: false, isEditor: element.matches('.cm-content') };

  function problemOf(one: Element): string {
    const { labels, title, placeholder } = one as HTMLInputElement;
    const named = (one.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id));
    const texts: (string | null | undefined)[] = [one.getAttribute('aria-label'), title, placeholder, one.textContent];
    for (const other of [...named, ...(labels ?? [])]) texts.push(other?.textContent);
    if (texts.join('').trim() === '') return about('no name');
    // The ring of a control can be around what it is in, such as a row or the box of a field.
    const rings = [document.getElementById(one.getAttribute('aria-activedescendant') ?? ''), one.nextElementSibling];
    for (let ring: Element | null = one; ring && rings.length < 8 && !ring.matches('main'); ring = ring.parentElement)
      rings.push(ring);
    const hasRing = rings.some((ring) => {
      if (!ring) return false;
      const { outlineStyle, outlineWidth } = getComputedStyle(ring);
      return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0;
    });
    if (!hasRing) return about('no ring');
    // A choice is hidden below its label, which is what one sees.
    const shown = one.matches('input.visually-hidden') ? (one.closest('label') ?? one) : one;
    const { left, top, width, height } = shown.getBoundingClientRect();
    if (width < 2 || height < 2) return about('not to be seen');
    // A part of a tall element is enough.
    const bottom = Math.min(top + height, innerHeight);
    const begin = Math.max(top, 0);
    const isSeen = [0.1, 0.3, 0.5, 0.7, 0.9].some((share) => {
      const hit = document.elementFromPoint(left + width / 2, begin + (bottom - begin) * share);
      // A tooltip on its way out belongs to the stop before, and Escape closes a drawer from everywhere.
      if (hit?.closest('[role="tooltip"], .tooltip, .drawer')) return true;
      return (
        hit !== null && (shown.contains(hit) || hit.contains(shown) || one.closest('label')?.contains(hit) === true)
      );
    });
    return isSeen ? '' : about('below something else');
  }
}
