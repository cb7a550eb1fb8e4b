// A real browser for tests. One serves all test files of a process; each page is in a context of its own, which shares nothing with others.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage, Page } from 'playwright-core';
import { onTestFinished, TestRunner } from 'vitest';
import { atFileEnd } from '../../../server/test/support/at-file-end.ts';
import { launchChromium } from './chromium.ts';

export type { Page } from 'playwright-core';

let launching: Promise<Browser> | undefined;

async function browser(): Promise<Browser> {
  if (launching && !(await launching).isConnected()) launching = undefined;
  if (!launching) {
    const scratch = mkdtempSync(join(tmpdir(), 'signalbox-browser-'));
    // Playwright ends the browser at the end of the process.
    process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
    launching = launchChromium(scratch);
  }
  return await launching;
}

/** The contexts that a file opened outside its tests, which close at its end. */
const ofFile = new Set<() => Promise<void>>();
atFileEnd(async () => {
  const closings = [...ofFile];
  ofFile.clear();
  for (const close of closings) await close();
});

/**
 * A new page in a context of its own, which closes when the test ends, or the test file if it was opened outside a test. That fails
 * if the page threw, if it wrote a problem to its console (by default, that the policy refused something), or if a route handler
 * threw while the page was open.
 */
export async function newPage(
  options: BrowserContextOptions = {},
  isProblem = (message: ConsoleMessage) => /content security policy/i.test(message.text()),
): Promise<Page> {
  const { page, close } = await openPage(options, isProblem);
  if (TestRunner.getCurrentTest()) onTestFinished(close);
  else ofFile.add(close);
  return page;
}

/** The same, closed by the caller. */
export async function openPage(
  options: BrowserContextOptions,
  isProblem: (message: ConsoleMessage) => boolean,
): Promise<{ page: Page; close(): Promise<void> }> {
  const context = await (await browser()).newContext(options);
  const problems: unknown[] = [];
  watch(context, isProblem, problems);
  const close = async () => {
    await context.close();
    if (problems.length > 0) throw problems[0];
  };
  return { page: await context.newPage(), close };
}

/** Adds to `problems` what must not happen in the context's pages. */
function watch(context: BrowserContext, isProblem: (message: ConsoleMessage) => boolean, problems: unknown[]): void {
  context.on('weberror', (webError) => {
    problems.push(new Error(`${webError.page()?.url()} threw ${webError.error().stack}`));
  });
  context.on('console', (message) => {
    if (isProblem(message)) problems.push(new Error(`${message.page()?.url()}: ${message.text()}`));
  });
  context.on('page', (page) => {
    const route = page.route.bind(page);
    page.route = async (url, handler, options) =>
      await route(
        url,
        async (...args) => {
          try {
            await handler(...args);
          } catch (error) {
            // A page that closes ends the requests that its handlers still work on.
            if (!page.isClosed() && !context.isClosed()) problems.push(error);
          }
        },
        options,
      );
  });
}
