// Makes a fresh clone runnable: `npm ci`, once for each lock file and platform.
//
// Runs before `npm start` and `npm test`, on whatever Node the machine has (20 or later) and before anything is
// installed, so it imports nothing but Node itself.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = `${root}node_modules/.signalbox-installed`;
const stamp = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .update(`${process.platform}-${process.arch}`)
  .digest('hex');

if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== stamp) {
  console.log('Installing what Signalbox needs (once) …');
  // npm's own entry file rather than `npm`: on Windows that is a .cmd, which spawn does not run without a shell.
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
  const { status } = spawnSync(command, [...args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) {
    console.error('Installing failed. The messages above say why; run the same command again once that is mended.');
    process.exit(1);
  }
  writeFileSync(stampFile, stamp);
}
