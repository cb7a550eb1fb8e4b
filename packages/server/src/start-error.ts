// Why the service did not start, in a line for the person who started it. What is not foreseen here goes on as it is.
import { DatabaseUnavailable } from './db/db.ts';
import { EmbeddedPostgresError } from './db/embedded-errors.ts';
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

/** The database of DATABASE_URL is away, refuses, or is not one that will do. */
class DatabaseNotUsable extends StartError {
  override readonly name = 'DatabaseNotUsable';
}

/** `databaseUrl` is undefined for the embedded one. */
export function explainStart(error: unknown, databaseUrl: string | undefined): unknown {
  if (plainEnough.some((kind) => error instanceof kind)) {
    return new StartError((error as Error).message, { cause: error });
  }
  if (!databaseUrl) return error;
  const place = placeOf(databaseUrl);
  if (error instanceof DatabaseUnavailable) {
    const { code, message } = error.cause as NodeJS.ErrnoException;
    return new DatabaseNotUsable(
      `The database at ${place} does not answer (${code || message}). Is it running, and is DATABASE_URL right?`,
      { cause: error },
    );
  }
  const refusal = refusals[(error as { code?: string }).code ?? ''];
  return refusal ? new DatabaseNotUsable(`The database at ${place} ${refusal}`, { cause: error }) : error;
}

// Their messages say what to do.
const plainEnough = [
  EmbeddedPostgresError,
  DatabaseUnsuitable,
  SchemaRefused,
  MasterKeyFileError,
  MasterKeyUnknown,
  AdminKeyFileError,
];

/** By PostgreSQL's codes. */
const refusals: Record<string, string> = {
  '28P01': 'refuses the password. Is DATABASE_URL right?',
  '28000': 'refuses the user. Is DATABASE_URL right, and does pg_hba.conf let this machine in?',
  '3D000': 'does not exist. Create it, or mend DATABASE_URL.',
  '42501': 'does not let its user create tables. Make the user the owner of the database.',
};
