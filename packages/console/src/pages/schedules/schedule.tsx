// One schedule: when it opens Sessions, and what became of each of its occurrences.
import type { Schedule, ScheduleRun, ScheduleRunStatus } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useAsk, useList, useOrganization } from '../../organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { Id } from '../../ui/copy.tsx';
import { Select } from '../../ui/field.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { useAgent } from '../sessions/facts.tsx';
import { costWords, number } from '../sessions/words.ts';
import { ScheduleMenu } from './actions.tsx';
import { RunStatus } from './run-status.tsx';
import { textOf } from './schedule-form.tsx';
import { scheduleSearch } from './search.ts';
import { When } from './when.tsx';

export function SchedulePage() {
  const { scheduleId } = useParams({ from: '/$organizationId/schedules/$scheduleId' });
  const query = useAsk(['schedules', scheduleId], (client) => client.schedules.get(scheduleId));
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
      title={agent ? `Schedule of ${agent.name}` : 'Schedule'}
      about={
        <>
          <Status value={schedule.status} /> <When schedule={schedule} />
        </>
      }
      actions={
        <ScheduleMenu
          schedule={schedule}
          label="Actions for this schedule"
          onDeleted={() => void navigate({ to: '/$organizationId/schedules', params: { organizationId } })}
        />
      }
    >
      {agent?.archivedAt && (
        <Notice kind="warn">
          <p>Its agent is archived: occurrences fail until you change the agent, or pause or delete the schedule.</p>
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
    budget?.maxCostUsd !== undefined && costWords(budget.maxCostUsd),
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
      <dt>Next Session</dt>
      <dd>
        {nextAt ? (
          <>
            <Time at={nextAt} />, <ExactTime at={nextAt} /> <span className="quiet small">in this browser’s time</span>
          </>
        ) : schedule.status === 'paused' ? (
          'none while it is paused'
        ) : (
          'none: its time has passed'
        )}
      </dd>
      <dt>First message</dt>
      <dd>
        {schedule.input === null ? (
          <span className="quiet">none: Sessions are opened idle</span>
        ) : (
          <LongText text={textOf(schedule.input)} />
        )}
      </dd>
      <dt>Then</dt>
      <dd>{schedule.closeOnIdle ? 'completed when the turn is over' : 'stays open for more messages'}</dd>
      {limits.length > 0 && (
        <>
          <dt>Budget</dt>
          <dd>at most {limits.join(', ')} a Session</dd>
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
      <dt>Made</dt>
      <dd>
        <Time at={schedule.createdAt} />
      </dd>
      <dt>Id</dt>
      <dd>
        <Id value={schedule.scheduleId} />{' '}
        <Link to="/$organizationId/events" params={{ organizationId }} search={{ resourceId: schedule.scheduleId }}>
          In the event log
        </Link>
      </dd>
    </dl>
  );
}

const statuses: Record<ScheduleRunStatus, string> = {
  opened: 'opened: there is a Session',
  missed: 'missed: the service was not running',
  failed: 'failed: the Session was refused',
};

function Runs({ scheduleId }: { scheduleId: string }) {
  const search = scheduleSearch(useSearch({ from: '/$organizationId/schedules/$scheduleId' }));
  const navigate = useNavigate();
  const runs = useList(['schedules', scheduleId, 'runs', search], (client, page) =>
    client.schedules.runs(scheduleId, { ...search, ...page }),
  );
  const columns: Column<ScheduleRun>[] = [
    { label: 'Time', cell: ({ scheduledAt }) => <ExactTime at={scheduledAt} /> },
    { label: 'What became of it', cell: (run) => <RunStatus run={run} /> },
    { label: 'Dealt with', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <section className="stack" aria-labelledby="occurrences">
      <h2 id="occurrences">Occurrences</h2>
      <div className="filters">
        <Select
          label="What became of them"
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
        caption="Occurrences, newest first"
        query={runs}
        columns={columns}
        rowKey={({ scheduledAt }) => scheduledAt}
        empty={<p>{search.status ? 'None of these.' : 'None yet: its first time is still to come.'}</p>}
      />
    </section>
  );
}
