// PostgreSQL as a part of a program: a real server from npm's platform packages, in a directory of the program, started and
// stopped with it.
//
//   <directory>/                0700, owned by the user that PostgreSQL runs as
//     cluster/                  the data; created by initdb under another name and renamed when it is complete
//     cluster/<user>.password   the password of the one user, 0600
//     socket/                   the Unix socket, unless the path is too long for one
//     postgres.log              the server's output; never statements or values
//
// locked-server.ts has how a start works.
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { accountFor, findBinaries } from './binaries.ts';
import { explain, openCluster, reachFrom, readPassword, requireOwn, type Setup } from './cluster.ts';
import { chooseEndpoint, urlOf } from './endpoint.ts';
import { LockedServer } from './locked-server.ts';
import { type PostgresLog, silent } from './log.ts';
import { findServer, type Settings } from './server.ts';

export interface TemporaryPostgresOptions {
  /** The one user, a superuser, created with the cluster. Default: `postgres`. Lower-case letters, digits and `_`. */
  user?: string | undefined;
  /** The database that `url` connects to, created if it doesn't exist. Default: `postgres`. Lower-case letters, digits and `_`. */
  database?: string | undefined;
  /**
   * Also listen on this TCP port of 127.0.0.1; 0 takes a free one. If not given, there is only a Unix socket, except on
   * Windows, which always has a port: a free one if not given.
   */
  port?: number | undefined;
  /**
   * Settings of the server (`postgresql.conf`), over those of this package, such as `{ max_connections: 300 }`. A running
   * server that was left behind with others is restarted.
   */
  settings?: Settings | undefined;
  /** Gets a few lines: a copy of the binaries, another user, a crash and the recovery from it. If not given, they are dropped. */
  log?: PostgresLog | undefined;
}

export interface PostgresOptions extends TemporaryPostgresOptions {
  /**
   * Where the data is, relative to the working directory or absolute. Created if it doesn't exist; otherwise it must be empty or
   * have been created by this package. Only the user that PostgreSQL runs as can enter it.
   */
  directory: string;
}

/** A running server. No other process uses its directory. */
export interface Postgres {
  /** The URL of the database, over the Unix socket if there is one. It contains the password: don't log it. The same after a crash. */
  readonly url: string;
  /** The URL over TCP, for clients that don't support Unix sockets; undefined without a `port`. */
  readonly tcpUrl: string | undefined;
  /**
   * Shuts the server down: open transactions are rolled back, connections are closed. Resolves when its process has ended and
   * the directory may be used by others. Within 60 s, even if a client hangs. Later calls wait for the first.
   */
  stop(): Promise<void>;
  /** For `await using`: the same as `stop`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts PostgreSQL in a directory, or adopts the server that a killed process left running there, and resolves when it
 * accepts connections. A server that crashes later is restarted at the same URL.
 *
 * Rejects with a `PostgresError`, whose message says what to do, and has started nothing: `DirectoryInUse`,
 * `DirectoryNotEmpty`, `DirectoryForbidden`, `DirectoryBroken`, `WrongVersion`, `DiskFull`, `BinariesMissing`,
 * `UserUnsuitable`, or `PostgresFailed` with the server's output. A name that isn't allowed is a `TypeError`.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { user, database } = namesOf(options);
  const { port, settings = {}, log = silent } = options;
  const setup = await prepare(resolve(options.directory), user, log);
  try {
    const password = await openCluster(setup, settings.fsync !== 'off');
    const server = new LockedServer({
      ...{ setup, settings, log, database, credentials: { user, password } },
      own: await chooseEndpoint(setup, port),
    });
    await server.start();
    const stop = () => server.stop();
    return { url: server.url, tcpUrl: server.tcpUrl, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await setup.homeHandle.close();
    throw error;
  }
}

/**
 * An empty PostgreSQL in a temporary directory, which `stop` deletes: for tests and scripts. It does not wait for the disk
 * (`fsync` and `full_page_writes` are off), so it starts and commits faster. Rejects as `startPostgres` does.
 */
export async function startTemporaryPostgres(options: TemporaryPostgresOptions = {}): Promise<Postgres> {
  const directory = await fs.mkdtemp(join(tmpdir(), 'embedded-postgres-'));
  const remove = () => fs.rm(directory, { recursive: true, force: true });
  try {
    const settings = { fsync: 'off', full_page_writes: 'off', ...options.settings };
    const postgres = await startPostgres({ ...options, settings, directory });
    const stop = () => postgres.stop().finally(remove);
    return { ...postgres, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * The URL of a server that is running in the directory, whichever process started it; undefined if there is none. For tools
 * next to the program. Rejects with `DirectoryForbidden` if the directory is another user's.
 */
export async function findPostgres(
  options: Pick<PostgresOptions, 'directory' | 'user' | 'database'>,
): Promise<string | undefined> {
  const { user, database } = namesOf(options);
  const home = resolve(options.directory);
  const cluster = join(home, 'cluster');
  const account = await accountFor(cluster);
  const homeForServer = await reachFrom(home, account).catch(() => home);
  const server = await findServer({ home, homeForServer, cluster });
  if (!server) return undefined;
  return urlOf(server.endpoint, { user, password: await readPassword({ cluster, user }) }, database);
}

/** They are part of SQL, of a URL and of a file name. */
function namesOf({
  user = 'postgres',
  database = 'postgres',
}: {
  user?: string | undefined;
  database?: string | undefined;
}) {
  for (const [option, name] of Object.entries({ user, database })) {
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name)) {
      throw new TypeError(
        `${option} must be 1 to 63 lower-case letters, digits and _, and must not start with a digit`,
      );
    }
  }
  return { user, database };
}

async function prepare(home: string, user: string, log: PostgresLog): Promise<Setup> {
  const cluster = join(home, 'cluster');
  try {
    await fs.mkdir(home, { recursive: true, mode: 0o700 });
    const account = await accountFor(cluster);
    await requireOwn(home);
    await fs.chmod(home, 0o700);
    if (account) await fs.chown(home, account.uid, account.gid);
    const homeForServer = await reachFrom(home, account);
    const binaries = await findBinaries(account, home, log);
    if (account)
      log.info({ uid: account.uid, directory: home }, "PostgreSQL can't run as root and runs as another user");
    return { home, homeForServer, cluster, user, account, binaries, homeHandle: await fs.open(home, 'r') };
  } catch (error) {
    throw explain(error, home);
  }
}
