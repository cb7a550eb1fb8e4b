// PostgreSQL as a part of the service: a real server from npm's platform package, in the data directory, started and
// stopped with the service.
//
//   <dataDir>/postgres/             0700, owned by whom PostgreSQL runs as
//     cluster/                      the data; made by initdb under another name and renamed when whole
//     cluster/signalbox.password    the password of the one user, `signalbox`, 0600
//     socket/                       the unix socket, unless the path is too long for one
//     postgres.log                  what the server says; never statements or values
//
// The lock on a data directory is an advisory lock in its database, held by a connection of the service for as long as
// it runs. So the server knows who holds it, and it is free as soon as its holder is gone, however it went.
//
// Starting is the same whatever was left behind. A server that still runs (the service was killed) is adopted if it was
// started the way we would start it, else stopped; if none runs, one is started; then the lock is taken. PostgreSQL
// itself refuses a second server on a cluster, so when two services start at once there is one server, and the slower
// service meets the lock. When the connection with the lock breaks later, the server has crashed, and it all happens again.
import { closeSync, constants, openSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { accountFor, findBinaries, isReachable } from './embedded-binaries.ts';
import { explain, openCluster, type Place, reachFrom, readPassword, USER } from './embedded-cluster.ts';
import { DataDirectoryInUse, EmbeddedPostgresFailed } from './embedded-errors.ts';
import {
  type Endpoint,
  findServer,
  type RunningServer,
  type Settings,
  serverArguments,
  startedWith,
  startServer,
  stopServer,
} from './embedded-server.ts';

export interface EmbeddedPostgresLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface EmbeddedPostgresOptions {
  /** The service's data directory; PostgreSQL gets `postgres/` in it. */
  dataDir: string;
  log: EmbeddedPostgresLog;
  /** Listens on this port of the loopback as well. On Windows there is always a port, a free one if none is given. */
  port?: number;
  /** Settings of the server over our own. `fsync: 'off'` is for tests that lose nothing by it. */
  settings?: Settings;
}

export interface EmbeddedPostgres {
  /** Holds the password: never log it. */
  url: string;
  /** Shuts down and waits for it. Close the pools first, or their connections are cut. */
  stop(): Promise<void>;
}

// Any number, as long as it stays the same: the lock is the only one in this database.
const LOCK_KEY = 5_194_601;

const DATABASE = 'signalbox';

// On macOS a socket's path has room for 104 bytes with the zero at its end, on Linux for 108.
const MAX_SOCKET_PATH_BYTES = 103;

// Between looks at a server that is starting, recovering or stopping.
const POLL_MS = 20;

// A server that another service is starting can be seen a moment after ours was refused because of it.
const MAX_REFUSALS = 50;

// Three seconds: the lock of a service that was killed is free when the server has noticed, which a busy machine can delay.
const MAX_LOCK_TRIES = 150;

// Between attempts to bring back a server that crashed.
const RESTART_DELAY_MS = 1_000;

/** Rejects with a subclass of EmbeddedPostgresError, whose message says what to do. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log, settings = {} } = options;
  const place = await preparePlace(options);
  try {
    const password = await openCluster(place, settings.fsync !== 'off');
    const endpoint = await chooseEndpoint(place, options.port);
    const embedded = new Embedded(place, endpoint, password, settings, log, resolve(options.dataDir));
    await embedded.start();
    return { url: embedded.url(DATABASE), stop: () => embedded.stop() };
  } catch (error) {
    closeSync(place.homeDescriptor);
    throw error;
  }
}

/**
 * The url of a server that runs on the data directory, whoever started it, or undefined where none does. For the operator's
 * commands on the host, beside the running service. Throws `DataDirectoryForbidden` for another user's.
 */
export async function findRunningPostgres(dataDir: string): Promise<string | undefined> {
  const home = join(resolve(dataDir), 'postgres');
  const cluster = join(home, 'cluster');
  const account = await accountFor(cluster);
  const homeForServer = await reachFrom(home, account).catch(() => home);
  const server = await findServer({ home, homeForServer, cluster });
  if (!server) return undefined;
  return urlOf(server.endpoint, await readPassword(cluster), DATABASE);
}

function urlOf({ socketDirectory, port }: Endpoint, password: string, database: string): string {
  return socketDirectory
    ? `postgres://${USER}:${password}@localhost:${port}/${database}?host=${encodeURIComponent(socketDirectory)}`
    : `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
}

async function preparePlace({ dataDir, log }: EmbeddedPostgresOptions): Promise<Place> {
  const home = join(resolve(dataDir), 'postgres');
  const cluster = join(home, 'cluster');
  try {
    await fs.mkdir(home, { recursive: true, mode: 0o700 });
    const account = await accountFor(cluster);
    await fs.chmod(home, 0o700);
    if (account) await fs.chown(home, account.uid, account.gid);
    const homeForServer = await reachFrom(home, account);
    const binaries = await findBinaries(account, home, log);
    if (account) log.info({ uid: account.uid, data: home }, 'PostgreSQL cannot run as root and runs as another user');
    return { home, homeForServer, cluster, account, binaries, homeDescriptor: openSync(home, constants.O_RDONLY) };
  } catch (error) {
    throw explain(error, home);
  }
}

async function chooseEndpoint(place: Place, port: number | undefined): Promise<Endpoint> {
  if (process.platform === 'win32') {
    return { socketDirectory: undefined, port: port ?? (await freePort()), tcp: true };
  }
  const socketDirectory = await socketDirectoryFor(place, port ?? 5432);
  return { socketDirectory, port: port ?? 5432, tcp: port !== undefined };
}

async function socketDirectoryFor({ home, account }: Place, port: number): Promise<string> {
  let directory = join(home, 'socket');
  if (Buffer.byteLength(`${directory}/.s.PGSQL.${port}`) > MAX_SOCKET_PATH_BYTES) {
    // With a name that nobody can know before: whoever could make it first would be in the place of the server.
    const shared = (await isReachable(tmpdir(), account)) ? tmpdir() : '/tmp';
    directory = await fs.mkdtemp(join(shared, 'signalbox-'));
  } else {
    await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  }
  await fs.chmod(directory, 0o700);
  if (account) await fs.chown(directory, account.uid, account.gid);
  return directory;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === 'object' && address ? address.port : 5432;
}

class Embedded {
  readonly #place: Place;
  readonly #password: string;
  readonly #settings: Settings;
  readonly #log: EmbeddedPostgresLog;
  readonly #dataDir: string;
  #endpoint: Endpoint;
  #pid = 0;
  #lock: Client | undefined;
  #stopping = false;
  #bringingBack: Promise<void> | undefined;

  constructor(
    place: Place,
    endpoint: Endpoint,
    password: string,
    settings: Settings,
    log: EmbeddedPostgresLog,
    dataDir: string,
  ) {
    this.#place = place;
    this.#endpoint = endpoint;
    this.#password = password;
    this.#settings = settings;
    this.#log = log;
    this.#dataDir = dataDir;
  }

  url(database: string): string {
    return urlOf(this.#endpoint, this.#password, database);
  }

  async start(): Promise<void> {
    const own = this.#endpoint;
    const lock = await this.#acquire().catch(async (error) => {
      if (this.#endpoint.socketDirectory !== own.socketDirectory) await this.#removeSocketDirectory(own);
      throw error;
    });
    try {
      const { rowCount } = await lock.query('select from pg_database where datname = $1', [DATABASE]);
      if (rowCount === 0) await lock.query(`create database ${DATABASE}`);
    } catch (error) {
      await this.stop();
      throw (error as { code?: string }).code === '53100' ? explain({ code: 'ENOSPC' }, this.#place.home) : error;
    }
  }

  /** A running server, and its lock ours. */
  async #acquire(): Promise<Client> {
    const own = this.#endpoint;
    for (let refusals = 0; ; ) {
      const server = (await findServer(this.#place)) ?? (await startServer(this.#place, own, this.#settings));
      const lock = server && (await this.#tryLock(server));
      if (!lock) {
        refusals = server ? 0 : refusals + 1;
        if (refusals > MAX_REFUSALS) {
          throw new EmbeddedPostgresFailed(
            `PostgreSQL says that another server has ${this.#place.cluster}, but none is to be found. ` +
              'Make sure that none runs, on any machine that shares the directory, and remove postmaster.pid in it.',
          );
        }
        await sleep(POLL_MS);
        continue;
      }
      if (await this.#isWanted(server, lock, own)) {
        if (server.endpoint.socketDirectory !== own.socketDirectory) await this.#removeSocketDirectory(own);
        this.#pid = server.pid;
        this.#lock = lock;
        // Until now its failures were those of the statements that ran; from now on nothing runs.
        lock.on('end', () => this.#lockLost());
        return lock;
      }
      this.#log.info({ pid: server.pid }, 'stopping a PostgreSQL that was left running with other settings');
      await lock.end();
      await stopServer(this.#place, server.pid);
      await this.#removeSocketDirectory(server.endpoint);
    }
  }

  /** Undefined while the server does not answer: it is starting, recovering or stopping, or gone. */
  async #tryLock(server: RunningServer): Promise<Client | undefined> {
    this.#endpoint = server.endpoint;
    const client = new Client({ connectionString: this.url('postgres'), application_name: 'signalbox lock' });
    client.on('error', () => {}); // The statement or the 'end' event tells.
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
      // A wrong password and the like will not pass; shutdowns (57P…) and a socket not yet or no longer there will.
      if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('57P') && !code.startsWith('08')) throw error;
      return undefined;
    }
    await client.end();
    throw new DataDirectoryInUse(this.#dataDir);
  }

  async #isWanted(server: RunningServer, lock: Client, own: Endpoint): Promise<boolean> {
    if (own.tcp && process.platform !== 'win32' && server.endpoint.port !== own.port) return false;
    const args = serverArguments(this.#place, server.endpoint, this.#settings);
    if (!(await startedWith(this.#place, args))) return false;
    const { rows } = await lock.query('show server_version');
    return rows[0].server_version === this.#place.binaries.version;
  }

  #lockLost(): void {
    if (this.#stopping || this.#bringingBack) return;
    this.#log.error({ pid: this.#pid }, 'lost the embedded PostgreSQL; bringing it back');
    this.#bringingBack = this.#bringBack().finally(() => {
      this.#bringingBack = undefined;
    });
  }

  async #bringBack(): Promise<void> {
    while (!this.#stopping) {
      try {
        await this.#acquire();
        this.#log.info({ pid: this.#pid }, 'the embedded PostgreSQL is back');
        return;
      } catch (error) {
        this.#log.error(
          { error: (error as Error).message },
          'the embedded PostgreSQL does not come back; trying again',
        );
        await sleep(RESTART_DELAY_MS);
      }
    }
  }

  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    await this.#bringingBack;
    await this.#lock?.end();
    await stopServer(this.#place, this.#pid);
    await this.#removeSocketDirectory(this.#endpoint);
    closeSync(this.#place.homeDescriptor);
  }

  /** Only one of ours outside the data directory. */
  async #removeSocketDirectory({ socketDirectory }: Endpoint): Promise<void> {
    if (!socketDirectory || socketDirectory.startsWith(this.#place.home)) return;
    await fs.rm(socketDirectory, { recursive: true, force: true });
  }
}
