// `signalbox environments …`: environments, and how long they keep sessions.
import type { Environment } from '@signalbox/client';
import { command, UsageError } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import { counted } from '../text.ts';

const name = { name: { about: 'the name of the environment, such as production' } } as const;
const keep = { type: 'string', value: 'DAYS', about: 'how many days sessions are kept after they end' } as const;

const list = command({
  name: 'list',
  summary: 'List environments, newest first',
  options: { ...listOptions, ...serviceOptions },
  examples: [['environments list', 'all environments']],
  needs: ['agents:read'],
  operations: ['listEnvironments'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.environments.list(page), {
      id: (environment) => environment.name,
      describe: (): Column<Environment>[] => [
        { header: 'ENVIRONMENT', cell: (environment) => environment.name },
        { header: 'SESSIONS ARE KEPT', cell: keptText },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal) },
      ],
    });
  },
});

const create = command({
  name: 'create',
  summary: 'Create an environment',
  arguments: name,
  options: { 'keep-sessions-days': keep, ...serviceOptions },
  examples: [['environments create preview --keep-sessions-days 7', 'an environment that forgets after a week']],
  needs: ['environments:write'],
  operations: ['createEnvironment'],
  async run(input) {
    const keepSessionsDays = daysIn(input.values['keep-sessions-days'], input.command);
    const created = await serviceOf(input).environments.create({ name: input.args.name, keepSessionsDays });
    await printResult(input, created, `created: ${created.name}`);
  },
});

const update = command({
  name: 'update',
  summary: 'Change how long an environment keeps sessions',
  arguments: name,
  options: {
    'keep-sessions-days': { ...keep, about: `${keep.about}; none: the limit of the operator`, required: true },
    ...serviceOptions,
  },
  examples: [['environments update production --keep-sessions-days 90', 'keep sessions for 90 days']],
  needs: ['organization:manage'],
  operations: ['updateEnvironment'],
  async run(input) {
    const keepSessionsDays = daysIn(input.values['keep-sessions-days'], input.command);
    const updated = await serviceOf(input).environments.update(input.args.name, { keepSessionsDays });
    await printResult(input, updated, `${updated.name} keeps sessions ${keptText(updated)}`);
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete an environment that has no open sessions, webhook subscription or schedules',
  arguments: name,
  options: serviceOptions,
  examples: [['environments delete preview', 'delete an environment']],
  needs: ['environments:write'],
  operations: ['deleteEnvironment'],
  async run(input) {
    const deleted = await serviceOf(input).environments.delete(input.args.name);
    await printResult(input, deleted, `deleted: ${input.args.name}`);
  },
});

export const commands = [list, create, update, remove];

function keptText({ keepSessionsDays: days }: Environment): string {
  return days === null ? 'as the operator has set' : `for ${counted(days, 'day')}`;
}

function daysIn(text: string | undefined, fullName: string): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  if (!/^\d{1,6}$/.test(text))
    throw new UsageError(`${fullName}: --keep-sessions-days must be a whole number, or none`, `${fullName} --help`);
  return Number(text);
}
