// The columns of the list of sessions: first what a person recognizes, then how it is, for whom, how long, how much, how old.
import type { ListedSession } from '@signalbox/client';
import { Badge, Status } from '../../ui/badge.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { RowTitle } from '../../ui/row-title.tsx';
import type { Column } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration, Time } from '../../ui/time.tsx';
import { number, waitingText } from './session-text.ts';

export function sessionColumns(nameOf: (session: ListedSession) => string): Column<ListedSession>[] {
  return [
    {
      id: 'session',
      label: 'Session',
      cell: (session) => <SessionTitle session={session} name={nameOf(session)} />,
    },
    {
      id: 'status',
      label: 'Status',
      width: '22%',
      phone: 'aside',
      cell: (session) => <StatusAndReason session={session} />,
    },
    {
      id: 'endUser',
      label: 'End user',
      width: '9rem',
      from: 'desktop',
      choice: 'shown',
      phone: 'under',
      cell: ({ endUser }) => endUser && <PlainText text={endUser.name ?? endUser.id} />,
    },
    {
      id: 'environment',
      label: 'Environment',
      width: '8rem',
      choice: 'hidden',
      cell: ({ environment }) => environment,
    },
    {
      id: 'duration',
      label: 'Working',
      width: '6rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      // It is counted up to the last call that has ended.
      cell: ({ workingMs, status }) =>
        workingMs === null || (workingMs === 0 && status === 'running') ? '–' : duration(workingMs),
    },
    {
      id: 'lasted',
      label: 'Lasted',
      width: '6rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ createdAt, endedAt }) =>
        endedAt === null ? '–' : duration(Date.parse(endedAt) - Date.parse(createdAt)),
    },
    {
      id: 'turns',
      label: 'Turns',
      width: '4rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ turn }) => number(turn),
    },
    {
      id: 'tokens',
      label: 'Tokens',
      width: '6rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ usage }) => number(usage.inputTokens + usage.outputTokens),
    },
    {
      id: 'cost',
      label: 'Cost',
      // As wide as `<$0.0001` and `$1,234.56`.
      width: '6rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      cell: ({ usage }) => (usage.costUsd === null ? '–' : <Dollars usd={usage.costUsd} as="short" />),
    },
    {
      id: 'id',
      label: 'ID',
      width: '8rem',
      choice: 'hidden',
      from: 'desktop',
      cell: ({ sessionId }) => <IdChip value={sessionId} />,
    },
    {
      id: 'opened',
      label: 'Opened',
      width: '7rem',
      end: true,
      sorts: true,
      phone: 'under-aside',
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ];
}

/** The agent and the first words. An agent may be called "Draft", so the badge alone says what is one. */
export function SessionTitle({ session: { draft, preview }, name }: { session: ListedSession; name: string }) {
  return <RowTitle title={name} about={preview} badge={draft && <Badge>draft</Badge>} />;
}

/** The reason is in the same line, cut at the end of the column. */
function StatusAndReason({ session }: { session: ListedSession }) {
  const { status, error } = session;
  const reason = error ? error.message : waitingText(session);
  return (
    <span title={error ? `${error.code}: ${error.message}` : undefined}>
      {error && status === 'idle' ? <Badge tone="bad">turn failed</Badge> : <Status value={status} />}{' '}
      <span className="session-reason quiet small">{reason}</span>
    </span>
  );
}
