// Clients without a key or sign-in can't use up what authenticated callers need, by half-sent requests or long bodies.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let clock: ManualClock;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await clock.passWhile(service.stop());
});

async function start(config: Partial<Config> = {}): Promise<void> {
  clock = createManualClock();
  service = await startTestService({ clock, config });
}

interface Line {
  socket: Socket;
  /** All that was received when the other end has closed. */
  closed: Promise<string>;
  heard(): string;
}

/** Opens a connection and sends these bytes. */
function line(text: string): Line {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  let heard = '';
  socket.on('data', (data) => {
    heard += data;
  });
  socket.write(text);
  return { socket, closed: once(socket, 'close').then(() => heard), heard: () => heard };
}

const post = (path: string, contentLength: number, headers: Record<string, string> = {}) =>
  [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(service.url).host}`,
    'Content-Type: application/json',
    `Content-Length: ${contentLength}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

const me = () => send(service.url, 'GET', '/me', { key: service.adminKey });
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

test('600 half-sent sign-ins of strangers do not affect a known caller, and end after 5 seconds', async () => {
  await start({ trustProxy: ['127.0.0.1'] });
  const { origin } = new URL(service.url);
  const lines = Array.from({ length: 600 }, (_, n) =>
    line(
      `${post('/console/api/sign_in', 10_000, { Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': `10.0.${n % 60}.1` })}{`,
    ),
  );
  // The oldest are ended for the newest.
  await expect.poll(() => lines.filter(({ heard }) => heard() !== '').length).toBe(500);
  expect((await Promise.all(Array.from({ length: 20 }, me))).map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(lines.filter(({ heard }) => /^HTTP\/1.1 408/.test(heard()))).toHaveLength(500);

  await clock.advance(4_000);
  await tick();
  expect(lines.filter(({ heard }) => heard() === '')).toHaveLength(100);
  await clock.advance(1_000);
  const answers = await Promise.all(lines.map(({ closed }) => closed));
  expect(answers.filter((answer) => /^HTTP\/1.1 408/.test(answer))).toHaveLength(600);
});

const signInFrom = (address: string) =>
  fetch(`${service.url}/console/api/sign_in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(service.url).origin, 'x-forwarded-for': address },
    body: JSON.stringify({ email: 'a@example.com', password: 'correct horse battery' }),
  });

test('half-sent sign-ins lock no one out, even from the same address: its oldest one is ended for the next', async () => {
  await start({ trustProxy: ['127.0.0.1'] });
  const { origin } = new URL(service.url);
  const from = (address: string) => ({ Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': address });
  const half = (address: string) => line(`${post('/console/api/sign_in', 100, from(address))}{`);
  const isOver = ({ heard }: Line) => heard() !== '';
  const others = ['10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5'].flatMap((at) => [half(at), half(at)]);
  const lines = Array.from({ length: 30 }, () => half('10.0.0.1'));
  await expect.poll(() => lines.filter(isOver).length).toBe(10);
  expect(others.filter(isOver)).toEqual([]);
  for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.6']) expect((await signInFrom(address)).status).toBe(401);
});

test('if half-sent sign-ins of many addresses fill the pool, the next one still gets a slot', async () => {
  await start({ trustProxy: ['127.0.0.1'] });
  const { origin } = new URL(service.url);
  const from = (n: number) => ({ Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': `10.0.0.${n}` });
  const lines = Array.from({ length: 120 }, (_, n) => line(`${post('/console/api/sign_in', 100, from(n))}{`));
  await expect.poll(() => lines.filter(({ heard }) => heard() !== '').length).toBe(20);
  for (const address of ['10.0.0.119', '10.0.1.1']) expect((await signInFrom(address)).status).toBe(401);
});

test('half-sent bodies of a known caller do not delay others, and are served once complete', async () => {
  await start({ maxRequestsInFlight: 10 });
  const other = await service.client.keys.create({ name: 'other', permission: 'write' });
  const body = JSON.stringify({ name: 'A', model: 'scripted/x' });
  const head = post('/api/v1/agents', Buffer.byteLength(body), { Authorization: `Bearer ${other.secret}` });
  const half = (count: number) => Array.from({ length: count }, () => line(head + body.slice(0, 5)));
  const lines = half(10);
  const everybodyIsServed = async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, me));
    return answers.every(({ status }) => status === 200);
  };
  await expect.poll(everybodyIsServed).toBe(true);
  // The last to arrive are refused.
  lines.push(...half(5));
  const refused = () => lines.filter(({ heard }) => /^HTTP\/1.1 429/.test(heard()));
  await expect.poll(() => refused().length).toBe(5);
  const accepted = lines.filter((one) => !refused().includes(one));
  expect(accepted).toHaveLength(10);
  // One after another: an organization can't have all requests in flight.
  for (const { socket, heard } of accepted) {
    socket.write(body.slice(5));
    await expect.poll(heard).toMatch(/^HTTP\/1.1 201/);
  }
});

test('the body of a sign-in is limited to 16 KiB', async () => {
  await start();
  const answer = await send(service.url, 'POST', `${service.url}/console/api/sign_in`, {
    body: { email: 'a@example.com', password: 'x'.repeat(20_000) },
    headers: { origin: new URL(service.url).origin },
  });
  expect(asProblem(answer)).toMatchObject({ status: 413, code: 'payload_too_large' });
  expect(answer.json.detail).toContain('16 KiB');
});

test('an upload over the limit gets its 413, also if the client sends all of it before it reads', async () => {
  await start();
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  for (const mebibytes of [2, 16]) {
    const { socket, heard } = line(
      post('/api/v1/agents', mebibytes * chunk.length, { Authorization: `Bearer ${service.adminKey}` }),
    );
    let failure: unknown;
    socket.pause().on('error', (error) => {
      failure = error;
    });
    for (let n = 0; n < mebibytes; n += 1) {
      if (!socket.write(chunk)) await once(socket, 'drain');
    }
    socket.resume();
    await expect.poll(heard).toMatch(/^HTTP\/1.1 413[\s\S]*payload_too_large/);
    expect(failure).toBeUndefined();
    // The connection can be used for the next request.
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(heard).toMatch(/alive/);
  }
});

test('a refused client that does not end its upload is disconnected after 5 seconds', async () => {
  await start();
  const { heard, closed } = line(`${post('/api/v1/agents', 100_000_000)}{`);
  await expect.poll(heard).toMatch(/^HTTP\/1.1 401/);
  await tick();
  await clock.advance(5_000);
  await closed;
});

test('requests that are refused before their bodies arrive leave nothing behind on a connection that stays open', async () => {
  await start();
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const { socket, heard } = line('');
  for (let count = 1; count <= 12; count += 1) {
    socket.write(`${post('/api/v1/agents', 2)}{`);
    await expect.poll(() => heard().match(/HTTP\/1\.1 401/g)?.length).toBe(count);
    socket.write('}');
  }
  // Node warns in the next tick about listeners that accumulate on a connection.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});
