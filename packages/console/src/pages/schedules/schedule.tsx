// One schedule: when it opens sessions, and its runs.
import type { Schedule, ScheduleRun, ScheduleRunStatus } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useApiQuery, useList, useOrganization } from '../../organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Select } from '../../ui/field.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { useAgent } from '../sessions/facts.tsx';
import { costText, number } from '../sessions/session-text.ts';
import { ScheduleMenu } from './actions.tsx';
import { NextRuns } from './next-runs.tsx';
import { RunNow } from './run-now.tsx';
import { RunStatus } from './run-status.tsx';
import { textOf } from './schedule-form.tsx';
import { ScheduleTime } from './schedule-time.tsx';
import { scheduleSearch } from './search-params.ts';

export function SchedulePage() {
  const { scheduleId } = useParams({ from: '/$organizationId/schedules/$scheduleId' });
  const query = useApiQuery(['schedules', scheduleId], (client) => client.schedules.get(scheduleId));
  if (query.data) return <Shown schedule={query.data} />;
  return (
    <Page title="Schedule">
      <Await query={query}>{() => null}</Await>
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
          <Status value={schedule.status} /> <ScheduleTime schedule={schedule} />
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
      {agent?.archivedAt && (
        <Notice kind="warn">
          <p>Its agent is archived, so runs fail. Change the agent, or pause or delete the schedule.</p>
        </Notice>
      )}
      <section className="card">
        <Facts schedule={schedule} agentName={agent?.name} />
      </section>
      <Runs scheduleId={schedule.scheduleId} />
    </Page>
  );
}

function Facts({ schedule, agentName }: { schedule: Schedule; agentName: string | undefined }) {
  const { organizationId } = useOrganization();
  const { budget, metadata, nextAt } = schedule;
  const limits = [
    budget?.maxTokens !== undefined && `${number(budget.maxTokens)} tokens`,
    budget?.maxSteps !== undefined && `${number(budget.maxSteps)} steps`,
    budget?.maxCostUsd !== undefined && costText(budget.maxCostUsd),
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
            <Time at={nextAt} />, <ExactTime at={nextAt} />{' '}
            <span className="quiet small">in your browser’s time zone</span>
          </>
        ) : schedule.status === 'paused' ? (
          'none while paused'
        ) : (
          'none, its time has passed'
        )}
      </dd>
      {schedule.cron !== null && schedule.status === 'enabled' && (
        <>
          <dt>Next five runs</dt>
          <dd>
            <NextRuns cron={schedule.cron} timezone={schedule.timezone ?? 'UTC'} />
          </dd>
        </>
      )}
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
      <dt>Id</dt>
      <dd>
        <IdChip value={schedule.scheduleId} />{' '}
        <Link to="/$organizationId/events" params={{ organizationId }} search={{ resourceId: schedule.scheduleId }}>
          Change history
        </Link>
      </dd>
    </dl>
  );
}

const statuses: Record<ScheduleRunStatus, string> = {
  opened: 'opened: a session was started',
  missed: 'missed: the service was not running',
  failed: 'failed: no session could be started',
};

function Runs({ scheduleId }: { scheduleId: string }) {
  const search = scheduleSearch(useSearch({ from: '/$organizationId/schedules/$scheduleId' }));
  const navigate = useNavigate();
  const runs = useList(['schedules', scheduleId, 'runs', search], (client, page) =>
    client.schedules.runs(scheduleId, { ...search, ...page }),
  );
  const columns: Column<ScheduleRun>[] = [
    { label: 'Time', cell: ({ scheduledAt }) => <ExactTime at={scheduledAt} /> },
    { label: 'Status', cell: (run) => <RunStatus run={run} /> },
    { label: 'Recorded', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <section className="stack" aria-labelledby="runs">
      <h2 id="runs">Runs</h2>
      <div className="filters">
        <Select
          label="Status"
          value={search.status ?? ''}
          onChange={({ currentTarget: { value } }) =>
            void navigate({
              to: '.',
              search: value ? { status: value as ScheduleRunStatus } : {},
              replace: true,
              resetScroll: false,
            })
          }
          options={[
            { value: '', label: 'All' },
            ...Object.entries(statuses).map(([value, label]) => ({ value, label })),
          ]}
        />
      </div>
      <List
        caption="Runs, newest first"
        query={runs}
        columns={columns}
        rowKey={({ scheduledAt }) => scheduledAt}
        empty={<p>{search.status ? 'No matching runs.' : 'No runs yet.'}</p>}
      />
    </section>
  );
}
