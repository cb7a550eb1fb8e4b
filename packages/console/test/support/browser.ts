// A real browser for tests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { atFileEnd } from '../../../server/test/support/at-file-end.ts';
import { launchChromium } from './chromium.ts';

export type { Page } from 'playwright-core';

let scratch: string | undefined;
let launching: Promise<Browser> | undefined;

/** The browser of this test file. */
export function browser(): Promise<Browser> {
  scratch ??= mkdtempSync(join(tmpdir(), 'signalbox-browser-'));
  launching ??= launchChromium(scratch);
  return launching;
}

atFileEnd(async () => {
  await (await launching)?.close();
  if (scratch) rmSync(scratch, { recursive: true, force: true });
  launching = undefined;
  scratch = undefined;
});
