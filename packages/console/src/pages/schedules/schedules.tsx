// Sessions that the service opens on time.
import type { Schedule, ScheduleStatus } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useEnvironmentNames } from '../../environment-names.ts';
import { useList, useOrganization } from '../../organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { useAgentNames } from '../sessions/agent-names.ts';
import { ScheduleMenu } from './actions.tsx';
import { RunStatus } from './run-status.tsx';
import { ScheduleForm, textOf } from './schedule-form.tsx';
import { type SchedulesSearch, schedulesSearch } from './search.ts';
import { When } from './when.tsx';

export function SchedulesPage() {
  const { may, organizationId } = useOrganization();
  const search = schedulesSearch(useSearch({ from: '/$organizationId/schedules' }));
  const navigate = useNavigate();
  const names = useAgentNames();
  const [isMaking, setMaking] = useState(false);
  const schedules = useList(['schedules', search], (client, page) => client.schedules.list({ ...search, ...page }));
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
            <PlainText text={nameOf(schedule)} />
          </Link>
          <div className="quiet small">
            {schedule.input === null ? (
              'without a first message'
            ) : (
              <PlainText text={beginningOf(textOf(schedule.input))} />
            )}
          </div>
        </>
      ),
    },
    { label: 'When', cell: (schedule) => <When schedule={schedule} /> },
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
        <ScheduleMenu schedule={schedule} label={`Actions for the schedule of ${nameOf(schedule)}`} />
      ),
    },
  ];
  const make = may('write') && (
    <Button look="primary" onClick={() => setMaking(true)}>
      New schedule
    </Button>
  );
  return (
    <Page title="Schedules" about="Sessions that the service opens by itself: again and again, or once." actions={make}>
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
            <p>No schedule fits these filters.</p>
          ) : (
            <>
              <h2>No schedules yet</h2>
              <p>One opens a Session of an Agent every morning, every hour, or at one moment that you say.</p>
            </>
          )
        }
      />
      {isMaking && <ScheduleForm onClose={() => setMaking(false)} />}
    </Page>
  );
}

// More of it is on the schedule's own page.
const SHOWN_CHARACTERS = 80;

function beginningOf(text: string): string {
  const line = text.split('\n', 1)[0]!.slice(0, SHOWN_CHARACTERS);
  return line === text ? text : `${line}…`;
}

function Filters({ search, onSearch }: { search: SchedulesSearch; onSearch: (search: SchedulesSearch) => void }) {
  const environments = new Set(useEnvironmentNames());
  if (search.environment) environments.add(search.environment);
  const names = new Map(useAgentNames());
  if (search.agentId && !names.has(search.agentId)) names.set(search.agentId, search.agentId);
  function set(name: keyof SchedulesSearch, value: string) {
    const { [name]: _, ...rest } = search;
    onSearch(value ? { ...rest, [name]: value } : rest);
  }
  return (
    <search className="filters" aria-label="Filter the schedules">
      <Select
        label="Status"
        value={search.status ?? ''}
        onChange={(event) => set('status', event.currentTarget.value)}
        options={[
          { value: '', label: 'All' },
          ...(['enabled', 'paused'] satisfies ScheduleStatus[]).map((value) => ({ value, label: value })),
        ]}
      />
      <Select
        label="Agent"
        value={search.agentId ?? ''}
        onChange={(event) => set('agentId', event.currentTarget.value)}
        options={[{ value: '', label: 'All' }, ...[...names].map(([value, label]) => ({ value, label }))]}
      />
      <Select
        label="Environment"
        value={search.environment ?? ''}
        onChange={(event) => set('environment', event.currentTarget.value)}
        options={[{ value: '', label: 'All' }, ...[...environments].map((value) => ({ value, label: value }))]}
      />
    </search>
  );
}
