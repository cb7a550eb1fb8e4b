import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { collectGarbage } from '../../test/support/garbage.ts';
import { Connections } from './connections.ts';

const LIFETIME_MS = 60_000;

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serve(listener: RequestListener) {
  const sockets: Socket[] = [];
  const server = createServer({ keepAliveTimeout: 0 }, listener);
  server.on('connection', (socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

function connectionsOf(maxPerOrigin = 10): Connections {
  const client = { keepAliveTimeout: 10 * LIFETIME_MS, keepAliveMaxTimeout: 10 * LIFETIME_MS };
  const connections = new Connections({ client, maxPerOrigin, lifetimeMs: LIFETIME_MS });
  cleanUps.push(() => connections.destroy());
  return connections;
}

/** The status of the answer. */
function get(connections: Connections, url: string, owner = 'a'): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0;
    connections.lend(owner, url, (connection) =>
      connection.client.dispatch(
        { method: 'GET', path: '/' },
        {
          onRequestStart() {},
          onResponseStart(_controller, answered) {
            status = answered;
          },
          onResponseData() {},
          onResponseEnd() {
            connections.giveBack(connection);
            resolve(status);
          },
          onResponseError(_controller, error) {
            connections.giveBack(connection);
            reject(error);
          },
        },
      ),
    );
  });
}

/** Answers nothing until `release`. */
function gate() {
  const held: ServerResponse[] = [];
  let isOpen = false;
  let most = 0;
  const arrived = Promise.withResolvers<void>();
  return {
    arrived: arrived.promise,
    most: () => most,
    listener: (_request: unknown, response: ServerResponse) => {
      if (isOpen) {
        response.end();
        return;
      }
      held.push(response);
      most = Math.max(most, held.length);
      arrived.resolve();
    },
    release() {
      isOpen = true;
      for (const response of held) response.end();
    },
  };
}

test('the most recently returned connection is used first, so surplus ones time out', async () => {
  const { listener, release, most } = gate();
  const { url, sockets } = await serve(listener);
  const connections = connectionsOf();
  const burst = Array.from({ length: 3 }, () => get(connections, url));
  await vi.waitFor(() => expect(most()).toBe(3));
  release();
  expect(await Promise.all(burst)).toEqual([200, 200, 200]);
  const before = sockets.map((socket) => socket.bytesRead);
  for (let n = 0; n < 5; n += 1) await get(connections, url);
  expect(sockets).toHaveLength(3);
  expect(sockets.filter((socket, n) => socket.bytesRead > before[n]!)).toHaveLength(1);
});

test('the number of connections is limited; further requests wait for a returned one', async () => {
  const { listener, arrived, release, most } = gate();
  const { url, sockets } = await serve(listener);
  const connections = connectionsOf(2);
  const requests = Array.from({ length: 6 }, () => get(connections, url));
  await arrived;
  release();
  expect(await Promise.all(requests)).toEqual(Array(6).fill(200));
  expect(sockets).toHaveLength(2);
  expect(most()).toBeLessThanOrEqual(2);
});

test('a request that is withdrawn while it waits gets no connection', async () => {
  const { listener, arrived, release } = gate();
  const { url, sockets } = await serve((request, response) => {
    response.setHeader('connection', 'close');
    listener(request, response);
  });
  const connections = connectionsOf(1);
  const first = get(connections, url);
  await arrived;
  const lent: string[] = [];
  const withdraw = connections.lend('a', url, () => lent.push('withdrawn'));
  const last = get(connections, url);
  withdraw();
  release();
  expect(await Promise.all([first, last])).toEqual([200, 200]);
  expect(lent).toEqual([]);
  expect(sockets).toHaveLength(2);
});

test('a waiting request gets a new connection if the previous one broke', async () => {
  const { url, sockets } = await serve((_request, response) => {
    if (sockets.length === 1) response.destroy();
    else response.end();
  });
  const connections = connectionsOf(1);
  const [first, second] = await Promise.allSettled([get(connections, url), get(connections, url)]);
  expect(first.status).toBe('rejected');
  expect(second).toMatchObject({ value: 200 });
  expect(sockets).toHaveLength(2);
});

