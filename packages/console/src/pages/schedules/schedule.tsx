// One schedule: when it opens sessions, whether they succeed, and its runs.
import type { Schedule, ScheduleRun } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { CalendarClock } from 'lucide-react';
import { Fragment } from 'react';
import { useApiQuery, useList, useMorePages, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { ChangeHistory } from '../../ui/change-history.tsx';
import { useDollars } from '../../ui/dollars.tsx';
import { EmptyState, Missing, NoMatches } from '../../ui/empty-state.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';
import { useAgent } from '../sessions/use-session.ts';
import { ScheduleMenu } from './actions.tsx';
import { NextRuns } from './next-runs.tsx';
import { RunNow } from './run-now.tsx';
import { RunResult } from './run-result.tsx';
import { textOf } from './schedule-form.tsx';
import { ScheduleTime } from './schedule-time.tsx';
import { scheduleSearch } from './search-params.ts';
import { FailedRuns, RunStatus, ScheduleState } from './state.tsx';

export function SchedulePage() {
  const { organizationId, scheduleId } = useParams({ from: '/$organizationId/schedules/$scheduleId' });
  const query = useApiQuery(['schedules', scheduleId], (client) => client.schedules.get(scheduleId));
  if (query.data) return <Shown schedule={query.data} />;
  return (
    <Page title="Schedule">
      <Await
        query={query}
        missing={<Missing what="schedule" to="/$organizationId/schedules" params={{ organizationId }} />}
      >
        {() => null}
      </Await>
    </Page>
  );
}

function Shown({ schedule }: { schedule: Schedule }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const agent = useAgent(schedule.agentId).data;
  return (
    <Page
      title={schedule.name ?? (agent ? `Schedule of ${agent.name}` : 'Schedule')}
      about={
        <>
          <ScheduleState schedule={schedule} /> <ScheduleTime schedule={schedule} />
        </>
      }
      actions={
        <>
          <RunNow scheduleId={schedule.scheduleId} />
          <ScheduleMenu
            schedule={schedule}
            label="Actions for this schedule"
            onDeleted={() => void navigate({ to: '/$organizationId/schedules', params: { organizationId } })}
          />
        </>
      }
    >
      {agent?.archivedAt ? (
        <Notice kind="warn">
          <p>Its agent is archived, so runs fail. Change the agent, or pause or delete the schedule.</p>
        </Notice>
      ) : (
        <FailedRuns schedule={schedule} />
      )}
      <div className="schedule-page">
        <Runs scheduleId={schedule.scheduleId} />
        <div className="stack">
          {schedule.cron !== null && schedule.status === 'enabled' && (
            <section className="card" aria-labelledby="next-runs">
              <h2 id="next-runs">Next runs</h2>
              <NextRuns cron={schedule.cron} timezone={schedule.timezone ?? 'UTC'} />
            </section>
          )}
          <section className="card" aria-labelledby="details">
            <div className="row apart">
              <h2 id="details">Details</h2>
              <ChangeHistory resourceId={schedule.scheduleId} />
            </div>
            <Facts schedule={schedule} agentName={agent?.name} />
          </section>
        </div>
      </div>
    </Page>
  );
}

function Facts({ schedule, agentName }: { schedule: Schedule; agentName: string | undefined }) {
  const { organizationId } = useOrganization();
  const { budget, metadata, nextAt } = schedule;
  const dollars = useDollars({ isShown: budget?.maxCostUsd !== undefined });
  const limits = [
    budget?.maxTokens !== undefined && `${number(budget.maxTokens)} tokens`,
    budget?.maxSteps !== undefined && `${number(budget.maxSteps)} steps`,
    budget?.maxCostUsd !== undefined && dollars.exact(budget.maxCostUsd),
  ].filter((limit) => limit !== false);
  return (
    <dl className="facts">
      <dt>Agent</dt>
      <dd>
        <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId: schedule.agentId }}>
          <PlainText text={agentName ?? schedule.agentId} />
        </Link>
      </dd>
      <dt>Environment</dt>
      <dd>{schedule.environment}</dd>
      <dt>Next run</dt>
      <dd>
        {nextAt ? (
          <>
            <Time at={nextAt} />, <ExactTime at={nextAt} />
          </>
        ) : schedule.status === 'paused' ? (
          'none while paused'
        ) : (
          'none, its time has passed'
        )}
      </dd>
      <dt>First message</dt>
      <dd>
        {schedule.input === null ? (
          <span className="quiet">none, sessions wait for a message</span>
        ) : (
          <LongText text={textOf(schedule.input)} />
        )}
      </dd>
      <dt>After the turn</dt>
      <dd>{schedule.closeOnIdle ? 'the session is closed' : 'the session stays open for more messages'}</dd>
      {limits.length > 0 && (
        <>
          <dt>Budget</dt>
          <dd>at most {limits.join(', ')} per session</dd>
        </>
      )}
      {Object.entries(metadata).map(([key, value]) => (
        <Fragment key={key}>
          <dt>
            <PlainText text={key} />
          </dt>
          <dd>
            <PlainText text={String(value)} />
          </dd>
        </Fragment>
      ))}
      <dt>Created</dt>
      <dd>
        <Time at={schedule.createdAt} />
      </dd>
      <dt>ID</dt>
      <dd>
        <IdChip value={schedule.scheduleId} />
      </dd>
    </dl>
  );
}

