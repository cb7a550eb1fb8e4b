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

async function seriousViolations(page: Page): Promise<Violation[]> {
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  const found = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) })))`,
  )) as Violation[];
  return found.filter(({ impact }) => ['serious', 'critical'].includes(impact));
}

/** Fails on anything that axe rates serious or critical, in light and in dark. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // Through the debugging protocol, because the page's policy would refuse a script.
    await page.evaluate(`if (!window.axe) { ${source} }`);
    let serious = await seriousViolations(page);
    // On a busy machine, elements may still have the colours of the other scheme.
    for (let round = 0; serious.length > 0 && round < 3; round++) serious = await seriousViolations(page);
    expect(serious, `${page.url()} in ${colorScheme}`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null });
}
