// `signalbox organizations …`: the organizations of an installation. Access to the host is the only permission needed.
import { command, type Options } from '../command.ts';
import { printResult } from '../print.ts';
import { type Column, Table } from '../table.ts';
import { shown } from '../text.ts';

type HostOrganization = Awaited<ReturnType<typeof import('@signalbox/server')['createOrganizationOnHost']>>;

const common = {
  json: { type: 'boolean', about: 'print JSON' },
  'data-dir': { type: 'string', value: 'DIRECTORY', about: 'the data directory of the service (./data)' },
} as const satisfies Options;

const list = command({
  name: 'list',
  summary: 'List all organizations',
  options: common,
  examples: [['organizations list', 'the ids that `--organization` takes']],
  async run({ values, terminal }) {
    const { listOrganizationsOnHost, readConfig } = await import('@signalbox/server');
    const found = await listOrganizationsOnHost(readConfig({ 'data-dir': values['data-dir'] }));
    if (values.json) return void (await terminal.stdout.write(`${JSON.stringify(found)}\n`));
    const columns: Column<HostOrganization>[] = [
      { header: 'ID', cell: ({ organizationId }) => organizationId },
      { header: 'NAME', cell: ({ name }) => shown(name), shrinks: true },
    ];
    await new Table(terminal.stdout, columns).print(found);
  },
});

const create = command({
  name: 'create',
  summary: 'Create an organization, with the environments production and staging',
  details: 'It has no people and no keys yet. Its id is printed to standard output.',
  arguments: { name: { about: 'the name of the organization' } },
  options: common,
  examples: [
    ['organizations create Acme', 'then: `signalbox users setup-link --organization ID` for its first user'],
    [
      'signalbox keys create --organization "$(signalbox organizations create Acme)" --name first --permission admin',
      'with a key',
    ],
  ],
  async run({ args, values, terminal }) {
    const { createOrganizationOnHost, readConfig } = await import('@signalbox/server');
    const created = await createOrganizationOnHost(readConfig({ 'data-dir': values['data-dir'] }), args.name);
    await printResult({ values, terminal }, created, created.organizationId);
  },
});

export const commands = [list, create];
