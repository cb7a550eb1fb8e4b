// Why the service did not start, in a line for the person who started it. What is not foreseen here goes on as it is.
import { dirname } from 'node:path';
import { BinariesMissing, DirectoryInUse, PostgresError, UserUnsuitable } from '@signalbox/embedded-postgres';
import { DatabaseUnavailable } from './db/db.ts';
import { SchemaRefused } from './db/migrate.ts';
import { DatabaseUnsuitable } from './db/requirements.ts';
import { placeOf } from './db/url.ts';
import { AdminKeyFileError } from './keys/admin-key-file.ts';
import { MasterKeyUnknown } from './vault/known-keys.ts';
import { MasterKeyFileError } from './vault/master-key.ts';

/** Says what is wrong and what to do. No value in it is secret. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}

/** Another program listens there, or the address is none of this machine's. */
export class CannotListen extends StartError {
  override readonly name = 'CannotListen';
  constructor(host: string, port: number, cause: NodeJS.ErrnoException) {
    super(`Cannot listen on ${host}:${port}: ${reasonsNotToListen[cause.code ?? ''] ?? cause.message}`, { cause });
  }
}

const reasonsNotToListen: Record<string, string> = {
  EADDRINUSE: 'the port is in use. Stop what uses it, or choose another with --port (0 takes any that is free).',
  EADDRNOTAVAIL: 'this machine has no such address. Choose another with --host.',
  ENOTFOUND: 'there is no such host. Choose an address of this machine with --host.',
  EACCES: 'this user may not use the port. Choose one above 1023 with --port.',
};

/** A pooler that gives each transaction another connection, and no way past it. */
export class PoolerUnnamed extends StartError {
  override readonly name = 'PoolerUnnamed';
  constructor() {
    super(
      'DATABASE_URL leads through a pooler that gives each transaction another connection of the server. ' +
        'Set SIGNALBOX_LISTEN_URL to a URL that leads to the same database directly.',
    );
  }
}

/** The way past the pooler leads through one. */
export class ListenUrlPooled extends StartError {
  override readonly name = 'ListenUrlPooled';
  constructor() {
    super(
      'SIGNALBOX_LISTEN_URL leads through a pooler that gives each transaction another connection of the server. ' +
        'Set it to a URL that leads to the database directly.',
    );
  }
}

/** The database is away, refuses, or is not one that will do. */
class DatabaseNotUsable extends StartError {
  override readonly name = 'DatabaseNotUsable';
}

/** `databaseUrl` is undefined for the embedded one; `variable` is where it was set. */
export function explainStart(
  error: unknown,
  { databaseUrl, variable = 'DATABASE_URL' }: { databaseUrl: string | undefined; variable?: string },
): unknown {
  if (error instanceof StartError) return error;
  if (error instanceof PostgresError) return new StartError(embeddedMessage(error), { cause: error });
  if (plainEnough.some((kind) => error instanceof kind)) {
    return new StartError((error as Error).message, { cause: error });
  }
  if (!databaseUrl) return error;
  const found = error instanceof DatabaseUnavailable ? error.cause : error;
  const { code = (found as { cause?: { code?: string } }).cause?.code ?? '', message } = found as NodeJS.ErrnoException;
  const known = reasons.find(({ pattern }) => pattern.test(code || message))?.reason;
  const reason = known ?? (error instanceof DatabaseUnavailable ? awayFor(code || message) : undefined);
  if (!reason) return error;
  return new DatabaseNotUsable(`The database at ${placeOf(databaseUrl)} ${reason.replaceAll('$URL', variable)}`, {
    cause: error,
  });
}

const awayFor = (reason: string) => `does not answer (${reason}). Is it running, and is $URL right?`;

/** The package knows neither the data directory nor the way around it. */
function embeddedMessage(error: PostgresError): string {
  if (error instanceof DirectoryInUse) {
    const dataDir = dirname(error.directory);
    return `${dataDir} is in use by another running Signalbox. Stop that one, or give this one a data directory of its own.`;
  }
  const isOfMachine = error instanceof BinariesMissing || error instanceof UserUnsuitable;
  return isOfMachine ? `${error.message} Or set DATABASE_URL to a PostgreSQL server of your own.` : error.message;
}

// Their messages say what to do.
const plainEnough = [DatabaseUnsuitable, SchemaRefused, MasterKeyFileError, MasterKeyUnknown, AdminKeyFileError];

/** By codes of PostgreSQL, of Node.js and of its TLS, or by a message of pg's that has none. `$URL` is the variable that was set. */
const reasons: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^28P01$/, reason: 'refuses the password. Is $URL right?' },
  {
    pattern: /^28000$/,
    reason:
      'refuses the user. Is $URL right, and does pg_hba.conf let this machine in? It may want TLS: add ?sslmode=verify-full.',
  },
  { pattern: /^3D000$/, reason: 'does not exist. Create it, or correct $URL.' },
  { pattern: /^42501$/, reason: 'does not let its user create tables. Make the user the owner of the database.' },
  {
    pattern: /^25006$/,
    reason:
      'is read-only: a standby, or default_transaction_read_only is on. $URL must lead to the primary; ' +
      'it may name several hosts, of which the primary is used (postgres://user:password@one,two/database).',
  },
  {
    pattern: /^53300$/,
    reason:
      'has no room for another connection. Raise max_connections of the server or the connection limit of the user, ' +
      'or lower SIGNALBOX_DATABASE_CONNECTIONS on every node.',
  },
  {
    pattern: /^08P01$/,
    reason:
      'is behind a pooler that refuses the connection. Look into its log, and set SIGNALBOX_LISTEN_URL to a URL that leads ' +
      'to the same database directly.',
  },
  {
    pattern: /^(UNABLE_TO_(VERIFY|GET)_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED)/,
    reason:
      'has a certificate that no authority known here has signed. Name the authority by sslrootcert=/path/ca.crt in $URL ' +
      '(sslmode=require verifies it too), or take any certificate with sslmode=no-verify.',
  },
  {
    pattern: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    reason: 'has a certificate for another host name. Use a name of the certificate in $URL.',
  },
  { pattern: /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, reason: 'has a certificate that is not valid now. Renew it.' },
  {
    pattern: /does not support SSL/,
    reason: 'has no TLS. Turn it on there, or take sslmode out of $URL.',
  },
];
