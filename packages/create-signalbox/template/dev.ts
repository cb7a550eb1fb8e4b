// `npm run dev`: Signalbox with a database in ./data, and the backend of the page. The first run also creates an API key and a webhook
// subscription, and writes their secrets to .env. If .env has SIGNALBOX_URL, that service is used instead.
import { execFile, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Signalbox, SignalboxError } from '@signalbox/client';

process.loadEnvFile('.env');
const { SIGNALBOX_URL, SIGNALBOX_PORT = '4500', PORT = '5173' } = process.env;
const shell = process.platform === 'win32';

if (!SIGNALBOX_URL) await startSignalbox();
if (!process.env.SIGNALBOX_API_KEY) {
  if (SIGNALBOX_URL) throw new Error('Add SIGNALBOX_API_KEY=sbk_… to .env: a key of the service at SIGNALBOX_URL.');
  const args = ['keys', 'create', '--name', '{{name}}', '--permission', 'admin'];
  const { stdout } = await promisify(execFile)('signalbox', args, { shell });
  remember('SIGNALBOX_API_KEY', stdout.trim());
}
if (!process.env.SIGNALBOX_SIGNING_SECRET && !SIGNALBOX_URL) await subscribe();
await import('./server.ts');

async function startSignalbox(): Promise<void> {
  const url = `http://127.0.0.1:${SIGNALBOX_PORT}`;
  const service = spawn('signalbox', ['start', '--port', SIGNALBOX_PORT], {
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
  // Ctrl-C at a terminal also reaches the service; other signals reach only this process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => service.kill(signal));
  process.once('exit', () => service.kill());
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
