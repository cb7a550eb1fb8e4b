// All connections of one purpose: which host they lead to, when they are replaced, and what ends those that hang.
//
// Several hosts are tried in order, from the one that worked last; a connection that can't be opened, or whose server is read-only,
// makes the next one lead to the next host.
//
// When a statement is refused because the database has become read-only, or the database was found to hang, every connection
// made before is replaced before its next use. So nothing of that time is left a moment after the database's return.
//
// A sweep each second looks at the connections that wait for the server. When one has waited for SUSPECT_SECONDS, a new connection
// is tried: when that is not answered either, the database hangs, and everything that waits for it fails. A statement
// that the server says nothing of for longer than it may take fails in any case.
import { Pool, type PoolClient } from 'pg';
import { type Clock, systemClock } from '../lib/clock.ts';
import { Connection, type Overloaded, pinnedSettings, ReadOnlyServer } from './connection.ts';
import { isServerError } from './pipeline.ts';
import { urlsOf } from './url.ts';

export interface ConnectionsOptions {
  /** `postgres://…`, with one host or several; never logged. */
  url: string;
  applicationName?: string;
  /** What the server enforces; 0 is no limit. Undefined leaves it to the settings of the server. */
  statementTimeoutMs?: number | undefined;
  /** How long a transaction may wait for its next statement before the server ends its connection. */
  idleInTransactionMs?: number | undefined;
  /** Whether a pooler may give each transaction another server connection, so that nothing can be set for a connection. */
  isPooled?: boolean;
  /** The seconds of the sweep: real ones, also where a test moves the clock of the service. */
  clock?: Clock | undefined;
}

