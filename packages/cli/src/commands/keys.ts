// `signalbox keys …`: API keys. `create` works on the host, where no key is needed, or via the API like all others.
import type { ApiKey, ApiKeyWithSecret, CreateKey, Scope, Signalbox, UpdateKey } from '@signalbox/client';
import { command, type Options, UsageError } from '../command.ts';
import { printWithDollars } from '../dollars.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const key = { key: { about: 'the id of the key, key_…' } } as const;
const restrictions = {
  permission: {
    type: 'string',
    value: 'read|write|admin',
    about: 'what it can do; each includes the ones before it',
  },
  scopes: {
    type: 'list',
    value: 'SCOPE,SCOPE',
    about: 'what it can do, instead of a permission, such as sessions:read,approvals:decide',
  },
  'expires-at': {
    type: 'time',
    direction: 'future',
    about: 'when it expires, such as 2027-01-31T00:00:00Z or 90d',
  },
  environment: { type: 'string', value: 'NAME', multiple: true, about: 'restrict it to this environment' },
  agents: { type: 'list', value: 'ID,ID', about: 'restrict it to these agents' },
  'allowed-ip': { type: 'string', value: 'ADDRESS', multiple: true, about: 'restrict it to this address or CIDR' },
  'requests-per-minute': {
    type: 'number',
    about: 'how many requests it can make in a minute, on all nodes together',
  },
  'max-cost-usd-per-day': { type: 'number', about: 'what its sessions can cost in a UTC day' },
} as const satisfies Options;

const create = command({
  name: 'create',
  summary: 'Create an API key and print its secret, which is shown only once',
  details:
    'On the host of the service it needs no key: it uses the data directory or DATABASE_URL, whether or not the service is running. With --api, it uses the API with the key in SIGNALBOX_API_KEY, and the new key can do no more than that one.',
  options: {
    name: { type: 'string', value: 'NAME', about: 'what the key is for' },
    ...restrictions,
    'expires-at': { ...restrictions['expires-at'], about: `${restrictions['expires-at'].about}; without it, never` },
    api: { type: 'boolean', about: 'create it via the API instead of on the host' },
    organization: { type: 'string', value: 'ID', about: 'on the host: the organization, if there are several' },
    'data-dir': {
      type: 'string',
      value: 'DIRECTORY',
      about: 'on the host: the data directory of the service (./data)',
    },
    ...serviceOptions,
    json: { ...serviceOptions.json, about: 'print the whole key as JSON' },
  },
  examples: [
    ['KEY=$(signalbox keys create --name first --permission admin)', 'on the host: create a key and keep its secret'],
    ['keys create --api --name support --scopes sessions:run,sessions:read --environment production', 'from anywhere'],
  ],
  operations: ['createKey'],
  async run(input) {
    const { values, terminal, command: fullName } = input;
    const isViaApi = values.api || values.url !== undefined;
    if (isViaApi && (values['data-dir'] ?? values.organization) !== undefined)
      throw new UsageError(`${fullName}: --data-dir and --organization are not for the API`, `${fullName} --help`);
    const definition = { name: values.name, expiresAt: values['expires-at'], ...restrictionsIn(values) };
    const { apiKey, where } = isViaApi
      ? { apiKey: await serviceOf(input).keys.create(definition as CreateKey), where: '' }
      : await createOnHost(definition, values);
    await printSecret(apiKey, input);
    const grant = apiKey.permission ?? apiKey.scopes.join(', ');
    await terminal.stderr.write(
      `Created the ${grant} key "${shown(apiKey.name)}" (${apiKey.keyId})${where}. Its secret is shown only once.\n`,
    );
  },
});

const list = command({
  name: 'list',
  summary: 'List API keys, newest first',
  options: { ...listOptions, ...serviceOptions },
  examples: [['keys list', 'what each key can do, and when it was used last']],
  needs: ['keys:manage'],
  operations: ['listKeys'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.keys.list(page), {
      id: ({ keyId }) => keyId,
      describe: (): Column<ApiKey>[] => [
        { header: 'KEY', cell: ({ keyId }) => keyId },
        { header: 'NAME', cell: ({ name }) => shown(name), shrinks: true },
        { header: 'CAN', cell: grantOf, shrinks: true },
        { header: 'LAST USED', cell: ({ lastUsedAt }) => timeText(lastUsedAt, input.terminal) || 'never' },
        { header: 'EXPIRES', cell: ({ expiresAt }) => timeText(expiresAt, input.terminal), optional: true },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal), optional: true },
      ],
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show an API key with its restrictions and limits, without its secret',
  arguments: key,
  options: serviceOptions,
  examples: [['keys get key_01k9…', 'what a key can do, and what it has spent today']],
  needs: ['keys:manage'],
  operations: ['getKey'],
  async run(input) {
    const found = await serviceOf(input).keys.get(input.args.key);
    await printResult(input, found, () => printKey(found, input.terminal, serviceOf(input)));
  },
});

