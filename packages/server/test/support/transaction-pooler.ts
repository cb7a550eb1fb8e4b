// A pooler that gives each transaction any free server connection, like PgBouncer with pool_mode=transaction: settings, prepared
// statements and subscriptions of a connection belong to another client afterwards. It does not authenticate.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { Client } from 'pg';

export interface TransactionPooler {
  url: string;
  close(): Promise<void>;
}

// Types of messages (the manual's "Message Formats"). The first message of a client has none.
const QUERY = 'Q'.charCodeAt(0);
const SYNC = 'S'.charCodeAt(0);
const TERMINATE = 'X'.charCodeAt(0);
const READY_FOR_QUERY = 'Z'.charCodeAt(0);
const IDLE = 'I'.charCodeAt(0);

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** Forwards whole messages; `headless`: how many messages at the start have no type. */
function messages(take: (message: Buffer) => void, headless = 0): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let left = headless;
  return (data) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= 5) {
      const size = (left > 0 ? 0 : 1) + rest.readInt32BE(left > 0 ? 0 : 1);
      if (rest.length < size) return;
      left -= 1;
      const whole = rest.subarray(0, size);
      rest = rest.subarray(size);
      take(whole);
    }
  };
}

interface Upstream {
  write(data: Buffer): void;
  hear: (message: Buffer) => void;
  end(): Promise<void>;
}

async function connectTo(url: string): Promise<Upstream> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { stream } = client.connection;
  stream.removeAllListeners('data');
  const upstream: Upstream = {
    write: (data) => void stream.write(data),
    hear: () => {},
    end: () => client.end(),
  };
  stream.on(
    'data',
    messages((one) => upstream.hear(one)),
  );
  return upstream;
}

export async function startTransactionPooler(target: string, size = 3): Promise<TransactionPooler> {
  const all = await Promise.all(Array.from({ length: size }, () => connectTo(target)));
  const free = [...all];
  const waiting: ((upstream: Upstream) => void)[] = [];
  const sockets = new Set<Socket>();

  function give(upstream: Upstream): void {
    upstream.hear = () => {};
    const next = waiting.shift();
    if (next) next(upstream);
    else free.push(upstream);
  }

  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {}).once('close', () => sockets.delete(client));
    let isGreeted = false;
    let mine: Upstream | undefined;
    let gathered: Buffer[] = [];
    let last = Promise.resolve();

    async function forward(group: Buffer): Promise<void> {
      mine ??= free.shift() ?? (await new Promise<Upstream>((resolve) => waiting.push(resolve)));
      const upstream = mine;
      const answered = Promise.withResolvers<void>();
      upstream.hear = (one) => {
        client.write(one);
        if (one[0] !== READY_FOR_QUERY) return;
        if (one[5] === IDLE) {
          mine = undefined;
          give(upstream);
        }
        answered.resolve();
      };
      upstream.write(group);
      await answered.promise;
    }

    client.on(
      'data',
      messages((one) => {
        if (!isGreeted) {
          isGreeted = true;
          client.write(
            Buffer.concat([
              message('R', Buffer.from([0, 0, 0, 0])),
              message('K', Buffer.from([0x7f, 0, 0, 1, 0, 0, 0, 1])),
              message('Z', Buffer.from('I')),
            ]),
          );
          return;
        }
        if (one[0] === TERMINATE) return void client.end();
        gathered.push(one);
        if (one[0] !== SYNC && one[0] !== QUERY) return;
        const group = Buffer.concat(gathered);
        gathered = [];
        last = last.then(() => forward(group));
      }, 1),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(target);
  url.search = '';
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(all.map((upstream) => upstream.end()));
    },
  };
}
