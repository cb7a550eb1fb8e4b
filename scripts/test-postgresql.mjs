// `node scripts/test-postgresql.mjs MAJOR [NAME …]`: runs tests on a PostgreSQL from Debian or Ubuntu
// (`apt-get install postgresql-15`). It starts a temporary server. The names are those of `npm test`; the default is `server`.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { memoryDirectory } from './memory-directory.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [major = '', ...names] = process.argv.slice(2);
const binaries = `/usr/lib/postgresql/${major}/bin`;
if (!/^\d+$/.test(major) || !existsSync(join(binaries, 'initdb'))) {
  console.error(`There is no PostgreSQL in ${binaries}. Install it: apt-get install postgresql-${major || 'MAJOR'}`);
  process.exit(2);
}

Object.assign(process.env, memoryDirectory());
const directory = mkdtempSync(join(tmpdir(), `signalbox-postgresql-${major}-`));
const data = join(directory, 'data');
const passwordFile = join(directory, 'password');
const password = randomBytes(24).toString('hex');
// PostgreSQL refuses to run as root. The package has created a user for it.
const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined;
writeFileSync(passwordFile, password, { mode: 0o600 });
if (account) for (const path of [directory, passwordFile]) chownSync(path, account.uid, account.gid);

let status = 1;
try {
  postgres('initdb', [
    ...[`--pgdata=${data}`, '--username=signalbox', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'],
    // Sort by code point, like the embedded server.
    ...['--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'],
  ]);
  const port = await freePort();
  const settings = {
    ...{ port, listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 300 },
    // As in global-setup.ts: the tests don't need the data to survive a power failure.
    ...{ fsync: 'off', full_page_writes: 'off' },
  };
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`);
  postgres('pg_ctl', [
    'start',
    '--wait',
    `--pgdata=${data}`,
    `--log=${directory}/log`,
    `--options=${options.join(' ')}`,
  ]);
  try {
    console.log(`Testing on ${postgres('postgres', ['--version']).trim()}`);
    const url = `postgres://signalbox:${password}@127.0.0.1:${port}/postgres`;
    status = spawnSync(process.execPath, ['scripts/test.mjs', ...(names.length > 0 ? names : ['server'])], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, DATABASE_URL_FOR_TESTS: url },
    }).status;
  } finally {
    postgres('pg_ctl', ['stop', '--wait', '--mode=immediate', `--pgdata=${data}`]);
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(status ?? 1);

/** Returns what the program printed. Throws with its error output. */
function postgres(program, args) {
  // The server inherits pg_ctl's streams and keeps them open, so reading them would wait until it ends.
  const stdio = program === 'pg_ctl' ? 'ignore' : 'pipe';
  const options = { cwd: '/', stdio, encoding: 'utf8', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, ...account };
  const { status, error, stdout, stderr } = spawnSync(join(binaries, program), args, options);
  if (status === 0) return stdout ?? '';
  const log = existsSync(join(directory, 'log')) ? readFileSync(join(directory, 'log'), 'utf8') : '';
  throw new Error(`${program} failed: ${error?.message ?? ''}${stderr ?? ''}${log}`);
}

function accountOf(name) {
  const entry = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(readFileSync('/etc/passwd', 'utf8'));
  if (!entry) throw new Error(`There is no user ${name} to run PostgreSQL as: it refuses to run as root`);
  return { uid: Number(entry[1]), gid: Number(entry[2]) };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