const update = command({
  name: 'update',
  summary: 'Change the name, permission, scopes, restrictions or limits of an API key',
  arguments: key,
  options: {
    name: { type: 'string', value: 'NAME', about: 'its new name' },
    ...restrictions,
    unlimited: { type: 'boolean', about: 'remove both limits' },
    unrestricted: { type: 'boolean', about: 'remove the restriction to environments, agents and addresses' },
    ...serviceOptions,
  },
  examples: [
    ['keys update key_01k9… --requests-per-minute 600', 'limit a key'],
    ['keys update key_01k9… --permission read', 'let it read only'],
  ],
  needs: ['keys:manage'],
  operations: ['updateKey'],
  async run(input) {
    const { values, args, command: fullName } = input;
    const change = {
      ...(values.unlimited && { requestsPerMinute: null, maxCostUsdPerDay: null }),
      ...(values.unrestricted && { environments: null, agents: null, allowedIps: null }),
      ...withoutUndefined({ name: values.name, ...restrictionsIn(values) }),
    };
    if (Object.keys(change).length === 0) throw new UsageError(`${fullName}: needs an option`, `${fullName} --help`);
    const updated = await serviceOf(input).keys.update(args.key, change as UpdateKey);
    await printResult(input, updated, () => printKey(updated, input.terminal, serviceOf(input)));
  },
});

const rotate = command({
  name: 'rotate',
  summary: 'Create a new secret for an API key and print it',
  arguments: key,
  options: {
    'grace-seconds': { type: 'integer', about: 'how long the old secret still works (0)' },
    ...serviceOptions,
  },
  examples: [['keys rotate key_01k9… --grace-seconds 86400', 'replace the secret within a day']],
  needs: ['keys:manage'],
  operations: ['rotateKey'],
  async run(input) {
    const gracePeriodSeconds = input.values['grace-seconds'];
    const rotated = await serviceOf(input).keys.rotate(input.args.key, { gracePeriodSeconds });
    await printSecret(rotated, input);
    await input.terminal.stderr.write('This is the new secret. It is shown only once.\n');
  },
});

const endGrace = command({
  name: 'end-grace',
  summary: 'End the grace period of a rotation: the old secret is refused from now on',
  arguments: key,
  options: serviceOptions,
  examples: [['keys end-grace key_01k9…', 'when all programs have the new secret']],
  needs: ['keys:manage'],
  operations: ['deleteOldSecret'],
  async run(input) {
    const changed = await serviceOf(input).keys.deleteOldSecret(input.args.key);
    await printResult(input, changed, `${changed.keyId} has only its new secret`);
  },
});

const remove = command({
  name: 'delete',
  summary: 'Revoke an API key for good',
  arguments: key,
  options: serviceOptions,
  examples: [['keys delete key_01k9…', 'revoke a key that has leaked']],
  needs: ['keys:manage'],
  operations: ['deleteKey'],
  async run(input) {
    const deleted = await serviceOf(input).keys.delete(input.args.key);
    await printResult(input, deleted, `deleted: ${input.args.key}`);
  },
});

export const commands = [create, list, get, update, rotate, endGrace, remove];

type Restrictions = {
  permission: string | undefined;
  scopes: string[] | undefined;
  environment: string[] | undefined;
  agents: string[] | undefined;
  'allowed-ip': string[] | undefined;
  'requests-per-minute': number | undefined;
  'max-cost-usd-per-day': number | undefined;
};

function restrictionsIn(values: Restrictions) {
  return {
    // What is none of these is refused by the service, which names those that there are.
    permission: values.permission as ApiKey['permission'] & string,
    scopes: values.scopes as Scope[] | undefined,
    agents: values.agents,
    environments: values.environment,
    allowedIps: values['allowed-ip'],
    requestsPerMinute: values['requests-per-minute'],
    maxCostUsdPerDay: values['max-cost-usd-per-day'],
  };
}

function withoutUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

async function createOnHost(
  definition: { name: string | undefined; expiresAt: string | undefined } & ReturnType<typeof restrictionsIn>,
  values: { organization: string | undefined; 'data-dir': string | undefined },
) {
  const { createKeyOnHost, readConfig } = await import('@signalbox/server');
  const config = readConfig({ 'data-dir': values['data-dir'] });
  const given = { ...definition, organization: values.organization };
  const { apiKey, organizationId } = await createKeyOnHost(config, given);
  return { apiKey, where: ` in ${organizationId}` };
}

async function printSecret(
  apiKey: ApiKeyWithSecret,
  { values, terminal }: { values: { json: boolean | undefined }; terminal: Terminal },
): Promise<void> {
  await terminal.stdout.write(`${values.json ? JSON.stringify(apiKey) : (apiKey.secret ?? '')}\n`);
}

function grantOf({ permission, scopes }: ApiKey): string {
  return permission ?? scopes.join(', ');
}

export function printKey(
  found: ApiKey,
  terminal: Terminal,
  client: Pick<Signalbox, 'organization'>,
  before: readonly (readonly [string, string])[] = [],
): Promise<void> {
  const { maxCostUsdPerDay: most, costUsdToday: cost } = found;
  return printWithDollars(terminal, client, ({ exact }) =>
    printRecord(terminal, [
      ...before,
      ['Key', found.keyId],
      ['Name', shown(found.name)],
      ['Can', grantOf(found)],
      ['Secret', found.secretPreview],
      ['Old secret', found.expiringSecret && `works until ${found.expiringSecret.expiresAt}`],
      ['Environments', found.environments?.join(', ')],
      ['Agents', found.agents?.join(', ')],
      ['Addresses', found.allowedIps?.join(', ')],
      ['Requests per minute', found.requestsPerMinute === null ? null : String(found.requestsPerMinute)],
      ['Cost today', `${exact(cost)}${most === null ? '' : ` of ${exact(most)}`}`],
      ['Last used', timeText(found.lastUsedAt, terminal) || 'never'],
      ['Expires', timeText(found.expiresAt, terminal) || 'never'],
      ['Created', timeText(found.createdAt, terminal)],
    ]),
  );
}
