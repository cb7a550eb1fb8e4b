// Database URLs with all of libpq's features, of which pg supports only a part: several hosts, a directory of sockets as host.
import { accessSync, constants } from 'node:fs';

// Selects one of several servers. Signalbox always uses the writable one.
const ATTRIBUTES = 'target_session_attrs';
const WRITABLE = ['any', 'primary', 'read-write'];
const CERTIFICATE_FILES = ['sslrootcert', 'sslcert', 'sslkey'];
// pg verifies the certificate and its name in all of these modes, and warns that a later version will not.
const VERIFIED_MODES = ['prefer', 'require', 'verify-ca'];

interface Parts {
  userInfo: string;
  /** `host:port` each, either of which may be empty. */
  hosts: string[];
  path: string;
  params: URLSearchParams;
}

/** Throws an Error that says what is wrong with the URL. It shows only names of hosts, files and parameters. */
export function checkDatabaseUrl(text: string): void {
  const { params } = split(text);
  const wanted = params.get(ATTRIBUTES);
  if (wanted !== null && !WRITABLE.includes(wanted)) {
    throw new Error(`has ${ATTRIBUTES}=${wanted}, but Signalbox must write; use read-write, or leave it out`);
  }
  for (const name of CERTIFICATE_FILES) {
    const file = params.get(name);
    if (!file || file === 'system') continue;
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      throw new Error(`${name} names ${file}, which can't be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  const [first, ...others] = urlsOf(text).map((url) => new URL(url).pathname);
  if (first === undefined || others.some((path) => path !== first)) throw notAUrl();
}

/** One URL for each host, in the order given, in the form that pg supports. */
export function urlsOf(text: string): string[] {
  const { userInfo, hosts, path, params } = split(text);
  const named = params.get('host')?.split(',');
  const ports = params.get('port')?.split(',');
  const mode = params.get('sslmode');
  for (const name of ['host', 'port', ATTRIBUTES]) params.delete(name);
  if (mode !== null && VERIFIED_MODES.includes(mode) && params.get('uselibpqcompat') !== 'true') {
    params.set('sslmode', 'verify-full');
  }
  return (named ?? hosts).map((entry, index) => {
    const authority = hosts[index] ?? hosts[0] ?? '';
    const found = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(named ? authority : entry);
    if (!found) throw notAUrl();
    const [, name, port = ''] = found;
    const query = new URLSearchParams(params);
    if (named) query.set('host', entry);
    const ownPort = ports?.[index] ?? ports?.[0] ?? port;
    const search = query.size > 0 ? `?${query}` : '';
    const url = `postgres://${userInfo}${name || 'localhost'}${ownPort && `:${ownPort}`}${path}${search}`;
    if (!URL.canParse(url)) throw notAUrl();
    return url;
  });
}

/** Hosts, ports and database name, without user and password. */
export function hostsAndDatabaseOf(text: string): string {
  const urls = urlsOf(text).map((url) => new URL(url));
  const hosts = urls.map(
    ({ hostname, port, searchParams }) => `${searchParams.get('host') ?? hostname}:${port || 5432}`,
  );
  return `${hosts.join(',')}${urls[0]?.pathname}`;
}

/** Whether anyone who sees the URL sees a password. */
export function hasPassword(text: string): boolean {
  const { userInfo, params } = split(text);
  return userInfo.includes(':') || params.has('password');
}

function split(text: string): Parts {
  const [, userInfo = '', hosts, path = '', query = ''] =
    /^postgres(?:ql)?:\/\/((?:[^/?#]*)@)?([^/?#@]*)(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(text) ?? [];
  if (hosts === undefined) throw notAUrl();
  return { userInfo, hosts: hosts.split(','), path, params: new URLSearchParams(query) };
}

function notAUrl(): Error {
  return new Error('is not the URL of a database; use one such as postgres://user:password@host:5432/database');
}
