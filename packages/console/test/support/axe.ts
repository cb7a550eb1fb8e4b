import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

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
async function stillViolations({
  scheme,
  within,
  rules,
}: {
  scheme: string;
  within: string;
  rules: string[] | undefined;
}): Promise<Violation[]> {
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
  const { violations } = await axe.run(within, {
    resultTypes: ['violations'],
    // Only rules that axe does not run by default need the text of the styles.
    preload: false,
    ...(rules && { runOnly: rules }),
  });
  for (const one of endless) one.play();
  return violations.map(({ id, impact, help, nodes }) => ({
    id,
    impact,
    help,
    nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })),
  }));
}

type Scheme = 'light' | 'dark';

/** What is dark differs from what is light in its colors only. Undefined: all rules. */
const rulesOf: Record<Scheme, string[] | undefined> = { light: undefined, dark: ['color-contrast'] };

/**
 * For pages and parts that show how something looks in the dark. Others need only light: their colors come from tokens.css
 * (test/house.test.ts), and test/console-colors.test.ts checks the contrast of each pair of tokens in both schemes.
 */
export const bothSchemes: readonly Scheme[] = ['light', 'dark'];

/** Fails on anything that axe rates serious or critical. `within` is the selector of a part of the page. */
export async function expectAccessible(
  page: Page,
  within = 'html',
  schemes: readonly Scheme[] = ['light'],
): Promise<void> {
  // Through the debugging protocol, because the page's policy would refuse a script.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(source);
  for (const scheme of schemes) {
    await page.emulateMedia({ colorScheme: scheme });
    const look = async () => {
      const found = await page.evaluate(stillViolations, { scheme, within, rules: rulesOf[scheme] });
      return found.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    };
    let serious = await look();
    // A page that changed while axe looked.
    for (let round = 0; serious.length > 0 && round < 2; round++) serious = await look();
    expect(serious, `${page.url()} in ${scheme}`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null });
}
