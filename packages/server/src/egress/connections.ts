/**
 * The connections of an `Egress`, kept between requests, for each origin (scheme, host and port) its own.
 *
 * One request at a time on each. The one that was given back last goes first, so that those which are too many grow idle
 * and end. undici's own pool looks through its connections for a free one, and at the clock for each: with 200 of them busy
 * that was more work than the rest of sending a request.
 */
import { Client } from 'undici';

export interface ConnectionsOptions {
  /** The same for each; it judges where it connects to. */
  readonly client: Client.Options;
  readonly maxPerOrigin: number;
  /** After so long a connection takes no new request. */
  readonly lifetimeMs: number;
}

/** A client has one connection at a time, and opens it when a request comes. */
export interface Connection {
  readonly client: Client;
  readonly origin: Origin;
  isOpen: boolean;
  isOld: boolean;
  isIdle: boolean;
}

interface Origin {
  readonly url: string;
  count: number;
  readonly idle: Connection[];
  readonly waiting: ((connection: Connection) => void)[];
}

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #origins = new Map<string, Origin>();
  readonly #clients = new Set<Client>();
  #isDestroyed = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /**
   * Lends a connection for one request: at once, or when one is free. Whoever has dispatched gives it back when the handler hears
   * of the end, of whichever kind.
   */
  lend(url: string, use: (connection: Connection) => void): void {
    let origin = this.#origins.get(url);
    if (!origin) {
      origin = { url, count: 0, idle: [], waiting: [] };
      this.#origins.set(url, origin);
    }
    const idle = origin.idle.pop();
    if (idle) {
      idle.isIdle = false;
      use(idle);
    } else if (origin.count < this.#options.maxPerOrigin) use(this.#open(origin));
    else origin.waiting.push(use);
  }

  giveBack(connection: Connection): void {
    const { origin, isOpen, isOld } = connection;
    const next = origin.waiting.shift();
    if (isOpen && !isOld) {
      if (next) next(connection);
      else {
        connection.isIdle = true;
        origin.idle.push(connection);
      }
      return;
    }
    this.#drop(connection);
    if (next) next(this.#open(origin));
  }

  /** Ends what is under way, and every request that comes later. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await Promise.all([...this.#clients].map((client) => client.destroy()));
  }

  #open(origin: Origin): Connection {
    const client = new Client(origin.url, this.#options.client);
    const connection: Connection = { client, origin, isOpen: false, isOld: false, isIdle: false };
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
    // Its last request is over, so to close it is to end its connection. One that was destroyed cannot be closed.
    client.close().catch(() => {});
    origin.count -= 1;
    if (origin.count === 0 && origin.waiting.length === 0) this.#origins.delete(origin.url);
  }
}