const SWEEP_MS = 1_000;
// On a machine that has much to do; below the time that a caller waits for a connection.
const OPEN_SECONDS = 8;
// Ends within the 5 s in which a node says that it is not ready.
const CHECK_SECONDS = 3;
const CLOSE_SECONDS = 3;
// Long for a statement, short for a person who waits. With a probe's time it stays below the 10 s within which a call fails.
const SUSPECT_SECONDS = 4;
const PROBE_SECONDS = 4;
// The server's word that it has cancelled a statement takes its time on a busy machine.
const MARGIN_SECONDS = 5;
// How long a caller waits for a connection of a pool that is in use as a whole.
const WAIT_MS = 10_000;
const IDLE_MS = 60_000;
// So that what changed behind a connection, such as a name in DNS, is noticed however busy it is.
const LIFETIME_SECONDS = 600;
// How long a pool does not grow after the server refused it another connection.
const NO_GROWTH_SECONDS = 10;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #clock: Clock;
  readonly #urls: readonly string[];
  #host = 0;
  #failures = 0;
  /** Connections that are good for use; others are replaced. */
  #current = new WeakSet<Connection>();
  /** Outside of pools, so that nobody would replace them. */
  readonly #direct = new WeakSet<Connection>();
  /** How long they may take to open, where it is not OPEN_SECONDS. */
  readonly #openSeconds = new WeakMap<Connection, number>();
  readonly #open = new Set<Connection>();
  readonly #pools = new Set<ConnectionPool>();
  #sweeping: AbortController | undefined;
  /** The hosts that are tried at this moment because something waits for them. */
  readonly #probed = new Set<string>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#urls = urlsOf(options.url);
  }

  pool(max: number): ConnectionPool {
    const pool = new ConnectionPool(this, max);
    this.#pools.add(pool);
    return pool;
  }

  /** A connection of its own. The caller ends it. */
  direct(): Promise<Connection> {
    return this.attempt(() => {
      const connection = this.create();
      this.#direct.add(connection);
      return connection.connect();
    });
  }

  /** Resolves when a new connection is answered by a server that can be written to. */
  async check(): Promise<void> {
    const connection = await this.attempt<Connection>(() => {
      const connection = this.create();
      this.#openSeconds.set(connection, CHECK_SECONDS);
      return connection.connect();
    });
    void connection.end();
  }

  /** What opens a connection, again for each other host. */
  async attempt<T>(open: () => Promise<T>): Promise<T> {
    for (let others = this.#urls.length - 1; ; others -= 1) {
      const failures = this.#failures;
      try {
        return await open();
      } catch (error) {
        if (others === 0 || this.#failures === failures) throw error;
      }
    }
  }

  /** `url`: that of one host; unless given, of the one whose turn it is. */
  create(url = this.#urls[this.#host]!): Connection {
    const { applicationName = 'signalbox', statementTimeoutMs, idleInTransactionMs, isPooled = false } = this.#options;
    const settings = {
      ...pinnedSettings,
      ...(statementTimeoutMs !== undefined && { statement_timeout: String(statementTimeoutMs) }),
      ...(idleInTransactionMs !== undefined && { idle_in_transaction_session_timeout: String(idleInTransactionMs) }),
    };
    const connection = new Connection({ url, applicationName, settings: isPooled ? null : settings });
    connection.failedToOpen = (error) => {
      // The server's own refusals, of a password or for want of room, hold for every host.
      if (isServerError(error) && !error.code.startsWith('57P')) return;
      this.#failures += 1;
      if (url === this.#urls[this.#host]) this.#host = (this.#host + 1) % this.#urls.length;
    };
    connection.becameReadOnly = () => this.#replaceAll(connection);
    this.#current.add(connection);
    this.#open.add(connection);
    connection.once('end', () => {
      this.#open.delete(connection);
      if (this.#open.size === 0) this.#endSweeping();
    });
    this.#startSweeping();
    return connection;
  }

  isCurrent(connection: Connection): boolean {
    return this.#current.has(connection);
  }

  /** Every connection made so far is replaced before its next use. `cause` may be one that is to be replaced already. */
  #replaceAll(cause?: Connection): void {
    if (cause && !this.#current.has(cause)) return;
    this.#current = new WeakSet();
    for (const connection of this.#open) {
      if (this.#direct.has(connection)) connection.destroy('The connection is replaced');
    }
  }

  #startSweeping(): void {
    if (this.#sweeping) return;
    this.#sweeping = new AbortController();
    void this.#sweep(this.#sweeping.signal);
  }

  #endSweeping(): void {
    this.#sweeping?.abort();
    this.#sweeping = undefined;
  }

  async #sweep(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await this.#clock.sleep(SWEEP_MS, ended).catch(() => {});
      if (ended.aborted) return;
      for (const pool of this.#pools) pool.countDownNoGrowth();
      const suspects = new Set<string>();
      for (const connection of [...this.#open]) {
        const silentSeconds = connection.countSilence();
        if (silentSeconds >= this.#limitOf(connection)) connection.destroy(`No answer for ${silentSeconds} s`);
        else if (isSilent(connection)) suspects.add(connection.url);
      }
      for (const url of suspects) void this.#suspect(url);
    }
  }

  #limitOf(connection: Connection): number {
    if (connection.state === 'closing') return CLOSE_SECONDS;
    if (connection.state === 'opening') return this.#openSeconds.get(connection) ?? OPEN_SECONDS;
    const { statementTimeoutMs = 0 } = this.#options;
    // A connection of its own may run what takes long, such as a migration.
    if (statementTimeoutMs === 0 || this.#direct.has(connection)) return Number.POSITIVE_INFINITY;
    return Math.ceil(statementTimeoutMs / 1000) + MARGIN_SECONDS;
  }

  /** Whether a host that is silent answers a new connection; another host that does says nothing of it. */
  async #suspect(url: string): Promise<void> {
    if (this.#probed.has(url)) return;
    this.#probed.add(url);
    try {
      const connection = this.create(url);
      this.#openSeconds.set(connection, PROBE_SECONDS);
      await connection.connect();
      void connection.end();
    } catch (error) {
      // Whatever a server says, it answers.
      if (isServerError(error) || error instanceof ReadOnlyServer) return;
      for (const connection of [...this.#open]) {
        if (connection.url === url && isSilent(connection)) connection.destroy('The database does not answer');
      }
      this.#replaceAll();
    } finally {
      this.#probed.delete(url);
    }
  }
}

/** The server, the database or the role has as many connections as it may have. */
export function hasTooManyConnections(error: unknown): boolean {
  return isServerError(error) && error.code === '53300';
}

function isSilent(connection: Connection): boolean {
  return connection.state === 'open' && connection.silentSeconds >= SUSPECT_SECONDS;
}

/** Callers wait for a connection while all are in use, and while the server has no room for another. */
export class ConnectionPool extends Pool {
  readonly #connections: Connections;
  readonly #max: number;
  #noGrowthSeconds = 0;

  constructor(connections: Connections, max: number) {
    super({
      Client: class {
        constructor() {
          // biome-ignore lint/correctness/noConstructorReturn: pg's pool makes its connections by `new`
          return connections.create();
        }
      } as never,
      max,
      connectionTimeoutMillis: WAIT_MS,
      idleTimeoutMillis: IDLE_MS,
      maxLifetimeSeconds: LIFETIME_SECONDS,
    });
    this.#connections = connections;
    this.#max = max;
  }

  override connect(callback?: unknown): Overloaded {
    const taken = this.#take();
    if (typeof callback !== 'function') return taken;
    taken.then(
      (client) => callback(undefined, client, client.release),
      (error) => callback(error, undefined, () => {}),
    );
  }

  async #take(): Promise<PoolClient & Connection> {
    while (true) {
      try {
        const client = (await this.#connections.attempt(() => super.connect())) as PoolClient & Connection;
        if (this.#connections.isCurrent(client)) return client;
        client.release(true);
      } catch (error) {
        // One of those that there are comes free.
        if (!hasTooManyConnections(error) || this.totalCount === 0) throw error;
        this.options.max = this.totalCount;
        this.#noGrowthSeconds = NO_GROWTH_SECONDS;
      }
    }
  }

  /** To be called each second. */
  countDownNoGrowth(): void {
    this.#noGrowthSeconds -= 1;
    if (this.#noGrowthSeconds <= 0) this.options.max = this.#max;
  }
}
