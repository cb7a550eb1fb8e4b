// The server of a directory, locked for this process.
//
// The lock is an advisory lock in the cluster's database `postgres`, held by a connection of this process for as long as it
// runs. The server therefore knows who has it, and releases it as soon as that process is gone, even after a kill -9.
//
// A start is the same in every situation. A server that is still running because its program was killed is adopted if it was
// started in the same way, and otherwise stopped. If none is running, one is started. Then the lock is taken. PostgreSQL itself
// refuses a second server on a cluster, so if two programs start at once there is one server, and the slower program finds it
// locked. If the connection with the lock breaks later, the server has crashed, and all of this is repeated.
import * as fs from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { explain, type Setup } from './cluster.ts';
import { type Credentials, type Endpoint, tcpUrlOf, urlOf } from './endpoint.ts';
import { DirectoryInUse, PostgresFailed } from './errors.ts';
import type { PostgresLog } from './log.ts';
import {
  findServer,
  type RunningServer,
  type Settings,
  serverArguments,
  startedWith,
  startServer,
  stopServer,
} from './server.ts';

// Any number that never changes.
const LOCK_KEY = 5_194_601;

// Between checks of a server that is starting, recovering or stopping.
const POLL_MS = 20;

// A server that another process is starting may only be found some milliseconds after it made this start fail.
const MAX_REFUSALS = 50;

// Three seconds: the lock of a killed process is free once the server has noticed, which can take seconds on a busy machine.
const MAX_LOCK_TRIES = 150;

// Between attempts to restart a server that crashed.
const RESTART_DELAY_MS = 1_000;

interface Options {
  setup: Setup;
  /** Where a server that is started here listens. An adopted one may listen elsewhere. */
  own: Endpoint;
  credentials: Credentials;
  database: string;
  settings: Settings;
  log: PostgresLog;
}

export class LockedServer {
  readonly #options: Options;
  #endpoint: Endpoint;
  #pid = 0;
  #lock: Client | undefined;
  #stopped: Promise<void> | undefined;
  #restarting: Promise<void> | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#endpoint = options.own;
  }

  get url(): string {
    const { credentials, database } = this.#options;
    return urlOf(this.#endpoint, credentials, database);
  }

  get tcpUrl(): string | undefined {
    const { credentials, database } = this.#options;
    return this.#endpoint.tcp ? tcpUrlOf(this.#endpoint, credentials, database) : undefined;
  }

  async start(): Promise<void> {
    const { setup, own, database } = this.#options;
    const lock = await this.#acquire().catch(async (error) => {
      if (this.#endpoint.socketDirectory !== own.socketDirectory) await this.#removeSocketDirectory(own);
      throw error;
    });
    try {
      const { rowCount } = await lock.query('select from pg_database where datname = $1', [database]);
      if (rowCount === 0) await lock.query(`create database "${database}"`);
    } catch (error) {
      await this.stop();
      throw (error as { code?: string }).code === '53100' ? explain({ code: 'ENOSPC' }, setup.home) : error;
    }
  }

  /** A running server, locked. */
  async #acquire(): Promise<Client> {
    const { setup, own, settings, log } = this.#options;
    for (let refusals = 0; ; ) {
      const server = (await findServer(setup)) ?? (await startServer(setup, own, settings));
      const lock = server && (await this.#tryLock(server));
      if (!lock) {
        refusals = server ? 0 : refusals + 1;
        if (refusals > MAX_REFUSALS) {
          throw new PostgresFailed(
            `PostgreSQL says that another server has ${setup.cluster}, but there is none on this machine. ` +
              'Make sure that none is running on any machine that shares the directory, and remove postmaster.pid in it.',
          );
        }
        await sleep(POLL_MS);
        continue;
      }
      if (await this.#isWanted(server, lock)) {
        if (server.endpoint.socketDirectory !== own.socketDirectory) await this.#removeSocketDirectory(own);
        this.#pid = server.pid;
        this.#lock = lock;
        // Until now, a failing statement showed that the connection broke. From now on no statement runs.
        lock.on('end', () => this.#lockLost());
        return lock;
      }
      log.info({ pid: server.pid }, 'stopping a PostgreSQL that was left running with other settings');
      await lock.end();
      await stopServer(setup, server.pid);
      await this.#removeSocketDirectory(server.endpoint);
    }
  }

  /** Undefined while the server doesn't accept connections: it is starting, recovering or stopping, or gone. */
  async #tryLock(server: RunningServer): Promise<Client | undefined> {
    this.#endpoint = server.endpoint;
    const client = new Client({
      connectionString: urlOf(server.endpoint, this.#options.credentials, 'postgres'),
      application_name: 'embedded-postgres lock',
    });
    client.on('error', () => {}); // The statement rejects, or 'end' follows.
    try {
      await client.connect();
      for (let tries = 0; tries < MAX_LOCK_TRIES; tries += 1) {
        const { rows } = await client.query('select pg_try_advisory_lock($1) as locked', [LOCK_KEY]);
        if (rows[0].locked) return client;
        await sleep(POLL_MS);
      }
    } catch (error) {
      await client.end().catch(() => {});
      const { code = '' } = error as { code?: string };
      // Shutdowns (57P…) and a socket that does not exist yet, or no longer, are temporary; a wrong password and the like are not.
      if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('57P') && !code.startsWith('08')) throw error;
      return undefined;
    }
    await client.end();
    throw new DirectoryInUse(this.#options.setup.home);
  }

  async #isWanted(server: RunningServer, lock: Client): Promise<boolean> {
    const { setup, own, settings } = this.#options;
    if (own.tcp && process.platform !== 'win32' && server.endpoint.port !== own.port) return false;
    const args = serverArguments(setup, server.endpoint, settings);
    if (!(await startedWith(setup, args))) return false;
    const { rows } = await lock.query('show server_version');
    return rows[0].server_version === setup.binaries.version;
  }

  #lockLost(): void {
    if (this.#stopped || this.#restarting) return;
    this.#options.log.error({ pid: this.#pid }, 'lost the embedded PostgreSQL; restarting it');
    this.#restarting = this.#restart().finally(() => {
      this.#restarting = undefined;
    });
  }

  async #restart(): Promise<void> {
    const { log } = this.#options;
    while (!this.#stopped) {
      try {
        await this.#acquire();
        log.info({ pid: this.#pid }, 'the embedded PostgreSQL is running again');
        return;
      } catch (error) {
        log.error({ error: (error as Error).message }, 'the embedded PostgreSQL does not start; retrying');
        await sleep(RESTART_DELAY_MS);
      }
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { setup } = this.#options;
    await this.#restarting;
    await this.#lock?.end();
    await stopServer(setup, this.#pid);
    await this.#removeSocketDirectory(this.#endpoint);
    await setup.homeHandle.close();
  }

  /** Only if this package created it outside of the directory. */
  async #removeSocketDirectory({ socketDirectory }: Endpoint): Promise<void> {
    if (!socketDirectory || socketDirectory.startsWith(this.#options.setup.home)) return;
    await fs.rm(socketDirectory, { recursive: true, force: true });
  }
}
