// The real process, killed in the middle of a turn (P1, P4, P8): what was shown stays, the Session goes on and ends, and a
// stream that was open resumes where it was.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Chunk, Signalbox } from '@signalbox/client';
import { afterEach, expect, test } from 'vitest';

const cli = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const running = new Set<ChildProcess>();
let directory: string | undefined;

afterEach(async () => {
  for (const service of running) {
    service.kill('SIGTERM');
    await once(service, 'exit');
  }
  if (directory) await rm(directory, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Resolves when the service says that it runs. */
async function start(port: number): Promise<ChildProcess> {
  const options = ['--port', String(port), '--data-dir', join(directory!, 'data')];
  const service = spawn(process.execPath, [cli, 'start', ...options, '--admin-key-file', join(directory!, 'key')], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(service);
  service.once('exit', () => running.delete(service));
  for await (const line of createInterface({ input: service.stdout! })) {
    if (line.includes('"msg":"started"')) break;
  }
  service.stdout!.resume();
  return service;
}

async function kill(service: ChildProcess): Promise<void> {
  service.kill('SIGKILL');
  await once(service, 'exit');
}

test('kill -9 in the middle of a turn: the session goes on and ends, and an open stream misses and doubles nothing', async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox-kill-'));
  const port = await freePort();
  let service = await start(port);
  const apiKey = (await readFile(join(directory, 'key'), 'utf8')).trim();
  const client = new Signalbox({ baseUrl: `http://127.0.0.1:${port}`, apiKey });
  const text = Array.from({ length: 40 }, (_, n) => `word${n}`).join(' ');
  const { agentId } = await client.agents.create({
    name: 'Talker',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ text, tokenDelayMs: 15 }] } },
  });
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'talk',
    closeOnIdle: true,
  });

  const seen: Chunk[] = [];
  const killAt = new Set([6, 25]);
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    seen.push(...chunks);
    const due = [...killAt].find((count) => seen.length >= count);
    if (due !== undefined) {
      killAt.delete(due);
      await kill(service);
      service = await start(port);
    }
  }
  expect(killAt.size).toBe(0);

  const stored: Chunk[] = [];
  for await (const { chunks } of client.sessions.chunks(sessionId, { limit: 1000 })) stored.push(...chunks);
  expect(seen).toEqual(stored);
  expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1));
  expect(stored.filter(({ type }) => type === 'message.reset').length).toBeGreaterThan(0);
  expect(stored.at(-1)).toMatchObject({ type: 'session.status', status: 'completed' });

  // What is left once the resets are heeded is the whole text, once.
  let said: { seq: number; delta: string }[] = [];
  for (const chunk of stored) {
    if (chunk.type === 'message.chunk') said.push(chunk);
    if (chunk.type === 'message.reset') said = said.filter(({ seq }) => seq < chunk.fromSeq);
  }
  expect(said.map(({ delta }) => delta).join('')).toBe(text);
  const { usage, status } = await client.sessions.get(sessionId);
  expect({ status, steps: usage.steps }).toEqual({ status: 'completed', steps: 1 });
});
