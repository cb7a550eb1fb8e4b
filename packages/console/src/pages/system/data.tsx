import { Inbox } from 'lucide-react';
import { useState } from 'react';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Code, Json } from '../../ui/copy.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Figure } from '../../ui/figure.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Menu } from '../../ui/menu.tsx';
import { RowTitle } from '../../ui/row-title.tsx';
import { type Column, loaded, Table } from '../../ui/table.tsx';
import { Specimen } from './system.tsx';

interface Row {
  id: string;
  title: string;
  status: string;
  user: string;
  seconds: number;
}

const statuses = ['running', 'waiting', 'completed', 'failed', 'cancelled'];
const rows: readonly Row[] = [
  'My order 1042 arrived damaged. Please refund it.',
  'A first message that is much longer than the column, so that it ends in an ellipsis and the row stays one line high',
  // In a font of the console: those of the system differ.
  'Η παραγγελία μου έφτασε κατεστραμμένη',
  'Where is my invoice?',
  'x',
].map((title, index) => ({
  id: `ses_01m82mwmbpecvbd9b1c0jr5p6${index}`,
  title,
  status: statuses[index]!,
  user: `cus_${index * 1181}`,
  seconds: 12.4 * (index + 1),
}));

const columns: readonly Column<Row>[] = [
  { id: 'title', label: 'Session', cell: ({ title }) => <RowTitle title="Refund desk" about={title} /> },
  { id: 'status', label: 'Status', width: '8rem', phone: 'aside', cell: ({ status }) => <Status value={status} /> },
  { id: 'user', label: 'End user', width: '8rem', phone: 'under', choice: 'shown', cell: ({ user }) => user },
  { id: 'id', label: 'ID', width: '9rem', from: 'desktop', choice: 'shown', cell: ({ id }) => <IdChip value={id} /> },
  {
    id: 'duration',
    label: 'Duration',
    width: '7rem',
    end: true,
    sorts: true,
    phone: 'under-aside',
    cell: ({ seconds }) => `${seconds.toFixed(1)} s`,
  },
];

const never = { data: undefined, error: null, refetch: async () => {} };

export function Data() {
  return (
    <>
      <Specimen name="States">
        <div className="row">
          {[...statuses, 'idle', 'pending', 'approved', 'denied', 'paused', 'disabled'].map((value) => (
            <Status key={value} value={value} />
          ))}
        </div>
      </Specimen>
      <Specimen name="Table">
        <TableStates />
      </Specimen>
      <Specimen name="Table loading">
        <Table
          name="system-loading"
          caption="Sessions"
          query={never}
          columns={columns}
          rowKey={({ id }) => id}
          empty={null}
        />
      </Specimen>
      <Specimen name="Table empty">
        <Table
          name="system-empty"
          caption="Sessions"
          query={loaded<Row>([])}
          columns={columns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState
              icon={Inbox}
              title="No sessions yet"
              action={<Button look="primary">New session</Button>}
              docs={{ label: 'How sessions work', href: '/docs' }}
            >
              A session is one run of an agent: a task or a conversation.
            </EmptyState>
          }
        />
      </Specimen>
      <Specimen name="Table failed">
        <Table
          name="system-failed"
          caption="Sessions"
          query={{ ...never, error: new Error('The connection was lost.') }}
          columns={columns}
          rowKey={({ id }) => id}
          empty={null}
        />
      </Specimen>
      <Specimen name="Figures">
        <div className="columns">
          <Figure
            label="Sessions"
            value="1,284"
            change={{ by: 0.12, good: 'up', against: 'the 24 hours before' }}
            points={[4, 6, 5, 9, 8, 12, 11, 14]}
          />
          <Figure
            label="First token"
            value="0.8 s"
            about="p95 2.1 s"
            change={{ by: 0.4, good: 'down', against: 'the 24 hours before' }}
            points={[1, 1, 1.1, 0.9, 1.2, 1.8, 2.1, 2]}
          />
          <Figure
            label="Errors"
            value="0%"
            change={{ by: 0, good: 'down', against: 'the 24 hours before' }}
            points={[0, 0, 0, 0]}
          />
          <Figure label="Cost" value="$4.20" change={{ by: undefined, against: 'the 24 hours before' }} />
        </div>
      </Specimen>
      <Specimen name="Code">
        <Json value={{ orderId: '1042', amount: 42.5, isUrgent: true, note: null }} />
        <Code text="npx signalbox start" />
        <div className="row">
          <IdChip value="ses_01m82mwmbpecvbd9b1c0jr5p69" />
        </div>
      </Specimen>
    </>
  );
}

function TableStates() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set([rows[1]!.id]));
  const [sort, setSort] = useState({ by: 'duration', isDescending: true });
  const sorted = rows.toSorted((a, b) => (sort.isDescending ? b.seconds - a.seconds : a.seconds - b.seconds));
  return (
    <Table
      name="system"
      caption="Sessions"
      query={loaded(sorted)}
      columns={columns}
      rowKey={({ id }) => id}
      rowLink={() => ({ to: '/_system' })}
      actions={({ title }) => (
        <Menu label={`Actions for ${title}`} items={[{ label: 'Close session', onSelect: () => {} }]} />
      )}
      sort={{ ...sort, onChange: (by, isDescending) => setSort({ by, isDescending }) }}
      selection={{
        selected,
        onChange: setSelected,
        actions: (items) => <Button small>Close {items.length}</Button>,
      }}
      empty={null}
    />
  );
}
