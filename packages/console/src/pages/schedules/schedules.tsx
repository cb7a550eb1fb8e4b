// Sessions that the service opens at set times.
import type { Schedule, ScheduleStatus } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useAgentNames } from '../../agent-names.ts';
import { AgentFilter, EnvironmentFilter } from '../../filters.tsx';
import { useList, useOrganization } from '../../organization.tsx';
import { useOpenNew } from '../../palette/open-new.ts';
import { withFilter } from '../../search-params.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { FilterSelect } from '../../ui/filter.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { ScheduleMenu } from './actions.tsx';
import { RunStatus } from './run-status.tsx';
import { ScheduleForm, textOf } from './schedule-form.tsx';
import { ScheduleTime } from './schedule-time.tsx';
import { type SchedulesSearch, schedulesSearch } from './search-params.ts';

export function SchedulesPage() {
  const { may, organizationId } = useOrganization();
  const search = schedulesSearch(useSearch({ from: '/$organizationId/schedules' }));
  const navigate = useNavigate();
  const names = useAgentNames();
  const [isMaking, setMaking] = useState(false);
  const schedules = useList(['schedules', search], (client, page) => client.schedules.list({ ...search, ...page }));
  useOpenNew(() => setMaking(true), may('write'));
  const nameOf = ({ agentId }: Schedule) => names.get(agentId) ?? agentId;
  const columns: Column<Schedule>[] = [
    {
      label: 'Schedule',
      cell: (schedule) => (
        <>
          <Link
            to="/$organizationId/schedules/$scheduleId"
            params={{ organizationId, scheduleId: schedule.scheduleId }}
          >
            <PlainText text={schedule.name ?? nameOf(schedule)} />
          </Link>
          <div className="quiet small">
            {schedule.name !== null && (
              <>
                <PlainText text={nameOf(schedule)} /> ·{' '}
              </>
            )}
            {schedule.input === null ? 'no first message' : <PlainText text={beginningOf(textOf(schedule.input))} />}
          </div>
        </>
      ),
    },
    { label: 'When', cell: (schedule) => <ScheduleTime schedule={schedule} /> },
    { label: 'Environment', cell: ({ environment }) => environment },
    { label: 'Status', cell: ({ status }) => <Status value={status} /> },
    { label: 'Next', cell: ({ nextAt }) => <Time at={nextAt} absent="none" /> },
    {
      label: 'Last',
      cell: ({ lastRun }) =>
        lastRun ? (
          <>
            <Time at={lastRun.scheduledAt} /> <RunStatus run={lastRun} />
          </>
        ) : (
          <span className="quiet">none yet</span>
        ),
    },
    {
      label: '',
      end: true,
      cell: (schedule) => (
        <ScheduleMenu
          schedule={schedule}
          label={`Actions for ${schedule.name ?? `the schedule of ${nameOf(schedule)}`}`}
        />
      ),
    },
  ];
  const newSchedule = may('write') && (
    <Button look="primary" onClick={() => setMaking(true)}>
      New schedule
    </Button>
  );
  return (
    <Page
      title="Schedules"
      operation="createSchedule"
      about="Start sessions automatically, on a schedule or once."
      actions={newSchedule}
    >
      <Filters
        search={search}
        onSearch={(next) => void navigate({ to: '.', search: next, replace: true, resetScroll: false })}
      />
      <List
        caption="Schedules, newest first"
        query={schedules}
        columns={columns}
        rowKey={({ scheduleId }) => scheduleId}
        empty={
          Object.keys(search).length > 0 ? (
            <p>No matching schedules. Change or clear the filters.</p>
          ) : (
            <>
              <h2>No schedules yet</h2>
              <p>Create one to start a session every morning, every hour, or once at a set time.</p>
            </>
          )
        }
      />
      {isMaking && <ScheduleForm onClose={() => setMaking(false)} />}
    </Page>
  );
}

// The schedule's page shows all of it.
const SHOWN_CHARACTERS = 80;

function beginningOf(text: string): string {
  const line = text.split('\n', 1)[0]!.slice(0, SHOWN_CHARACTERS);
  return line === text ? text : `${line}…`;
}

const statuses = (['enabled', 'paused'] satisfies ScheduleStatus[]).map((value) => ({ value, label: value }));

function Filters({ search, onSearch }: { search: SchedulesSearch; onSearch: (search: SchedulesSearch) => void }) {
  return (
    <search className="filters" aria-label="Filter schedules">
      <FilterSelect
        label="Status"
        value={search.status}
        options={statuses}
        onChange={(status) => onSearch(withFilter(search, 'status', status))}
      />
      <AgentFilter value={search.agentId} onChange={(agentId) => onSearch(withFilter(search, 'agentId', agentId))} />
      <EnvironmentFilter
        value={search.environment}
        onChange={(environment) => onSearch(withFilter(search, 'environment', environment))}
      />
    </search>
  );
}
