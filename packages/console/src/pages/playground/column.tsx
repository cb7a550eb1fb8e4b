// One column: what it runs, and what that shows.
import type { Draft } from '@signalbox/client';
import { BookOpen, Copy, Save, Trash2, UserPlus } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { Menu, type MenuItem } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { PlainText } from '../../ui/text.tsx';
import { columnOf } from './entry.ts';
import { LoadDialog } from './load-dialog.tsx';
import { Setup } from './setup.tsx';
import { type Column, draftOf, letterOf } from './state.ts';

// It reads Markdown and streams, which the page does not need until something runs.
const Output = lazy(() => import('./output.tsx').then((module) => ({ default: module.Output })));
const SaveVersion = lazy(() => import('./save-dialogs.tsx').then((module) => ({ default: module.SaveVersion })));
const SaveAgent = lazy(() => import('./save-dialogs.tsx').then((module) => ({ default: module.SaveAgent })));

export function ColumnView({
  column,
  index,
  fromTurn,
  isSetupHidden,
  error,
  onChange,
  onDuplicate,
  onRemove,
  onText,
}: {
  column: Column;
  index: number;
  fromTurn: number;
  isSetupHidden: boolean;
  /** Why it did not start. */
  error: unknown;
  onChange: (change: Partial<Column>) => void;
  /** Undefined if there is no room. */
  onDuplicate: (() => void) | undefined;
  onRemove: (() => void) | undefined;
  onText: (text: string) => void;
}) {
  const { may } = useOrganization();
  const [dialog, setDialog] = useState<'load' | 'version' | 'agent'>();
  const { source, definition, run } = column;
  const close = () => setDialog(undefined);
  const items: MenuItem[] = [
    { label: 'Load an agent…', icon: BookOpen, onSelect: () => setDialog('load'), group: 'open' },
    ...(onDuplicate ? [{ label: 'Duplicate column', icon: Copy, onSelect: onDuplicate, group: 'open' }] : []),
    ...(source && may('write')
      ? [{ label: 'Save as version…', icon: Save, onSelect: () => setDialog('version'), group: 'save' }]
      : []),
    ...(may('write')
      ? [{ label: 'Save as new agent…', icon: UserPlus, onSelect: () => setDialog('agent'), group: 'save' }]
      : []),
    ...(onRemove ? [{ label: 'Remove column', icon: Trash2, onSelect: onRemove, danger: true, group: 'remove' }] : []),
  ];
  const mocked = new Set(run ? Object.keys((JSON.parse(run.draft) as Draft).mocks ?? {}) : []);
  const isStale = run !== null && run.draft !== JSON.stringify(draftOf(column));
  return (
    <section className="playground-column card" aria-label={`Column ${letterOf(index)}`}>
      <header className="row apart">
        <h2>
          <span className="playground-letter" aria-hidden="true">
            {letterOf(index)}
          </span>{' '}
          <PlainText text={source?.name ?? String(definition.name ?? 'New agent')} />{' '}
          <span className="quiet small">{source ? `from version ${source.version}` : 'not saved'}</span>
        </h2>
        <Menu label={`Actions of column ${letterOf(index)}`} items={items} />
      </header>
      {!isSetupHidden && <Setup column={column} onChange={onChange} />}
      {error !== undefined && <ErrorNotice error={error} />}
      {run ? (
        <>
          {isStale && <p className="quiet small">Changed since this run.</p>}
          <Suspense fallback={<SkeletonCards cards={1} />}>
            <Output key={run.sessionId} sessionId={run.sessionId} {...{ fromTurn, mocked, onText }} />
          </Suspense>
        </>
      ) : (
        <p className="quiet small playground-waiting">The output appears here.</p>
      )}
      {dialog === 'load' && (
        <LoadDialog
          onLoad={({ source, definition, tools }) => onChange({ source, definition, tools })}
          onClose={close}
        />
      )}
      <Suspense>
        {dialog === 'version' && source && (
          <SaveVersion
            column={column}
            source={source}
            onSaved={(agent) => {
              onChange({ source: columnOf(agent).source, definition: columnOf(agent).definition });
              close();
            }}
            onClose={close}
          />
        )}
        {dialog === 'agent' && (
          <SaveAgent
            column={column}
            onSaved={(agent) => onChange({ source: columnOf(agent).source, definition: columnOf(agent).definition })}
            onClose={close}
          />
        )}
      </Suspense>
    </section>
  );
}
