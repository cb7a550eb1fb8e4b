// What stands between a service and PostgreSQL, for tests that break it. The proxy reads what the server says, message by message, and
// hands it on answer by answer; what the service says goes through unread.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface PostgresProxy {
  /** Of the same database, by way of the proxy. */
  url: string;
  /**
   * Asked for each answer that says that something was committed: true loses it, and the connection with it. `tags` are those of its
   * commands, such as `INSERT 0 1`.
   */
  losesAnswer: (tags: readonly string[]) => boolean;
  /** Whether notifications are kept back. */
  isDeaf: boolean;
  /** How many were kept back. */
  notificationsLost: number;
  /** Cuts every connection; the next ones lead to that server. */
  leadTo(url: string): void;
  close(): Promise<void>;
}

// Types of messages (the manual's "Message Formats").
const COMMAND_COMPLETE = 'C';
const NOTIFICATION = 'A';
const READY_FOR_QUERY = 'Z';
// Behind a message's type and its length. Of READY_FOR_QUERY it is whether a transaction is open: `I` is none.
const BODY_AT = 5;

/** Tags of commands that change something, alone or in a transaction that they end. */
const CHANGES = /^(COMMIT|(INSERT 0|UPDATE|DELETE) [1-9])/;

export async function startPostgresProxy(target: string): Promise<PostgresProxy> {
  const sockets = new Set<Socket>();
  let to = new URL(target);

  const server = createServer((client) => {
    const upstream = connectTo(to);
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
    client.pipe(upstream);
    upstream.on('data', messagesOf(take));
    upstream.on('end', () => {
      handOn();
      client.end();
    });
    upstream.once('close', () => client.destroy());
    client.once('close', () => upstream.destroy());

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
      if (isCommitted && proxy.losesAnswer(tags)) {
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

  const url = new URL(target);
  url.search = '';
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const proxy: PostgresProxy = {
    url: url.href,
    losesAnswer: () => false,
    isDeaf: false,
    notificationsLost: 0,
    leadTo(next) {
      to = new URL(next);
      cut();
    },
    async close() {
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

/** A listener for data that hands on whole messages: a type, the length of what follows, and that. */
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
