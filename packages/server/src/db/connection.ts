// One connection to PostgreSQL.
//
// A connection is ready once its settings are pinned and the server is known to be writable; one statement does both. No connection to
// a standby or to a read-only database therefore gets into a pool.
//
// It counts for how many seconds the server has been silent while a response was due, so that connections.ts can close it. The server's
// own statement timeout does not help if the server hangs or the network is cut.
import { channel } from 'node:diagnostics_channel';
import { Client, type ClientConfig } from 'pg';

/** PostgreSQL's code for a statement that a read-only server refuses. */
export const READ_ONLY = '25006';

/** What the server uses instead of the settings of its role or database: results depend on them. */
const resultSettings: Readonly<Record<string, string>> = {
  array_nulls: 'on',
  bytea_output: 'hex',
  DateStyle: 'ISO, MDY',
  default_transaction_isolation: 'read committed',
  extra_float_digits: '1',
  IntervalStyle: 'postgres',
  lock_timeout: '0',
  standard_conforming_strings: 'on',
  TimeZone: 'UTC',
  transform_null_equals: 'off',
};

/**
 * How the server notices that a node is gone, as after a failure of its machine or network. By default it takes two hours, and until
 * then the connections of the node count towards the limit of the server. Without effect on a unix socket.
 */
const keepAliveSettings: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: '15',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  // For a response that is not acknowledged, which no keep-alive follows.
  tcp_user_timeout: '30s',
};

/**
 * Plans for any values often look expensive, so PostgreSQL compiles them: 60 to 200 ms for a statement that takes 10. The embedded
 * database does not have it either.
 */
const planSettings: Readonly<Record<string, string>> = { jit: 'off' };

export const pinnedSettings: Readonly<Record<string, string>> = {
  ...resultSettings,
  ...keepAliveSettings,
  ...planSettings,
};

/** The server can't be written to. */
export class ReadOnlyServer extends Error {
  override readonly name = 'ReadOnlyServer';
  readonly code = READ_ONLY;
  constructor() {
    super('it is read-only');
  }
}

export interface ConnectionSettings {
  /** With exactly one host. */
  url: string;
  applicationName: string;
  /** Set for the connection; null if a pooler may use another server connection for each transaction. */
  settings: Readonly<Record<string, string>> | null;
}

// biome-ignore lint/suspicious/noExplicitAny: pg overloads its methods, by callbacks, promises and kinds of queries
export type Overloaded = any;

// Publishes every connection, for tests, which see from it whether PostgreSQL is at work.
const opened = channel('signalbox.connection');

export class Connection extends Client {
  readonly url: string;
  readonly #settings: ConnectionSettings['settings'];
  #state: 'opening' | 'open' | 'closing' = 'opening';
  #isBusy = false;
  #silentSeconds = 0;
  #bytesRead = 0;
  /** Called with the reason if it can't be opened, before the caller gets the error. */
  failedToOpen: (error: unknown) => void = () => {};
  /** Called if a statement is refused because the database is no longer writable. */
  becameReadOnly: () => void = () => {};

  constructor({ url, applicationName, settings }: ConnectionSettings) {
    const config: ClientConfig = {
      connectionString: url,
      fallback_application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    };
    super(config);
    this.url = url;
    this.#settings = settings;
    // Running statements get the same error, but an 'error' event without a listener would end the process.
    this.on('error', () => {});
    this.on('drain', () => {
      this.#isBusy = false;
    });
    if (opened.hasSubscribers) opened.publish(this);
  }

  get state(): 'opening' | 'open' | 'closing' {
    return this.#state;
  }

  /** Throws `ReadOnlyServer`, or the error of the server or the network. */
  override connect(callback?: unknown): Overloaded {
    const opened = this.#open();
    if (typeof callback !== 'function') return opened;
    opened.then(
      () => callback(null, this),
      (error) => callback(error),
    );
  }

  async #open(): Promise<this> {
    try {
      await super.connect();
      const settings = Object.entries(this.#settings ?? {});
      const pins = settings.map((_, index) => `, set_config($${2 * index + 1}, $${2 * index + 2}, false)`);
      const { rows } = await super.query<[boolean]>({
        text: `select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean${pins.join('')}`,
        values: settings.flat(),
        rowMode: 'array',
      });
      if (rows[0]?.[0]) throw new ReadOnlyServer();
      this.#state = 'open';
      return this;
    } catch (error) {
      this.failedToOpen(error);
      void this.end().catch(() => {});
      throw error;
    }
  }

  override query(...given: Overloaded[]): Overloaded {
    this.#isBusy = true;
    const result: unknown = super.query(...(given as Parameters<Client['query']>));
    if (result instanceof Promise) result.catch((error) => error?.code === READ_ONLY && this.becameReadOnly());
    return result;
  }

  override end(callback?: Overloaded): Overloaded {
    this.#state = 'closing';
    this.#silentSeconds = 0;
    return callback ? super.end(callback) : super.end();
  }

  /** Whether the server owes it a response. */
  get isAwaited(): boolean {
    return this.#isBusy || this.#state !== 'open';
  }

  /** How long the server has sent nothing although a response is due. */
  get silentSeconds(): number {
    return this.#silentSeconds;
  }

  /** Call it once a second. */
  countSilence(): number {
    const { bytesRead } = this.connection.stream as unknown as { bytesRead: number };
    this.#silentSeconds = this.isAwaited && bytesRead === this.#bytesRead ? this.#silentSeconds + 1 : 0;
    this.#bytesRead = bytesRead;
    return this.#silentSeconds;
  }

  /** Closes it at once; running statements fail with this message. */
  destroy(message: string): void {
    const error = this.#state === 'closing' ? undefined : Object.assign(new Error(message), { code: 'ETIMEDOUT' });
    this.connection.stream.destroy(error);
  }
}

// The kernel probes an idle peer after this time, then every second, ten times.
const KEEP_ALIVE_AFTER_MS = 10_000;
