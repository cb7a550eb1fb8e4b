import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createEgress, type OrganizationEgress } from './egress.ts';
import { EgressError } from './errors.ts';
import type { EgressRequest } from './exchange.ts';
import { parseEgressAllow } from './policy.ts';
import { parseEgressProxy } from './proxy.ts';

const fixture = (name: string) => readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url), 'utf8');
const certificate = fixture('tls-certificate.pem');
const key = fixture('tls-key.pem');

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A proxy that leads every CONNECT to a TLS server of ours, and remembers what it was asked for. */
async function startProxy(
  options: { tls?: boolean; answer?: (socket: Socket, request: IncomingMessage) => boolean } = {},
) {
  const target = await listen(
    createTlsServer({ cert: certificate, key }, (request, response) => {
      response.end(`${request.headers.host} ${request.url}`);
    }) as unknown as Server,
  );
  const asked: { authority: string | undefined; headers: IncomingMessage['headers'] }[] = [];
  const proxy = options.tls ? createTlsServer({ cert: certificate, key }) : createServer();
  proxy.on('connect', (request: IncomingMessage, socket: Socket) => {
    asked.push({ authority: request.url, headers: request.headers });
    socket.on('error', () => {});
    if (options.answer?.(socket, request)) return;
    const through = connect(target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      through.pipe(socket).pipe(through);
    }).on('error', () => {});
  });
  return { port: await listen(proxy as unknown as Server), asked };
}

function egressBy(proxyUrl: string, addresses: readonly string[], allow = ''): OrganizationEgress {
  const egress = createEgress({
    policy: parseEgressAllow(allow),
    proxy: parseEgressProxy(proxyUrl),
    lookup: async () => addresses,
    ca: certificate,
  });
  cleanUps.push(() => egress.close());
  return egress.of('a');
}

const get = (url: string): EgressRequest => ({ url, method: 'GET', timeoutMs: 5000, maxResponseBytes: 16_384 });
const kindOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable('it was to fail'),
    (error: unknown) => (error as EgressError).kind,
  );

test.each([
  ['http', false],
  ['https', true],
])(
  'a public address is reached through the %s proxy, which gets the checked address and no name',
  async (scheme, tls) => {
    const proxy = await startProxy({ tls });
    // The certificate of tests is for this address and for hooks.example.com.
    const egress = egressBy(`${scheme}://user:p%40ss@127.0.0.1:${proxy.port}`, ['93.184.216.34', '2606:4700::1111']);
    const { body } = await egress.request(get('https://hooks.example.com/a?b=c'));
    expect(body.toString()).toBe('hooks.example.com /a?b=c');
    expect(await (await egress.fetch('https://hooks.example.com/d')).text()).toBe('hooks.example.com /d');
    expect(proxy.asked[0]).toMatchObject({
      authority: '93.184.216.34:443',
      headers: { host: '93.184.216.34:443', 'proxy-authorization': `Basic ${btoa('user:p@ss')}` },
    });
    expect(JSON.stringify(proxy.asked)).not.toContain('hooks.example.com');
  },
);

test('the certificate is still checked for the host of the url', async () => {
  const proxy = await startProxy();
  const egress = egressBy(`http://127.0.0.1:${proxy.port}`, ['93.184.216.34']);
  expect(await kindOf(egress.request(get('https://wrong.example.com/')))).toBe('tls');
});

test.each([[['127.0.0.1']], [['10.0.0.1']], [['93.184.216.34', '169.254.169.254']], [['::ffff:192.168.0.1']]])(
  'a name that leads to %j is refused before the proxy is contacted',
  async (addresses) => {
    const proxy = await startProxy();
    const egress = egressBy(`http://127.0.0.1:${proxy.port}`, addresses);
    expect(await kindOf(egress.request(get('https://a.example.com/')))).toBe('not_allowed');
    expect(await kindOf(egress.request(get('https://127.0.0.1/')))).toBe('not_allowed');
    expect(proxy.asked).toEqual([]);
  },
);

test('an allowed private address is connected to directly: in the proxy’s network it may be another host', async () => {
  const proxy = await startProxy();
  const inner = await listen(createServer((_request, response) => response.end('direct')));
  const egress = egressBy(`http://127.0.0.1:${proxy.port}`, ['93.184.216.34', '127.0.0.1'], 'a.example.com,127.0.0.1');
  for (const host of ['a.example.com', '127.0.0.1', 'localhost']) {
    expect((await egress.request(get(`http://${host}:${inner}/`))).body.toString()).toBe('direct');
  }
  expect(proxy.asked).toEqual([]);
});

test('the proxy is asked for the next checked address if it can’t reach the first', async () => {
  const proxy = await startProxy({
    answer(socket, request) {
      if (!request.url?.startsWith('93.')) return false;
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return true;
    },
  });
  const egress = egressBy(`http://127.0.0.1:${proxy.port}`, ['93.184.216.34', '2606:4700::1111']);
  expect((await egress.request(get('https://hooks.example.com/'))).status).toBe(200);
  expect(proxy.asked.map(({ authority }) => authority)).toEqual(['93.184.216.34:443', '[2606:4700::1111]:443']);
});

test.each<[string, (socket: Socket) => void]>([
  ['refuses', (socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')],
  ['redirects', (socket) => socket.end('HTTP/1.1 302 Found\r\nlocation: https://10.0.0.1/\r\n\r\n')],
  ['hangs up', (socket) => socket.destroy()],
  ['is no proxy', (socket) => socket.end('220 mail.example.com ESMTP\r\n')],
  ['answers without end', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`)],
  [
    'answers in the place of the destination',
    (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'),
  ],
])('a proxy that %s is a connection that could not be made, and names no address', async (_title, answer) => {
  const proxy = await startProxy({
    answer(socket) {
      answer(socket);
      return true;
    },
  });
  const egress = egressBy(`http://user:secret@127.0.0.1:${proxy.port}`, ['93.184.216.34']);
  const error = await egress.request(get('https://hooks.example.com/')).catch((thrown: EgressError) => thrown);
  expect(error).toBeInstanceOf(EgressError);
  expect(error).toMatchObject({ kind: 'connect', message: 'The host could not be connected to' });
  expect((error as EgressError).reason).not.toContain('secret');
});

test('a proxy that never responds costs the connect timeout', async () => {
  const proxy = await startProxy({ answer: () => true });
  const egress = createEgress({
    policy: parseEgressAllow(''),
    proxy: parseEgressProxy(`http://127.0.0.1:${proxy.port}`),
    lookup: async () => ['93.184.216.34'],
    connectTimeoutMs: 200,
  });
  cleanUps.push(() => egress.close());
  expect(await kindOf(egress.of('a').request(get('https://hooks.example.com/')))).toBe('connect_timeout');
});

test.each([
  '',
  'proxy:3128',
  'socks5://proxy:1080',
  'http://proxy/path',
  'http://proxy?x',
  'http://us%er:hunter2@proxy',
])('%j is no proxy, and is not shown', (text) => {
  expect(() => parseEgressProxy(text)).toThrow(/^(?!.*hunter2)(is not|has a)/);
});
