// Commands that the operator runs on the host, without an API key. They work on the same installation as the service, whether or not
// the service is running.
import { type ApiKeyWithSecret, type Input, routes } from '@signalbox/contract';
import type { Config } from '../config/config.ts';
import { createDb, type Db } from '../db/db.ts';
import { findEmbeddedPostgres, hasEmbeddedPostgres, startEmbeddedPostgres } from '../db/embedded.ts';
import { isMigrated } from '../db/schema/migrate.ts';
import { systemSource } from '../events/record.ts';
import { validatorOf } from '../http/body/validate.ts';
import { insertKey } from '../keys/keys.ts';
import { ApiError } from '../lib/api-error.ts';
import { systemClock } from '../lib/clock.ts';
import { formatId } from '../lib/ids.ts';
import { allOrganizations, type Organization } from '../organizations/organizations.ts';
import { explainStart } from './start-error.ts';

/** The command can't be carried out. One line for each problem; each names the option that is wrong, if one is. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}

/** The options of `keys create`. `organization` can be left out if there is only one. */
export interface NewKeyOnHost {
  name?: string | undefined;
  permission?: string | undefined;
  scopes?: string[] | undefined;
  expiresAt?: string | undefined;
  environments?: string[] | undefined;
  agents?: string[] | undefined;
  requestsPerMinute?: number | undefined;
  maxCostUsdPerDay?: number | undefined;
  allowedIps?: string[] | undefined;
  organization?: string | undefined;
}

export interface KeyOnHost {
  apiKey: ApiKeyWithSecret & { secret: string };
  organizationId: string;
}

/** Creates a key; the event log names the system as its author. Throws `OperatorError` or `StartError`. */
export async function createKeyOnHost(config: Config, input: NewKeyOnHost): Promise<KeyOnHost> {
  const now = systemClock.now();
  const key = validate(input, now);
  try {
    return await withInstallation(config, async (db) => {
      const { organizationId } = choose(await allOrganizations(db), input.organization);
      const source = systemSource(organizationId);
      const { secret, ...apiKey } = await db.transaction((tx) => insertKey(tx, source, now, key));
      return { apiKey: { ...apiKey, secret: secret! }, organizationId: formatId('org', organizationId) };
    });
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(linesOf(error));
    throw explainStart(error, config);
  }
}

/** By the same rules as `POST /api_keys`. */
function validate(given: NewKeyOnHost, now: Date): Input<'createKey'> {
  const { name, permission, scopes, expiresAt, environments, agents, allowedIps } = given;
  const { requestsPerMinute, maxCostUsdPerDay } = given;
  // Names the option that is missing, along with whatever else is wrong.
  const wanted = permission ?? (scopes ? undefined : '');
  const limits = { requestsPerMinute, maxCostUsdPerDay };
  const body = { name, permission: wanted, scopes, expiresAt, environments, agents, allowedIps, ...limits };
  for (const [field, value] of Object.entries(body)) if (value === undefined) delete body[field as keyof typeof body];
  try {
    const input = validatorOf(routes.createKey)({ params: {}, query: {}, body }) as Input<'createKey'>;
    if (input.expiresAt && new Date(input.expiresAt) <= now)
      throw new OperatorError('--expires-at must be in the future');
    return input;
  } catch (error) {
    if (!(error instanceof ApiError) || !error.errors) throw error;
    throw new OperatorError(linesOf(error));
  }
}

/** Fields of the API whose option has another name. */
const optionOf: Readonly<Record<string, string>> = {
  expiresAt: 'expires-at',
  environments: 'environment',
  agents: 'agents',
  scopes: 'scopes',
  allowedIps: 'allowed-ip',
  requestsPerMinute: 'requests-per-minute',
  maxCostUsdPerDay: 'max-cost-usd-per-day',
};

export function linesOf({ errors, message }: ApiError): string {
  const lines = errors?.map(({ path, message: problem }) => {
    const [field = ''] = path.split('[');
    return `--${optionOf[field] ?? path} ${problem}`;
  });
  return lines?.join('\n') ?? message;
}

export function choose(organizations: readonly Organization[], wanted: string | undefined): Organization {
  const listed = organizations.map((one) => `  ${formatId('org', one.organizationId)}  ${one.name}`).join('\n');
  if (wanted !== undefined) {
    const found = organizations.find(({ organizationId }) => formatId('org', organizationId) === wanted);
    if (!found) throw new OperatorError(`--organization ${wanted}: no such organization. Choose one of:\n${listed}`);
    return found;
  }
  const [only, ...others] = organizations;
  if (!only)
    throw new OperatorError('There is no organization yet. Start the service once before you run this command.');
  if (others.length > 0)
    throw new OperatorError(`There are several organizations; choose with --organization:\n${listed}`);
  return only;
}

export function withInstallation<T>(config: Config, use: (db: Db) => Promise<T>): Promise<T> {
  return withDatabase(config, async (url) => {
    const db = createDb({ url, max: 1 });
    try {
      await requireMigrated(db);
      return await use(db);
    } finally {
      await db.close();
    }
  });
}

/** `url` leads to the database itself, not to a pooler, and may have the schema of another release. */
export async function withDatabase<T>(
  { databaseUrl, listenUrl, dataDir }: Pick<Config, 'databaseUrl' | 'listenUrl' | 'dataDir'>,
  use: (url: string) => Promise<T>,
): Promise<T> {
  if (databaseUrl !== undefined) return use(listenUrl ?? databaseUrl);
  const running = await findEmbeddedPostgres(dataDir);
  if (running !== undefined) return use(running);
  await requireDataDirectory(dataDir);
  const server = await startEmbeddedPostgres(dataDir);
  try {
    return await use(server.url);
  } finally {
    await server.stop();
  }
}

/** A mistyped directory must not create a new installation: the key would not work anywhere. */
export async function requireDataDirectory(dataDir: string): Promise<void> {
  if (await hasEmbeddedPostgres(dataDir)) return;
  throw new OperatorError(
    `There is no Signalbox in ${dataDir}. Start the service there once, or set its directory with --data-dir.`,
  );
}

/** Only the service migrates; commands don't. */
async function requireMigrated(db: Db): Promise<void> {
  if (!(await isMigrated(db))) {
    throw new OperatorError(
      'The database is not migrated to this release. Start the service once before you run this command.',
    );
  }
}
