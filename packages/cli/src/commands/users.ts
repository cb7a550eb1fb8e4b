// `signalbox users …`: manages who can sign in to the console. Access to the host is the only permission needed.
import { roles } from '@signalbox/contract';
import { command, type Input, type Options } from '../command.ts';
import { printResult } from '../print.ts';
import { type Column, Table } from '../table.ts';
import { shown } from '../text.ts';
import { relativeTime } from '../time.ts';

type Operator = typeof import('@signalbox/server');
type HostUser = Awaited<ReturnType<Operator['listUsersOnHost']>>[number];

const common = {
  organization: { type: 'string', value: 'ID', about: 'the organization, if there are several' },
  json: { type: 'boolean', about: 'print JSON' },
  'data-dir': { type: 'string', value: 'DIRECTORY', about: 'the data directory of the service (./data)' },
} as const satisfies Options;
const linkOptions = {
  'public-url': {
    type: 'string',
    value: 'URL',
    about: 'address of the console in links, if not as last announced by the service',
    variable: 'SIGNALBOX_PUBLIC_URL',
  },
  ...common,
} as const satisfies Options;
const user = { type: 'string', value: 'USER', about: 'an email address, or an id usr_…' } as const;
const passOn = 'The link is printed to standard output, once. Pass it on over a channel that no one else can read.';

const list = command({
  name: 'list',
  summary: 'List all users, with role and last sign-in',
  options: common,
  examples: [['users list', 'who can sign in, and who did']],
  async run({ values, terminal }) {
    const { listUsersOnHost, readConfig } = await import('@signalbox/server');
    const found = await listUsersOnHost(readConfig({ 'data-dir': values['data-dir'] }), values);
    if (values.json) return void (await terminal.stdout.write(`${JSON.stringify(found)}\n`));
    const { isTTY } = terminal.stdout;
    const columns: Column<HostUser>[] = [
      { header: 'EMAIL', cell: ({ email }) => shown(email) },
      { header: 'ROLE', cell: ({ role }) => role },
      { header: 'CAN DECIDE', cell: ({ canDecide }) => limitsIn(canDecide), shrinks: true },
      { header: 'NAME', cell: ({ name }) => shown(name), shrinks: true },
      {
        header: 'LAST SIGN-IN',
        cell: ({ lastSignedInAt: at }) => (!at ? 'never' : isTTY ? relativeTime(at, terminal.clock) : at),
      },
    ];
    await new Table(terminal.stdout, columns).print(found);
  },
});

const invite = command({
  name: 'invite',
  summary: 'Create an invitation link, valid once within 7 days',
  details: passOn,
  options: {
    role: { type: 'string', value: roles.join('|'), required: true, about: 'the role of the new user' },
    email: { type: 'string', value: 'EMAIL', about: 'the only email address that can accept the invitation' },
    name: { type: 'string', value: 'NAME', about: 'the name of the new user' },
    'decides-environment': {
      type: 'string',
      value: 'NAME',
      multiple: true,
      about: 'let the user decide approvals only in this environment',
    },
    'decides-agents': { type: 'list', value: 'ID,ID', about: 'let the user decide approvals only of these agents' },
    ...linkOptions,
  },
  examples: [
    ['users invite --role member --email ola@example.com', 'invite a colleague'],
    ['users invite --role approver --decides-environment production', 'someone who decides approvals, only there'],
  ],
  run(input) {
    const { 'decides-environment': environments, 'decides-agents': agents, ...wish } = input.values;
    const canDecide = { ...(environments && { environments }), ...(agents && { agents }) };
    const limits = environments || agents ? { canDecide } : {};
    return printLink(input, '7 days', ({ inviteOnHost }, config) => inviteOnHost(config, { ...wish, ...limits }));
  },
});

const resetPassword = command({
  name: 'reset-password',
  summary: 'Create a password reset link, valid once within 24 hours',
  details: passOn,
  options: { user: { ...user, required: true }, ...linkOptions },
  examples: [['users reset-password --user mara@example.com', 'for a user who has forgotten the password']],
  run: (input) =>
    printLink(input, '24 hours', ({ resetPasswordOnHost }, config) => resetPasswordOnHost(config, input.values)),
});

const remove = command({
  name: 'remove',
  summary: 'Remove a user immediately',
  options: { user: { ...user, required: true }, ...common },
  examples: [['users remove --user ola@example.com', 'remove someone who has left']],
  async run({ values, terminal }) {
    const { readConfig, removeUserOnHost } = await import('@signalbox/server');
    const { name, email } = await removeUserOnHost(readConfig({ 'data-dir': values['data-dir'] }), values);
    await terminal.stderr.write(`Removed ${shown(name)} (${shown(email)}).\n`);
  },
});

const setupLink = command({
  name: 'setup-link',
  summary: 'Create a new link for the first user; earlier ones become void',
  details: passOn,
  options: linkOptions,
  examples: [['users setup-link', 'if the link that the first start printed is lost or has expired']],
  run: (input) => printLink(input, '24 hours', ({ setupLinkOnHost }, config) => setupLinkOnHost(config, input.values)),
});

function limitsIn(canDecide: HostUser['canDecide']): string {
  if (canDecide === null) return '';
  const { agents, environments } = canDecide;
  return [...(environments ?? []), ...(agents ?? [])].map(shown).join(', ');
}

export const commands = [list, invite, resetPassword, remove, setupLink];

async function printLink(
  { values, terminal }: Pick<Input<typeof linkOptions>, 'values' | 'terminal'>,
  validFor: string,
  create: (server: Operator, config: ReturnType<Operator['readConfig']>) => Promise<string>,
): Promise<void> {
  const server = await import('@signalbox/server');
  const config = server.readConfig({ 'data-dir': values['data-dir'], 'public-url': values['public-url'] });
  const link = await create(server, config);
  await printResult({ values, terminal }, { link }, link);
  if (!values.json) await terminal.stderr.write(`Valid once, within ${validFor}.\n`);
}
