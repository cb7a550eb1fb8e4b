// Installs the dependencies of a fresh clone: `npm ci`, once for each lock file and platform.
//
// Runs before `npm start`, `npm test` and others, on the machine's own Node (20 or later) and before anything is installed. It can
// therefore import only Node's own modules.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = `${root}node_modules/.signalbox-installed`;
const stamp = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .update(`${process.platform}-${process.arch}`)
  .digest('hex');

/** npm writes this file at the end of an installation. */
function isInstalledByHand() {
  const ofNpm = `${root}node_modules/.package-lock.json`;
  return existsSync(ofNpm) && statSync(ofNpm).mtimeMs > statSync(`${root}package-lock.json`).mtimeMs;
}

if (!existsSync(stampFile) && isInstalledByHand()) writeFileSync(stampFile, stamp);
if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== stamp) {
  console.log('Installing dependencies (only this once) …');
  // Run npm's script directly: on Windows `npm` is a .cmd file, which spawn can't run without a shell.
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
  const { status } = spawnSync(command, [...args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) {
    console.error('Could not install the dependencies. Fix the errors above, then run the same command again.');
    process.exit(1);
  }
  writeFileSync(stampFile, stamp);
}
