// `signalbox secrets …`: secrets of environments. A value is read from standard input or a prompt: never from an option, which other users
// of the machine and the history of the shell would see.
import type { EnvironmentSecret } from '@signalbox/client';
import { command } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { readSecret } from '../read-input.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import { shown } from '../text.ts';

const environment = { environment: { about: 'the name of the environment' } } as const;
const secret = { ...environment, name: { about: 'the name of the secret, such as OPENAI_API_KEY' } } as const;

const list = command({
  name: 'list',
  summary: 'List the secrets of an environment, without their values',
  arguments: environment,
  options: { ...listOptions, ...serviceOptions },
  examples: [['secrets list production', 'which secrets there are, and which hosts get them']],
  needs: ['secrets:manage'],
  operations: ['listSecrets'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.environments.secrets.list(input.args.environment, page), {
      id: ({ name }) => name,
      describe: (): Column<EnvironmentSecret>[] => [
        { header: 'SECRET', cell: ({ name }) => name },
        { header: 'ALLOWED HOSTS', cell: ({ allowedHosts }) => shown(allowedHosts.join(', ')), shrinks: true },
        { header: 'VERSION', cell: ({ version }) => String(version), optional: true },
        { header: 'SET', cell: ({ updatedAt }) => timeText(updatedAt, input.terminal) },
      ],
    });
  },
});

const set = command({
  name: 'set',
  summary: 'Create or replace a secret; its value is read from standard input or asked for',
  arguments: secret,
  options: {
    'allowed-host': {
      type: 'string',
      value: 'HOST',
      multiple: true,
      required: true,
      about: 'a host that the secret can be sent to, such as api.example.com or *.example.com',
    },
    new: { type: 'boolean', about: 'only create it: fail if there is a secret of this name' },
    ...serviceOptions,
  },
  examples: [
    ['secrets set production OPENAI_API_KEY --allowed-host api.openai.com', 'asks for the value'],
    ['pass show openai | signalbox secrets set production OPENAI_API_KEY --allowed-host api.openai.com', 'in a script'],
  ],
  needs: ['secrets:manage'],
  operations: ['setSecret'],
  async run(input) {
    const { args, values, terminal } = input;
    const { secrets } = serviceOf(input).environments;
    const value = await readSecret(`Value of ${args.name} (not shown): `, terminal);
    const params = { value, allowedHosts: values['allowed-host'] };
    const stored = await (values.new
      ? secrets.create(args.environment, args.name, params)
      : secrets.set(args.environment, args.name, params));
    await printResult(input, stored, `set: ${stored.name}, version ${stored.version}`);
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete a secret',
  arguments: secret,
  options: serviceOptions,
  examples: [['secrets delete production OPENAI_API_KEY', 'delete a secret']],
  needs: ['secrets:manage'],
  operations: ['deleteSecret'],
  async run(input) {
    const { args } = input;
    const deleted = await serviceOf(input).environments.secrets.delete(args.environment, args.name);
    await printResult(input, deleted, `deleted: ${args.name}`);
  },
});

export const commands = [list, set, remove];
