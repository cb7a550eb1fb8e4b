// The columns of the list of schedules: what starts, when, whether it does and its runs succeed, and how the last run went.
import type { Schedule } from '@signalbox/client';
import { RowTitle } from '../../ui/row-title.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { textOf } from './schedule-form.tsx';
import { ScheduleTime } from './schedule-time.tsx';
import { failedRunsText, RunStatus, ScheduleState } from './state.tsx';

export function scheduleColumns(nameOf: (schedule: Schedule) => string): Column<Schedule>[] {
  return [
    {
      id: 'schedule',
      label: 'Schedule',
      cell: (schedule) => (
        <RowTitle
          title={schedule.name ?? nameOf(schedule)}
          about={schedule.name === null || schedule.name === nameOf(schedule) ? firstLine(schedule) : nameOf(schedule)}
        />
      ),
    },
    {
      id: 'when',
      label: 'When',
      width: '30%',
      phone: 'under',
      cell: (schedule) => <ScheduleTime schedule={schedule} />,
    },
    {
      id: 'status',
      label: 'Status',
      width: '11rem',
      phone: 'aside',
      cell: (schedule) => <StateAndCount schedule={schedule} />,
    },
    {
      id: 'next',
      label: 'Next run',
      width: '7rem',
      phone: 'under-aside',
      cell: ({ nextAt }) => <Time at={nextAt} absent="none" />,
    },
    {
      id: 'last',
      label: 'Last run',
      width: '11rem',
      choice: 'shown',
      from: 'desktop',
      cell: ({ lastRun }) =>
        lastRun ? (
          <span className="badge-and-words">
            <RunStatus run={lastRun} /> <Time at={lastRun.scheduledAt} />
          </span>
        ) : (
          <span className="quiet">none yet</span>
        ),
    },
    {
      id: 'environment',
      label: 'Environment',
      width: '8rem',
      choice: 'shown',
      from: 'wide',
      cell: ({ environment }) => environment,
    },
  ];
}

function StateAndCount({ schedule }: { schedule: Schedule }) {
  const { failedRuns, status, lastRun } = schedule;
  const error = lastRun?.error ?? lastRun?.session?.error;
  return (
    <span className="badge-and-words" title={error?.message}>
      <ScheduleState schedule={schedule} />
      {failedRuns > 0 && status === 'enabled' && (
        <span className="quiet small failed-runs">{failedRunsText(failedRuns)}</span>
      )}
    </span>
  );
}

// The schedule's page shows all of it.
const SHOWN_CHARACTERS = 80;

function firstLine({ input }: Schedule): string {
  const text = textOf(input);
  const line = text.split('\n', 1)[0]!.slice(0, SHOWN_CHARACTERS);
  return line === text ? text : `${line}…`;
}
