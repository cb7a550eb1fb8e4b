#!/usr/bin/env node
// What npm links as `signalbox`. In the repository the command is TypeScript, and an older Node starts the one that is installed there.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const built = new URL('./bin.js', import.meta.url);
const source = new URL('./bin.ts', import.meta.url);
if (existsSync(built)) await import(built.href);
else if (process.features.typescript) await import(source.href);
else {
  const node = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url));
  const child = spawn(node, [fileURLToPath(source), ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.once('error', () => process.stderr.write('signalbox: first run `npm install` in the repository.\n'));
  child.once('exit', (code) => process.exit(code ?? 1));
}
