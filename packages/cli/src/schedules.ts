// `signalbox schedules …`: lists schedules and their runs, pauses and enables them.
import type { Schedule } from '@signalbox/client';
import { agentNames, firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, parseCommand, shown, table, UsageError } from './usage.ts';

const help = `Lists, pauses and enables schedules. Create them in the console or via the API.

  signalbox schedules list                  list schedules with the time of their next run, newest first
  signalbox schedules runs SCHEDULE         list the runs of a schedule, newest first
  signalbox schedules pause SCHEDULE        pause: no further sessions are opened
  signalbox schedules enable SCHEDULE       enable: continue with the next run in the future

${columns([['--limit N', 'list, runs: at most N (20)'], ...serviceHelp])}
Listing needs a key with read, all others a key with write.
`;

export async function schedules([verb = '--help', ...args]: string[]): Promise<void> {
  if (verb === '--help') return void process.stdout.write(help);
  if (!['list', 'runs', 'pause', 'enable'].includes(verb))
    throw new UsageError(`schedules: there is no "${verb}"`, 'schedules --help');
  const command = `schedules ${verb}`;
  const isList = verb === 'list';
  const { values, names } = parseCommand(command, 'schedules --help', args, isList ? [] : ['SCHEDULE'], {
    ...serviceOptions,
    limit: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const client = serviceAt(values.url, command);
  const [scheduleId = ''] = names;
  if (isList) {
    const found = await firstOf(command, values.limit, (page) => client.schedules.list(page));
    const nameOf = await agentNames(client, values.json ? [] : found.map(({ agentId }) => agentId));
    return print(found, values.json, (all) => table(all.map((schedule) => rowOf(schedule, nameOf))));
  }
  if (verb === 'runs') {
    const found = await firstOf(command, values.limit, (page) => client.schedules.runs(scheduleId, page));
    return print(found, values.json, (all) =>
      table(
        all.map(({ scheduledAt, status, sessionId, error }) => [
          scheduledAt,
          status,
          sessionId ?? shown(error?.message ?? ''),
        ]),
      ),
    );
  }
  const schedule = await client.schedules.update(scheduleId, { status: verb === 'pause' ? 'paused' : 'enabled' });
  const nameOf = await agentNames(client, values.json ? [] : [schedule.agentId]);
  print([schedule], values.json, (all) => table(all.map((one) => rowOf(one, nameOf))));
}

function rowOf(schedule: Schedule, nameOf: (agentId: string) => string): string[] {
  const { scheduleId, status, environment, agentId, cron, timezone, at, nextAt } = schedule;
  const when = at ?? `${shown(cron ?? '')} ${shown(timezone ?? 'UTC')}`;
  return [scheduleId, status, environment, nameOf(agentId), when, nextAt === null ? 'no next run' : `next ${nextAt}`];
}
