// `signalbox schedules …`: lists schedules and their runs, pauses and enables them.
import type { Schedule, ScheduleRun, Signalbox } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { type Command, command } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, statusStyle, Table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const schedule = { schedule: { about: 'the id of the schedule, sch_…' } } as const;

const list = command({
  name: 'list',
  summary: 'List schedules with the time of their next run, newest first',
  options: { ...listOptions, ...serviceOptions },
  examples: [['schedules list', 'all schedules']],
  needs: 'schedules:read (permission read)',
  operations: ['listSchedules'],
  run(input) {
    const client = serviceOf(input);
    const describe = describer(client, input.terminal);
    return printList(input, (page) => client.schedules.list(page), { id: ({ scheduleId }) => scheduleId, describe });
  },
});

const runs = command({
  name: 'runs',
  summary: 'List the runs of a schedule, newest first',
  arguments: schedule,
  options: { ...listOptions, ...serviceOptions },
  examples: [['schedules runs sch_01k9…', 'what became of the last runs']],
  needs: 'schedules:read (permission read)',
  operations: ['listScheduleRuns'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.schedules.runs(input.args.schedule, page), {
      id: ({ sessionId, scheduledAt }) => sessionId ?? scheduledAt,
      describe: (): Column<ScheduleRun>[] => [
        { header: 'SCHEDULED', cell: ({ scheduledAt }) => timeText(scheduledAt, input.terminal) },
        { header: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
        { header: 'SESSION', cell: ({ sessionId }) => sessionId ?? '' },
        { header: 'ERROR', cell: ({ error }) => shown(error?.message ?? ''), shrinks: true },
      ],
    });
  },
});

const pause = switching('pause', 'Pause a schedule: no further sessions are opened', 'paused');
const enable = switching('enable', 'Enable a schedule: it continues with the next run in the future', 'enabled');

export const commands = [list, runs, pause, enable];

function switching(name: string, summary: string, status: 'paused' | 'enabled'): Command {
  return command({
    name,
    summary,
    arguments: schedule,
    options: serviceOptions,
    examples: [[`schedules ${name} sch_01k9…`, `${name} a schedule`]],
    needs: 'schedules:write (permission write)',
    operations: ['updateSchedule'],
    async run(input) {
      const client = serviceOf(input);
      const changed = await client.schedules.update(input.args.schedule, { status });
      await printResult(input, changed, async () => {
        const columns = await describer(client, input.terminal)([changed]);
        await new Table(input.terminal.stdout, columns).print([changed]);
      });
    },
  });
}

function describer(client: Signalbox, terminal: Terminal) {
  const names = agentNames(client);
  return async (schedules: readonly Schedule[]): Promise<Column<Schedule>[]> => {
    await names.load(schedules.map(({ agentId }) => agentId));
    return [
      { header: 'SCHEDULE', cell: ({ scheduleId }) => scheduleId },
      { header: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
      { header: 'AGENT', cell: ({ agentId }) => names.of(agentId), shrinks: true },
      { header: 'ENVIRONMENT', cell: ({ environment }) => environment, shrinks: true, optional: true },
      { header: 'TIMES', cell: ({ at, cron, timezone }) => at ?? `${shown(cron ?? '')} ${shown(timezone ?? 'UTC')}` },
      { header: 'NEXT RUN', cell: ({ nextAt }) => (nextAt === null ? 'none' : timeText(nextAt, terminal)) },
    ];
  };
}
