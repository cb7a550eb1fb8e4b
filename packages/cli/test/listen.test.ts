// `signalbox listen` and `signalbox trigger` against a service, with a receiver on this machine.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Chunk, Signalbox, webhooks } from '@signalbox/client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';

const command = await programFile('command');
let base: string;
let service: Running;
let env: Record<string, string>;

interface Running {
  child: ChildProcess;
  output: { stdout: string; stderr: string };
  ended: Promise<number | string>;
}

function run(args: string[], more: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [command, ...args], {
    env: { PATH: process.env.PATH, ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (part: string) => {
      output[name] += part;
    });
  }
  return { child, output, ended: once(child, 'close').then(([code, signal]) => code ?? signal) };
}

beforeAll(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  env = { SIGNALBOX_DATA_DIR: join(base, 'data') };
  const keyFile = join(base, 'key');
  service = run(['start', '--port', '0', '--admin-key-file', keyFile]);
  while (!service.output.stderr.includes('Create key')) {
    await Promise.race([once(service.child.stderr!, 'data'), service.ended]);
    if (service.child.exitCode !== null) throw new Error(service.output.stderr);
  }
  const url = /(http:\S+)\/api\/v1/.exec(service.output.stderr)![1]!;
  env = { SIGNALBOX_URL: url, SIGNALBOX_API_KEY: (await fs.readFile(keyFile, 'utf8')).trim() };
});
afterAll(async () => {
  service.child.kill('SIGINT');
  await service.ended;
  await fs.rm(base, { recursive: true, force: true });
});

test('listen forwards what trigger causes, signed with the secret that it printed, also after the receiver was restarted', async () => {
  let secret = '';
  const received: { sessionId: string; chunks: Chunk[] }[] = [];
  const receiver = createServer(async (request, response) => {
    const body = await text(request);
    received.push(await webhooks.verify(body, request.headers as Record<string, string>, secret));
    response.end();
  });
  onTestFinished(() => void receiver.close().closeAllConnections());
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  const { port } = receiver.address() as AddressInfo;
  const listening = run(['listen', '--environment', 'staging', '--forward-to', `http://127.0.0.1:${port}/hook`]);
  onTestFinished(() => void listening.child.kill('SIGKILL'));
  await expect.poll(() => listening.output.stderr, { timeout: 30_000 }).toContain('whsec_');
  [secret] = /whsec_\S+/.exec(listening.output.stderr)!;

  const trigger = async (event: string) => {
    const one = run(['trigger', event, '--environment', 'staging']);
    expect(await one.ended, one.output.stderr).toBe(0);
    const sessionId = /ses_\w+/.exec(one.output.stderr)![0];
    return { sessionId, ...one.output };
  };
  const types = (sessionId: string) =>
    received
      .filter((one) => one.sessionId === sessionId)
      .flatMap(({ chunks }) => chunks.map((chunk) => ('status' in chunk ? chunk.status : chunk.type)));
  const completed = await trigger('session.completed');
  expect(completed.stdout).toContain('session.status completed');
  await expect.poll(() => types(completed.sessionId).at(-1)).toBe('completed');
  await expect.poll(() => listening.output.stdout).toMatch(/ ses_\w+ .*session\.status completed → 200 \d+ ms\n/);

  receiver.close().closeAllConnections();
  const waiting = await trigger('approval.requested');
  await expect.poll(() => listening.output.stdout).toContain('no connection');
  await once(receiver.listen(port, '127.0.0.1'), 'listening');
  await expect.poll(() => types(waiting.sessionId).at(-1), { timeout: 30_000 }).toBe('waiting');
  expect(types(waiting.sessionId)).toContain('approval.requested');

  // The agent of an event is created once, and the environment still has no subscription.
  await trigger('session.completed');
  const client = new Signalbox({ apiKey: env.SIGNALBOX_API_KEY!, baseUrl: env.SIGNALBOX_URL! });
  expect((await client.agents.list()).data).toHaveLength(2);
  expect((await client.webhookSubscriptions.list()).data).toEqual([]);
  expect(listening.output.stdout + listening.output.stderr).not.toContain(env.SIGNALBOX_API_KEY);
});

test.each(['session.failed', 'turn.completed', 'turn.failed', 'tool.call', 'approval.resolved'])(
  'trigger %s causes it',
  async (event) => {
    const one = run(['trigger', event, '--environment', 'production', '--json']);
    expect(await one.ended, one.output.stderr).toBe(0);
    const chunks: Chunk[] = one.output.stdout
      .trim()
      .split('\n')
      .flatMap((line) => JSON.parse(line).chunks);
    const found = chunks.map((chunk) => ('status' in chunk ? `session.${chunk.status}` : chunk.type));
    const expected = { 'turn.failed': 'session.idle' }[event] ?? event;
    expect(found).toContain(expected);
    if (event === 'turn.failed')
      expect(chunks.find((chunk) => chunk.type === 'turn.completed')).toHaveProperty('error');
  },
);

test('listen and trigger refuse what cannot work, and say what can', async () => {
  const finish = async (args: string[], more = {}) => {
    const one = run(args, more);
    return { code: await one.ended, ...one.output };
  };
  const forward = ['listen', '--environment', 'staging', '--forward-to'];
  const outcomes = await Promise.all([
    finish([...forward, 'localhost:3000']),
    finish([...forward, 'http://u:p@localhost/']),
    finish([...forward, 'http://localhost/'], { SIGNALBOX_SIGNING_SECRET: 'secret' }),
    finish(['listen', '--environment', 'nowhere']),
    finish(['trigger', 'lightning', '--environment', 'staging']),
    finish(['trigger', 'session.completed']),
  ]);
  expect(outcomes.map(({ code }) => code)).toEqual([2, 2, 2, 1, 1, 2]);
  expect(outcomes[5]!.stderr).toContain('needs --environment NAME: staging or production.');
  expect(outcomes[4]!.stderr).toContain('session.completed');
});
