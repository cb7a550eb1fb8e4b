// A proxy between a service and PostgreSQL, for tests that break the connection. It parses the server's messages and forwards them
// response by response; it forwards the service's messages unread.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { ignoreConnections } from './idle.ts';

export interface PostgresProxy {
  /** The URL of the same database through the proxy. */
  url: string;
  /**
   * Called for each response that confirms a commit; true drops the response and the connection. `tags` are those of its commands,
   * such as `INSERT 0 1`.
   */
  losesResponse: (tags: readonly string[]) => boolean;
  /** Whether notifications are withheld. */
  isDeaf: boolean;
  /** The number of withheld notifications. */
  notificationsLost: number;
  /** The number of open connections. */
  readonly connections: number;
  /** The number of connections since the start. */
  readonly opened: number;
  /**
   * Forwards nothing and closes nothing from now on, as if the server hung or the network were cut: on all connections, or only on
   * the current ones. The returned function forwards what was withheld.
   */
  hang(which?: 'all' | 'existing'): () => void;
  /** Cuts every connection; new ones go to that server. */
  leadTo(url: string): void;
  close(): Promise<void>;
}

// Types of messages (the manual's "Message Formats").
const COMMAND_COMPLETE = 'C';
const NOTIFICATION = 'A';
const READY_FOR_QUERY = 'Z';
// The offset of a message's body, after its type and length. The body of READY_FOR_QUERY is the transaction status: `I` is none.
const BODY_AT = 5;

/** Tags of commands that commit a change, on their own or by ending a transaction. */
const CHANGES = /^(COMMIT|(INSERT 0|UPDATE|DELETE) [1-9])/;

export async function startPostgresProxy(target: string): Promise<PostgresProxy> {
  const sockets = new Set<Socket>();
  const gates = new Set<{ clientPort: number | undefined; whenOpen: Promise<void> | undefined }>();
  let hanging: Promise<void> | undefined;
  let to = new URL(target);
  let opened = 0;

  // Otherwise each message after the first waits 40 ms for an acknowledgement.
  const server = createServer({ noDelay: true }, (client) => {
    opened += 1;
    const upstream = connectTo(to);
    const gate = { clientPort: client.remotePort, whenOpen: hanging };
    gates.add(gate);
    client.once('close', () => gates.delete(gate));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket)).on('error', () => {});
    }
    let held: Buffer[] = [];
    let isGreeted = false;
    let tags: string[] = [];
    const handOn = () => {
      if (!client.destroyed) for (const message of held) client.write(message);
      held = [];
    };
    pump(
      client,
      (data) => upstream.write(data),
      () => upstream.end(),
    );
    pump(upstream, messagesOf(take), () => {
      handOn();
      client.end();
    });
    upstream.once('close', () => !gate.whenOpen && client.destroy());
    client.once('close', () => upstream.destroy());

    async function pump(from: Socket, handOver: (data: Buffer) => void, end: () => void): Promise<void> {
      try {
        for await (const data of from) {
          await gate.whenOpen;
          handOver(data);
        }
        await gate.whenOpen;
        end();
      } catch {
        // The connection was cut.
      }
    }

    function take(message: Buffer): void {
      const type = String.fromCharCode(message[0]!);
      if (type === NOTIFICATION) {
        if (proxy.isDeaf) proxy.notificationsLost += 1;
        else client.write(message);
        return;
      }
      held.push(message);
      if (type === COMMAND_COMPLETE) tags.push(message.toString('latin1', BODY_AT, message.length - 1));
      const isReady = type === READY_FOR_QUERY;
      const isCommitted = isReady && message[BODY_AT] === 'I'.charCodeAt(0) && tags.some((tag) => CHANGES.test(tag));
      if (isCommitted && proxy.losesResponse(tags)) {
        client.destroy();
        return;
      }
      isGreeted ||= isReady;
      if (!isReady && isGreeted) return;
      tags = [];
      handOn();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // Nothing happens on a connection that hangs, so a manual clock moves meanwhile.
  const stopIgnoring = ignoreConnections(({ connection }) => {
    const { localPort } = connection.stream as Socket;
    return [...gates].some(({ clientPort, whenOpen }) => whenOpen && clientPort === localPort);
  });

  const url = new URL(target);
  url.search = '';
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const proxy: PostgresProxy = {
    url: url.href,
    losesResponse: () => false,
    isDeaf: false,
    notificationsLost: 0,
    get connections() {
      return gates.size;
    },
    get opened() {
      return opened;
    },
    hang(which = 'all') {
      const { promise, resolve } = Promise.withResolvers<void>();
      for (const gate of gates) gate.whenOpen = promise;
      if (which === 'all') hanging = promise;
      return () => {
        hanging = undefined;
        for (const gate of gates) gate.whenOpen = undefined;
        resolve();
      };
    },
    leadTo(next) {
      to = new URL(next);
      cut();
    },
    async close() {
      stopIgnoring();
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

function connectTo({ hostname, port, searchParams }: URL): Socket {
  const directory = searchParams.get('host');
  return directory ? connect(`${directory}/.s.PGSQL.${port}`) : connect(Number(port || 5432), hostname);
}

/** A data listener that forwards whole messages: type, length, body. */
function messagesOf(take: (message: Buffer) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    rest = rest.length > 0 ? Buffer.concat([rest, data]) : data;
    while (rest.length >= BODY_AT) {
      const size = 1 + rest.readInt32BE(1);
      if (rest.length < size) return;
      take(rest.subarray(0, size));
      rest = rest.subarray(size);
    }
  };
}
