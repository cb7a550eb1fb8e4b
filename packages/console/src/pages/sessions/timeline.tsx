// Turns with their operations and how long each took, as bars and as text.
import type { SessionTurn, TurnOperation } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type ListQuery, useOrganization } from '../../organization.tsx';
import { toolTitle } from '../../text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Loading } from '../../ui/list.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration, Time, useNow } from '../../ui/time.tsx';
import { costText, number, stopReasonText, tokensText } from './session-text.ts';

export function Timeline({ query }: { query: ListQuery<SessionTurn> }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  if (!data) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <Loading />;
  if (data.length === 0) return <p className="quiet">No turns yet. Send a message to start the first one.</p>;
  return (
    <div className="stack">
      <ol className="turns stack" reversed>
        {data.map((turn) => (
          <li key={turn.turn}>
            <Turn turn={turn} />
          </li>
        ))}
      </ol>
      {hasNextPage && (
        <div>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show earlier turns
          </Button>
        </div>
      )}
    </div>
  );
}

function Turn({ turn }: { turn: SessionTurn }) {
  const now = useNow();
  const { usage, stopReason } = turn;
  const from = Date.parse(turn.startedAt);
  // A running operation lasts until the newest time that the page knows.
  const until = Math.max(
    turn.endedAt ? Date.parse(turn.endedAt) : now,
    ...turn.operations.map((one) => endOf(one, from)),
  );
  return (
    <section className="card turn" aria-labelledby={`turn-${turn.turn}`}>
      <div className="row apart">
        <h2 id={`turn-${turn.turn}`}>Turn {turn.turn}</h2>
        <Status value={turn.status} />
      </div>
      <p className="row small quiet number">
        <Time at={turn.startedAt} />
        <span>{duration(until - from)}</span>
        <span>{number(usage.inputTokens + usage.outputTokens)} tokens</span>
        {usage.costUsd !== null && <span>{costText(usage.costUsd)}</span>}
        <span>Agent version {turn.agentVersion}</span>
      </p>
      {stopReason && stopReason !== 'endTurn' && <p>{stopReasonText[stopReason]}</p>}
      {turn.error && (
        <p>
          <PlainText text={turn.error.message} /> <code className="small">{turn.error.code}</code>
        </p>
      )}
      {turn.unavailableToolServers.map(({ name, reason }) => (
        <Notice kind="warn" key={name}>
          <p>
            The tools of <PlainText text={name} /> were unavailable: <PlainText text={reason} />
          </p>
        </Notice>
      ))}
      <table className="operations">
        <caption className="visually-hidden">Operations of turn {turn.turn}, in order</caption>
        <thead className="visually-hidden">
          <tr>
            <th scope="col">Operation</th> <th scope="col">Status</th> <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody>
          {turn.operations.map((operation) => (
            <Operation
              key={`${operation.operationId} ${operation.kind}`}
              operation={operation}
              from={from}
              until={until}
              now={now}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const kinds: Record<TurnOperation['kind'], string> = {
  model: 'Model',
  tool: 'Tool',
  approval: 'Approval of',
  compaction: 'Summary by',
};

function Operation({
  operation: { kind, name, step, status, startedAt, endedAt, usage, childSessionId },
  from,
  until,
  now,
}: {
  operation: TurnOperation;
  from: number;
  until: number;
  now: number;
}) {
  const { organizationId } = useOrganization();
  const begin = startedAt === null ? undefined : Date.parse(startedAt);
  const end = endedAt === null ? Math.max(now, begin ?? 0) : Date.parse(endedAt);
  const whole = Math.max(1, until - from);
  return (
    <tr data-kind={kind}>
      <th scope="row">
        <span className="quiet small">
          {step} · {kinds[kind]}
        </span>{' '}
        <PlainText text={kind === 'tool' || kind === 'approval' ? toolTitle(name) : name} />
        {childSessionId && (
          <>
            {' '}
            <Link
              className="small"
              to="/$organizationId/sessions/$sessionId"
              params={{ organizationId, sessionId: childSessionId }}
            >
              child session{' '}
            </Link>
          </>
        )}
        {usage && <span className="quiet small number"> {tokensText(usage)}</span>}
      </th>
      <td>
        <Status value={status} />
      </td>
      <td className="number small">
        {begin === undefined ? (
          <span className="quiet">not started</span>
        ) : (
          <>
            {duration(Math.max(0, end - begin))}
            <span className="bar" aria-hidden="true">
              <span
                style={{
                  left: `${share(begin - from, whole)}%`,
                  width: `${Math.max(0.5, share(end - begin, whole))}%`,
                }}
              />
            </span>
          </>
        )}
      </td>
    </tr>
  );
}

function endOf({ startedAt, endedAt }: TurnOperation, from: number): number {
  return Date.parse(endedAt ?? startedAt ?? '') || from;
}

function share(ms: number, whole: number): number {
  return Math.min(100, Math.max(0, (ms / whole) * 100));
}
