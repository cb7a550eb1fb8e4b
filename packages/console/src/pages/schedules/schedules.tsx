// Sessions that the service opens at set times.
import type { Schedule } from '@signalbox/client';
import { useSearch } from '@tanstack/react-router';
import { CalendarClock } from 'lucide-react';
import { useMemo, useState } from 'react';
import { agentOption, useAgentNames, useAgents } from '../../data/agent-names.ts';
import { useOpenNew } from '../../data/open-new.ts';
import { useList, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { withFilter } from '../../lib/search-params.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState, NoMatches } from '../../ui/empty-state.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { Page } from '../../ui/page.tsx';
import { SavedViews, type View } from '../../ui/saved-views.tsx';
import { Table } from '../../ui/table.tsx';
import { ScheduleMenu } from './actions.tsx';
import { scheduleColumns } from './columns.tsx';
import { RunRowNow } from './run-now.tsx';
import { ScheduleForm } from './schedule-form.tsx';
import { type SchedulesSearch, schedulesSearch } from './search-params.ts';

const views: readonly View<SchedulesSearch>[] = [
  { label: 'All', search: {} },
  { label: 'Enabled', search: { status: 'enabled' } },
  { label: 'Paused', search: { status: 'paused' } },
];

export function SchedulesPage() {
  const { may, organizationId } = useOrganization();
  const raw = useSearch({ from: '/$organizationId/schedules' });
  const search = useMemo(() => schedulesSearch(raw), [raw]);
  const change = useChangeSearch<SchedulesSearch>();
  const names = useAgentNames();
  const agents = useAgents().data ?? [];
  const [isMaking, setMaking] = useState(false);
  const schedules = useList(['schedules', search], (client, page) => client.schedules.list({ ...search, ...page }));
  useOpenNew(() => setMaking(true), may('write'));
  const columns = useMemo(() => scheduleColumns(({ agentId }) => names.get(agentId) ?? agentId), [names]);
  function set<K extends keyof SchedulesSearch>(name: K, value: SchedulesSearch[K] | '') {
    change((before) => withFilter(before, name, value));
  }
  const newSchedule = may('write') && (
    <Button look="primary" onClick={() => setMaking(true)}>
      New schedule
    </Button>
  );
  return (
    <Page
      title="Schedules"
      operation="createSchedule"
      views={
        <SavedViews
          name={`schedules.${organizationId}`}
          views={views}
          search={search}
          onChoose={(next) => change(({ environment }) => ({ ...next, environment }) as SchedulesSearch)}
        />
      }
      actions={newSchedule}
    >
      <FilterBar
        filters={[
          {
            label: 'Agent',
            value: search.agentId,
            options: agents.map(agentOption),
            onChange: (value) => set('agentId', value ?? ''),
          },
        ]}
      />
      <Table
        name="schedules"
        caption="Schedules, newest first"
        query={schedules}
        columns={columns}
        rowKey={({ scheduleId }) => scheduleId}
        rowLink={({ scheduleId }) => ({
          to: '/$organizationId/schedules/$scheduleId',
          params: { organizationId, scheduleId },
        })}
        {...(may('write') && { actions: (schedule: Schedule) => <RowActions schedule={schedule} names={names} /> })}
        empty={
          Object.keys(search).length > 0 ? (
            <NoMatches
              icon={CalendarClock}
              what="schedules"
              onClear={
                search.status || search.agentId
                  ? () => change(({ environment }) => ({ environment }) as SchedulesSearch)
                  : undefined
              }
            />
          ) : (
            <EmptyState
              icon={CalendarClock}
              title="No schedules yet"
              action={newSchedule}
              docs={{ label: 'How schedules work', href: '/docs#createSchedule' }}
            >
              A schedule starts a session every morning, every hour, or once at a set time.
            </EmptyState>
          )
        }
      />
      {isMaking && <ScheduleForm onClose={() => setMaking(false)} />}
    </Page>
  );
}

function RowActions({ schedule, names }: { schedule: Schedule; names: ReadonlyMap<string, string> }) {
  const name = schedule.name ?? `the schedule of ${names.get(schedule.agentId) ?? schedule.agentId}`;
  return (
    <>
      <RunRowNow scheduleId={schedule.scheduleId} name={name} />
      <ScheduleMenu schedule={schedule} label={`Actions for ${name}`} />
    </>
  );
}
