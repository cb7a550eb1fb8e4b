// Starts a browser: the one of an npm package on Linux x64, else the machine's own Chrome.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';

/** `scratch` is a directory for the browser's temporary files. */
export async function launchChromium(scratch: string): Promise<Browser> {
  if (process.env.SIGNALBOX_TEST_BROWSER) {
    return await chromium.launch({ executablePath: process.env.SIGNALBOX_TEST_BROWSER });
  }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return await chromium.launch({ channel: 'chrome' }).catch((error: Error) => {
      throw new Error(
        `Tests of the console need Chrome, or SIGNALBOX_TEST_BROWSER with the path of one. ${error.message}`,
      );
    });
  }
  const unpacked = await unpack();
  const executablePath = join(unpacked, 'chromium');
  const env: Record<string, string> = {
    ...(process.env as Record<string, string>),
    TMPDIR: scratch,
    ...(lacksLibraries(executablePath) && { LD_LIBRARY_PATH: join(unpacked, 'al2023', 'lib') }),
    ...(!existsSync('/etc/fonts/fonts.conf') && { FONTCONFIG_PATH: join(unpacked, 'fonts') }),
  };
  // None of the package's own arguments, because they turn off the browser's web security. V8 without threads of its own takes a tenth
  // less processor time for pages that live for seconds.
  return await chromium.launch({ executablePath, args: ['--no-sandbox', '--js-flags=--single-threaded'], env });
}

/** Unpacks each version once, into its own directory: the package trusts what it finds in the temporary directory. */
async function unpack(): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve('@sparticuz/chromium'));
  const cache = join(entry, '../../../../.cache');
  const { version } = JSON.parse(readFileSync(join(entry, '../../package.json'), 'utf8')) as { version: string };
  const target = join(cache, `signalbox-chromium-${version}`);
  if (existsSync(target)) return target;
  mkdirSync(cache, { recursive: true });
  const own = mkdtempSync(join(cache, 'unpacking-'));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = own;
  try {
    const { default: packaged, inflate } = await import('@sparticuz/chromium');
    await packaged.executablePath();
    await inflate(join(entry, '../../bin/al2023.tar.br'));
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  try {
    renameSync(own, target);
  } catch {
    // Another test file was faster.
    rmSync(own, { recursive: true });
  }
  return target;
}

function lacksLibraries(executable: string): boolean {
  const { stdout } = spawnSync('ldd', [executable], { encoding: 'utf8' });
  return stdout?.includes('not found') ?? false;
}
