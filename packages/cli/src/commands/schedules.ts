// `signalbox schedules …`: sessions that the service opens at set times.
import type {
  CreateSchedule,
  LastScheduleRun,
  Metadata,
  Schedule,
  ScheduleRun,
  Signalbox,
  UpdateSchedule,
} from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { type Command, command, type Options, UsageError, type Values } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { type Column, statusStyle, Table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown, shownLines } from '../text.ts';

const schedule = { schedule: { about: 'the id of the schedule, sch_…' } } as const;

const list = command({
  name: 'list',
  summary: 'List schedules with the time of their next run, newest first',
  options: {
    status: { type: 'string', choices: ['enabled', 'paused'], about: 'only schedules with this status' },
    agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['schedules list', 'all schedules, and when they run next']],
  needs: ['agents:read'],
  operations: ['listSchedules'],
  run(input) {
    const client = serviceOf(input);
    const { status, agent: agentId, environment } = input.values;
    const filters = { status, agentId, environment };
    const describe = describer(client, input.terminal);
    return printList(input, (page) => client.schedules.list({ ...filters, ...page }), {
      id: ({ scheduleId }) => scheduleId,
      describe,
    });
  },
});

const runs = command({
  name: 'runs',
  summary: 'List the runs of a schedule, newest first',
  arguments: schedule,
  options: {
    status: { type: 'string', choices: ['opened', 'missed', 'failed'], about: 'only runs with this status' },
    failed: { type: 'boolean', about: 'only runs that opened no session, or whose session failed' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [
    ['schedules runs sch_01k9…', 'the sessions that it opened, how they ended, and why one is missing'],
    ['schedules runs sch_01k9… --failed', 'why it fails'],
  ],
  needs: ['agents:read'],
  operations: ['listScheduleRuns'],
  run(input) {
    const client = serviceOf(input);
    const { status, failed } = input.values;
    return printList(
      input,
      (page) => client.schedules.runs(input.args.schedule, { status, ...(failed && { hasError: true }), ...page }),
      {
        id: ({ sessionId, scheduledAt }) => sessionId ?? scheduledAt,
        describe: (): Column<ScheduleRun>[] => [
          { header: 'SCHEDULED', cell: ({ scheduledAt }) => timeText(scheduledAt, input.terminal) },
          { header: 'STATUS', cell: runStatus, style: ({ status }) => statusStyle(status) },
          { header: 'SESSION', cell: ({ sessionId }) => sessionId ?? '' },
          { header: 'OUTCOME', cell: outcomeOf, style: outcomeStyle, shrinks: true },
        ],
      },
    );
  },
});

const pause = switching('pause', 'Pause a schedule: no further sessions are opened', 'paused');
const enable = switching('enable', 'Enable a schedule: it continues with the next run in the future', 'enabled');

const fields = {
  name: { type: 'string', value: 'NAME', about: 'a name for people' },
  cron: { type: 'string', value: 'PATTERN', about: "minute, hour, day, month and weekday, such as '0 9 * * 1-5'" },
  at: { type: 'time', direction: 'future', about: 'instead of --cron: the time of its only run' },
  timezone: {
    type: 'string',
    value: 'ZONE',
    about: 'the time zone of the cron expression, such as Europe/Berlin (UTC)',
  },
  input: { type: 'string', value: 'TEXT', about: 'the first message of each session' },
  'end-user': { type: 'string', value: 'ID', about: 'for whom the sessions are' },
  'max-cost-usd': { type: 'number', about: 'the budget of each session, in US dollars' },
  'max-tokens': { type: 'integer', min: 1, about: 'the budget of each session, in tokens' },
  metadata: { type: 'json', about: 'values of your own, set on each session' },
} as const satisfies Options;

const get = command({
  name: 'get',
  summary: 'Show a schedule',
  arguments: schedule,
  options: serviceOptions,
  examples: [['schedules get sch_01k9…', 'its times and its message']],
  needs: ['agents:read'],
  operations: ['getSchedule'],
  async run(input) {
    const found = await serviceOf(input).schedules.get(input.args.schedule);
    await printResult(input, found, () => printSchedule(found, input.terminal));
  },
});

const create = command({
  name: 'create',
  summary: 'Create a schedule, and print its id',
  arguments: { agent: { about: 'the id of the agent, agt_…' } },
  options: {
    environment: { type: 'string', value: 'NAME', required: true, about: 'the environment of the sessions' },
    ...fields,
    'keep-open': { type: 'boolean', about: 'keep each session open after its first turn' },
    ...serviceOptions,
  },
  examples: [
    [
      `schedules create agt_01k9… --environment production --cron '0 9 * * 1-5' --timezone Europe/Berlin --input 'Report.'`,
      'every working day at nine',
    ],
    [`schedules create agt_01k9… --environment production --at 2h --input 'Remind me.'`, 'once, in two hours'],
  ],
  needs: ['schedules:write'],
  operations: ['createSchedule'],
  async run(input) {
    const { args, values } = input;
    const created = await serviceOf(input).schedules.create({
      agentId: args.agent,
      environment: values.environment,
      ...fieldsIn(values),
      closeOnIdle: !values['keep-open'],
      // The service says what is missing, or too much.
    } as CreateSchedule);
    await printResult(input, created, created.scheduleId);
  },
});

const update = command({
  name: 'update',
  summary: 'Change a schedule; changed times apply from now on',
  arguments: schedule,
  options: {
    agent: { type: 'string', value: 'AGENT', about: 'another agent' },
    environment: { type: 'string', value: 'NAME', about: 'another environment' },
    ...fields,
    ...serviceOptions,
  },
  examples: [[`schedules update sch_01k9… --cron '0 8 * * *'`, 'an hour earlier']],
  needs: ['schedules:write'],
  operations: ['updateSchedule'],
  async run(input) {
    const { args, values, terminal, command: fullName } = input;
    const change = { agentId: values.agent, environment: values.environment, ...fieldsIn(values) };
    // From times to a time, and back: exactly one of both is set.
    const other =
      values.at === undefined ? (values.cron === undefined ? {} : { at: null }) : { cron: null, timezone: null };
    if (Object.values(change).every((value) => value === undefined))
      throw new UsageError(`${fullName}: needs an option`, `${fullName} --help`);
    const updated = await serviceOf(input).schedules.update(args.schedule, { ...change, ...other } as UpdateSchedule);
    await printResult(input, updated, () => printSchedule(updated, terminal));
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete a schedule and its runs; the sessions that it opened stay',
  arguments: schedule,
  options: serviceOptions,
  examples: [['schedules delete sch_01k9…', 'delete a schedule']],
  needs: ['schedules:write'],
  operations: ['deleteSchedule'],
  async run(input) {
    const deleted = await serviceOf(input).schedules.delete(input.args.schedule);
    await printResult(input, deleted, `deleted: ${input.args.schedule}`);
  },
});

const run = command({
  name: 'run',
  summary: 'Run a schedule now, and print the id of the session; its times do not change',
  arguments: schedule,
  options: serviceOptions,
  examples: [['schedules run sch_01k9…', 'try a schedule without waiting for its time']],
  needs: ['schedules:write'],
  operations: ['runSchedule'],
  async run(input) {
    const started = await serviceOf(input).schedules.run(input.args.schedule);
    await printResult(input, started, started.sessionId ?? started.status);
  },
});

const preview = command({
  name: 'preview',
  summary: 'Print the next times of a cron expression',
  arguments: { cron: { about: "minute, hour, day, month and weekday, such as '0 9 * * 1-5'" } },
  options: {
    timezone: fields.timezone,
    limit: { type: 'integer', min: 1, about: 'how many times, at most 10 (5)' },
    ...serviceOptions,
  },
  examples: [[`schedules preview '0 9 1 * *' --timezone Europe/Berlin`, 'the first of the next five months, at nine']],
  needs: ['agents:read'],
  operations: ['previewSchedule'],
  async run(input) {
    const { timezone, limit: count } = input.values;
    const times = await serviceOf(input).schedules.preview({ cron: input.args.cron, timezone, count });
    await printResult(input, times, times.join('\n'));
  },
});

export const commands = [list, get, create, update, run, preview, runs, pause, enable, remove];

function fieldsIn(values: Partial<Values<typeof fields>>) {
  const { 'end-user': endUserId, 'max-cost-usd': maxCostUsd, 'max-tokens': maxTokens } = values;
  return {
    name: values.name,
    cron: values.cron,
    at: values.at,
    timezone: values.timezone,
    input: values.input,
    endUser: endUserId === undefined ? undefined : { id: endUserId },
    budget: maxCostUsd === undefined && maxTokens === undefined ? undefined : { maxCostUsd, maxTokens },
    metadata: values.metadata as Metadata | undefined,
  };
}

function runStatus({ status, manual }: Pick<ScheduleRun, 'status' | 'manual'>): string {
  return manual ? `${status}, manual` : status;
}

/** How its session is, or why there is none. */
function outcomeOf({ session, error }: LastScheduleRun): string {
  const reason = (error ?? session?.error)?.message;
  return [session?.status, reason && shown(reason)].filter((words) => words).join(': ');
}

function outcomeStyle({ session }: LastScheduleRun) {
  return session ? statusStyle(session.error ? 'failed' : session.status) : undefined;
}

function timesOf({ at, cron, timezone }: Schedule): string {
  return at ?? `${shown(cron ?? '')} ${shown(timezone ?? 'UTC')}`;
}

function printSchedule(found: Schedule, terminal: Terminal): Promise<void> {
  const { input, endUser, budget, lastRun, failedRuns } = found;
  return printRecord(terminal, [
    ['Schedule', found.scheduleId],
    ['Name', found.name && shown(found.name)],
    ['Status', found.status],
    ['Agent', found.agentId],
    ['Environment', found.environment],
    ['Times', timesOf(found)],
    ['Next run', timeText(found.nextAt, terminal) || 'none'],
    [
      'Last run',
      lastRun &&
        `${timeText(lastRun.scheduledAt, terminal)}: ${[runStatus(lastRun), lastRun.sessionId, outcomeOf(lastRun)].filter((words) => words).join(' ')}`,
    ],
    ['Failed runs', failedRuns > 0 ? `${failedRuns} of the newest 10, since one succeeded` : ''],
    ['Message', typeof input === 'string' ? shownLines(input) : input && shown(JSON.stringify(input))],
    ['End user', endUser && shown(endUser.id)],
    ['Budget', budget && shown(JSON.stringify(budget))],
    ['Metadata', Object.keys(found.metadata).length > 0 ? shown(JSON.stringify(found.metadata)) : ''],
  ]);
}

function switching(name: string, summary: string, status: 'paused' | 'enabled'): Command {
  return command({
    name,
    summary,
    arguments: schedule,
    options: serviceOptions,
    examples: [[`schedules ${name} sch_01k9…`, `${name} a schedule`]],
    needs: ['schedules:write'],
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
      {
        header: 'FAILED RUNS',
        cell: ({ failedRuns }) => (failedRuns > 0 ? String(failedRuns) : ''),
        style: () => statusStyle('failed'),
      },
      { header: 'NAME', cell: ({ name }) => shown(name ?? ''), shrinks: true },
      { header: 'AGENT', cell: ({ agentId }) => names.of(agentId), shrinks: true },
      { header: 'ENVIRONMENT', cell: ({ environment }) => environment, shrinks: true, optional: true },
      { header: 'TIMES', cell: timesOf },
      { header: 'NEXT RUN', cell: ({ nextAt }) => (nextAt === null ? 'none' : timeText(nextAt, terminal)) },
    ];
  };
}
