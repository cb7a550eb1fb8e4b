// The columns of the event log: what happened, who did it, and when.
import type { Event } from '@signalbox/client';
import { actionParts } from '../../lib/event-text.ts';
import { Badge } from '../../ui/badge.tsx';
import { RowTitle } from '../../ui/row-title.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { Actor } from './actor.tsx';

/** `names`: of agents, by their ids. */
export const eventColumns = (names: ReadonlyMap<string, string>): readonly Column<Event>[] => [
  {
    id: 'event',
    label: 'Event',
    cell: (event) => {
      const { action, particular } = actionParts(event, names);
      const badge = event.outcome !== 'success' && <Badge tone="bad">{event.outcome}</Badge>;
      return <RowTitle title={action} about={particular} badge={badge} />;
    },
  },
  { id: 'actor', label: 'Actor', width: '13rem', phone: 'under', cell: ({ actor }) => <Actor actor={actor} /> },
  {
    id: 'type',
    label: 'Type',
    width: '14rem',
    choice: 'shown',
    from: 'desktop',
    cell: ({ type }) => (
      <code className="quiet" title={type}>
        {type}
      </code>
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
  {
    id: 'sequence',
    label: 'Number',
    width: '6rem',
    end: true,
    choice: 'hidden',
    from: 'desktop',
    cell: ({ sequence }) => sequence.toLocaleString('en'),
  },
  {
    id: 'time',
    label: 'Time',
    width: '7rem',
    end: true,
    phone: 'under-aside',
    cell: ({ occurredAt }) => <Time at={occurredAt} />,
  },
];
