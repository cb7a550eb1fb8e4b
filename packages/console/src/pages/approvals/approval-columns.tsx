// The columns of the list of decided approvals: first what was to be done, then what became of it and by whom.
import type { Approval } from '@signalbox/client';
import { toolTitle } from '../../lib/text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import type { Column } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { AgentName } from './approval-source.tsx';
import { InputLine } from './input-line.tsx';
import { nameOf } from './resolution.tsx';

export function approvalColumns(userId: string): Column<Approval>[] {
  return [
    {
      id: 'call',
      label: 'Call',
      cell: ({ name, input, editedInput }) => (
        <span className="call-title">
          <strong>
            <PlainText text={toolTitle(name)} />
          </strong>
          <InputLine input={editedInput ?? input} />
        </span>
      ),
    },
    { id: 'status', label: 'Status', width: '7rem', phone: 'aside', cell: ({ status }) => <Status value={status} /> },
    {
      id: 'decidedBy',
      label: 'Decided by',
      width: '8rem',
      phone: 'under',
      cell: (approval) =>
        approval.resolvedBy ? <PlainText text={nameOf(approval, userId)} /> : <span className="quiet">–</span>,
    },
    {
      id: 'reason',
      label: 'Reason',
      width: '12%',
      choice: 'shown',
      from: 'wide',
      cell: ({ reason }) => reason !== null && <PlainText text={reason} />,
    },
    {
      id: 'agent',
      label: 'Agent',
      width: '9rem',
      choice: 'shown',
      from: 'desktop',
      cell: ({ agentId }) => <AgentName agentId={agentId} />,
    },
    {
      id: 'environment',
      label: 'Environment',
      width: '7rem',
      choice: 'shown',
      cell: ({ environment }) => environment,
    },
    {
      id: 'session',
      label: 'Session',
      width: '9rem',
      choice: 'hidden',
      from: 'desktop',
      cell: ({ sessionId }) => <IdChip value={sessionId} />,
    },
    {
      id: 'decided',
      label: 'Decided',
      width: '6.5rem',
      end: true,
      phone: 'under-aside',
      cell: ({ resolvedAt }) => <Time at={resolvedAt} absent="not yet" />,
    },
  ];
}
