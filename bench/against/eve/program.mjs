// Builds the agent in this folder and serves it, as its documentation describes for one's own servers.
import { spawn, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('.', import.meta.url));
const eve = `${cwd}node_modules/eve/bin/eve.js`;
const env = { ...process.env, EVE_TELEMETRY_DISABLED: '1' };
rmSync(`${cwd}.eve`, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [eve, 'build'], { cwd, env, stdio: 'inherit' });
if (status !== 0) process.exit(1);

const port = await freePort();
const child = spawn(process.execPath, [eve, 'start', '--host', '127.0.0.1', '--port', String(port)], {
  cwd,
  env,
  stdio: 'inherit',
});
child.on('exit', () => process.exit(1));
process.on('SIGTERM', () => child.kill('SIGTERM'));
const url = `http://127.0.0.1:${port}`;
while (!(await fetch(`${url}/eve/v1/health`).catch(() => undefined))?.ok) await sleep(100);
process.send(url);

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  const { port: free } = server.address();
  server.close();
  return free;
}
