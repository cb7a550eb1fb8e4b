// One connection to PostgreSQL.
//
// It is ready for use when its settings are pinned and the server behind it can be written to, which one statement finds out. So no
// connection to a standby, or to a database that was made read-only, gets into a pool.
//
// It counts the seconds in which the server has been silent although something was awaited of it, so that connections.ts can
// end it: the server's own statement timeout is of no use when the server hangs or the network is cut.
import { Client, type ClientConfig } from 'pg';

/** PostgreSQL's code for a statement that a read-only server refuses. */
export const READ_ONLY = '25006';

/** Results depend on these settings, and a role or a database may have others. */
export const pinnedSettings: Readonly<Record<string, string>> = {
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

/** The server can't be written to. */
export class ReadOnlyServer extends Error {
  override readonly name = 'ReadOnlyServer';
  readonly code = READ_ONLY;
  constructor() {
    super('it is read-only');
  }
}

export interface ConnectionSettings {
  /** Of one host. */
  url: string;
  applicationName: string;
  /** Set for the connection; null where a pooler may give each transaction another one. */
  settings: Readonly<Record<string, string>> | null;
}

// biome-ignore lint/suspicious/noExplicitAny: pg overloads its methods, by callbacks, promises and kinds of queries
export type Overloaded = any;

export class Connection extends Client {
  readonly url: string;
  readonly #settings: ConnectionSettings['settings'];
  #state: 'opening' | 'open' | 'closing' = 'opening';
  #isBusy = false;
  #silentSeconds = 0;
  #bytesRead = 0;
  /** Hears why it could not be opened, before the caller does. */
  failedToOpen: (error: unknown) => void = () => {};
  /** To be called where a statement was refused because the database can't be written to any more. */
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
    // What waits for an answer gets the same error; but an 'error' event that nobody hears would end the process.
    this.on('error', () => {});
    this.on('drain', () => {
      this.#isBusy = false;
    });
  }

  get state(): 'opening' | 'open' | 'closing' {
    return this.#state;
  }

  /** Throws `ReadOnlyServer`, or what the server or the network says. */
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

  /** How long nothing has come although something was awaited. */
  get silentSeconds(): number {
    return this.#silentSeconds;
  }

  /** To be called each second. */
  countSilence(): number {
    const { bytesRead } = this.connection.stream as unknown as { bytesRead: number };
    const isAwaited = this.#isBusy || this.#state !== 'open';
    this.#silentSeconds = isAwaited && bytesRead === this.#bytesRead ? this.#silentSeconds + 1 : 0;
    this.#bytesRead = bytesRead;
    return this.#silentSeconds;
  }

  /** What waits for an answer fails with this message. */
  destroy(message: string): void {
    const error = this.#state === 'closing' ? undefined : Object.assign(new Error(message), { code: 'ETIMEDOUT' });
    this.connection.stream.destroy(error);
  }
}

// The kernel asks an idle peer after this time, then each second, ten times.
const KEEP_ALIVE_AFTER_MS = 10_000;