const statuses = [
  { value: 'all', label: 'All' },
  { value: 'failed', label: 'Failed' },
  { value: 'missed', label: 'Missed' },
] as const;

const filters = { failed: { hasError: true }, missed: { status: 'missed' } } as const;

const runColumns: Column<ScheduleRun>[] = [
  {
    id: 'time',
    label: 'Time',
    width: '15rem',
    cell: ({ scheduledAt, manual }) => (
      <>
        <ExactTime at={scheduledAt} /> {manual && <span className="quiet small">manual</span>}
      </>
    ),
  },
  {
    id: 'status',
    label: 'Status',
    width: '7rem',
    phone: 'aside',
    cell: (run) => <RunStatus run={run} />,
  },
  { id: 'result', label: 'Result', phone: 'under', cell: (run) => <RunResult run={run} /> },
  {
    id: 'recorded',
    label: 'Recorded',
    width: '7rem',
    end: true,
    choice: 'shown',
    from: 'wide',
    phone: 'under-aside',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
];

function Runs({ scheduleId }: { scheduleId: string }) {
  const { organizationId } = useOrganization();
  const { status } = scheduleSearch(useSearch({ from: '/$organizationId/schedules/$scheduleId' }));
  const change = useChangeSearch<ReturnType<typeof scheduleSearch>>();
  const runs = useList(['schedules', scheduleId, 'runs', status ?? 'all'], (client, page) =>
    client.schedules.runs(scheduleId, { ...(status && filters[status]), ...page }),
  );
  // The service checks a thousand runs for each page, so the first pages of those that failed may be empty.
  const isSearching = runs.data?.length === 0 && runs.hasNextPage;
  useMorePages(runs, isSearching);
  const show = (next: (typeof statuses)[number]['value']) => change(() => (next === 'all' ? {} : { status: next }));
  return (
    <section className="stack" aria-labelledby="runs">
      <div className="row apart">
        <h2 id="runs">Runs</h2>
        <Segmented label="Status" value={status ?? 'all'} options={statuses} onChange={show} />
      </div>
      <Table
        name="schedule-runs"
        caption="Runs, newest first"
        query={isSearching ? { ...runs, data: undefined } : runs}
        columns={runColumns}
        rowKey={({ scheduledAt }) => scheduledAt}
        rowLink={({ sessionId }) =>
          sessionId === null
            ? undefined
            : { to: '/$organizationId/sessions/$sessionId', params: { organizationId, sessionId } }
        }
        empty={
          status ? (
            <NoMatches icon={CalendarClock} what="runs" onClear={() => show('all')} />
          ) : (
            <EmptyState icon={CalendarClock} title="No runs yet">
              Each run and the session that it opened appear here.
            </EmptyState>
          )
        }
      />
    </section>
  );
}
