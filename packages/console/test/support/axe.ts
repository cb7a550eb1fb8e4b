import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core')), 'utf8');

interface Violation {
  id: string;
  impact: string;
  help: string;
  nodes: { html: string; failureSummary: string }[];
}

/**
 * In the page, when it has the scheme and nothing moves: what appears is there, what turns into another color has it, and what never
 * ends, such as a pulse, stands at its beginning.
 */
async function stillViolations({ scheme, within }: { scheme: string; within: string }): Promise<Violation[]> {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const isEndless = ({ effect }: Animation) => effect?.getComputedTiming().endTime === Number.POSITIVE_INFINITY;
  const moving = () => document.getAnimations().filter((one) => one.playState === 'running' && !isEndless(one));
  do await frames();
  while (!matchMedia(`(prefers-color-scheme: ${scheme})`).matches);
  while (moving().length > 0) {
    for (const one of moving()) one.finish();
    // What inherits a color begins to change only now.
    await frames();
  }
  const endless = document.getAnimations().filter(isEndless);
  for (const one of endless) {
    one.pause();
    one.currentTime = 0;
  }
  const { axe } = globalThis as unknown as {
    axe: { run(within: string, options: object): Promise<{ violations: Violation[] }> };
  };
  const { violations } = await axe.run(within, { resultTypes: ['violations'] });
  for (const one of endless) one.play();
  return violations.map(({ id, impact, help, nodes }) => ({
    id,
    impact,
    help,
    nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })),
  }));
}

/** Fails on anything that axe rates serious or critical, in light and in dark. `within` is the selector of a part of the page. */
export async function expectAccessible(page: Page, within = 'html'): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // Through the debugging protocol, because the page's policy would refuse a script.
    await page.evaluate(`if (!window.axe) { ${source} }`);
    const look = async () => {
      const found = await page.evaluate(stillViolations, { scheme: colorScheme, within });
      return found.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    };
    let serious = await look();
    // A page that changed while axe looked.
    for (let round = 0; serious.length > 0 && round < 2; round++) serious = await look();
    expect(serious, `${page.url()} in ${colorScheme}`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null });
}
