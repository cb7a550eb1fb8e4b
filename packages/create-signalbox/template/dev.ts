// `npm run dev`: Signalbox with a database in ./data, and the backend of the page, which starts again when its files change. The first run
// also creates an API key and a webhook subscription, and writes their secrets to .env. If .env has SIGNALBOX_URL, that service is used
// instead.
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, watch } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Signalbox, SignalboxError } from '@signalbox/client';

process.loadEnvFile('.env');
const { SIGNALBOX_URL, SIGNALBOX_PORT = '4500', PORT = '5173' } = process.env;
const shell = process.platform === 'win32';
let service: ChildProcess | undefined;
let backend: ChildProcess | undefined;

// Ctrl-C at a terminal also reaches the other processes; other signals reach only this one. It ends after the service.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => (service ? service.kill(signal) : process.exit(130)));
}
process.once('exit', () => {
  backend?.kill();
  service?.kill();
});

if (!SIGNALBOX_URL) await startSignalbox();
if (!process.env.SIGNALBOX_API_KEY) {
  if (SIGNALBOX_URL) throw new Error('Add SIGNALBOX_API_KEY=sbk_… to .env: a key of the service at SIGNALBOX_URL.');
  const args = ['keys', 'create', '--name', '{{name}}', '--permission', 'admin'];
  const { stdout } = await promisify(execFile)('signalbox', args, { shell });
  remember('SIGNALBOX_API_KEY', stdout.trim());
}
await storeModelKey();
if (!process.env.SIGNALBOX_SIGNING_SECRET && !SIGNALBOX_URL) await subscribe();
startBackend((code) => process.exit(code));
restartOnChange();

function startBackend(onEnd: (code: number) => void): void {
  backend = fork('server.ts').once('exit', (code, signal) => {
    backend = undefined;
    if (signal === null) onEnd(code ?? 1);
  });
}

/** `agent.ts`, `model.ts`, `receiver.ts` and `server.ts` belong to the backend. Vite reloads the page itself. */
function restartOnChange(): void {
  let isRestarting = false;
  watch('.', async (_event, file) => {
    if (isRestarting || !file?.endsWith('.ts') || file === 'dev.ts') return;
    isRestarting = true;
    console.log(`${file} has changed`);
    // An editor writes a file in several steps.
    await setTimeout(100);
    if (backend) {
      const ended = once(backend, 'exit');
      backend.kill();
      await ended;
    }
    isRestarting = false;
    startBackend(() => console.log('The backend has ended. It starts again when a file changes.'));
  });
}

async function startSignalbox(): Promise<void> {
  const url = `http://127.0.0.1:${SIGNALBOX_PORT}`;
  service = spawn('signalbox', ['start', '--port', SIGNALBOX_PORT], {
    stdio: ['ignore', 'inherit', 'inherit'],
    shell,
    // Webhooks and tools reach only public addresses, unless you list others.
    env: { SIGNALBOX_EGRESS_ALLOW: '127.0.0.1', SIGNALBOX_LOG_LEVEL: 'warn', ...process.env },
  });
  let hasEnded = false;
  service.once('error', (error) => {
    console.error(`Signalbox does not start: ${error.message}. Run npm install, and then npm run dev.`);
    process.exit(1);
  });
  service.once('exit', (code) => {
    hasEnded = true;
    process.exit(code ?? 1);
  });
  while (!(await isReady(url))) {
    if (hasEnded) return;
    await setTimeout(200);
  }
  process.env.SIGNALBOX_URL = url;
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok;
  } catch {
    return false;
  }
}

/** The key of a server in `model.ts` is a secret of the environment, which is sent only to that server. */
async function storeModelKey(): Promise<void> {
  const { model } = (await import('./agent.ts')).agent;
  if (typeof model === 'string' || !model.apiKeySecret || !model.baseUrl) return;
  const value = process.env[model.apiKeySecret];
  if (!value) return;
  const secret = { value, allowedHosts: [new URL(model.baseUrl).host] };
  await new Signalbox().environments.secrets.set('production', model.apiKeySecret, secret);
}

/** Subscribes the environment to the receiver of the backend. */
async function subscribe(): Promise<void> {
  try {
    const { signingSecret } = await new Signalbox().webhookSubscriptions.create({
      environment: 'production',
      url: `http://127.0.0.1:${PORT}/webhooks`,
      chunkTypes: ['session.status', 'turn.completed'],
    });
    remember('SIGNALBOX_SIGNING_SECRET', signingSecret!);
  } catch (error) {
    if (!(error instanceof SignalboxError) || error.code !== 'subscription_exists') throw error;
    console.log(
      'production has a webhook subscription already: to receive it here, add SIGNALBOX_SIGNING_SECRET to .env.',
    );
  }
}

function remember(name: string, secret: string): void {
  appendFileSync('.env', `${name}=${secret}\n`);
  process.env[name] = secret;
}
