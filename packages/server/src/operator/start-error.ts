// Why the service did not start, in one line for the operator. Errors that are not known here are passed on unchanged.
import { dirname } from 'node:path';
import { BinariesMissing, DirectoryInUse, PostgresError, UserUnsuitable } from '@signalbox/embedded-postgres';
import { DatabaseUnavailable } from '../db/db.ts';
import { isServerError } from '../db/pipeline.ts';
import { DatabaseUnsuitable } from '../db/requirements.ts';
import { SchemaRefused } from '../db/schema/migrate.ts';
import { MarkedNotToStart } from '../db/start-mark.ts';
import { hostsAndDatabaseOf } from '../db/url.ts';
import { AdminKeyFileError } from '../keys/admin-key-file.ts';
import { MasterKeyUnknown } from '../vault/known-keys.ts';
import { MasterKeyFileError } from '../vault/master-key.ts';

/** The message says what is wrong and what to do. It contains no secret. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}

/** DATABASE_URL goes through a transaction pooler, and SIGNALBOX_LISTEN_URL is not set. */
export class PoolerUnnamed extends StartError {
  override readonly name = 'PoolerUnnamed';
  constructor() {
    super(
      'DATABASE_URL goes through a transaction pooler. ' +
        'Set SIGNALBOX_LISTEN_URL to a URL that connects to the same database directly.',
    );
  }
}

/** SIGNALBOX_LISTEN_URL goes through a transaction pooler too. */
export class ListenUrlPooled extends StartError {
  override readonly name = 'ListenUrlPooled';
  constructor() {
    super(
      'SIGNALBOX_LISTEN_URL goes through a transaction pooler. Set it to a URL that connects to the database directly.',
    );
  }
}

/** The database is unreachable, refuses the connection, or does not meet the requirements. */
class DatabaseNotUsable extends StartError {
  override readonly name = 'DatabaseNotUsable';
}

/** `databaseUrl` is undefined for the embedded database; `variable` is the variable that sets it. */
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
  const unknown = isServerError(found) ? refusing(message) : unreachable(code || message);
  const reason = known ?? (error instanceof DatabaseUnavailable ? unknown : undefined);
  if (!reason) return error;
  return new DatabaseNotUsable(
    `The database at ${hostsAndDatabaseOf(databaseUrl)} ${reason.replaceAll('$URL', variable)}`,
    {
      cause: error,
    },
  );
}

const unreachable = (reason: string) => `does not respond (${reason}). Is it running, and is $URL correct?`;

const refusing = (reason: string) => `refuses the connection (${reason}). Its log may say more.`;

/** The package knows neither the data directory nor DATABASE_URL. */
function embeddedMessage(error: PostgresError): string {
  if (error instanceof DirectoryInUse) {
    const dataDir = dirname(error.directory);
    return `${dataDir} is in use by another running Signalbox. Stop that one, or use another data directory for this one.`;
  }
  const isOfMachine = error instanceof BinariesMissing || error instanceof UserUnsuitable;
  return isOfMachine ? `${error.message} Or set DATABASE_URL to your own PostgreSQL server.` : error.message;
}

// Their messages say what to do.
const plainEnough = [
  DatabaseUnsuitable,
  SchemaRefused,
  MarkedNotToStart,
  MasterKeyFileError,
  MasterKeyUnknown,
  AdminKeyFileError,
];

/** By error codes of PostgreSQL, Node.js and its TLS, or by a message of pg that has no code. `$URL` is the variable that sets the URL. */
const reasons: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^28P01$/, reason: 'refuses the password. Is $URL correct?' },
  {
    pattern: /^28000$/,
    reason:
      'refuses the user. Is $URL correct, and does pg_hba.conf allow this machine? It may require TLS: add ?sslmode=verify-full.',
  },
  { pattern: /^3D000$/, reason: 'does not exist. Create it, or correct $URL.' },
  { pattern: /^42501$/, reason: 'does not let its user create tables. Make the user the owner of the database.' },
  {
    pattern: /^25006$/,
    reason:
      'is read-only: it is a standby, or default_transaction_read_only is on. $URL must point to the primary. ' +
      'It can list several hosts, of which the primary is used (postgres://user:password@one,two/database).',
  },
  {
    pattern: /^53300$/,
    reason:
      'allows no further connections. Raise max_connections of the server or the connection limit of the user, ' +
      'or lower SIGNALBOX_DATABASE_CONNECTIONS on every node.',
  },
  {
    pattern: /^08P01$/,
    reason:
      'is behind a pooler that refuses the connection. Check its log, and set SIGNALBOX_LISTEN_URL to a URL that connects ' +
      'to the same database directly.',
  },
  {
    pattern: /^(UNABLE_TO_(VERIFY|GET)_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED)/,
    reason:
      'has a certificate that is not signed by a trusted authority. Set sslrootcert=/path/ca.crt in $URL ' +
      '(sslmode=require verifies the certificate too), or accept any certificate with sslmode=no-verify.',
  },
  {
    pattern: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    reason: 'has a certificate for another host name. Use a host name of the certificate in $URL.',
  },
  {
    pattern: /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
    reason: 'has a certificate that has expired or is not valid yet. Renew it.',
  },
  {
    pattern: /does not support SSL/,
    reason: 'does not support TLS. Enable it there, or remove sslmode from $URL.',
  },
];
