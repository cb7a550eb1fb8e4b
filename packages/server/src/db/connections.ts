// All connections for one purpose: which host they connect to, when they are replaced, and when a hanging one is closed.
//
// Several hosts are tried in order, starting with the last one that worked. If a connection can't be opened, or its server is
// read-only, the next connection uses the next host.
//
// If a statement is refused because the database has become read-only, or if the database hangs, every existing connection is
// replaced before its next use. No stale connection is therefore used once the database is back.
//
// A sweep each second checks the connections that wait for the server. If one has waited for SUSPECT_SECONDS, a new connection is
// opened as a probe. If the probe gets no response either, the database hangs, and everything that waits for it fails. A statement
// fails in any case if the server stays silent for longer than the statement timeout.
import { OVER } from '../lib/aborted.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { Connection, pinnedSettings, ReadOnlyServer } from './connection.ts';
import { isServerError } from './pipeline.ts';
import { ConnectionPool, isRefusal, type PoolLog } from './pool.ts';
import { urlsOf } from './url.ts';

export interface ConnectionsOptions {
  /** `postgres://…`, with one host or several; never logged. */
  url: string;
  applicationName?: string;
  /** What the server enforces; 0 is no limit. Undefined leaves it to the settings of the server. */
  statementTimeoutMs?: number | undefined;
  /** How long a transaction may wait for its next statement before the server ends its connection. */
  idleInTransactionMs?: number | undefined;
  /** Whether a pooler may use another server connection for each transaction, so that a connection can't have settings. */
  isPooled?: boolean;
  /** The clock of the sweep: the real time, even if a test moves the clock of the service. */
  clock?: Clock | undefined;
}

const SWEEP_MS = 1_000;
// Enough on a busy machine, and less than a caller waits for a connection.
const OPEN_SECONDS = 8;
// Less than the 5 s within which a node reports that it is not ready: for each host, and for all together.
const CHECK_SECONDS = 3;
const CHECK_MS = 4_000;
const CLOSE_SECONDS = 3;
// Long for a statement, short for a user. With the time of a probe it stays below the 10 s after which a request fails.
const SUSPECT_SECONDS = 4;
const PROBE_SECONDS = 4;
// A busy server takes some time to report that it has cancelled a statement.
const MARGIN_SECONDS = 5;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #clock: Clock;
  readonly #urls: readonly string[];
  #host = 0;
  #failures = 0;
  /** Connections that may be used; others are replaced. */
  #current = new WeakSet<Connection>();
  /** Connections outside of pools, which no pool replaces. */
  readonly #direct = new WeakSet<Connection>();
  /** How long a connection may take to open, if not OPEN_SECONDS. */
  readonly #openSeconds = new WeakMap<Connection, number>();
  readonly #open = new Set<Connection>();
  readonly #pools = new Set<ConnectionPool>();
  #sweeping: AbortController | undefined;
  /** The hosts that are being probed. */
  readonly #probed = new Set<string>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#urls = urlsOf(options.url);
  }

  pool(max: number, log?: PoolLog): ConnectionPool {
    const open = () => this.#attempt(() => this.#create().connect());
    const isCurrent = (connection: Connection) => this.#current.has(connection);
    const pool = new ConnectionPool({ open, isCurrent }, { max, clock: this.#clock, log });
    this.#pools.add(pool);
    return pool;
  }

  /** A connection outside of pools. The caller ends it. */
  direct(): Promise<Connection> {
    return this.#attempt(() => {
      const connection = this.#create();
      this.#direct.add(connection);
      return connection.connect();
    });
  }

  /** Resolves when a new connection reaches a writable server. */
  async check(): Promise<void> {
    const opened = this.#attempt(() => {
      const connection = this.#create();
      this.#openSeconds.set(connection, CHECK_SECONDS);
      return connection.connect();
    }).then((connection) => void connection.end());
    const over = new AbortController();
    const late = this.#clock.sleep(CHECK_MS, over.signal).then(() => {
      throw new Error(`No response for ${CHECK_MS / 1000} s`);
    });
    await Promise.race([opened, late]).finally(() => over.abort(OVER));
  }

  /** Calls `open`, once more for each further host if it fails. */
  async #attempt(open: () => Promise<Connection>): Promise<Connection> {
    for (let others = this.#urls.length - 1; ; others -= 1) {
      const failures = this.#failures;
      try {
        return await open();
      } catch (error) {
        if (others === 0 || this.#failures === failures) throw error;
      }
    }
  }

  /** `url`: of one host; default: the current host. */
  #create(url = this.#urls[this.#host]!): Connection {
    const { applicationName = 'signalbox', statementTimeoutMs, idleInTransactionMs, isPooled = false } = this.#options;
    const settings = {
      ...pinnedSettings,
      ...(statementTimeoutMs !== undefined && { statement_timeout: String(statementTimeoutMs) }),
      ...(idleInTransactionMs !== undefined && { idle_in_transaction_session_timeout: String(idleInTransactionMs) }),
    };
    const connection = new Connection({ url, applicationName, settings: isPooled ? null : settings });
    connection.failedToOpen = (error) => {
      // If a server refuses a password or has no room, the other hosts would too.
      if (isRefusal(error)) return;
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

  /** Every existing connection is replaced before its next use. Does nothing if `cause` is due to be replaced already. */
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
    this.#sweeping?.abort(OVER);
    this.#sweeping = undefined;
  }

  async #sweep(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await this.#clock.sleep(SWEEP_MS, ended).catch(() => {});
      if (ended.aborted) return;
      for (const pool of this.#pools) pool.countSecond();
      const suspects = new Set<string>();
      for (const connection of [...this.#open]) {
        const silentSeconds = connection.countSilence();
        if (silentSeconds >= this.#limitOf(connection)) connection.destroy(`No response for ${silentSeconds} s`);
        else if (isSilent(connection)) suspects.add(connection.url);
      }
      for (const url of suspects) void this.#suspect(url);
    }
  }

  #limitOf(connection: Connection): number {
    if (connection.state === 'closing') return CLOSE_SECONDS;
    if (connection.state === 'opening') return this.#openSeconds.get(connection) ?? OPEN_SECONDS;
    const { statementTimeoutMs = 0 } = this.#options;
    // A connection outside of pools may run something long, such as a migration.
    if (statementTimeoutMs === 0 || this.#direct.has(connection)) return Number.POSITIVE_INFINITY;
    return Math.ceil(statementTimeoutMs / 1000) + MARGIN_SECONDS;
  }

  /** Probes a silent host with a new connection. Another host would prove nothing about this one. */
  async #suspect(url: string): Promise<void> {
    if (this.#probed.has(url)) return;
    this.#probed.add(url);
    try {
      const connection = this.#create(url);
      this.#openSeconds.set(connection, PROBE_SECONDS);
      await connection.connect();
      void connection.end();
    } catch (error) {
      // Even a refusal is a response.
      if (isServerError(error) || error instanceof ReadOnlyServer) return;
      for (const connection of [...this.#open]) {
        if (connection.url === url && isSilent(connection)) connection.destroy('The database does not respond');
      }
      this.#replaceAll();
    } finally {
      this.#probed.delete(url);
    }
  }
}

function isSilent(connection: Connection): boolean {
  return connection.state === 'open' && connection.silentSeconds >= SUSPECT_SECONDS;
}
