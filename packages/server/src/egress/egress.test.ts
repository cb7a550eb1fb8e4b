import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type DnsRecords, startDnsServer } from '../../test/support/dns-server.ts';
import { createEgress, type Egress, type EgressOptions, OPERATOR, type OrganizationEgress } from './egress.ts';
import { EgressError, type EgressErrorKind, UrlNotAllowed } from './errors.ts';
import type { EgressRequest } from './exchange.ts';
import { createLookup, type Lookup } from './lookup.ts';
import { parseEgressAllow } from './policy.ts';

const fixture = (name: string) => readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url), 'utf8');
const certificate = fixture('tls-certificate.pem');
const key = fixture('tls-key.pem');

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A server on loopback which counts what reaches it. */
interface Target {
  readonly port: number;
  connections: number;
  requests: number;
  readonly sockets: Set<Socket>;
}

async function track(server: Server, host = '127.0.0.1'): Promise<Target> {
  const target = { port: 0, connections: 0, requests: 0, sockets: new Set<Socket>() };
  server.on('connection', (socket: Socket) => {
    target.connections += 1;
    target.sockets.add(socket.on('error', () => {}));
  });
  server.on('request', () => {
    target.requests += 1;
  });
  server.listen(0, host);
  await once(server, 'listening');
  target.port = (server.address() as AddressInfo).port;
  cleanUps.push(() => {
    for (const socket of target.sockets) socket.destroy();
    server.close();
  });
  return target;
}

const serve = (listener: RequestListener, host?: string) => track(createServer(listener), host);
const ok: RequestListener = (_request, response) => response.end('ok');

/** Answers each connection with exactly these bytes, as soon as it has sent something. */
async function serveBytes(onSocket: (socket: Socket) => void): Promise<Target> {
  return await track(createTcpServer(onSocket) as Server);
}

/** Sends for one organization, unless a test names others. */
function egressFor(allow: string, options: Partial<EgressOptions> = {}): Egress & OrganizationEgress {
  const egress = createEgress({ policy: parseEgressAllow(allow), ...options });
  cleanUps.push(() => egress.close());
  return { ...egress, ...egress.of('a') };
}

const answering =
  (...addresses: string[]): Lookup =>
  () =>
    Promise.resolve(addresses);

const get = (url: string, more: Partial<EgressRequest> = {}): EgressRequest => ({
  url,
  method: 'GET',
  timeoutMs: 5000,
  maxResponseBytes: 16_384,
  ...more,
});

async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.unreachable('it was to fail'),
    (thrown: unknown) => thrown,
  );
}

async function failure(promise: Promise<unknown>): Promise<EgressError> {
  const error = await thrownBy(promise);
  expect(error).toBeInstanceOf(EgressError);
  return error as EgressError;
}

const kindOf = async (promise: Promise<unknown>): Promise<EgressErrorKind> => (await failure(promise)).kind;

