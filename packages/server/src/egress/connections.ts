/**
 * The kept-alive connections of an `Egress`, separate for each owner and origin (scheme, host and port): no owner's requests wait for
 * a connection that another's occupy.
 *
 * Each carries one request at a time. The most recently returned one is used first, so that surplus connections become idle and
 * close. undici's own pool searches all its connections for a free one and reads the clock for each: with 200 busy connections that
 * took longer than the rest of sending a request.
 */
import { Client } from 'undici';

export interface ConnectionsOptions {
  /** The options of every client; its connector enforces the policy. */
  readonly client: Client.Options;
  /** For each owner. */
  readonly maxPerOrigin: number;
  /** A connection of this age gets no further request. */
  readonly lifetimeMs: number;
}

/** A client has one connection at a time, which it opens for its first request. */
export interface Connection {
  readonly client: Client;
  readonly origin: Origin;
  isOpen: boolean;
  isOld: boolean;
  isIdle: boolean;
  /** Whether it has carried a request before, so that its server may be closing it. */
  isReused: boolean;
}

/** As one owner uses it. */
interface Origin {
  readonly owner: string;
  readonly url: string;
  count: number;
  readonly idle: Connection[];
  /** In the order in which they came. */
  readonly waiting: Set<(connection: Connection) => void>;
}

export class Connections {
  readonly #options: ConnectionsOptions;
  /** By owner and url. In two steps, because a joined key would be another string for each request. */
  readonly #origins = new Map<string, Map<string, Origin>>();
  readonly #clients = new Set<Client>();
  #isDestroyed = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /**
   * Calls `use` with a connection for one request: at once, or when one is free. Return it with `giveBack` when the request has ended
   * in any way. The returned function withdraws a request that still waits: no connection is opened for it.
   */
  lend(owner: string, url: string, use: (connection: Connection) => void): () => void {
    const origin = this.#origins.get(owner)?.get(url) ?? this.#addOrigin(owner, url);
    const idle = origin.idle.pop();
    if (idle) {
      idle.isIdle = false;
      use(idle);
    } else if (origin.count < this.#options.maxPerOrigin) use(this.#open(origin));
    else origin.waiting.add(use);
    return () => void origin.waiting.delete(use);
  }

  giveBack(connection: Connection): void {
    const { origin, isOpen, isOld } = connection;
    const [next] = origin.waiting;
    if (next) origin.waiting.delete(next);
    if (isOpen && !isOld) {
      connection.isReused = true;
      if (next) next(connection);
      else {
        connection.isIdle = true;
        origin.idle.push(connection);
      }
      return;
    }
    // Opened before the other is dropped, because an origin without connections is forgotten.
    if (next) next(this.#open(origin));
    this.#drop(connection);
  }

  /** Aborts current and all later requests. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    // One after the other: from `giveBack` each would end the next within its own call.
    for (const origin of [...this.#origins.values()].flatMap((owned) => [...owned.values()])) {
      const waiting = [...origin.waiting];
      origin.waiting.clear();
      for (const use of waiting) use(this.#open(origin));
    }
    await Promise.all([...this.#clients].map((client) => client.destroy()));
  }

  #addOrigin(owner: string, url: string): Origin {
    const origin: Origin = { owner, url, count: 0, idle: [], waiting: new Set() };
    const owned = this.#origins.get(owner);
    if (owned) owned.set(url, origin);
    else this.#origins.set(owner, new Map([[url, origin]]));
    return origin;
  }

  #open(origin: Origin): Connection {
    const client = new Client(origin.url, this.#options.client);
    const connection: Connection = { client, origin, isOpen: false, isOld: false, isIdle: false, isReused: false };
    origin.count += 1;
    if (this.#isDestroyed) void client.destroy();
    else this.#clients.add(client);
    let lifetime: NodeJS.Timeout | undefined;
    client.on('connect', () => {
      connection.isOpen = true;
      lifetime = setTimeout(() => {
        connection.isOld = true;
        this.#dropIdle(connection);
      }, this.#options.lifetimeMs).unref();
    });
    client.on('disconnect', () => {
      clearTimeout(lifetime);
      connection.isOpen = false;
      connection.isOld = false;
      connection.isReused = false;
      this.#dropIdle(connection);
    });
    return connection;
  }

  #dropIdle(connection: Connection): void {
    if (!connection.isIdle) return;
    connection.isIdle = false;
    const { idle } = connection.origin;
    idle.splice(idle.indexOf(connection), 1);
    this.#drop(connection);
  }

  #drop({ client, origin }: Connection): void {
    this.#clients.delete(client);
    // It has no request, so this closes its connection. Closing a destroyed client rejects.
    client.close().catch(() => {});
    origin.count -= 1;
    if (origin.count > 0) return;
    const owned = this.#origins.get(origin.owner)!;
    owned.delete(origin.url);
    if (owned.size === 0) this.#origins.delete(origin.owner);
  }
}
