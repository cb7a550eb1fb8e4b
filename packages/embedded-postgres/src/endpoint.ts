// Where a server listens, and its URLs.
import * as fs from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReachable } from './binaries.ts';
import type { Setup } from './cluster.ts';

export interface Endpoint {
  /** The directory of the Unix socket, as clients reach it; undefined on Windows. */
  socketDirectory: string | undefined;
  /** The TCP port on the loopback interface; without TCP, only part of the socket's name. */
  port: number;
  tcp: boolean;
}

export interface Credentials {
  user: string;
  password: string;
}

const DEFAULT_PORT = 5432;

// On macOS, a socket's path has room for 104 bytes with the zero at its end, on Linux for 108.
const MAX_SOCKET_PATH_BYTES = 103;

const windows = process.platform === 'win32';

/** `port` is 0 for any free one, and undefined for no TCP. */
export async function chooseEndpoint(setup: Setup, port: number | undefined): Promise<Endpoint> {
  const tcp = port !== undefined || windows;
  const chosen = port === 0 || (windows && port === undefined) ? await freePort() : (port ?? DEFAULT_PORT);
  return { socketDirectory: windows ? undefined : await socketDirectoryFor(setup, chosen), port: chosen, tcp };
}

async function socketDirectoryFor({ home, account }: Setup, port: number): Promise<string> {
  let directory = join(home, 'socket');
  if (Buffer.byteLength(`${directory}/.s.PGSQL.${port}`) > MAX_SOCKET_PATH_BYTES) {
    // With a name that can't be guessed: another user who created it first would be taken for the server.
    const shared = (await isReachable(tmpdir(), account)) ? tmpdir() : '/tmp';
    directory = await fs.mkdtemp(join(shared, 'embedded-postgres-'));
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
  return typeof address === 'object' && address ? address.port : DEFAULT_PORT;
}

/** Over the socket if there is one, else over TCP. */
export function urlOf(endpoint: Endpoint, { user, password }: Credentials, database: string): string {
  const { socketDirectory, port } = endpoint;
  return socketDirectory
    ? `postgres://${user}:${password}@localhost:${port}/${database}?host=${encodeURIComponent(socketDirectory)}`
    : tcpUrlOf(endpoint, { user, password }, database);
}

export function tcpUrlOf({ port }: Endpoint, { user, password }: Credentials, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}