test('a connection that replaces an old one counts as well', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const arrivals = Array.from({ length: 3 }, () => Promise.withResolvers<ServerResponse>());
  let arrived = 0;
  const { url, sockets } = await serve((_request, response) => arrivals[arrived++]!.resolve(response));
  const connections = connectionsOf(1);
  const requests = [get(connections, url), get(connections, url)];
  const first = await arrivals[0]!.promise;
  vi.advanceTimersByTime(LIFETIME_MS);
  first.end();
  const second = await arrivals[1]!.promise;
  requests.push(get(connections, url));
  second.end();
  (await arrivals[2]!.promise).end();
  expect(await Promise.all(requests)).toEqual([200, 200, 200]);
  expect(sockets).toHaveLength(2);
});

test('each owner has connections of its own, and as many as every other', async () => {
  const { listener, release, most } = gate();
  const { url, sockets } = await serve(listener);
  const connections = connectionsOf(2);
  const owners = ['a', 'a', 'a', 'b', 'b', 'b'];
  const requests = owners.map((owner) => get(connections, url, owner));
  await vi.waitFor(() => expect(most()).toBe(4));
  release();
  expect(await Promise.all(requests)).toEqual(Array(6).fill(200));
  expect(sockets).toHaveLength(4);
  expect(most()).toBe(4);
});

test('however many requests wait, they all end when the connections are destroyed', async () => {
  const arrived = Promise.withResolvers<void>();
  const { url } = await serve(() => arrived.resolve());
  const connections = connectionsOf(1);
  const requests = Promise.allSettled(Array.from({ length: 5_000 }, () => get(connections, url)));
  await arrived.promise;
  await connections.destroy();
  const ended = await requests;
  expect(ended.every(({ status }) => status === 'rejected')).toBe(true);
});

test('nothing is kept for an owner without connections', async () => {
  const { url, sockets } = await serve((_request, response) => response.end());
  const connections = connectionsOf();
  async function use(owner: string): Promise<WeakRef<object>> {
    const lent = new Promise<WeakRef<object>>((resolve) => {
      connections.lend(owner, url, (connection) => {
        resolve(new WeakRef(connection.origin));
        connections.giveBack(connection);
      });
    });
    await get(connections, url, owner);
    return await lent;
  }
  const origins = [await use('a'), await use('b')];
  const closed = Promise.all(sockets.map((socket) => once(socket, 'close')));
  for (const socket of sockets) socket.destroy();
  await closed;
  await vi.waitFor(async () => {
    await collectGarbage();
    expect(origins.map((origin) => origin.deref())).toEqual([undefined, undefined]);
  });
});

test('an idle connection ends with its lifetime', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { url, sockets } = await serve((_request, response) => response.end());
  const connections = connectionsOf();
  await get(connections, url);
  vi.advanceTimersByTime(LIFETIME_MS);
  await once(sockets[0]!, 'close');
  await get(connections, url);
  expect(sockets).toHaveLength(2);
});

test('a connection whose lifetime ends during a request completes it, and gets no further one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { listener, arrived, release } = gate();
  const { url, sockets } = await serve(listener);
  const connections = connectionsOf();
  const answer = get(connections, url);
  await arrived;
  vi.advanceTimersByTime(LIFETIME_MS);
  release();
  const ended = once(sockets[0]!, 'close');
  expect(await answer).toBe(200);
  expect(await get(connections, url)).toBe(200);
  expect(sockets).toHaveLength(2);
  await ended;
});

test('closing aborts current, waiting and later requests', async () => {
  const { listener, arrived } = gate();
  const { url } = await serve(listener);
  const connections = connectionsOf(1);
  const requests = [get(connections, url), get(connections, url)];
  const ended = Promise.allSettled(requests);
  await arrived;
  await connections.destroy();
  for (const { status } of await ended) expect(status).toBe('rejected');
  await expect(get(connections, url)).rejects.toMatchObject({ code: 'UND_ERR_DESTROYED' });
});
