// One Restate server with its data on disk, and a service of one handler with one journalled step.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve, service } from '@restatedev/restate-sdk';

const [ingress, admin, fabric, handlers] = await freePorts(4);
const require = createRequire(import.meta.url);
const binary = require.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
const child = spawn(binary, ['--production', '--no-logo'], {
  env: {
    ...process.env,
    DO_NOT_TRACK: '1',
    RESTATE_NODE_NAME: 'bench',
    RESTATE_BASE_DIR: process.env.DATA_DIR,
    RESTATE_AUTO_PROVISION: 'true',
    RESTATE_DISABLE_TELEMETRY: 'true',
    RESTATE_LISTEN_MODE: 'tcp',
    RESTATE_BIND_IP: '127.0.0.1',
    RESTATE_BIND_PORT: String(fabric),
    RESTATE_INGRESS__BIND_PORT: String(ingress),
    RESTATE_ADMIN__BIND_PORT: String(admin),
    RESTATE_LOG_FILTER: 'warn',
  },
  stdio: 'inherit',
});
child.on('exit', () => process.exit(1));
process.on('SIGTERM', () => child.kill('SIGTERM'));

const ANSWER = Array.from({ length: 20 }, (_, at) => `word${at}`).join(' ');
const answerer = service({
  name: 'bench',
  handlers: { answer: (context) => context.run('word', () => ANSWER) },
});
process.env.RESTATE_LOGGING = 'WARN';
await serve({ services: [answerer], port: handlers });
const register = () =>
  fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${handlers}` }),
  }).catch(() => undefined);
while (!(await register())?.ok) await sleep(100);
process.send(`http://127.0.0.1:${ingress}`);

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.on('listening', resolve))));
  const free = servers.map((server) => server.address().port);
  for (const server of servers) server.close();
  return free;
}