describe('no connection is made to an address that is not allowed', () => {
  test('literals are refused without a connection', async () => {
    const target = await serve(ok);
    const egress = egressFor('');
    for (const host of ['127.0.0.1', '2130706433', '127.1', '[::ffff:127.0.0.1]']) {
      expect(() => egress.check(`https://${host}:${target.port}/`)).toThrow(UrlNotAllowed);
      expect(await kindOf(egress.request(get(`https://${host}:${target.port}/`)))).toBe('not_allowed');
    }
    expect(target.connections).toBe(0);
  });

  test.each([
    ['private', ['127.0.0.1']],
    ['IPv4-mapped', ['::ffff:127.0.0.1']],
    ['public and private', ['93.184.216.34', '127.0.0.1']],
    ['private and public', ['127.0.0.1', '93.184.216.34']],
    ['public IPv6 and private', ['2606:4700::1111', '127.0.0.1']],
  ])('a name with %s answers is refused', async (_title, addresses) => {
    const target = await serve(ok);
    const egress = egressFor('', { lookup: answering(...addresses) });
    expect(await kindOf(egress.request(get(`https://a.example.com:${target.port}/`)))).toBe('not_allowed');
    expect(target.connections).toBe(0);
  });

  test('an error shows no address, name or port to the author of the url', async () => {
    const egress = egressFor('', { lookup: answering('10.1.2.3') });
    const error = await failure(egress.request(get('https://a.example.com/')));
    expect(error.message).toBe('The destination is not allowed');
    expect(error.reason).toContain('10.1.2.3');
    const refusedLiteral = await failure(egress.request(get('https://10.1.2.3/')));
    expect(refusedLiteral.message).toBe(error.message);
  });

  test('an answer that changes between look-up and connection changes nothing: the name is looked up once', async () => {
    const forbidden = await serve(ok, '127.0.0.2');
    const answers = [['127.0.0.1'], ['127.0.0.2']];
    let asked = 0;
    const egress = egressFor('127.0.0.1', {
      lookup: () => Promise.resolve(answers[asked++] ?? ['127.0.0.2']),
    });
    // Nothing listens at the vetted address, so a second look-up would be the only way to get an answer.
    expect(await kindOf(egress.request(get(`http://rebind.example.com:${forbidden.port}/`)))).toBe('connect');
    expect(asked).toBe(1);
    expect(await kindOf(egress.request(get(`http://rebind.example.com:${forbidden.port}/`)))).toBe('not_allowed');
    expect(forbidden.connections).toBe(0);
  });

  test('every new connection is checked again, even if an earlier one was allowed', async () => {
    const target = await serve((_request, response) => {
      response.setHeader('connection', 'close');
      response.end('ok');
    });
    let address = '127.0.0.1';
    const egress = egressFor('127.0.0.1', { lookup: () => Promise.resolve([address]) });
    const url = `http://rebind.example.com:${target.port}/`;
    expect((await egress.request(get(url))).status).toBe(200);
    address = '127.0.0.2';
    expect(await kindOf(egress.request(get(url)))).toBe('not_allowed');
    expect(target.requests).toBe(1);
  });

  test.each(['http', 'https'])(
    'a socket connected to another address is closed before a byte of %s is sent',
    async (scheme) => {
      let received = 0;
      let closed: () => void = () => {};
      const hungUp = new Promise<void>((resolve) => {
        closed = resolve;
      });
      const elsewhere = await serveBytes((socket) =>
        socket
          .on('data', (data) => {
            received += data.length;
          })
          .on('close', () => closed()),
      );
      // What a faulty resolver, library or kernel would do: the vetted address is asked for, another one is reached.
      const egress = egressFor('10.0.0.1', {
        lookup: answering('10.0.0.1'),
        open: (options) => connect({ host: '127.0.0.1', port: options.port }),
      });
      const url = `${scheme}://a.example.com:${elsewhere.port}/`;
      expect(await kindOf(egress.request(get(url, { method: 'POST', body: 'secret' })))).toBe('not_allowed');
      await hungUp;
      expect(elsewhere.connections).toBe(1);
      expect(received).toBe(0);
    },
  );

  test('a connection kept alive is never used for another host, though it has the same address', async () => {
    const hostsOf = new Map<Socket, Set<string | undefined>>();
    const target = await serve((request, response) => {
      const hosts = hostsOf.get(request.socket) ?? new Set();
      hostsOf.set(request.socket, hosts.add(request.headers.host));
      response.end('ok');
    });
    const lookup: Lookup = (host) => Promise.resolve([host.startsWith('b.') ? '127.0.0.2' : '127.0.0.1']);
    const egress = egressFor('127.0.0.1', { lookup });
    for (const host of ['a.example.com', 'c.example.com', '127.0.0.1', 'A.example.com', 'c.example.com']) {
      expect((await egress.request(get(`http://${host}:${target.port}/`))).status).toBe(200);
      expect(await kindOf(egress.request(get(`http://b.example.com:${target.port}/`)))).toBe('not_allowed');
    }
    expect([...hostsOf.values()].every((hosts) => hosts.size === 1)).toBe(true);
    expect(new Set([...hostsOf.values()].flatMap((hosts) => [...hosts])).size).toBe(3);
  });

  test.each(['request', 'fetch'] as const)('%s gives redirects back and does not follow them', async (way) => {
    const inner = await serve(ok, '127.0.0.2');
    const outer = await serve((_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.2:${inner.port}/` }).end();
    });
    const egress = egressFor('127.0.0.0/8');
    const url = `http://127.0.0.1:${outer.port}/`;
    const { status } = await (way === 'request' ? egress.request(get(url)) : egress.fetch(url, { redirect: 'follow' }));
    expect(status).toBe(307);
    expect(inner.connections).toBe(0);
  });

  test('the environment’s proxies are ignored', async () => {
    const proxy = await serve(ok);
    const target = await serve((_request, response) => response.end('direct'));
    const script = `
      import { createEgress } from ${JSON.stringify(new URL('./egress.ts', import.meta.url).href)};
      import { parseEgressAllow } from ${JSON.stringify(new URL('./policy.ts', import.meta.url).href)};
      const egress = createEgress({ policy: parseEgressAllow('127.0.0.1') });
      const url = 'http://127.0.0.1:${target.port}/';
      const { request, fetch } = egress.of('a');
      const { body } = await request({ url, method: 'GET', timeoutMs: 5000, maxResponseBytes: 100 });
      console.log(body.toString(), await (await fetch(url)).text());
      await egress.close();`;
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
      env: {
        ...process.env,
        NODE_USE_ENV_PROXY: '1',
        NO_PROXY: '',
        no_proxy: '',
        HTTP_PROXY: proxyUrl,
        http_proxy: proxyUrl,
        HTTPS_PROXY: proxyUrl,
        https_proxy: proxyUrl,
        ALL_PROXY: proxyUrl,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    await once(child, 'close');
    expect(output.trim()).toBe('direct direct');
    expect(proxy.connections).toBe(0);
  });
});

describe('what the operator allowed is reached', () => {
  test('an address, by literal and by name, over http', async () => {
    const target = await serve(ok);
    const egress = egressFor(`127.0.0.1:${target.port}`, { lookup: answering('127.0.0.1') });
    for (const host of ['127.0.0.1', 'a.example.com', 'tool', 'localhost']) {
      const { status, body } = await egress.request(get(`http://${host}:${target.port}/`));
      expect([status, body.toString()]).toEqual([200, 'ok']);
    }
  });

  test('http to a name is refused where one of its addresses is not listed, public though it is', async () => {
    const target = await serve(ok);
    const egress = egressFor('127.0.0.1', { lookup: answering('127.0.0.1', '93.184.216.34') });
    expect(await kindOf(egress.request(get(`http://a.example.com:${target.port}/`)))).toBe('not_allowed');
    expect(target.connections).toBe(0);
  });

  test('a host, whatever private address it has, and not its neighbours', async () => {
    const target = await serve(ok);
    const egress = egressFor('*.internal.example.com', { lookup: answering('127.0.0.1') });
    expect((await egress.request(get(`http://a.internal.example.com:${target.port}/`))).status).toBe(200);
    expect(await kindOf(egress.request(get(`https://b.example.com:${target.port}/`)))).toBe('not_allowed');
    expect(target.connections).toBe(1);
  });

  test('of the two addresses of localhost, the one that is listed', async () => {
    const target = await serve(ok);
    const url = `http://localhost:${target.port}/`;
    expect((await egressFor('127.0.0.1').request(get(url))).status).toBe(200);
    await failure(egressFor('::1').request(get(url)));
    expect(target.connections).toBe(1);
  });

  test('the next checked address is tried if one does not respond', async () => {
    const target = await serve(ok);
    const egress = egressFor('127.0.0.0/8,::1', { lookup: answering('127.0.0.9', '::1', '127.0.0.1') });
    expect((await egress.request(get(`http://a.example.com:${target.port}/`))).status).toBe(200);
  });

  test('the system’s resolver is used only if the operator allowed something that a private name could lead to', async () => {
    const asked: boolean[] = [];
    const lookup: Lookup = (_host, { system }) => {
      asked.push(system);
      return Promise.resolve(['10.0.0.1']);
    };
    for (const allow of ['', 'b.example.com', 'a.example.com', '192.168.0.0/16']) {
      await kindOf(egressFor(allow, { lookup, connectTimeoutMs: 1 }).request(get('https://a.example.com/')));
    }
    expect(asked).toEqual([false, false, true, true]);
  });
});

describe('TLS', () => {
  const serveTls = () => track(createTlsServer({ cert: certificate, key }, ok) as unknown as Server);

  test('the certificate is checked for the name and for the address, and the connection kept', async () => {
    const target = await serveTls();
    const egress = egressFor('127.0.0.1', { lookup: answering('127.0.0.1'), ca: certificate });
    for (const host of ['hooks.example.com', 'hooks.example.com', '127.0.0.1']) {
      expect((await egress.request(get(`https://${host}:${target.port}/`))).body.toString()).toBe('ok');
    }
    expect(target.connections).toBeLessThanOrEqual(3);
    expect(await kindOf(egress.request(get(`https://wrong.example.com:${target.port}/`)))).toBe('tls');
    const untrusting = egressFor('127.0.0.1', { lookup: answering('127.0.0.1') });
    expect(await kindOf(untrusting.request(get(`https://hooks.example.com:${target.port}/`)))).toBe('tls');
    expect(target.requests).toBe(3);
  });

  test('a Host header can’t choose the certificate that is asked for', async () => {
    const target = await serveTls();
    const egress = egressFor('127.0.0.1', { lookup: answering('127.0.0.1'), ca: certificate });
    const request = get(`https://wrong.example.com:${target.port}/`, { headers: { Host: 'hooks.example.com' } });
    expect(await kindOf(egress.request(request))).toBe('tls');
    await expect(egress.fetch(request.url, { headers: { Host: 'hooks.example.com' } })).rejects.toMatchObject({
      cause: { kind: 'tls' },
    });
  });

  test('a server that does not speak TLS, or hangs up in the handshake', async () => {
    const plain = await serveBytes((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')));
    const rude = await serveBytes((socket) => socket.once('data', () => socket.destroy()));
    const egress = egressFor('127.0.0.1');
    expect(await kindOf(egress.request(get(`https://127.0.0.1:${plain.port}/`)))).toBe('tls');
    expect(await kindOf(egress.request(get(`https://127.0.0.1:${rude.port}/`)))).toBe('tls');
  });
});

describe('limits of time and size', () => {
  const HTTP_OK = 'HTTP/1.1 200 OK\r\n';
  const closed = async (target: Target) =>
    await Promise.all(
      [...target.sockets].map((socket) => socket.destroyed || new Promise((resolve) => socket.once('close', resolve))),
    );

  test('a host that does not take the connection', async () => {
    const silent = await serveBytes((socket) => socket.resume());
    const egress = egressFor('127.0.0.1', { connectTimeoutMs: 50 });
    // TCP connects here, and the handshake never comes to an end.
    expect(await kindOf(egress.request(get(`https://127.0.0.1:${silent.port}/`)))).toBe('connect_timeout');
    await closed(silent);
  });

  test('a look-up that does not end', async () => {
    const egress = egressFor('', { connectTimeoutMs: 50, lookup: () => new Promise(() => {}) });
    expect(await kindOf(egress.request(get('https://a.example.com/')))).toBe('dns');
  });

  test('a port where nobody listens', async () => {
    const target = await serve(ok);
    cleanUps.pop()?.();
    const error = await failure(egressFor('127.0.0.1').request(get(`http://127.0.0.1:${target.port}/`)));
    expect(error.kind).toBe('connect');
    expect(error.message).toBe('The host could not be connected to (ECONNREFUSED)');
  });

  test.each([
    ['no answer at all', () => {}],
    ['headers that never end', (socket: Socket) => socket.write(`${HTTP_OK}x-a: 1\r\n`)],
    ['a body that stops', (socket: Socket) => socket.write(`${HTTP_OK}content-length: 10\r\n\r\nabc`)],
    ['interim answers for ever', (socket: Socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(9))],
  ])('%s: the time-out covers the whole exchange', async (_title, answer) => {
    const target = await serveBytes((socket) => socket.once('data', () => answer(socket)));
    const egress = egressFor('127.0.0.1');
    expect(await kindOf(egress.request(get(`http://127.0.0.1:${target.port}/`, { timeoutMs: 50 })))).toBe('timeout');
    await closed(target);
  });

  test('an endless body costs what is read of it, and the connection', async () => {
    let sent = 0;
    const target = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) sent += 65_536;
      };
      response.on('drain', more);
      more();
    });
    const egress = egressFor('127.0.0.1');
    const response = await egress.request(get(`http://127.0.0.1:${target.port}/`, { maxResponseBytes: 16_384 }));
    expect([response.status, response.body.length, response.truncated]).toEqual([200, 16_384, true]);
    await closed(target);
    // What the kernel's buffers take before the other end notices, at most.
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test.each([
    [10, 10, false],
    [10, 9, true],
    [0, 0, false],
    [1, 0, true],
  ])('a body of %i bytes where %i are read', async (length, maxResponseBytes, truncated) => {
    const target = await serve((_request, response) => response.end('x'.repeat(length)));
    const url = `http://127.0.0.1:${target.port}/`;
    const response = await egressFor('127.0.0.1').request(get(url, { maxResponseBytes }));
    expect([response.body.length, response.truncated]).toEqual([Math.min(length, maxResponseBytes), truncated]);
  });

  test('a body that is not needed is read only for so long', async () => {
    const target = await serve((_request, response) => response.writeHead(202).write('x'));
    const url = `http://127.0.0.1:${target.port}/`;
    const { status, body, truncated } = await egressFor('127.0.0.1').request(get(url, { bodyMs: 20 }));
    expect([status, body.toString(), truncated]).toEqual([202, 'x', true]);
    await closed(target);
  });

  test('response headers are bounded', async () => {
    const target = await serveBytes((socket) =>
      socket.once('data', () => socket.write(`${HTTP_OK}x-a: ${'a'.repeat(20_000)}\r\n\r\n`)),
    );
    expect(await kindOf(egressFor('127.0.0.1').request(get(`http://127.0.0.1:${target.port}/`)))).toBe('protocol');
  });

  test.each<[string, (socket: Socket) => void, EgressErrorKind]>([
    ['hangs up', (socket) => socket.destroy(), 'reset'],
    ['resets', (socket) => socket.resetAndDestroy(), 'reset'],
    ['hangs up within the body', (socket) => socket.end(`${HTTP_OK}content-length: 10\r\n\r\nabc`), 'reset'],
    ['hangs up within a chunk', (socket) => socket.end(`${HTTP_OK}transfer-encoding: chunked\r\n\r\n5\r\nab`), 'reset'],
    ['is not HTTP', (socket) => socket.end('220 mail.example.com ESMTP\r\n'), 'protocol'],
    [
      'switches protocols',
      (socket) => socket.end('HTTP/1.1 101 S\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      'reset',
    ],
  ])('a server that %s', async (_title, answer, kind) => {
    const target = await serveBytes((socket) => socket.once('data', () => answer(socket)));
    expect(await kindOf(egressFor('127.0.0.1').request(get(`http://127.0.0.1:${target.port}/`)))).toBe(kind);
  });

  test('an abort before, during, and our own shutdown', async () => {
    const abort = new AbortController();
    const target = await serveBytes((socket) => socket.once('data', () => abort.abort(new Error('changed my mind'))));
    const egress = egressFor('127.0.0.1');
    const request = get(`http://127.0.0.1:${target.port}/`, { signal: abort.signal });
    expect(await kindOf(egress.request(request))).toBe('aborted');
    await closed(target);
    expect(await kindOf(egress.request(request))).toBe('aborted');
    expect(target.connections).toBe(1);

    const pending = kindOf(egress.request({ ...request, signal: new AbortController().signal }));
    await egress.close();
    expect(await pending).toBe('aborted');
    expect(await kindOf(egress.request(get(request.url)))).toBe('aborted');
  });

  test('a request that ended while it waited for its connection is never sent', async () => {
    const target = await serve(ok);
    let answer: (addresses: string[]) => void = () => {};
    const egress = egressFor('127.0.0.1', {
      lookup: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    const abort = new AbortController();
    const url = `http://a.example.com:${target.port}/`;
    const first = kindOf(egress.request(get(`${url}first`, { signal: abort.signal })));
    abort.abort();
    expect(await first).toBe('aborted');
    answer(['127.0.0.1']);
    // The next one goes over the same connection, so the first would have come before it.
    const second = egress.request(get(`${url}second`));
    answer(['127.0.0.1']);
    expect((await second).status).toBe(200);
    expect(target.requests).toBe(1);
  });
});

describe('what is sent', () => {
  const echo: RequestListener = (request, response) => {
    let body = '';
    request.on('data', (data) => {
      body += data;
    });
    request.on('end', () => {
      const { method, url, headers } = request;
      response.setHeader('x-twice', ['a', 'b']);
      response.end(JSON.stringify({ method, url, headers, body }));
    });
  };

  test('method, path, query, headers and body arrive as given', async () => {
    const target = await serve(echo);
    const response = await egressFor('127.0.0.1').request(
      get(`http://127.0.0.1:${target.port}/a%2Fb?c=d%26`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'x-a': 'ü' },
        body: Buffer.from('{"a":1}'),
      }),
    );
    expect(response.headers['x-twice']).toEqual(['a', 'b']);
    expect(JSON.parse(response.body.toString())).toMatchObject({
      method: 'POST',
      url: '/a%2Fb?c=d%26',
      headers: { 'content-type': 'application/json', 'content-length': '7', host: `127.0.0.1:${target.port}` },
      body: '{"a":1}',
    });
  });

  const connectionHeaders = {
    Host: 'evil.example.com',
    Connection: 'close, x-a',
    'Keep-Alive': 'timeout=1',
    'Proxy-Authorization': 'Basic x',
    'Proxy-Connection': 'close',
    'Transfer-Encoding': 'chunked',
    'Content-Length': '3',
    TE: 'trailers',
    Trailer: 'x',
    Upgrade: 'h2c',
    Expect: '100-continue',
  };

  test.each(['request', 'fetch'] as const)('%s leaves out headers of the connection', async (way) => {
    const target = await serve(echo);
    const egress = egressFor('127.0.0.1');
    const url = `http://127.0.0.1:${target.port}/`;
    const options = { method: 'POST', headers: connectionHeaders, body: 'hello' };
    const text =
      way === 'request'
        ? (await egress.request(get(url, options))).body.toString()
        : await (await egress.fetch(url, options)).text();
    const { headers, body } = JSON.parse(text);
    expect(body).toBe('hello');
    expect(headers).toMatchObject({
      host: `127.0.0.1:${target.port}`,
      'content-length': '5',
      connection: 'keep-alive',
    });
    for (const name of ['keep-alive', 'proxy-authorization', 'transfer-encoding', 'te', 'upgrade', 'expect']) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  test.each([
    { 'x-a': 'hidden\r\nx-b: c' },
    { 'x-a': 'hidden\nb' },
    { 'x-a': 'hidden\0b' },
    { 'x-a': 'hidden ☃' },
    { 'x-a\r\nx-b': 'hidden' },
    { 'x a': 'hidden' },
    { '': 'hidden' },
  ])('a header that would break out of its line is refused: %j', async (headers: Record<string, string>) => {
    const target = await serve(ok);
    const egress = egressFor('127.0.0.1');
    const url = `http://127.0.0.1:${target.port}/`;
    const error = await failure(egress.request(get(url, { headers })));
    expect(error.kind).toBe('protocol');
    expect(`${error.message} ${error.reason}`).not.toContain('hidden');
    expect(await thrownBy(egress.fetch(url, { headers }))).toMatchObject({
      cause: { kind: 'protocol', reason: 'the request is malformed' },
    });
    expect(target.connections).toBe(0);
  });

  test.each(['CONNECT', 'TRACE', 'get', 'GET / HTTP/1.1\r\nx: y\r\n\r\nGET'])(
    'the method %j is refused',
    async (method) => {
      const target = await serve(ok);
      expect(await kindOf(egressFor('127.0.0.1').request(get(`http://127.0.0.1:${target.port}/`, { method })))).toBe(
        'protocol',
      );
      expect(target.connections).toBe(0);
    },
  );

  test('connections are kept: many requests in a row take one or two', async () => {
    const target = await serve(ok);
    const egress = egressFor('127.0.0.1');
    for (let index = 0; index < 20; index++) await egress.request(get(`http://127.0.0.1:${target.port}/${index}`));
    // undici looks at an idle connection for one tick before it is used again, and opens another meanwhile.
    expect(target.connections).toBeLessThanOrEqual(2);
    expect(target.requests).toBe(20);
  });
});

describe('fetch', () => {
  test('streams the response as it arrives', async () => {
    let finish: () => void = () => {};
    const target = await serve((_request, response) => {
      response.write('first');
      finish = () => response.end('last');
    });
    const response = await egressFor('127.0.0.1').fetch(`http://127.0.0.1:${target.port}/`, {
      method: 'POST',
      body: '{}',
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect(await reader.read()).toEqual({ done: false, value: 'first' });
    finish();
    expect(await reader.read()).toEqual({ done: false, value: 'last' });
    expect((await reader.read()).done).toBe(true);
  });

  test('takes a Request as well', async () => {
    const target = await serve((request, response) => request.pipe(response));
    const request = new Request(`http://127.0.0.1:${target.port}/`, { method: 'POST', body: 'hello' });
    expect(await (await egressFor('127.0.0.1').fetch(request)).text()).toBe('hello');
  });

  test.each(['https://127.0.0.1/', 'data:text/plain,x', 'file:///etc/passwd', 'https://a.example.com/'])(
    'is guarded: %s',
    async (url) => {
      const egress = egressFor('', { lookup: answering('127.0.0.1') });
      await expect(egress.fetch(url)).rejects.toMatchObject({ name: 'TypeError', cause: { kind: 'not_allowed' } });
    },
  );

  test('a stream cut in the middle says so without naming an address', async () => {
    const target = await serveBytes((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n');
        setImmediate(() => socket.resetAndDestroy());
      }),
    );
    const response = await egressFor('127.0.0.1').fetch(`http://127.0.0.1:${target.port}/`);
    const error = (await thrownBy(response.text())) as Error;
    expect(error.cause).toMatchObject({ kind: 'reset' });
    expect(JSON.stringify({ ...(error.cause as object) })).not.toContain('127.0.0.1');
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['is cut off', (response) => response.write('abc', () => response.destroy())],
    ['can’t be decoded', (response) => response.setHeader('content-encoding', 'gzip').end('not compressed')],
    ['is aborted', (response) => response.write('abc')],
  ])('a response that %s frees one connection, not two', async (title, answer) => {
    const held: ServerResponse[] = [];
    const bothArrived = Promise.withResolvers<void>();
    const target = await serve((request, response) => {
      if (request.url === '/broken') return answer(response);
      if (held.push(response) === 2) bothArrived.resolve();
    });
    const egress = egressFor('127.0.0.1', { maxPerOrigin: 2 });
    const url = `http://127.0.0.1:${target.port}/`;
    const abort = new AbortController();
    const broken = await egress.fetch(`${url}broken`, { signal: abort.signal });
    if (title === 'is aborted') abort.abort();
    await thrownBy(broken.text());
    const both = [egress.request(get(url)), egress.request(get(url))];
    await bothArrived.promise;
    expect(await kindOf(egress.request(get(url, { timeoutMs: 50 })))).toBe('timeout');
    expect(held).toHaveLength(2);
    for (const response of held) response.end('ok');
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('an abort is the caller’s own reason', async () => {
    const abort = new AbortController();
    const target = await serveBytes((socket) => socket.once('data', () => abort.abort()));
    const url = `http://127.0.0.1:${target.port}/`;
    await expect(egressFor('127.0.0.1').fetch(url, { signal: abort.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});

describe('an organization', () => {
  test('does not wait for another’s requests to the same origin, however many of them hang', async () => {
    let hang = 0;
    const bothHang = Promise.withResolvers<void>();
    const target = await serve((request, response) => {
      if (request.url !== '/hang') response.end('ok');
      else if (++hang === 2) bothHang.resolve();
    });
    const egress = egressFor('127.0.0.1', { maxPerOrigin: 2 });
    const url = `http://127.0.0.1:${target.port}/`;
    const [own, other] = [egress.of('a'), egress.of('b')];
    const hanging = [other.request(get(`${url}hang`)), other.fetch(`${url}hang`)].map(thrownBy);
    await bothHang.promise;
    expect((await own.request(get(url))).status).toBe(200);
    expect(await (await own.fetch(url)).text()).toBe('ok');
    expect((await egress.of(OPERATOR).request(get(url))).status).toBe(200);
    // The other waits for its own, until its time is up.
    expect(await kindOf(other.request(get(url, { timeoutMs: 50 })))).toBe('timeout');
    expect(target.requests).toBe(5);
    await egress.close();
    expect(await Promise.all(hanging)).toMatchObject([{ kind: 'aborted' }, { cause: { kind: 'aborted' } }]);
  });

  test('gets no connection that another used', async () => {
    const ports = new Map<string | undefined, Set<number | undefined>>();
    const target = await serve((request, response) => {
      ports.set(request.url, (ports.get(request.url) ?? new Set()).add(request.socket.remotePort));
      response.end('ok');
    });
    const egress = egressFor('127.0.0.1');
    for (const name of ['a', 'b', 'a', 'b', 'a', 'b']) {
      await egress.of(name).request(get(`http://127.0.0.1:${target.port}/${name}`));
    }
    const [used, others] = [ports.get('/a')!, ports.get('/b')!];
    expect([...used].filter((port) => others.has(port))).toEqual([]);
  });
});

describe('DNS, by a server of the test’s own', () => {
  async function serveDns(records: DnsRecords) {
    const server = await startDnsServer(records);
    cleanUps.push(() => server.close());
    return { lookup: createLookup({ servers: [server.address] }), questions: () => server.questions() };
  }
  const LOOPBACK_IPV6 = '0000:0000:0000:0000:0000:0000:0000:0001';
  const PUBLIC_IPV6 = '2606:4700:0000:0000:0000:0000:0000:1111';

  test('A and AAAA answers are all given', async () => {
    const { lookup } = await serveDns({ 'a.example.com': { a: ['10.0.0.1', '10.0.0.2'], aaaa: [PUBLIC_IPV6] } });
    const answers = await lookup('a.example.com', { system: false });
    expect([...answers].sort()).toEqual(['10.0.0.1', '10.0.0.2', '2606:4700::1111']);
  });

  test('any forbidden address of either family refuses the name', async () => {
    const records = {
      'v4.example.com': { a: ['127.0.0.1'] },
      'v6.example.com': { aaaa: [LOOPBACK_IPV6] },
      'mixed.example.com': { a: ['93.184.216.34'], aaaa: [LOOPBACK_IPV6] },
      'many.example.com': { a: ['93.184.216.34', '93.184.216.35', '169.254.169.254'], aaaa: [PUBLIC_IPV6] },
    };
    const { lookup } = await serveDns(records);
    const egress = egressFor('', { lookup });
    for (const name of Object.keys(records)) {
      expect([name, await kindOf(egress.request(get(`https://${name}/`)))]).toEqual([name, 'not_allowed']);
    }
  });

  test('a name that changes its answer is refused at its next connection', async () => {
    const target = await serve((_request, response) => response.setHeader('connection', 'close').end('ok'));
    const record = { a: ['127.0.0.1'] };
    const { lookup } = await serveDns({ 'rebind.example.com': record });
    const guarded: Lookup = (host) => lookup(host, { system: false });
    const egress = egressFor('127.0.0.1', { lookup: guarded });
    const url = `http://rebind.example.com:${target.port}/`;
    expect((await egress.request(get(url))).status).toBe(200);
    record.a = ['127.0.0.2'];
    expect(await kindOf(egress.request(get(url)))).toBe('not_allowed');
  });

  test('a name that does not exist', async () => {
    const { lookup } = await serveDns({});
    expect(await kindOf(egressFor('', { lookup }).request(get('https://a.example.com/')))).toBe('dns');
  });

  test('a name server that never responds does not delay other look-ups', async () => {
    const { lookup, questions } = await serveDns({
      'silent.example.com': 'silent',
      'a.example.com': { a: ['127.0.0.1'] },
    });
    const egress = egressFor('', { lookup, connectTimeoutMs: 1000 });
    const silent = Array.from({ length: 50 }, () => kindOf(egress.request(get('https://silent.example.com/'))));
    let done = false;
    silent[0]?.then(() => {
      done = true;
    });
    expect(await kindOf(egress.request(get('https://a.example.com/')))).toBe('not_allowed');
    expect(done).toBe(false);
    expect(await Promise.all(silent)).toEqual(Array(50).fill('dns'));
    // Fifty connections to one name ask once, not fifty times.
    expect(questions()).toBeLessThan(10);
  });
});
